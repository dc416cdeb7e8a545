"""A frontier that asks the parts of a crawl before it leases a document, and sets aside what they keep back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from crawl4llm.base.domains import owner_of
from crawl4llm.base.reasons import IGNORED, OPT_OUT, REFUSED_ADDRESS, ROBOTS
from crawl4llm.crawl.layer import Layer
from crawl4llm.crawl.sited_frontier import SitedFrontier
from crawl4llm.frontier import Aside, Entry, Evicted, Frontier, Lease, Outcome, OwnerFrontier, Owners
from crawl4llm.parts import Part, Parts, Refusal

_NOT_FETCHED: Final = frozenset({IGNORED, OPT_OUT, REFUSED_ADDRESS, ROBOTS})
"""Reasons for which a document is dropped before it is asked for."""
_MOST_MOVED: Final = 1000
"""Documents set aside or dropped in one call where owners go in turn, so that it takes no long time."""


def _no_one(entry: Entry, refusal: Refusal) -> None:
    """Stand for who hears of documents that are dropped."""


class Gate(Layer):
    """Implements :class:`crawl4llm.frontier.OwnerFrontier` if the frontier within does, else
    :class:`crawl4llm.frontier.Frontier`; and :class:`crawl4llm.parts.part.Shelf`.

    A document whose turn comes is dropped or set aside, if a part says so. What is set aside leaves the queue, its
    length and its caps, and gets no new scores. It goes back to the queue, best first, when the part takes it back.
    """

    def __init__(
        self, within: Frontier, owned: OwnerFrontier | None, aside: Aside, sites: SitedFrontier | None = None
    ) -> None:
        """``owned``: ``within`` as a frontier of owners, if it is one. ``sites``: ``within`` as a frontier that tells
        sites apart, if it is one; it uses ``aside`` too."""
        super().__init__(within)
        self._owned = owned
        self._aside, self._sites = aside, sites
        self._parts: Sequence[Part] = ()
        self._unwanted: Sequence[Callable[[Entry], Refusal | None]] = ()
        self._tell: Callable[[Entry, Refusal], object] = _no_one
        self._evicted: list[Evicted] = []
        """By documents that went back; told with the next ones."""

    def ask(self, parts: Parts, tell: Callable[[Entry, Refusal], object] = _no_one) -> None:
        """Let parts say what is leased from now on; ``tell`` hears of each document that is dropped."""
        self._parts = [part for part in parts if type(part).lease is not Part.lease]
        self._unwanted, self._tell = parts.having("unwanted"), tell

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
                if (refusal := self._refusal(lease.entry)) is not None:
                    self._drop(lease, refusal)
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
        for part in self._parts:
            part.ended(lease.entry, outcome, asked=not unasked)
        return True

    def give_back(self, lease: Lease, *, attempted: bool) -> bool:
        if not self._within.give_back(lease, attempted=attempted):
            return False
        for part in self._parts:
            part.ended(lease.entry, None, asked=attempted)
        return True

    def withdraw(self, lease: Lease) -> Entry | None:
        return self._within.withdraw(lease)

    @property
    def owners(self) -> Owners:
        assert self._owned is not None
        return self._owned.owners

    def drop_owner(self, owner: str, outcome: Outcome, reason: str, most: int) -> list[Entry]:
        assert self._owned is not None
        if self._owned.owners.queued_of(owner) < most:
            self._evicted += self._owned.push(self._aside.take_owner(owner, most))
        return self._owned.drop_owner(owner, outcome, reason, most)

    def _refusal(self, entry: Entry) -> Refusal | None:
        """Return why a document is dropped, if a part does not want it any more."""
        found = (unwanted(entry) for unwanted in self._unwanted)
        return next((refusal for refusal in found if refusal is not None), None)

    def _kept_back(self, entry: Entry) -> str | None:
        """Return for what the first part sets a document aside that does; those before it hear that it ended."""
        for place, part in enumerate(self._parts):
            if (scope := part.lease(entry)) is not None:
                for before in self._parts[:place]:
                    before.ended(entry, None, asked=False)
                return scope
        return None

    def _is_failed_try(self, entry: Entry, outcome: Outcome) -> bool:
        """Return whether a document failed at a site that never answered: anybody can link there, which costs the owner
        nothing."""
        if outcome is not Outcome.FAILED or self._sites is None:
            return False
        return self._sites.is_unanswered(entry.url or entry.key)

    def _drop(self, lease: Lease, refusal: Refusal) -> None:
        if self._within.settle(lease, Outcome.DROPPED, refusal.reason):
            self._tell(lease.entry, refusal)
        self._release(owner_of(lease.entry.url or lease.entry.key))

    def _set_aside(self, lease: Lease, scope: str) -> None:
        owner = owner_of(lease.entry.url or lease.entry.key)
        if (entry := self._within.withdraw(lease)) is not None:
            self._aside.add(owner, scope, entry)
        self._release(owner)

    def _release(self, owner: str) -> None:
        """Let the owner of a lease that ended unasked be asked for something else."""
        if self._owned is not None:
            self._owned.owners.release(owner, self._owned.owners.now)


class Layers(NamedTuple):
    """A frontier with what stands before it."""

    frontier: Frontier
    owned: OwnerFrontier | None
    """``frontier`` as a frontier of owners, if it is one."""
    sites: SitedFrontier | None
    """The layer that tells the sites of an owner apart, if there is one."""
    gate: Gate | None
    """The layer that asks parts, if one drops documents when their turn comes, or sets them aside."""


def layered(frontier: Frontier, owned: OwnerFrontier | None, parts: Parts, aside: Aside, *, sites: bool) -> Layers:
    """Return a frontier that asks ``parts`` if one of them drops documents when their turn comes or sets them aside,
    and with ``sites`` tells the sites of an owner apart.

    ``owned``: ``frontier`` as a frontier of owners, if it is one. Sites come first: a document that waits for its site
    spends no budget.
    """
    sited = SitedFrontier(owned, aside) if sites and owned is not None else None
    if sited is not None:
        frontier = owned = sited
    if not (parts.having("lease") or parts.having("unwanted")):
        return Layers(frontier, owned, sited, None)
    gate = Gate(frontier, owned, aside, sited)
    return Layers(gate, None if owned is None else gate, sited, gate)
