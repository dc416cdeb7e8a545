"""A layer that asks the parts of a crawl before it leases a document: it drops documents that a part no longer wants,
and sets aside those that a part keeps back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from crawl4llm.base.domains import owner_of
from crawl4llm.base.reasons import IGNORED, OPT_OUT, REFUSED_ADDRESS, ROBOTS
from crawl4llm.crawl.layer import Layer
from crawl4llm.crawl.sited_frontier import SitedFrontier
from crawl4llm.frontier import Aside, Entry, Evicted, Frontier, FrontierOwners, Lease, Outcome, OwnerFrontier
from crawl4llm.parts import Part, Parts, Refusal

_NOT_FETCHED: Final = frozenset({IGNORED, OPT_OUT, REFUSED_ADDRESS, ROBOTS})
"""Reasons of documents that are dropped before they are requested."""
_MOST_MOVED: Final = 1000
"""Most documents set aside in one call, for a frontier of owners, so that the call is short."""


class Gate(Layer):
    """Implements :class:`crawl4llm.frontier.OwnerFrontier` if the frontier within does, else
    :class:`crawl4llm.frontier.Frontier`; and :class:`crawl4llm.parts.part.Shelf`.

    If a part says so, a document is set aside when its turn comes. It then no longer counts in the queue's length and
    caps, and gets no new scores. When the part releases them, documents return to the queue, best first.
    """

    def __init__(
        self, within: Frontier, owned: OwnerFrontier | None, aside: Aside, sites: SitedFrontier | None = None
    ) -> None:
        """``owned``: ``within`` as a frontier of owners, if it is one. ``sites``: ``within`` as a frontier that tells
        sites apart, if it is one, which also uses ``aside``."""
        super().__init__(within)
        self._owned = owned
        self._aside, self._sites = aside, sites
        self._parts: Sequence[Part] = ()
        self._answering: Part | None = None
        self._drops: Sequence[Callable[[Entry], Refusal | None]] = ()
        self._drop: Callable[[Entry, Refusal], None] = lambda _entry, _refusal: None
        self._evicted: list[Evicted] = []
        """Documents that returning ones evicted; reported with the next ones."""

    def ask(self, parts: Parts, drop: Callable[[Entry, Refusal], None] | None = None) -> None:
        """Let parts decide what is leased from now on. ``drop`` is called for documents that leave the frontier because
        a part no longer wants them."""
        self._parts = [part for part in parts if type(part).lease is not Part.lease]
        self._answering = parts.answering
        self._drops, self._drop = parts.having("drops"), drop or self._drop

    @property
    def set_aside(self) -> int:
        """Documents that parts have set aside."""
        return len(self._aside) - (0 if self._sites is None else self._sites.waiting)

    def take_back(self, owner: str, scope: str, most: int) -> int:
        if entries := self._aside.take(owner, scope, most):
            self._evicted += self._within.push(entries)
        return len(entries)

    # -- the frontier's protocol ----------------------------------------------------------------------------------

    def push(self, entries: Iterable[Entry]) -> list[Evicted]:
        evicted, self._evicted = self._evicted, []
        return evicted + self._within.push(entries)

    def lease(self, n: int) -> list[Lease]:
        leases: list[Lease] = []
        moved = 0
        while len(leases) < n and (self._owned is None or moved < _MOST_MOVED):
            some = self._within.lease(n - len(leases))
            if not some:
                break
            for lease in some:
                if (refusal := self._refused(lease.entry)) is not None:
                    self._withdraw(lease)
                    self._drop(lease.entry, refusal)
                    moved += 1
                elif (scope := self._kept_back(lease.entry)) is None:
                    leases.append(lease)
                else:
                    self._set_aside(lease, scope)
                    moved += 1
        return leases

    def settle(self, lease: Lease, outcome: Outcome, reason: str | None = None) -> bool:
        if not self._within.settle(lease, outcome, reason):
            return False
        unasked = (outcome is Outcome.DROPPED and reason in _NOT_FETCHED) or self._is_failed_try(lease.entry, outcome)
        for part in self._keepers_of(lease.entry):
            part.ended(lease.entry, outcome, asked=not unasked)
        return True

    def give_back(self, lease: Lease, *, attempted: bool) -> bool:
        if not self._within.give_back(lease, attempted=attempted):
            return False
        for part in self._keepers_of(lease.entry):
            part.ended(lease.entry, None, asked=attempted)
        return True

    def withdraw(self, lease: Lease) -> Entry | None:
        return self._within.withdraw(lease)

    @property
    def owners(self) -> FrontierOwners:
        assert self._owned is not None
        return self._owned.owners

    def drop_owner(self, owner: str, outcome: Outcome, reason: str, most: int) -> list[Entry]:
        assert self._owned is not None
        if self._owned.owners.queued_of(owner) < most:
            self._evicted += self._owned.push(self._aside.take_owner(owner, most))
        return self._owned.drop_owner(owner, outcome, reason, most)

    def _refused(self, entry: Entry) -> Refusal | None:
        """Return why the first part drops a document that does."""
        for drops in self._drops:
            if (refusal := drops(entry)) is not None:
                return refusal
        return None

    def _kept_back(self, entry: Entry) -> str | None:
        """Return the budget or site for which the first part that does so sets a document aside; the parts before it
        are told that the document ended."""
        for place, part in enumerate(self._keepers_of(entry)):
            if (scope := part.lease(entry)) is not None:
                for before in self._parts[:place]:
                    before.ended(entry, None, asked=False)
                return scope
        return None

    def _keepers_of(self, entry: Entry) -> Sequence[Part]:
        """Return the parts that may set a document aside: none if it is not requested."""
        return () if self._answering is not None and self._answering.is_answered(entry) else self._parts

    def _is_failed_try(self, entry: Entry, outcome: Outcome) -> bool:
        """Return whether a document failed at a site that never answered. Anybody can link there, so this costs the
        owner nothing."""
        if outcome is not Outcome.FAILED or self._sites is None:
            return False
        return self._sites.is_unanswered(entry.url or entry.key)

    def _set_aside(self, lease: Lease, scope: str) -> None:
        if (entry := self._withdraw(lease)) is not None:
            self._aside.add(owner_of(entry.url or entry.key), scope, entry)

    def _withdraw(self, lease: Lease) -> Entry | None:
        """Remove a document that is not requested from the frontier, and free its owner for another one."""
        entry = self._within.withdraw(lease)
        if self._owned is not None:
            owner = owner_of(lease.entry.url or lease.entry.key)
            self._owned.owners.release(owner, self._owned.owners.now)
        return entry


class Layers(NamedTuple):
    """A frontier with its layers."""

    frontier: Frontier
    owned: OwnerFrontier | None
    """``frontier`` as a frontier of owners, if it is one."""
    sites: SitedFrontier | None
    """The layer that tells the sites of an owner apart, if there is one."""
    gate: Gate | None
    """The layer that asks parts, if one sets documents aside."""


def layered(frontier: Frontier, owned: OwnerFrontier | None, parts: Parts, aside: Aside, *, sites: bool) -> Layers:
    """Return a frontier that asks ``parts``, if one of them drops or sets aside queued documents, and with ``sites``
    tells the sites of an owner apart.

    ``owned``: ``frontier`` as a frontier of owners, if it is one. Sites come first, so that a document that waits for
    its site spends no budget.
    """
    sited = SitedFrontier(owned, aside, parts.answering) if sites and owned is not None else None
    if sited is not None:
        frontier = owned = sited
    if not (parts.having("lease") or parts.having("drops")):
        return Layers(frontier, owned, sited, None)
    gate = Gate(frontier, owned, aside, sited)
    return Layers(gate, None if owned is None else gate, sited, gate)
