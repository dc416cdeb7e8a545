"""Documents in a store by score alone, in sorted runs: there are no look-ups, so they need no index.

Documents pushed since the last save are a heap in memory. This writes an eighth of the bytes that a B-tree would, which
changes another page for each document.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from crawl4llm.frontier.frontier import Entry
from crawl4llm.frontier.runs import Record, SortedRuns, decode, encode
from crawl4llm.frontier.store import Store

MOST_FRESH: Final = 65_536
"""Most records in memory, about 25 MB."""
_BYTES_IN_MEMORY = 400
"""Bytes of such a record in memory."""
_MANY = 2048
"""Documents at once from which on many records are taken together."""


class PlainDocuments:
    """A medium in a store, and the order by score in it; the handle of a document is its record."""

    def __init__(self, store: Store, state: Mapping[str, Any], most_fresh: int | None = None) -> None:
        """Restore the result of :meth:`state`, with the number ``queued``. ``most_fresh``: most records in memory."""
        self._store = store
        self._runs = SortedRuns(store, state.get("runs"))
        self._fresh: list[Record] = []
        self._queued: int = state.get("queued", 0)
        self._most_fresh = most_fresh or MOST_FRESH

    # -- the order ------------------------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        heapq.heappush(self._fresh, encode(entry))
        self._queued += 1
        if len(self._fresh) >= self._most_fresh:
            self._store_fresh()

    def take(self, most: int) -> list[Entry]:
        if most >= _MANY:
            self._store_fresh()
            if many := self._runs.pop_many(most):
                self._queued -= len(many)
                return list(map(decode, many))
        records = [self._pop() for _ in range(min(most, self._queued))]
        self._queued -= len(records)
        return list(map(decode, records))

    def first(self) -> bytes | None:
        stored = self._runs.first()
        if self._fresh and (stored is None or self._fresh[0][0] < stored):
            return self._fresh[0][0]
        return stored

    def leave(self, handle: Record) -> Entry:
        """Return the document of a record that :meth:`worst` has removed."""
        return decode(handle)

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        """Raise TypeError for any score, because documents cannot be found."""
        if any(True for _ in scores):
            raise TypeError("this frontier was not opened to rerank documents")
        return 0

    # -- the medium -----------------------------------------------------------------------------------------------

    def worst(self, surplus: int) -> Sequence[Record]:
        """Remove the worst."""
        self._queued -= surplus
        return [self._pop_worst() for _ in range(surplus)]

    def worst_of(self, host: str, most: int) -> Sequence[Record]:
        """Raise TypeError, because hosts are not known."""
        raise TypeError("this frontier was not opened with a cap by host")

    def __len__(self) -> int:
        return self._queued

    # -- what is stored -------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Write changes to the store; return the places of the runs."""
        self._store_fresh()
        return {"runs": self._runs.state()}

    def __iter__(self) -> Iterator[Entry]:
        """Yield all documents queued at the last save, best first."""
        return map(decode, self._runs)

    def best(self, most: int | None = None) -> Iterator[Entry]:
        """Yield the best documents, best first; None: all."""
        return islice(self, most)

    def rewrite(self, unwanted: Callable[[Entry], bool], _leave: object) -> Iterator[list[Entry]]:
        """Merge all runs into one, without ``unwanted`` documents; yield those left out of each piece."""
        self._store_fresh()
        self._runs.start_over()
        more = True
        while more:
            gone: list[Entry] = []

            def keep(record: Record, gone: list[Entry] = gone) -> bool:
                if is_unwanted := unwanted(entry := decode(record)):
                    gone.append(entry)
                return not is_unwanted

            more = self._runs.go_on(MOST_FRESH, keep)
            self._queued -= len(gone)
            yield gone

    def verify(self) -> None:
        """Raise StoreError unless everything is there, once and in order."""
        self._runs.verify()
        if (count := sum(1 for _ in self)) != self._queued:
            raise self._store.damaged(f"{count:,} documents are queued of {self._queued:,}")

    # -- its parts ------------------------------------------------------------------------------------------------

    def _store_fresh(self) -> None:
        self._runs.add(sorted(self._fresh))
        self._fresh = []

    def _pop(self) -> Record:
        """Take the best record; there must be one."""
        stored = self._runs.first()
        if stored is None or (self._fresh and self._fresh[0][0] < stored):
            return heapq.heappop(self._fresh)
        return self._runs.pop()

    def _pop_worst(self) -> Record:
        stored = self._runs.last()
        self._fresh.sort()  # which leaves it a heap, and costs next to nothing the second time
        if stored is None or (self._fresh and self._fresh[-1][0] > stored):
            return self._fresh.pop()
        return self._runs.pop_last()


def expected_memory(documents: int) -> int:
    """Return the bytes that ``documents`` documents take in memory."""
    return min(documents, MOST_FRESH) * _BYTES_IN_MEMORY
