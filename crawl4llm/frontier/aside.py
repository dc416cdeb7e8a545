"""Documents set aside: discovered, not crawled, and outside the frontier's order until they may be requested.

They wait by owner and scope, best first. :mod:`crawl4llm.parts.budgets` sets aside documents of owners and URL prefixes
without a budget, :mod:`crawl4llm.crawl.sited_frontier` those of sites that have not answered yet.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby, islice
from typing import Protocol

from crawl4llm.frontier.frontier import Entry
from crawl4llm.frontier.runs import encode, entry_in, pack
from crawl4llm.frontier.store import Store
from crawl4llm.frontier.stored import fitted

TABLE = "aside"
_HASH_BYTES = 8
_KEY_BYTES = 470
"""Bytes of a sort key that fit into an LMDB key, with owner, scope and, for a longer one, a hash."""
_PIECE = 10_000
"""Documents that a purge checks between two commits."""


class Aside(Protocol):
    """Documents by owner and scope."""

    def add(self, owner: str, scope: str, entry: Entry) -> None:
        """Set a document aside."""

    def take(self, owner: str, scope: str, most: int) -> list[Entry]:
        """Take the best ``most`` documents of a scope, best first."""

    def take_owner(self, owner: str, most: int) -> list[Entry]:
        """Take ``most`` documents of an owner, of any scope."""

    def groups(self) -> Iterator[tuple[bytes, Entry, int]]:
        """Yield for each owner and scope the result of :func:`place_of`, the best document and the number of
        documents."""

    def __len__(self) -> int:
        """Return the number of documents set aside."""


class MemoryAside:
    """Implements :class:`Aside`; ends with the process."""

    def __init__(self) -> None:
        self._scopes: defaultdict[str, dict[str, list[tuple[float, str, Entry]]]] = defaultdict(dict)
        """Heaps by owner and scope."""
        self._count = 0

    def add(self, owner: str, scope: str, entry: Entry) -> None:
        heapq.heappush(self._scopes[owner].setdefault(scope, []), (-entry.score, entry.key, entry))
        self._count += 1

    def take(self, owner: str, scope: str, most: int) -> list[Entry]:
        heap = self._scopes.get(owner, {}).get(scope, [])
        taken = [heapq.heappop(heap)[-1] for _ in range(min(most, len(heap)))]
        self._count -= len(taken)
        return taken

    def take_owner(self, owner: str, most: int) -> list[Entry]:
        taken: list[Entry] = []
        for scope in self._scopes.get(owner, {}):
            taken += self.take(owner, scope, most - len(taken))
        return taken

    def groups(self) -> Iterator[tuple[bytes, Entry, int]]:
        for owner, scopes in self._scopes.items():
            yield from ((place_of(owner, scope), heap[0][-1], len(heap)) for scope, heap in scopes.items() if heap)

    def __len__(self) -> int:
        return self._count


class StoredAside:
    """Implements :class:`Aside` in a store, whose commit makes it durable. Nothing is held in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._count = store.count(TABLE)

    def add(self, owner: str, scope: str, entry: Entry) -> None:
        record = encode(entry)
        self._store.put(TABLE, place_of(owner, scope) + fitted(record[0], _KEY_BYTES), pack([record]))
        self._count += 1

    def take(self, owner: str, scope: str, most: int) -> list[Entry]:
        return self._take(place_of(owner, scope), most)

    def take_owner(self, owner: str, most: int) -> list[Entry]:
        return self._take(_hash(owner), most)

    def groups(self) -> Iterator[tuple[bytes, Entry, int]]:
        for place, items in groupby(self._store.items(TABLE), key=lambda item: item[0][: 2 * _HASH_BYTES]):
            best, number = b"", 0
            for _, value in items:
                best, number = best or value, number + 1
            yield place, entry_in(self._store, best), number

    def __len__(self) -> int:
        """Return the number of documents, also after the store is closed."""
        return self._count

    def __iter__(self) -> Iterator[Entry]:
        """Yield all documents, in no meaningful order."""
        return (entry_in(self._store, value) for _, value in self._store.items(TABLE))

    def waiting(
        self, scopes_of: Callable[[Entry], Sequence[str]], owner: str | None = None
    ) -> Iterator[tuple[str, Entry]]:
        """Yield all documents, or those of an owner, each with the scope that it waits for."""
        prefix = b"" if owner is None else _hash(owner)
        for key, value in self._store.behind(TABLE, prefix):
            entry, scope = entry_in(self._store, value), key[_HASH_BYTES : 2 * _HASH_BYTES]
            yield next((name for name in scopes_of(entry) if _hash(name) == scope), ""), entry

    def purge(self, unwanted: Callable[[Entry], bool]) -> Iterator[list[Entry]]:
        """Remove the documents that are ``unwanted``; yield those of each piece, to be committed. Nothing else may be
        done meanwhile."""
        start = b""
        while piece := list(islice(self._store.items(TABLE, start), _PIECE)):
            start = piece[-1][0] + b"\0"
            gone = [(key, entry) for key, value in piece if unwanted(entry := entry_in(self._store, value))]
            self._delete(key for key, _ in gone)
            if gone:
                yield [entry for _, entry in gone]

    def _take(self, prefix: bytes, most: int) -> list[Entry]:
        stored = islice(self._store.behind(TABLE, prefix), max(most, 0))
        found = [(key, entry_in(self._store, value)) for key, value in stored]
        self._delete(key for key, _ in found)
        return [entry for _, entry in found]

    def _delete(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._count -= self._store.delete(TABLE, key)


def place_of(owner: str, scope: str) -> bytes:
    """Return the prefix of the keys of a scope's documents in a store."""
    return _hash(owner) + _hash(scope)


def _hash(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()
