"""Documents, queues and the visited set in memory, packed: a document is one bytes object, and so are the fingerprints
of some keys.

A queued document takes 78 to 100 bytes besides the UTF-8 bytes of key, URL and parent; 134 at most if documents get new
scores. A visited one takes 19 bytes (``python -m benchmarks.frontier_memory``).
"""

from __future__ import annotations

import heapq
import struct
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from crawl4llm.base.urls import host_of
from crawl4llm.frontier.frontier import Entry
from crawl4llm.frontier.orders import Index, Move, NameOf

_GARBAGE, _GARBAGE_OF_QUEUE = 500, 4
"""Stale documents up to which the heap by score, or that of a queue, is not cleared, even if most are stale."""
_MANY_GONE = 8
"""If one in this many documents of a queue became stale together, they are removed."""
SCORE_BYTES: Final = 8
"""Bytes that :func:`order_of` returns."""
_DOUBLE, _WORD = struct.Struct(">d"), struct.Struct(">Q")
_SIGN, _POSITIVE = 1 << 63, (1 << 63) - 1
_END = "\0\0"
"""End of a text. No text contains it, because each NUL in a text is followed by 1; so a text sorts before its
continuations."""
_NULS = 2 * len(_END)
"""Bytes of the ends of the three texts of a document without NULs."""
_REST, _PLACE = struct.Struct(">IIH??"), struct.Struct(">H")
_HAS_URL = -_REST.size + 10
"""Offset of the fourth field."""
_HOPS_BITS = 3
"""Bits of the hops in the third field; the others are the cell's."""
_PER_BUCKET, _GROWTH = 16, 4
"""Average documents in a bucket above which the buckets are multiplied, and by how much."""
_FINGERPRINT = struct.Struct("<qq")
_FINGERPRINTS = 32
"""Average fingerprints in a bucket above which the number of buckets is doubled."""


def order_of(score: float) -> bytes:
    """Return bytes that ascend as scores descend. The bits of a double, taken as an integer, ascend with positive
    numbers and with the size of negative ones (IEEE 754-2008, 3.4); the two zeros are made one."""
    (bits,) = _WORD.unpack(_DOUBLE.pack(score + 0.0))
    return _WORD.pack(_POSITIVE - bits if bits < _SIGN else bits)


def score_of(order: bytes) -> float:
    """Return the score from bytes that begin with the result of :func:`order_of`; 0.0 for both zeros."""
    (word,) = _WORD.unpack_from(order)
    bits = _POSITIVE - word if word < _SIGN else word
    return float(_DOUBLE.unpack(_WORD.pack(bits))[0])


def pack(entry: Entry) -> bytes:
    """Return a document as bytes that sort in the order of the frontier."""
    key, url, parent = entry.key, entry.url, entry.parent
    texts = (key, "" if url == key else url, parent or "")
    text = _END.join(texts)
    if text.count("\0") > _NULS:
        text = _END.join([one.replace("\0", "\0\1") for one in texts])
    place = entry.cell << _HOPS_BITS | entry.hops
    rest = _REST.pack(entry.depth, entry.attempts, place, url != key, parent is not None)
    return order_of(entry.score) + text.encode("utf-8", "surrogatepass") + rest


def unpack(document: bytes) -> Entry:
    """Return the document that was packed."""
    depth, attempts, place, has_url, has_parent = _REST.unpack_from(document, len(document) - _REST.size)
    text = str(document[SCORE_BYTES : -_REST.size], "utf-8", "surrogatepass")
    texts = text.split(_END)
    if text.count("\0") > _NULS:
        texts = [one.replace("\0\1", "\0") for one in texts]
    key, url, parent = texts
    hops, cell, score = place & (1 << _HOPS_BITS) - 1, place >> _HOPS_BITS, score_of(document)
    return Entry(key, url if has_url else key, score, depth, parent if has_parent else None, attempts, hops, cell)


def url_of(document: bytes) -> str:
    """Return the URL of a packed document; empty if it has none, or its key is the same."""
    if not document[_HAS_URL]:
        return ""
    _, url, _ = document[SCORE_BYTES : -_REST.size].split(_END.encode(), 2)
    return str(url, "utf-8", "surrogatepass").replace("\0\1", "\0")


def cell_of(document: bytes) -> int:
    """Return the cell of a packed document."""
    (place,) = _PLACE.unpack_from(document, len(document) + _HAS_URL - _PLACE.size)
    return int(place) >> _HOPS_BITS


class _ByKey:
    """Packed documents by key, in buckets by the hash of the key, each a tuple."""

    def __init__(self) -> None:
        self._buckets: list[tuple[bytes, ...]] = [()]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self._buckets)

    def __contains__(self, document: bytes) -> bool:
        return document in self._buckets[self._place(document)]

    def rescore(self, key: str, score: float) -> tuple[bytes, bytes] | None:
        """Give a document another score; return it before and after. None if it is not there, or has that score."""
        name = (key.replace("\0", "\0\1") + _END).encode("utf-8", "surrogatepass")
        place = hash(name) % len(self._buckets)
        bucket = self._buckets[place]
        for at, document in enumerate(bucket):
            if document.startswith(name, SCORE_BYTES):
                order = order_of(score)
                if document.startswith(order):
                    return None
                new = order + document[SCORE_BYTES:]
                self._buckets[place] = (*bucket[:at], new, *bucket[at + 1 :])
                return document, new
        return None

    def add(self, document: bytes) -> None:
        """Add a document with a new key."""
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


class MemoryDocuments:
    """A medium (:class:`crawl4llm.frontier.orders.Medium`); ends with the process. By score it is an order, too.

    A new score makes another packed document, with its own place in the heap. The old one is stale, like an evicted
    one, and is skipped when it comes up. The heap is rebuilt when a seventh of it is stale.
    """

    def __init__(self, name_of: NameOf | None, *, by_host: bool) -> None:
        """``name_of`` names the queues of an order with several; None: the order is by score. ``by_host``: find the
        worst of a host, too."""
        self._name_of, self._by_host = name_of, by_host
        self._heap: list[bytes] = []
        self._queued = _ByKey()
        self._hosts: dict[str, list[bytes]] = {}
        """Queued documents by host, sorted."""

    def add(self, entry: Entry) -> bytes:
        document = pack(entry)
        self._queued.add(document)
        if self._by_host and (host := host_of(entry.url)):
            insort(self._hosts.setdefault(host, []), document)
        if self._name_of is None:
            heapq.heappush(self._heap, document)
        return document

    def remove(self, handle: bytes) -> Entry:
        self._queued.remove(handle)
        entry = unpack(handle)
        if self._by_host and (host := host_of(entry.url)):
            of_host = self._hosts[host]
            del of_host[bisect_left(of_host, handle)]
            if not of_host:
                del self._hosts[host]
        return entry

    def rescore(self, key: str, score: float) -> Move | None:
        if (rescored := self._queued.rescore(key, score)) is None:
            return None
        before, after = rescored
        if self._by_host and (host := host_of(url_of(after) or key)):
            of_host = self._hosts[host]
            del of_host[bisect_left(of_host, before)]
            insort(of_host, after)
        name = "" if self._name_of is None else self._name_of(url_of(after) or key, cell_of(after))
        return name, before, after

    def worst(self, surplus: int) -> list[bytes]:
        return heapq.nlargest(surplus, self._queued)

    def worst_of(self, host: str, most: int) -> list[bytes]:
        return self._hosts.get(host, [])[most:][::-1]

    def __len__(self) -> int:
        return len(self._queued)

    def __contains__(self, handle: bytes) -> bool:
        return handle in self._queued

    # -- the order by score ---------------------------------------------------------------------------------------

    def take(self, most: int) -> list[Entry]:
        taken: list[Entry] = []
        while len(taken) < most and self.first() is not None:
            taken.append(self.remove(heapq.heappop(self._heap)))
        return taken

    def first(self) -> bytes | None:
        while self._heap:
            if self._heap[0] in self._queued:
                return self._heap[0]
            heapq.heappop(self._heap)
        return None

    def leave(self, handle: bytes) -> Entry:
        entry = self.remove(handle)
        self._sweep()
        return entry

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        changed = 0
        for key, score in dict(scores).items():
            if (move := self.rescore(key, score)) is not None:
                _, _, after = move
                heapq.heappush(self._heap, after)
                changed += 1
        self._sweep()
        return changed

    def _sweep(self) -> None:
        if len(self._heap) > len(self._queued) * 7 // 6 + _GARBAGE:
            self._heap = list(self._queued)
            heapq.heapify(self._heap)


class MemoryQueues:
    """Queues (:class:`crawl4llm.frontier.orders.Queues`) in memory: a heap for each, without its best document.

    Stale documents are cleared away as in the heap by score.
    """

    def __init__(self, documents: MemoryDocuments, index: Index) -> None:
        self._documents, self._index = documents, index
        self._others: dict[str, list[bytes]] = {}
        self._moved: dict[str, set[bytes]] = {}
        """By queue, old versions of documents that were reranked since the last clearing."""

    def add(self, name: str, handle: bytes, worse: bytes | None) -> None:
        if worse is not None:
            heapq.heappush(self._others.setdefault(name, []), worse)

    def drop(self, name: str, handle: bytes) -> None:
        """Mark a document as stale, and remove all stale ones of the queue if they are many."""
        others = self._others.get(name)
        if others and len(others) > self._index.queued_of(name) * 5 // 4 + _GARBAGE_OF_QUEUE:
            best = self._index.best(name)
            self._others[name] = [one for one in set(others) if one != best and one in self._documents]
            heapq.heapify(self._others[name])

    def move(self, name: str, before: bytes, after: bytes) -> None:
        heapq.heappush(self._others[name], after)
        self._moved.setdefault(name, set()).add(before)

    def next(self, name: str) -> bytes | None:
        others = self._others.get(name, [])
        while others:
            if (document := heapq.heappop(others)) in self._documents:
                return document
        self._others.pop(name, None)
        return None

    def sweep(self) -> None:
        for name, gone in self._moved.items():
            if len(gone) > len(others := self._others.get(name, [])) // _MANY_GONE:
                others[:] = set(others) - gone  # sooner found than what is stale since long
                heapq.heapify(others)
            self.drop(name, b"")
        self._moved.clear()


class MemoryVisited:
    """Implements :class:`crawl4llm.frontier.visited.VisitedSet` by 128 bits of each key, which lie in buckets.

    They are two hashes by SipHash (Aumasson and Bernstein 2012), Python's own for bytes: of the key, and of the key
    after a prefix. Each process has its own secret (unless PYTHONHASHSEED is set), so nobody can make URLs that
    collide. A look-up takes half the time of BLAKE2b, and five times that of a set of str, which needs 120 bytes a key.
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
        """Split each bucket in two, by one more bit."""
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
