"""The frontier and the visited set in memory, packed: a document is one bytes object, and so are the fingerprints of
some keys.

A queued document takes 85 to 107 bytes besides the UTF-8 bytes of key, URL and parent, 142 at most where documents get
new scores; a visited one takes 19 (``python -m benchmarks.frontier_memory``).
"""

from __future__ import annotations

import heapq
import struct
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from itertools import chain

from crawl4llm.base.reasons import FRONTIER_FULL, HOST_FULL
from crawl4llm.base.urls import host_of
from crawl4llm.frontier import NO_CAPS, SCORE_BYTES, Caps, Entry, Evicted, Lease, Outcome, order_of

_GARBAGE = 500
"""Stale documents in the heap that are no reason to clear it, however few are not."""
_END = "\0\0"
"""Ends a text. No text has it within, as each NUL there is followed by 1; so it sorts before what goes on."""
_REST, _SCORE = struct.Struct(">IIH??d"), struct.Struct(">d")
_HAS_URL = -_REST.size + 10
"""Place of the fourth field."""
_HOPS_BITS = 3
"""Of the third field; the others are the cell's."""
_PER_BUCKET, _GROWTH = 16, 4
"""Documents in a bucket, in the mean, for which there are too few; times so many buckets there are then."""
_FINGERPRINT = struct.Struct("<qq")
_FINGERPRINTS = 32
"""Of keys, in a bucket, in the mean, for which there are too few; there are twice so many then."""


def pack(entry: Entry) -> bytes:
    """Return a document as bytes that sort as the frontier does."""
    key, url, parent = entry.key, entry.url, entry.parent
    texts = (key, "" if url == key else url, parent or "")
    text = _END.join([one.replace("\0", "\0\1") for one in texts]).encode("utf-8", "surrogatepass")
    place = entry.cell << _HOPS_BITS | entry.hops
    rest = _REST.pack(entry.depth, entry.attempts, place, url != key, parent is not None, entry.score)
    return order_of(entry.score) + text + rest


def unpack(document: bytes) -> Entry:
    """Return the document that was packed."""
    depth, attempts, place, has_url, has_parent, score = _REST.unpack_from(document, len(document) - _REST.size)
    text = str(document[SCORE_BYTES : -_REST.size], "utf-8", "surrogatepass")
    key, url, parent = [one.replace("\0\1", "\0") for one in text.split(_END)]
    hops, cell = place & (1 << _HOPS_BITS) - 1, place >> _HOPS_BITS
    return Entry(key, url if has_url else key, score, depth, parent if has_parent else None, attempts, hops, cell)


def url_of(document: bytes) -> str:
    """Return the URL of a packed document; empty where it has none, or its key is the same."""
    if not document[_HAS_URL]:
        return ""
    _, url, _ = document[SCORE_BYTES : -_REST.size].split(_END.encode(), 2)
    return str(url, "utf-8", "surrogatepass").replace("\0\1", "\0")


class _ByKey:
    """Packed documents, found by key. They lie in buckets by the hash of the key, a tuple each."""

    def __init__(self) -> None:
        self._buckets: list[tuple[bytes, ...]] = [()]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self._buckets)

    def __contains__(self, document: bytes) -> bool:
        return document in self._buckets[self._place(document)]

    def keep(self, documents: Iterable[bytes]) -> list[bytes]:
        """Return those of some documents that are there."""
        return [one for one in documents if one in self._buckets[self._place(one)]]

    def rescore(self, key: str, score: float) -> tuple[bytes, bytes] | None:
        """Give a document another score; return it as it was and as it is. None: it is not there, or has that score."""
        name = (key.replace("\0", "\0\1") + _END).encode("utf-8", "surrogatepass")
        place = hash(name) % len(self._buckets)
        bucket = self._buckets[place]
        for at, document in enumerate(bucket):
            if document.startswith(name, SCORE_BYTES):
                order = order_of(score)
                if document.startswith(order):
                    return None
                new = order + document[SCORE_BYTES : -_SCORE.size] + _SCORE.pack(score)
                self._buckets[place] = (*bucket[:at], new, *bucket[at + 1 :])
                return document, new
        return None

    def add(self, document: bytes) -> None:
        """Add a document whose key no other one has."""
        self._count += 1
        if self._count > _PER_BUCKET * len(self._buckets):
            documents, self._buckets = list(self), [()] * (_GROWTH * len(self._buckets))
            for one in documents:
                self._buckets[self._place(one)] += (one,)
        self._buckets[self._place(document)] += (document,)

    def remove(self, document: bytes) -> None:
        """Remove a document that is there."""
        self._count -= 1
        place = self._place(document)
        bucket = self._buckets[place]
        at = bucket.index(document)
        self._buckets[place] = bucket[:at] + bucket[at + 1 :]

    def _place(self, document: bytes) -> int:
        name = document[SCORE_BYTES : document.index(b"\0\0", SCORE_BYTES) + 2]
        return hash(name) % len(self._buckets)


class MemoryFrontier:
    """Implements :class:`crawl4llm.frontier.Frontier`; ends with the process.

    A new score makes another packed document, with a place of its own in the heap; the old one is stale, as is one that
    was evicted, and passed over when it comes up. When a seventh of the heap is stale it is built anew.
    """

    def __init__(self, caps: Caps = NO_CAPS) -> None:
        self._caps = caps
        self._heap: list[bytes] = []
        self._queued = _ByKey()
        self._hosts: dict[str, list[bytes]] = {}
        """Documents queued by host, sorted, where hosts are capped."""
        self._leases: MutableMapping[int, Entry] = {}
        self._outcomes: Counter[tuple[Outcome, str | None]] = Counter()
        self._last_token = 0

    def push(self, entries: Iterable[Entry]) -> list[Evicted]:
        entries = list(entries)
        for entry in entries:
            self._enter(entry)
        evicted: list[Evicted] = []
        if self._caps.per_host is not None:
            for host in sorted({host_of(entry.url) for entry in entries} & self._hosts.keys()):
                of_host = self._hosts[host]
                evicted += self._evict(len(of_host) - self._caps.per_host, of_host, HOST_FULL)
        if self._caps.total is not None:
            evicted += self._evict(len(self._queued) - self._caps.total, self._queued, FRONTIER_FULL)
        return evicted

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        changed = 0
        for key, score in dict(scores).items():
            if (rescored := self._queued.rescore(key, score)) is not None:
                self._move(key, *rescored)
                changed += 1
        self._sweep()
        return changed

    def lease(self, n: int) -> list[Lease]:
        leases: list[Lease] = []
        while len(leases) < n and self._queued:
            document = heapq.heappop(self._heap)
            if document in self._queued:
                leases.append(self._lease(self._leave(document)))
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
        self._queued = _ByKey()
        self._hosts.clear()
        self._leases.clear()

    def _lease(self, entry: Entry) -> Lease:
        """Begin the lease of a document that has left the queue."""
        entry.attempts += 1
        self._last_token += 1
        self._leases[self._last_token] = entry
        return Lease(entry, self._last_token)

    def _enter(self, entry: Entry) -> None:
        document = pack(entry)
        self._queued.add(document)
        if self._caps.per_host is not None and (host := host_of(entry.url)):
            insort(self._hosts.setdefault(host, []), document)
        self._place(entry, document)

    def _place(self, entry: Entry, document: bytes) -> None:
        """Put a document that has just been queued in its place."""
        heapq.heappush(self._heap, document)

    def _move(self, key: str, document: bytes, new: bytes) -> None:
        """Put a document that has got another score in another place."""
        if self._caps.per_host is not None and (host := host_of(unpack(new).url)):
            of_host = self._hosts[host]
            del of_host[bisect_left(of_host, document)]
            insort(of_host, new)
        self._replace(key, document, new)

    def _replace(self, key: str, document: bytes, new: bytes) -> None:
        """Do so among those to be leased."""
        heapq.heappush(self._heap, new)

    def _leave(self, document: bytes) -> Entry:
        """Take a document out of the queue."""
        self._queued.remove(document)
        entry = unpack(document)
        if self._caps.per_host is not None and (host := host_of(entry.url)):
            of_host = self._hosts[host]
            del of_host[bisect_left(of_host, document)]
            if not of_host:
                del self._hosts[host]
        return entry

    def _evict(self, surplus: int, among: Iterable[bytes], reason: str) -> list[Evicted]:
        """Drop the worst, worst first."""
        if surplus <= 0:
            return []
        worst = [self._leave(document) for document in heapq.nlargest(surplus, among)]
        self._sweep()
        self._outcomes[Outcome.DROPPED, reason] += len(worst)
        return [Evicted(entry, reason) for entry in worst]

    def _sweep(self) -> None:
        if len(self._heap) > len(self._queued) * 7 // 6 + _GARBAGE:
            self._heap = list(self._queued)
            heapq.heapify(self._heap)


class MemoryVisited:
    """Implements :class:`crawl4llm.frontier.visited.VisitedSet` by 128 bits of each key, which lie in buckets.

    They are two hashes by SipHash (Aumasson and Bernstein 2012), which is Python's own for bytes, of the key and of the
    key after a prefix. Its secret is drawn anew for each process (unless PYTHONHASHSEED is set), so nobody can make
    URLs that share them. A look-up takes half the time that one by BLAKE2b would, and five times that of a set of str,
    which has 120 bytes a key.
    """

    def __init__(self) -> None:
        self._buckets = [b""]
        self._count = 0

    def add(self, keys: Iterable[str]) -> list[str]:
        buckets = self._buckets
        new = []
        for key in keys:
            one, number = _fingerprint(key)
            place = number % len(buckets)
            if one not in buckets[place]:
                buckets[place] += one
                new.append(key)
                self._count += 1
                if self._count > _FINGERPRINTS * len(buckets):
                    self._divide()
        return new

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        one, number = _fingerprint(key)
        return one in self._buckets[number % len(self._buckets)]

    def __len__(self) -> int:
        return self._count

    def _divide(self) -> None:
        """Make two buckets of each, by one more bit."""
        buckets, count = self._buckets, len(self._buckets)
        for place in range(count):
            halves: tuple[list[bytes], list[bytes]] = [], []
            for first, second in _FINGERPRINT.iter_unpack(buckets[place]):
                halves[first // count % 2].append(_FINGERPRINT.pack(first, second))
            buckets[place] = b"".join(halves[0])
            buckets.append(b"".join(halves[1]))


def _fingerprint(key: str) -> tuple[bytes, int]:
    """Return 128 bits that stand for a key, and the first 64 of them as a number."""
    data = key.encode("utf-8", "surrogatepass")
    first = hash(data)
    return _FINGERPRINT.pack(first, hash(b"2" + data)), first
