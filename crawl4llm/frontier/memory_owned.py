"""The frontier in memory that hands out only what its owner may be asked for now."""

from __future__ import annotations

import heapq

from crawl4llm.base.domains import owner_of
from crawl4llm.frontier import NO_CAPS, Caps, Entry, Lease, Outcome
from crawl4llm.frontier.memory import MemoryFrontier, Place, place_of
from crawl4llm.frontier.owners import OwnerIndex

_GARBAGE = 16
"""Stale places in the heap of one owner that are no reason to clear it."""


class MemoryOwnerFrontier(MemoryFrontier):
    """Implements :class:`crawl4llm.frontier.OwnerFrontier`; ends with the process.

    The index has the best document of each owner. Others are in a heap of their owner's, where it has more than one;
    places there go stale, and are cleared away, as in MemoryFrontier.
    """

    def __init__(self, caps: Caps = NO_CAPS) -> None:
        super().__init__(caps)
        self.owners: OwnerIndex[Place] = OwnerIndex()
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
        best = self._with(place_of(entry), owner, self.owners.best(owner))
        self._update(owner, best, self.owners.queued_of(owner) + 1)

    def _rescore(self, entry: Entry, score: float) -> None:
        owner = owner_of(entry.url or entry.key)
        before, entry.score = place_of(entry), score
        best = self._without(before, owner)
        self._update(owner, self._with(place_of(entry), owner, best), self.owners.queued_of(owner))

    def _leave(self, key: str) -> Entry:
        entry = super()._leave(key)
        owner = owner_of(entry.url or entry.key)
        self._update(owner, self._without(place_of(entry), owner), self.owners.queued_of(owner) - 1)
        return entry

    def _with(self, place: Place, owner: str, best: Place | None) -> Place:
        """Return the best document of an owner with one that is new."""
        if best is None:
            return place
        better, worse = (place, best) if place < best else (best, place)
        heapq.heappush(self._others.setdefault(owner, []), worse)
        return better

    def _without(self, place: Place, owner: str) -> Place | None:
        """Return the best document of an owner without one that is no longer queued, or has another score."""
        best = self.owners.best(owner)
        if best != place:
            return best
        others = self._others.get(owner, [])
        while others:
            if self._is_queued(best := heapq.heappop(others)):
                return best
        return None

    def _update(self, owner: str, best: Place | None, queued: int) -> None:
        self.owners.update(owner, best, queued)
        others = self._others.get(owner)
        if others is None:
            return
        if len(others) > 2 * queued + _GARBAGE:
            others = self._others[owner] = [one for one in set(others) if one != best and self._is_queued(one)]
            heapq.heapify(others)
        if not others:
            del self._others[owner]
