"""Budgets of owners and URL prefixes in the add-on: requests that have none wait until it grows."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from typing import TypeAlias

from scrapy import Request

from crawl4llm.addon.meta import found
from crawl4llm.base.urls import normalise_url
from crawl4llm.parts import LISTED, Budgets, NearDuplicates, scopes_beside, scopes_of

Waiting: TypeAlias = "tuple[int, float, int, Request]"
"""Priority and score, both negative so that the best is the smallest; the order of arrival; the request."""


class RequestBudgets:
    """Says which requests may be sent now, and keeps the others; see :mod:`crawl4llm.parts.budgets.accounts`.

    Each request that is sent spends a fetch, those that follow redirects or try again too. All is in memory.
    """

    def __init__(self, start: int, *, probabilities: bool) -> None:
        """``start``: URL_BUDGET, more than 0. ``probabilities``: whether influence scores are probabilities."""
        self._budgets = Budgets(start, probabilities=probabilities)
        self._near_duplicates = NearDuplicates()
        self._pages = 0
        self._aside: defaultdict[str, list[Waiting]] = defaultdict(list)
        """Heaps by owner or prefix."""
        self.set_aside = 0
        """Requests that wait for a budget."""
        self.back: list[Waiting] = []
        """Requests that may be queued again."""
        self._page: str | None = None
        self._listed: Counter[str] = Counter()
        """Requests that the page has made, by owner and prefix."""

    def found_again(self, request: Request) -> None:
        """Note a duplicate: another page links there."""
        self._budgets.linked([normalise_url(request.url)])

    def found(self, request: Request) -> None:
        """Record a new request: an owner that another owner's page lists is trusted."""
        page = found(request).page
        if page is None:
            return
        if page != self._page:
            self._page = page
            self._listed.clear()
        for scope in set(scopes_of(request.url)).difference(scopes_of(page)):
            self._listed[scope] += 1
            if self._listed[scope] == LISTED:
                self._budgets.trust(scope)
                self._take_back([scope])

    def may_be_sent(self, waiting: Waiting) -> bool:
        """Spend a fetch on a request, or set it aside."""
        request = waiting[-1]
        scopes = scopes_of(request.url)
        if (scope := self._budgets.exhausted(scopes)) is not None:
            heapq.heappush(self._aside[scope], waiting)
            self.set_aside += 1
            self._budgets.wait(scope, waiting=True)
            return False
        seed = found(request).page is None
        self._budgets.spend(scopes, seed=seed)
        if seed:
            self._take_back(scopes)
        return True

    def crawled(self, request: Request, influence: float | None, signature: bytes) -> None:
        """Let a page earn; ``signature``: of its main text (:mod:`crawl4llm.scoring.signatures`)."""
        is_new = bool(signature) and self._near_duplicates.add(self._pages, signature) is None
        self._pages += 1
        if influence is None or not is_new:
            return
        scopes = scopes_of(request.url)
        beside = scopes_beside(scopes, found(request).page)
        self._budgets.earn(scopes, normalise_url(request.url), influence, beside)
        self._take_back([*scopes, *beside])

    def take_back(self) -> list[Waiting]:
        """Return the requests that have a budget again, to be queued."""
        back, self.back = self.back, []
        return back

    def _take_back(self, scopes: list[str]) -> None:
        for scope, left in self._budgets.for_waiting(scopes):
            heap = self._aside[scope]
            back = [heapq.heappop(heap) for _ in range(min(left, len(heap)))]
            self.back += back
            self.set_aside -= len(back)
            if not heap:
                del self._aside[scope]
                self._budgets.wait(scope, waiting=False)
