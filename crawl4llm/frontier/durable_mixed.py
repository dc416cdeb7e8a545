"""The frontier on disk with MIXTURE: see :mod:`crawl4llm.frontier.mixed`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crawl4llm.frontier import NO_CAPS, Caps, Entry, Patience
from crawl4llm.frontier.durable_owned import MIXED, MIXED_OWNERS, DurableOwnerFrontier, LastingOwners
from crawl4llm.frontier.holds import OwnerHolds
from crawl4llm.frontier.mixed import MOST_CELLS, Leases, MixedIndex, Shares, queue_of
from crawl4llm.frontier.store import Store


class LastingMixedIndex(MixedIndex, LastingOwners):
    """The index by owner and cell whose holds outlive the process."""


class DurableMixedFrontier(DurableOwnerFrontier):
    """Implements :class:`crawl4llm.frontier.OwnerFrontier` in a store, with MIXTURE. Not ``by_owners``: no document has
    an owner, and it is a plain frontier. To look at a store, or to change it, it takes no ``shares``."""

    def __init__(
        self, store: Store, shares: Shares | None = None, caps: Caps = NO_CAPS, *, by_owners: bool, **given: Any
    ) -> None:
        self._shares = shares or Shares([[0.0] * MOST_CELLS])
        self._by_owners = by_owners
        self.owned = MIXED_OWNERS if by_owners else MIXED
        super().__init__(store, caps, **given)
        self._leases = Leases(self._shares, self._leases)

    def _index(
        self, holds: OwnerHolds, clock: Callable[[], float], wall: Callable[[], float], patience: Patience
    ) -> LastingOwners:
        return LastingMixedIndex(self._shares, holds, clock, wall, patience)

    def _queue(self, entry: Entry) -> str:
        return queue_of(entry, by_owners=self._by_owners)
