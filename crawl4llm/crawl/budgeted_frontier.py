"""A frontier that leases only documents with budget left, and sets others aside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crawl4llm.base.reasons import IGNORED, OPT_OUT, REFUSED_ADDRESS, ROBOTS
from crawl4llm.crawl.budgets import LISTED, Budgets, scopes_of
from crawl4llm.crawl.sited_frontier import SitedFrontier
from crawl4llm.frontier import Entry, Evicted, Frontier, Lease, Outcome, OwnerFrontier, Owners
from crawl4llm.policies import Candidate, CrawledPage

if TYPE_CHECKING:
    from crawl4llm.frontier.aside import Aside

_NOT_FETCHED: Final = frozenset({IGNORED, OPT_OUT, REFUSED_ADDRESS, ROBOTS})
"""Reasons for which a document is dropped before it is asked for."""
_MOST_MOVED: Final = 1000
"""Documents set aside in one call where owners go in turn, so that it takes no long time."""
_MOST_BACK: Final = 100
"""Documents that go back at once when a budget grows; others follow with what these spend or earn."""


class BudgetedFrontier:
    """Implements :class:`crawl4llm.frontier.OwnerFrontier` if the frontier within does, else
    :class:`crawl4llm.frontier.Frontier`.

    A document is set aside when its turn comes, if its owner or a prefix of its URL has no budget. That holds even if
    little else is queued. The document then leaves the queue, its length and its caps, and gets no new scores. It goes
    back to the queue, best first, when that budget grows.
    """

    def __init__(
        self,
        within: Frontier,
        owned: OwnerFrontier | None,
        budgets: Budgets,
        aside: Aside,
        sites: SitedFrontier | None = None,
    ) -> None:
        """``owned``: ``within`` as a frontier of owners, if it is one. ``sites``: ``within`` as a frontier that tells
        sites apart, if it is one; it uses ``aside`` too."""
        self._within = within
        self._owned = owned
        self.budgets = budgets
        self._aside, self._sites = aside, sites
        self._evicted: list[Evicted] = []
        """By documents that went back; told with the next ones."""

    # -- budgets --------------------------------------------------------------------------------------------------

    @property
    def set_aside(self) -> int:
        """Documents that wait for a budget."""
        return len(self._aside) - (0 if self._sites is None else self._sites.waiting)

    def crawled(self, entry: Entry, influence: float | None, *, new_text: bool) -> None:
        """Let a page earn, for the document that was leased for it; ``new_text``: whether its text is like no other's
        before."""
        scopes = _scopes(entry)
        self.budgets.earn(scopes, entry.key, influence, new_text=new_text)
        self._take_back(scopes)

    def linked(self, page: CrawledPage, new: Sequence[Candidate]) -> None:
        """Note the links of a page; ``new``: the documents that no page before it led to."""
        known = {link.key for link in page.links if link.key is not None}
        self.budgets.linked(known.difference([page.entry.key], (candidate.key for candidate in new)))
        if len(new) >= LISTED:
            places = [scopes_of(candidate.url or candidate.key) for candidate in new]
            counts = Counter(chain.from_iterable(places))
            listed = {scope for scope, count in counts.items() if count >= LISTED}
            for scope in sorted(listed.difference(_scopes(page.entry))):
                self.budgets.trust(scope)
                self._take_back([next(scopes[0] for scopes in places if scope in scopes), scope])

    def save(self) -> Any:
        """Return the state of the budgets, as JSON takes it."""
        return self.budgets.save()

    def _take_back(self, scopes: list[str]) -> None:
        for scope, left in self.budgets.for_waiting(scopes):
            wanted = min(left, _MOST_BACK)
            entries = self._aside.take(scopes[0], scope, wanted)
            if len(entries) < wanted:
                self.budgets.wait(scope, waiting=False)
            if entries:
                self._evicted += self._within.push(entries)

    # -- the frontier's protocol ----------------------------------------------------------------------------------

    def push(self, entries: Iterable[Entry]) -> list[Evicted]:
        evicted, self._evicted = self._evicted, []
        return evicted + self._within.push(entries)

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        return self._within.rerank(scores)

    def lease(self, n: int) -> list[Lease]:
        leases: list[Lease] = []
        moved = 0
        while len(leases) < n and (self._owned is None or moved < _MOST_MOVED):
            some = self._within.lease(n - len(leases))
            if not some:
                break
            for lease in some:
                scopes = _scopes(lease.entry)
                if (scope := self.budgets.exhausted(scopes)) is None:
                    seed = lease.entry.parent is None
                    self.budgets.spend(scopes, seed=seed)
                    leases.append(lease)
                    if seed:
                        self._take_back(scopes)
                else:
                    self._set_aside(lease, scopes[0], scope)
                    moved += 1
        return leases

    def settle(self, lease: Lease, outcome: Outcome, reason: str | None = None) -> bool:
        if not self._within.settle(lease, outcome, reason):
            return False
        if (outcome is Outcome.DROPPED and reason in _NOT_FETCHED) or self._is_failed_try(lease.entry, outcome):
            scopes = _scopes(lease.entry)
            self.budgets.refund(scopes)
            self._take_back(scopes)
        return True

    def give_back(self, lease: Lease, *, attempted: bool) -> bool:
        """A document that is asked for again spends once: what it gives back is its own."""
        if not self._within.give_back(lease, attempted=attempted):
            return False
        self.budgets.refund(_scopes(lease.entry))
        return True

    def withdraw(self, lease: Lease) -> Entry | None:
        return self._within.withdraw(lease)

    def __len__(self) -> int:
        return len(self._within)

    @property
    def leased(self) -> int:
        return self._within.leased

    @property
    def outcomes(self) -> Mapping[tuple[Outcome, str | None], int]:
        return self._within.outcomes

    def close(self) -> None:
        self._within.close()

    @property
    def owners(self) -> Owners:
        assert self._owned is not None
        return self._owned.owners

    def drop_owner(self, owner: str, outcome: Outcome, reason: str, most: int) -> list[Entry]:
        assert self._owned is not None
        if self._owned.owners.queued_of(owner) < most:
            self._evicted += self._owned.push(self._aside.take_owner(owner, most))
        return self._owned.drop_owner(owner, outcome, reason, most)

    def _is_failed_try(self, entry: Entry, outcome: Outcome) -> bool:
        """Return whether a document failed at a site that never answered: anybody can link there, which costs the owner
        nothing."""
        tried = outcome is Outcome.FAILED and self._sites is not None
        return tried and self._sites is not None and self._sites.is_unanswered(entry.url or entry.key)

    def _set_aside(self, lease: Lease, owner: str, scope: str) -> None:
        if (entry := self._within.withdraw(lease)) is not None:
            self._aside.add(owner, scope, entry)
            self.budgets.wait(scope, waiting=True)
        if self._owned is not None:
            self._owned.owners.release(owner, self._owned.owners.now)


class Layers(NamedTuple):
    """A frontier with what stands before it."""

    frontier: Frontier
    owned: OwnerFrontier | None
    """``frontier`` as a frontier of owners, if it is one."""
    sites: SitedFrontier | None
    """The layer that tells the sites of an owner apart, if there is one."""


def layered(
    frontier: Frontier, owned: OwnerFrontier | None, budgets: Budgets | None, aside: Aside, *, sites: bool
) -> Layers:
    """Return a frontier that heeds ``budgets``, if given, and with ``sites`` tells the sites of an owner apart.

    ``owned``: ``frontier`` as a frontier of owners, if it is one. Sites come first: a document that waits for its site
    spends no budget.
    """
    sited = SitedFrontier(owned, aside) if sites and owned is not None else None
    if sited is not None:
        frontier = owned = sited
    if budgets is not None:
        frontier = budgeted = BudgetedFrontier(frontier, owned, budgets, aside, sited)
        owned = None if owned is None else budgeted
    return Layers(frontier, owned, sited)


def _scopes(entry: Entry) -> list[str]:
    return scopes_of(entry.url or entry.key)
