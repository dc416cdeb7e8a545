"""The frontier on disk with an index by document and by host, so that a document in it can be found."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

from crawl4llm.base.reasons import HOST_FULL
from crawl4llm.base.urls import host_of
from crawl4llm.frontier import NO_CAPS, SCORE_BYTES, Caps, Entry, Evicted
from crawl4llm.frontier.durable import DurableFrontier
from crawl4llm.frontier.runs import Record, decode, encode
from crawl4llm.frontier.store import Store

CURRENT, _HOSTS, _VERSION = "current", "hosts", b"version"
"""The table CURRENT holds the documents. Beside each may lie what a policy knows of it, which is JSON (crawl/pieces.py)
and mostly changes with its score: so a commit writes one page of the file for both."""
_DOCUMENT = b"\0"
"""What a document is stored as begins with this: its version number has fewer than eight bytes. JSON never does."""
_NUMBER, _LENGTH = struct.Struct(">Q"), struct.Struct("<I")
_KEY_BYTES = 470
"""Bytes of a document key that fit into an LMDB key, with host, score and fingerprint."""
_AFTER_ALL = b"\xff" * SCORE_BYTES
"""Not a finite score's, and greater."""


class IndexedFrontier(DurableFrontier):
    """A durable frontier that heeds the cap by host, and gives new scores to documents in it.

    The runs hold a version number in place of the document, which lies in a B-tree: a record whose number is not its
    document's present one is passed over. So a document can leave from the middle. A push costs some times more.
    """

    indexed = True

    def __init__(self, store: Store, caps: Caps = NO_CAPS) -> None:
        super().__init__(store, caps)
        self._version = int.from_bytes(store.get("state", _VERSION) or b"", "big")
        self._by_host = caps.per_host is not None or store.count(_HOSTS) > 0
        """Whether there is an index by host, which only the cap needs."""

    def push(self, entries: Iterable[Entry]) -> list[Evicted]:
        entries = list(entries)
        self._enter(entries)
        evicted = []
        if (cap := self._caps.per_host) is not None:
            for host in sorted({host for entry in entries if (host := host_of(entry.url))}):
                while self._host_count(fingerprint(host)[:8]) > cap:
                    evicted.append(self._evict(self._pop_worst_of(fingerprint(host)[:8]), HOST_FULL))
        return evicted + super().push([])

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        changed = 0
        for key, score in dict(scores).items():
            stored = self._store.get(CURRENT, self._place(key))
            if stored is None or (entry := decode_stored(stored)).score == score:
                continue
            self._leave_indexes(entry, record_of(stored)[0])  # the document itself is overwritten
            entry.score = score
            self._queued -= 1
            self._enter([entry])
            changed += 1
        return changed

    def save(self) -> None:
        self._store.put("state", _VERSION, self._version.to_bytes(8, "big"))
        super().save()

    def verify(self) -> None:
        super().verify()
        if (count := sum(1 for _ in self._documents())) != len(self):
            raise self._store.damaged(f"the index holds {count:,} documents of {len(self):,}")

    # -- a version number in place of the document ----------------------------------------------------------------

    def _record(self, entry: Entry) -> Record:
        sort_key, rest = encode(entry)
        self._version += 1
        version = _NUMBER.pack(self._version)
        key = self._place(entry.key)
        self._store.put(CURRENT, key, version + _LENGTH.pack(len(sort_key)) + sort_key + rest)
        if self._by_host and (host := host_of(entry.url)):
            self._store.put(_HOSTS, self._host_key(host, sort_key), key)
            self._count_host(fingerprint(host)[:8], 1)
        return sort_key, version

    def _look_up(self, record: Record) -> Entry | None:
        stored = self._current(record)
        return None if stored is None else decode_stored(stored)

    def _documents(self) -> Iterator[bytes]:
        """Yield what the documents are stored as."""
        return (stored for _, stored in self._store.items(CURRENT) if is_document(stored))

    def _current(self, record: Record) -> bytes | None:
        """Return what the document of a record is stored as, unless it has left the frontier or has another score."""
        sort_key, version = record
        stored = self._store.get(CURRENT, self._place(sort_key[SCORE_BYTES:]))
        return stored if stored is not None and stored.startswith(version) else None

    def _leave(self, record: Record) -> Entry | None:
        entry = self._look_up(record)
        if entry is not None:
            self._forget(entry, record[0])
        return entry

    def _keep(self) -> Callable[[Record], bool]:
        return lambda record: self._current(record) is not None

    def _forget(self, entry: Entry, sort_key: bytes) -> None:
        self._store.delete(CURRENT, self._place(entry.key))
        self._leave_indexes(entry, sort_key)

    def _leave_indexes(self, entry: Entry, sort_key: bytes) -> None:
        if self._by_host and (host := host_of(entry.url)):
            self._store.delete(_HOSTS, self._host_key(host, sort_key))
            self._count_host(fingerprint(host)[:8], -1)

    def _place(self, key: str | bytes) -> bytes:
        """Return the key under which a document lies, in the order of keys: neighbours of one host change together."""
        data = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
        return data if len(data) < _KEY_BYTES and data else data[:_KEY_BYTES] + fingerprint(data)

    # -- hosts ----------------------------------------------------------------------------------------------------

    def _pop_worst_of(self, host: bytes) -> Entry:
        """Take the worst document of a host that has one."""
        key = self._store.last(_HOSTS, host, host + _AFTER_ALL) or b""
        stored = self._store.get(CURRENT, key)
        if stored is None:
            raise self._store.damaged("the index of hosts names a document that is not queued")
        entry = decode_stored(stored)
        self._forget(entry, encode(entry)[0])
        return entry

    def _host_count(self, host: bytes) -> int:
        return int.from_bytes(self._store.get(_HOSTS, host) or b"", "little")

    def _count_host(self, host: bytes, change: int) -> None:
        if count := self._host_count(host) + change:
            self._store.put(_HOSTS, host, count.to_bytes(8, "little"))
        else:
            self._store.delete(_HOSTS, host)

    @staticmethod
    def _host_key(host: str, sort_key: bytes) -> bytes:
        """Return a key that sorts as the sort key does among those of a host; long ones that begin alike, anyhow."""
        place = sort_key[: SCORE_BYTES + _KEY_BYTES]
        rest = fingerprint(sort_key) if len(place) < len(sort_key) else b""
        return fingerprint(host)[:8] + place + rest


def is_document(stored: bytes) -> bool:
    """Return whether a value in the table CURRENT is a document."""
    return stored.startswith(_DOCUMENT)


def decode_stored(stored: bytes) -> Entry:
    """Return the document that lies in the table CURRENT."""
    sort_key = record_of(stored)[0]
    return decode((sort_key, stored[_NUMBER.size + _LENGTH.size + len(sort_key) :]))


def record_of(stored: bytes) -> Record:
    """Return the record that is queued for the same document: its sort key, and a version number for the rest."""
    start = _NUMBER.size + _LENGTH.size
    (length,) = _LENGTH.unpack_from(stored, _NUMBER.size)
    return stored[start : start + length], stored[: _NUMBER.size]


def fingerprint(text: str | bytes) -> bytes:
    """Return 16 bytes that stand for a text."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return blake2b(data, digest_size=16).digest()
