"""Tries: requests to sites that never answered, which hold up no other site of their owners.

:mod:`crawl4llm.crawl.sited_frontier` says when they are tried, and what each try costs its owner.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from crawl4llm.base.domains import owner_of
from crawl4llm.base.urls import site_of

if TYPE_CHECKING:
    from scrapy import Request

    from crawl4llm.crawl.driven import Driven
    from crawl4llm.crawl.sited_frontier import SitedFrontier
    from crawl4llm.frontier import Owners
    from crawl4llm.live.places import Exchange

TRY: Final = "crawl4llm_try"
"""In the meta of a try: the seconds in which it has to have a connection."""
LONGEST_TRY: Final = 5.0
"""Seconds for which its connection is waited for at most, look-up and TLS included."""
_SHORTEST_TURN: Final = 1.0
"""Seconds; the turns that a try took are of this length at least."""


class Tries:
    """Tells the crawl's :class:`SitedFrontier` the outcome of requests. Without one no request is a try."""

    def __init__(self, crawl: Driven, owners: Owners) -> None:
        self._crawl, self._owners = crawl, owners

    def of(self, url: str) -> SitedFrontier | None:
        """Return the frontier that knows the site of a URL, if that has not answered."""
        sites = self._crawl.sites_of(url)
        return sites if sites is not None and sites.is_unanswered(url) else None

    def begin(self, request: Request) -> None:
        """Mark a request that is a try; one that a redirect led to has the meta of the one before."""
        request.meta.pop(TRY, None)
        if self.of(request.url) is not None:
            request.meta[TRY] = LONGEST_TRY

    def answered(self, exchange: Exchange) -> None:
        """Note the end of an exchange that was answered."""
        if (sites := self._crawl.sites_of(exchange.url)) is not None:
            sites.answered(exchange.url)
            sites.took_turn(exchange.owner)

    def failed(self, exchange: Exchange, request: Request, delay: float) -> None:
        """Note the end of a try without an answer; a turn of its owner takes the ``delay``, at least."""
        if (sites := self.of(exchange.url)) is not None:
            of_look_up = LONGEST_TRY - request.meta.get(TRY, LONGEST_TRY)
            seconds = time.monotonic() - exchange.began + of_look_up + delay
            sites.failed(exchange.url, max(round(seconds / max(delay, _SHORTEST_TURN)), 1))

    def forgive(self, url: str) -> None:
        """Note that it was not the site of a URL that failed."""
        if (sites := self.of(url)) is not None:
            sites.forgive(owner_of(url))

    def leave_alone(self, url: str, seconds: float, failures: int | None = None) -> bool:
        """Let a site wait that has not answered, and nothing else of its owner. ``failures``: those so far. Returns
        False if the site has answered."""
        if (sites := self.of(url)) is None:
            return False
        now = time.monotonic()
        self._owners.tick(now)
        self._owners.hold(site_of(url), now + seconds if seconds else -math.inf, failures=failures)
        sites.leave_alone(url, now + seconds)
        return True

    def give_up(self, url: str) -> None:
        """Let the documents of a site that has not answered end, each in its turn."""
        if (sites := self.of(url)) is not None:
            sites.give_up(url)
