"""Documents and their queues in the store, in B-trees, so that documents can be found and removed at any place.

A document lies under its key. Beside it lies a policy's value for it, which mostly changes with its score, so that a
commit writes one page of the file for both. Sort keys are kept in order by score, by host and by queue, each only if it
is needed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from hashlib import blake2b
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from crawl4llm.base.urls import host_of
from crawl4llm.frontier.frontier import NO_CAPS, Caps, Entry
from crawl4llm.frontier.memory import SCORE_BYTES, order_of
from crawl4llm.frontier.orders import Index, Move, NameOf
from crawl4llm.frontier.runs import Record, SortedRuns, decode, encode, rescored
from crawl4llm.frontier.store import NAME, Store

CURRENT: Final = "current"
"""The table of documents."""
_SCORES, _HOSTS, _OWNED = "scores", "hosts", "owned"
"""Tables of sort keys: of all documents; after their hosts, with the number of documents of each; after their
queues."""
_DOCUMENT = b"\0"
"""A stored document begins with this byte; JSON, which may lie beside it, never does."""
_LENGTH = struct.Struct("<I")
_KEY_BYTES = 470
"""Documents with shorter keys lie under their keys. So those of one host, which often change together, are neighbours
if their keys are URLs. Others lie under this many bytes of their key, and a fingerprint."""
_WHOLE_BYTES = 495
"""Keys with a sort key that are no longer than this hold all of it; others hold this many bytes and a fingerprint,
which together is as much as LMDB allows."""
_MOST_TIES = 10_000
"""Most sort keys with an equal beginning of that length that are sorted in memory."""
_COUNT_BYTES = 8
_PIECE = 10_000
"""Documents checked between two commits of a rewrite."""
_SORTED = 65_536
"""Records sorted at once."""


class SortKeys:
    """Sort keys in order, each behind a prefix."""

    def __init__(self, store: Store, table: str) -> None:
        self._store, self._table = store, table

    def put(self, prefix: bytes, sort_key: bytes) -> None:
        key = fitted(prefix + sort_key, _WHOLE_BYTES)
        self._store.put(self._table, key, sort_key if len(key) > _WHOLE_BYTES else b"")

    def delete(self, prefix: bytes, sort_key: bytes) -> None:
        self._store.delete(self._table, fitted(prefix + sort_key, _WHOLE_BYTES))

    def has(self, prefix: bytes, sort_key: bytes) -> bool:
        return self._store.get(self._table, fitted(prefix + sort_key, _WHOLE_BYTES)) is not None

    def behind(self, prefix: bytes, *, backwards: bool = False) -> Iterator[bytes]:
        """Yield the sort keys after a prefix in order, or the last one first; they may not change meanwhile."""
        alike: list[bytes] = []
        start = b""
        for key, whole in self._store.items(self._table, prefix, backwards=backwards):
            if alike and (not key.startswith(start) or len(alike) == _MOST_TIES):
                yield from sorted(alike, reverse=backwards)
                alike.clear()
            if not key.startswith(prefix):
                return
            if whole:
                alike.append(whole)
                start = key[:_WHOLE_BYTES]
            else:
                yield key[len(prefix) :]
        yield from sorted(alike, reverse=backwards)


class StoredDocuments:
    """A medium (:class:`crawl4llm.frontier.orders.Medium`) in a store. By score it is an order, too."""

    def __init__(
        self, store: Store, name_of: NameOf | None, queued: int, caps: Caps = NO_CAPS, *, by_score: bool = True
    ) -> None:
        """``name_of`` names the queues of an order with several; None: this is the order, if ``by_score``, or there is
        no order. Sort keys are kept by score and by host if order or caps need them, or the store has them."""
        self._store, self._name_of, self._queued = store, name_of, queued
        self._scores, self._hosts, self._owned = (SortKeys(store, table) for table in (_SCORES, _HOSTS, _OWNED))
        is_order = name_of is None and by_score
        self._by_score = is_order or caps.total is not None or store.count(_SCORES) > 0
        self._by_host = caps.per_host is not None or store.count(_HOSTS) > 0

    def add(self, entry: Entry) -> bytes:
        record = encode(entry)
        host = host_of(entry.url) if self._by_host else ""
        self._put(host, record)
        self._queued += 1
        if host:
            self._count_host(_prefix_of(host), 1)
        return record[0]

    def remove(self, handle: bytes) -> Entry:
        key = fitted(handle[SCORE_BYTES:], _KEY_BYTES)
        if (stored := self._store.get(CURRENT, key)) is None:
            raise self._store.damaged("an index names a document that is not queued")
        entry = decode_stored(stored)
        self._store.delete(CURRENT, key)
        self._queued -= 1
        host = host_of(entry.url) if self._by_host else ""
        self._leave_indexes(host, handle)
        if host:
            self._count_host(_prefix_of(host), -1)
        return entry

    def rescore(self, key: str, score: float) -> Move | None:
        stored = self._store.get(CURRENT, fitted(key.encode("utf-8", "surrogatepass"), _KEY_BYTES))
        if stored is None or stored.startswith(order_of(score), _HEAD_BYTES):
            return None
        record = record_of(stored)
        host = name = ""
        if self._by_host or self._name_of is not None:
            entry = decode(record)
            host = host_of(entry.url) if self._by_host else ""
            name = self._name_of(entry.url or key, entry.cell) if self._name_of is not None else ""
        self._leave_indexes(host, record[0])  # the document itself is overwritten
        new = rescored(record, score)
        self._put(host, new)
        return name, record[0], new[0]

    def worst(self, surplus: int) -> list[bytes]:
        return list(islice(self._scores.behind(b"", backwards=True), surplus))

    def worst_of(self, host: str, most: int) -> list[bytes]:
        prefix = _prefix_of(host)
        surplus = max(self._count_host(prefix) - most, 0)
        return list(islice(self._hosts.behind(prefix, backwards=True), surplus))

    def __len__(self) -> int:
        return self._queued

    # -- the order by score ---------------------------------------------------------------------------------------

    def take(self, most: int) -> list[Entry]:
        return [self.remove(handle) for handle in list(islice(self._scores.behind(b""), most))]

    def first(self) -> bytes | None:
        return next(self._scores.behind(b""), None)

    leave = remove

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        return sum(self.rescore(key, score) is not None for key, score in dict(scores).items())

    # -- what is stored -------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Entry]:
        """Yield all documents, in the order of their keys."""
        return (decode_stored(stored) for _, stored in self._store.items(CURRENT) if is_document(stored))

    def best(self, most: int | None = None) -> Iterator[Entry]:
        """Yield the best documents, best first; None: all. Without an index by score all are read and sorted."""
        if self._by_score:
            handles = self._scores.behind(b"")
            stored = (self._store.get(CURRENT, fitted(handle[SCORE_BYTES:], _KEY_BYTES)) for handle in handles)
            return islice((decode_stored(one) for one in stored if one is not None), most)
        records = (record_of(stored) for _, stored in self._store.items(CURRENT) if is_document(stored))
        return map(decode, _sorted(records) if most is None else nsmallest(most, records))

    def state(self) -> dict[str, Any]:
        """Return an empty state, because all is in the store."""
        return {}

    def rewrite(self, unwanted: Callable[[Entry], bool], leave: Callable[[bytes], Entry]) -> Iterator[list[Entry]]:
        """Remove ``unwanted`` documents; yield those of each piece."""
        start = b""
        while piece := list(islice(self._store.items(CURRENT, start), _PIECE)):
            start = piece[-1][0] + b"\0"
            documents = [stored for _, stored in piece if is_document(stored)]
            yield [leave(record_of(stored)[0]) for stored in documents if unwanted(decode_stored(stored))]

    def verify(self) -> None:
        """Raise StoreError unless the indexes match the documents."""
        found = 0
        for entry in self:
            found += 1
            sort_key, host = encode(entry)[0], host_of(entry.url) if self._by_host else ""
            places = [(self._scores, b"")] * self._by_score + [(self._hosts, _prefix_of(host))] * bool(host)
            if self._name_of is not None:
                places.append((self._owned, queue_prefix(self._name_of(entry.url or entry.key, entry.cell))))
            if not all(keys.has(prefix, sort_key) for keys, prefix in places):
                raise self._store.damaged(f"an index lacks the document {entry.key!r}")
        tables = [_SCORES] * self._by_score + [_OWNED] * (self._name_of is not None)
        if any(number != self._queued for number in (found, *map(self._store.count, tables))):
            raise self._store.damaged(f"it holds {found:,} documents of {self._queued:,}, or its indexes hold others")

    # -- its parts ------------------------------------------------------------------------------------------------

    def _put(self, host: str, record: Record) -> None:
        """Write a document, and add it to the indexes."""
        sort_key, rest = record
        key = fitted(sort_key[SCORE_BYTES:], _KEY_BYTES)
        self._store.put(CURRENT, key, _DOCUMENT + _LENGTH.pack(len(sort_key)) + sort_key + rest)
        if self._by_score:
            self._scores.put(b"", sort_key)
        if host:
            self._hosts.put(_prefix_of(host), sort_key)

    def _leave_indexes(self, host: str, sort_key: bytes) -> None:
        if self._by_score:
            self._scores.delete(b"", sort_key)
        if host:
            self._hosts.delete(_prefix_of(host), sort_key)

    def _count_host(self, prefix: bytes, change: int = 0) -> int:
        """Return the number of documents of a host, and write it if it has changed."""
        count = int.from_bytes(self._store.get(_HOSTS, prefix[:-1]) or b"", "little") + change
        if change:
            self._store.put(_HOSTS, prefix[:-1], count.to_bytes(_COUNT_BYTES, "little"))
        return count


class StoredQueues:
    """Queues (:class:`crawl4llm.frontier.orders.Queues`) in a store, with the best document of each."""

    def __init__(self, store: Store) -> None:
        self._store, self._keys = store, SortKeys(store, _OWNED)

    def add(self, name: str, handle: bytes, worse: bytes | None = None) -> None:
        self._keys.put(queue_prefix(name), handle)

    def drop(self, name: str, handle: bytes) -> None:
        self._keys.delete(queue_prefix(name), handle)

    def move(self, name: str, before: bytes, after: bytes) -> None:
        prefix = queue_prefix(name)
        self._keys.delete(prefix, before)
        self._keys.put(prefix, after)

    def next(self, name: str) -> bytes | None:
        return next(self._keys.behind(queue_prefix(name)), None)

    def sweep(self) -> None:
        """Do nothing, because dropped documents leave nothing behind."""

    def make_anew(self, documents: Iterable[Entry], name_of: NameOf) -> None:
        """Put all documents into their queues."""
        self._store.clear(_OWNED)
        for entry in documents:
            self.add(name_of(entry.url or entry.key, entry.cell), encode(entry)[0])

    def load(self, index: Index, documents: int) -> None:
        """Fill an index with the content of the queues. Raises StoreError unless they hold ``documents`` documents."""
        if (found := self._store.count(_OWNED)) != documents:
            raise self._store.damaged(f"its owners have {found:,} documents queued of {documents:,}")
        for key, whole in self._store.items(_OWNED):
            start = 1 + key[0]
            name, handle = key[1:start], whole or key[start:]
            if not name.isascii() or len(handle) < SCORE_BYTES:
                raise self._store.damaged("its owners have something queued that is no document")
            index.add(str(name, "ascii"), handle)


def is_document(stored: bytes) -> bool:
    """Return whether a value in the table CURRENT is a document."""
    return stored.startswith(_DOCUMENT)


_HEAD_BYTES = len(_DOCUMENT) + _LENGTH.size
"""Bytes of a stored document before its sort key."""


def decode_stored(stored: bytes) -> Entry:
    """Return the document of a value in the table CURRENT."""
    return decode(record_of(stored))


def record_of(stored: bytes) -> Record:
    """Return the record of a value in the table CURRENT."""
    (length,) = _LENGTH.unpack_from(stored, len(_DOCUMENT))
    return stored[_HEAD_BYTES : _HEAD_BYTES + length], stored[_HEAD_BYTES + length :]


def fingerprint(data: bytes) -> bytes:
    """Return 16 bytes that identify data."""
    return blake2b(data, digest_size=16).digest()


def fitted(key: bytes, most: int) -> bytes:
    """Return a key for LMDB, which allows no empty or long ones. A fingerprint replaces the bytes after ``most``, so
    that long keys with an equal beginning are in no order."""
    return key if 0 < len(key) <= most else key[:most] + fingerprint(key)


def _prefix_of(host: str) -> bytes:
    """Return the prefix of a host's sort keys; without its end it is the key of their number."""
    return fingerprint(host.encode("utf-8", "surrogatepass"))[:8] + b"\0"


def queue_prefix(name: str) -> bytes:
    """Return the prefix of a queue: its name after its length, so that no prefix begins with another."""
    return bytes((len(name),)) + name.encode("ascii")


def _sorted(records: Iterable[Record]) -> Iterator[Record]:
    """Yield records in order; they may exceed the memory."""
    records = iter(records)
    with TemporaryDirectory() as folder, closing(Store(Path(folder) / NAME, fsync=False)) as store:
        runs = SortedRuns(store)
        while some := sorted(islice(records, _SORTED)):
            runs.add(some)
            store.commit()
        yield from runs
