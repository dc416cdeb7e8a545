"""The frontier in memory: a binary heap of float scores."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from crawl4llm.base.reasons import FRONTIER_FULL, HOST_FULL
from crawl4llm.base.urls import host_of
from crawl4llm.frontier import NO_CAPS, Caps, Entry, Evicted, Lease, Outcome

Place = tuple[float, str]
"""What stands for a document in a heap: :func:`place_of` it."""
_GARBAGE = 1000
"""Stale places in the heap that are no reason to clear it, however few are not."""


class MemoryFrontier:
    """Implements :class:`crawl4llm.frontier.Frontier`; ends with the process.

    A new score is a new place in the heap; the old one is stale, as is the place of a document that was evicted, and
    passed over when it comes up. When most places are stale the heap is built anew.
    """

    def __init__(self, caps: Caps = NO_CAPS) -> None:
        self._caps = caps
        self._heap: list[Place] = []
        self._queued: dict[str, Entry] = {}
        self._hosts: defaultdict[str, set[str]] = defaultdict(set)
        """Keys queued by host, where hosts are capped."""
        self._leases: dict[int, Entry] = {}
        self._outcomes: Counter[tuple[Outcome, str | None]] = Counter()
        self._last_token = 0

    def push(self, entries: Iterable[Entry]) -> list[Evicted]:
        entries = list(entries)
        for entry in entries:
            self._enter(entry)
        evicted: list[Evicted] = []
        if self._caps.per_host is not None:
            for host in sorted({host_of(entry.url) for entry in entries} & self._hosts.keys()):
                queued = [self._queued[key] for key in self._hosts[host]]
                evicted += self._evict(len(queued) - self._caps.per_host, queued, HOST_FULL)
        if self._caps.total is not None:
            evicted += self._evict(len(self._queued) - self._caps.total, self._queued.values(), FRONTIER_FULL)
        return evicted

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        changed = 0
        for key, score in dict(scores).items():
            entry = self._queued.get(key)
            if entry is not None and entry.score != score:
                self._rescore(entry, score)
                changed += 1
        self._sweep()
        return changed

    def lease(self, n: int) -> list[Lease]:
        leases: list[Lease] = []
        while len(leases) < n and self._queued:
            place = heapq.heappop(self._heap)
            if self._is_queued(place):
                leases.append(self._lease(self._leave(place[1])))
        return leases

    def settle(self, lease: Lease, outcome: Outcome, reason: str | None = None) -> bool:
        if self._leases.pop(lease.token, None) is None:
            return False
        self._outcomes[outcome, reason] += 1
        return True

    def give_back(self, lease: Lease, *, attempted: bool) -> bool:
        entry = self._leases.pop(lease.token, None)
        if entry is None:
            return False
        if not attempted:
            entry.attempts -= 1
        self._enter(entry)
        return True

    def withdraw(self, lease: Lease) -> Entry | None:
        entry = self._leases.pop(lease.token, None)
        if entry is not None:
            entry.attempts -= 1
        return entry

    def __len__(self) -> int:
        return len(self._queued)

    @property
    def leased(self) -> int:
        return len(self._leases)

    @property
    def outcomes(self) -> Mapping[tuple[Outcome, str | None], int]:
        return self._outcomes

    def close(self) -> None:
        self._heap.clear()
        self._queued.clear()
        self._hosts.clear()
        self._leases.clear()

    def _lease(self, entry: Entry) -> Lease:
        """Begin the lease of a document that has left the queue."""
        entry.attempts += 1
        self._last_token += 1
        self._leases[self._last_token] = entry
        return Lease(entry, self._last_token)

    def _is_queued(self, place: Place) -> bool:
        """Return whether a document is queued with this score."""
        entry = self._queued.get(place[1])
        return entry is not None and -entry.score == place[0]

    def _enter(self, entry: Entry) -> None:
        self._queued[entry.key] = entry
        if self._caps.per_host is not None and (host := host_of(entry.url)):
            self._hosts[host].add(entry.key)
        self._place(entry)

    def _place(self, entry: Entry) -> None:
        """Put a document that has just been queued in its place."""
        heapq.heappush(self._heap, place_of(entry))

    def _rescore(self, entry: Entry, score: float) -> None:
        """Give a queued document another score and place."""
        entry.score = score
        heapq.heappush(self._heap, place_of(entry))

    def _leave(self, key: str) -> Entry:
        entry = self._queued.pop(key)
        if self._caps.per_host is not None and (host := host_of(entry.url)):
            self._hosts[host].discard(key)
        return entry

    def _evict(self, surplus: int, among: Iterable[Entry], reason: str) -> list[Evicted]:
        """Drop the worst, worst first."""
        if surplus <= 0:
            return []
        worst = heapq.nlargest(surplus, among, key=place_of)
        for entry in worst:
            self._leave(entry.key)
        self._sweep()
        self._outcomes[Outcome.DROPPED, reason] += len(worst)
        return [Evicted(entry, reason) for entry in worst]

    def _sweep(self) -> None:
        if len(self._heap) > 2 * len(self._queued) + _GARBAGE:
            self._heap = [place_of(entry) for entry in self._queued.values()]
            heapq.heapify(self._heap)


def place_of(entry: Entry) -> Place:
    """Return what sorts as the frontier does."""
    return -entry.score, entry.key


class MemoryVisited:
    """Keys in a set: 0.1 µs a look-up, against 5 µs for a Bloom filter, which pays only in front of a disk."""

    def __init__(self) -> None:
        self._keys: set[str] = set()

    def add(self, keys: Iterable[str]) -> list[str]:
        new = [key for key in dict.fromkeys(keys) if key not in self._keys]
        self._keys.update(new)
        return new

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)
