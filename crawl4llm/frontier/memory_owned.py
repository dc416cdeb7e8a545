"""The frontier in memory that hands out only what its owner may be asked for now."""

from __future__ import annotations

import heapq
from operator import itemgetter

from crawl4llm.base.domains import owner_of
from crawl4llm.frontier import IMPATIENT, NO_CAPS, SCORE_BYTES, Caps, Entry, Lease, Outcome, Patience
from crawl4llm.frontier.memory import MemoryFrontier, url_of
from crawl4llm.frontier.owners import OwnerIndex

_GARBAGE = 4
"""Stale documents in the heap of one owner that are no reason to clear it."""
_MANY_GONE = 8
"""A heap is cleared of one in so many that have become stale together."""


class MemoryOwnerFrontier(MemoryFrontier):
    """Implements :class:`crawl4llm.frontier.OwnerFrontier`; ends with the process.

    The index has the best document of each owner. Others are in a heap of their owner's, where it has more than one;
    documents there go stale, and are cleared away, as in MemoryFrontier.
    """

    def __init__(self, caps: Caps = NO_CAPS, patience: Patience = IMPATIENT) -> None:
        super().__init__(caps)
        self.owners: OwnerIndex[bytes] = OwnerIndex(patience, itemgetter(slice(SCORE_BYTES)))
        self._others: dict[str, list[bytes]] = {}
        self._moved: dict[str, set[bytes]] = {}
        """Documents that were reranked since stale ones were cleared away, as they were before, by owner."""

    def lease(self, n: int) -> list[Lease]:
        leases: list[Lease] = []
        while len(leases) < n and (taken := self.owners.take()) is not None:
            leases.append(self._lease(self._leave(taken[1])))
        return leases

    def drop_owner(self, owner: str, outcome: Outcome, reason: str, most: int) -> list[Entry]:
        ended: list[Entry] = []
        while len(ended) < most and (best := self.owners.best(owner)) is not None:
            ended.append(self._leave(best))
        if ended:
            self._outcomes[outcome, reason] += len(ended)
        return ended

    def close(self) -> None:
        super().close()
        self.owners = OwnerIndex()
        self._others.clear()

    # -- documents by owner ---------------------------------------------------------------------------------------

    def _place(self, entry: Entry, document: bytes) -> None:
        owner = self._queue(entry)
        self._add(owner, document)
        self._sweep_others(owner)

    def _queue(self, entry: Entry) -> str:
        """Return the name under which the index has a document: its owner."""
        return owner_of(entry.url or entry.key)

    def _queue_of(self, key: str, document: bytes) -> str:
        """Return the same of a packed document."""
        return owner_of(url_of(document) or key)

    def _add(self, owner: str, document: bytes) -> None:
        if (worse := self.owners.add(owner, document)) is not None:
            heapq.heappush(self._others.setdefault(owner, []), worse)

    def _replace(self, key: str, document: bytes, new: bytes) -> None:
        owner = self._queue_of(key, document)
        best = self.owners.best(owner)
        if best is not None and document != best < new:
            heapq.heappush(self._others[owner], new)
        else:
            self.owners.remove(owner, document, self._pop_other)
            self._add(owner, new)
        self._moved.setdefault(owner, set()).add(document)

    def _sweep(self) -> None:
        super()._sweep()
        for owner, gone in self._moved.items():
            if len(gone) > len(others := self._others.get(owner, [])) // _MANY_GONE:
                others[:] = set(others) - gone  # sooner found than what is stale since long
                heapq.heapify(others)
            self._sweep_others(owner)
        self._moved.clear()

    def _leave(self, document: bytes) -> Entry:
        entry = super()._leave(document)
        owner = self._queue(entry)
        self.owners.remove(owner, document, self._pop_other)
        self._sweep_others(owner)
        return entry

    def _pop_other(self, owner: str) -> bytes | None:
        """Take the best document of an owner out of the heap of the others."""
        others = self._others.get(owner, [])
        while others:
            if (document := heapq.heappop(others)) in self._queued:
                return document
        self._others.pop(owner, None)
        return None

    def _sweep_others(self, owner: str) -> None:
        """Build the heap of an owner anew where much of it is stale."""
        others = self._others.get(owner)
        if others and len(others) > self.owners.queued_of(owner) * 5 // 4 + _GARBAGE:
            best = self.owners.best(owner)
            self._others[owner] = self._queued.keep(one for one in set(others) if one != best)
            heapq.heapify(self._others[owner])
