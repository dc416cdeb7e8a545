"""The frontier in memory that hands out only what its owner may be asked for now."""

from __future__ import annotations

import heapq

from crawl4llm.base.domains import owner_of
from crawl4llm.frontier import IMPATIENT, NO_CAPS, Caps, Entry, Lease, Outcome, Patience
from crawl4llm.frontier.memory import MemoryFrontier, Place, place_of
from crawl4llm.frontier.owners import OwnerIndex

_GARBAGE = 16
"""Stale places in the heap of one owner that are no reason to clear it."""


class MemoryOwnerFrontier(MemoryFrontier):
    """Implements :class:`crawl4llm.frontier.OwnerFrontier`; ends with the process.

    The index has the best document of each owner. Others are in a heap of their owner's, where it has more than one;
    places there go stale, and are cleared away, as in MemoryFrontier.
    """

    def __init__(self, caps: Caps = NO_CAPS, patience: Patience = IMPATIENT) -> None:
        super().__init__(caps)
        self.owners: OwnerIndex[Place] = OwnerIndex(patience)
        self._others: dict[str, list[Place]] = {}

    def lease(self, n: int) -> list[Lease]:
        leases: list[Lease] = []
        while len(leases) < n and (taken := self.owners.take()) is not None:
            leases.append(self._lease(self._leave(taken[1][1])))
        return leases

    def drop_owner(self, owner: str, outcome: Outcome, reason: str, most: int) -> list[Entry]:
        ended: list[Entry] = []
        while len(ended) < most and (best := self.owners.best(owner)) is not None:
            ended.append(self._leave(best[1]))
        if ended:
            self._outcomes[outcome, reason] += len(ended)
        return ended

    def close(self) -> None:
        super().close()
        self.owners = OwnerIndex()
        self._others.clear()

    # -- documents by owner ---------------------------------------------------------------------------------------

    def _place(self, entry: Entry) -> None:
        owner = owner_of(entry.url or entry.key)
        if (worse := self.owners.add(owner, place_of(entry))) is None:
            return
        others = self._others.setdefault(owner, [])
        heapq.heappush(others, worse)
        self._sweep_others(owner)

    def _rescore(self, entry: Entry, score: float) -> None:
        before, entry.score = place_of(entry), score
        self.owners.remove(owner_of(entry.url or entry.key), before, self._pop_other)
        self._place(entry)

    def _leave(self, key: str) -> Entry:
        entry = super()._leave(key)
        owner = owner_of(entry.url or entry.key)
        self.owners.remove(owner, place_of(entry), self._pop_other)
        self._sweep_others(owner)
        return entry

    def _pop_other(self, owner: str) -> Place | None:
        """Take the best document of an owner out of the heap of the others."""
        others = self._others.get(owner, [])
        while others:
            if self._is_queued(place := heapq.heappop(others)):
                return place
        self._others.pop(owner, None)
        return None

    def _sweep_others(self, owner: str) -> None:
        """Build the heap of an owner anew where it is mostly stale."""
        others = self._others.get(owner)
        if others and len(others) > 2 * self.owners.queued_of(owner) + _GARBAGE:
            best = self.owners.best(owner)
            self._others[owner] = [place for place in set(others) if place != best and self._is_queued(place)]
            heapq.heapify(self._others[owner])
