"""The frontier in memory: a binary heap of float scores."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping

from crawl4llm.frontier import Entry, Lease, Outcome

_GARBAGE = 1000
"""Stale places in the heap that are no reason to clear it, however few are not."""


class MemoryFrontier:
    """Implements :class:`crawl4llm.frontier.Frontier`; ends with the process.

    A new score is a new place in the heap; the old one is stale, and skipped when it comes up. When most places are
    stale the heap is built anew.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._queued: dict[str, Entry] = {}
        self._leases: dict[int, Entry] = {}
        self._outcomes: Counter[tuple[Outcome, str | None]] = Counter()
        self._last_token = 0

    def push(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._queued[entry.key] = entry
            heapq.heappush(self._heap, (-entry.score, entry.key))

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        changed = 0
        for key, score in dict(scores).items():
            entry = self._queued.get(key)
            if entry is not None and entry.score != score:
                entry.score = score
                heapq.heappush(self._heap, (-score, key))
                changed += 1
        if len(self._heap) > 2 * len(self._queued) + _GARBAGE:
            self._heap = [(-entry.score, entry.key) for entry in self._queued.values()]
            heapq.heapify(self._heap)
        return changed

    def lease(self, n: int) -> list[Lease]:
        leases: list[Lease] = []
        while self._queued and len(leases) < n:
            negative_score, key = heapq.heappop(self._heap)
            if key not in self._queued or self._queued[key].score != -negative_score:
                continue
            entry = self._queued.pop(key)
            entry.attempts += 1
            self._last_token += 1
            self._leases[self._last_token] = entry
            leases.append(Lease(entry, self._last_token))
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
        self.push([entry])
        return True

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
        self._leases.clear()
