"""Sets documents aside whose owner or URL prefix has no budget (URL_BUDGET), and requeues them when it has one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from crawl4llm.frontier import Entry, Outcome
from crawl4llm.parts.budgets import BUDGETS_SPENT
from crawl4llm.parts.budgets.accounts import LISTED, Budgets
from crawl4llm.parts.budgets.scopes import scopes_beside, scopes_of
from crawl4llm.parts.part import Part, Rated
from crawl4llm.policies import Candidate, CrawledPage, Pieces
from crawl4llm.scoring import gives_probabilities

_MOST_BACK: Final = 100
"""Most documents that return at once when a budget grows; others follow as these spend or earn."""


class BudgetsPart(Part):
    """See the module. It applies even if little else is queued."""

    name = "budgets"
    spent = BUDGETS_SPENT

    def begin(self) -> None:
        probabilities = gives_probabilities(self.options.scorer)
        self._budgets = Budgets(self.options.url_budget, probabilities=probabilities)

    def lease(self, entry: Entry) -> str | None:
        scopes = _scopes(entry)
        if (scope := self._budgets.exhausted(scopes)) is not None:
            self._budgets.wait(scope, waiting=True)
            return scope
        seed = entry.parent is None
        self._budgets.spend(scopes, seed=seed)
        if seed:
            self._take_back(scopes)
        return None

    def ended(self, entry: Entry, outcome: Outcome | None, *, asked: bool) -> None:
        """A document that is requested again spends only once, because it refunds only its own fetch."""
        if outcome is None or not asked:
            scopes = _scopes(entry)
            self._budgets.refund(scopes)
            if outcome is not None:
                self._take_back(scopes)

    def crawled(self, entry: Entry, page: Rated) -> None:
        if page.influence is None or not page.has_worth:
            return
        scopes = _scopes(entry)
        beside = scopes_beside(scopes, entry.parent)
        self._budgets.earn(scopes, entry.key, page.influence, beside)
        self._take_back([*scopes, *beside])

    def found(self, page: CrawledPage, new: Sequence[Candidate]) -> None:
        known = {link.key for link in page.links if link.key is not None}
        self._budgets.linked(known.difference([page.entry.key], (candidate.key for candidate in new)))
        if len(new) >= LISTED:
            places = [scopes_of(candidate.url or candidate.key) for candidate in new]
            counts = Counter(chain.from_iterable(places))
            listed = {scope for scope, count in counts.items() if count >= LISTED}
            for scope in sorted(listed.difference(_scopes(page.entry))):
                self._budgets.trust(scope)
                self._take_back([next(scopes[0] for scopes in places if scope in scopes), scope])

    def lines(self, figures: Mapping[str, float | None]) -> Iterator[str]:
        if waiting := int(figures.get("parked/budget") or 0):
            yield f"  without budget   {waiting:,} documents, whose owners or URL prefixes have not earned more"

    def keep_in(self, pieces: Pieces) -> None:
        self._budgets.keep_in(pieces)

    def save(self) -> Any:
        return self._budgets.save()

    def load(self, state: Any) -> None:
        self._budgets.load(state)

    def _take_back(self, scopes: list[str]) -> None:
        for scope, left in self._budgets.for_waiting(scopes):
            wanted = min(left, _MOST_BACK)
            if self.shelf.take_back(scopes[0], scope, wanted) < wanted:
                self._budgets.wait(scope, waiting=False)


def _scopes(entry: Entry) -> list[str]:
    return scopes_of(entry.url or entry.key)
