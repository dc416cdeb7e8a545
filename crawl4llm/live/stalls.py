"""The stall watchdog: says in the log why nothing is fetched while documents wait."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawl4llm.crawl.algorithm import Crawl
    from crawl4llm.frontier import Owners

logger = logging.getLogger(__name__)

_STALL_SECONDS, _LINE_SECONDS, _LOOK_SECONDS = 30.0, 60.0, 5.0
"""Without an answer that is a stall; between two lines, at least; between two looks."""


class Stalls:
    """Scrapy extension, for crawls whose frontier goes by owners."""

    def __init__(self, crawl: Crawl, owners: Owners, now: float) -> None:
        self._crawl, self._owners = crawl, owners
        self._answered = now
        self._said = -math.inf
        self._look: Any = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Stalls:
        """Build it for the spider's crawl. Raises NotConfigured where there are no owners."""
        crawl: Crawl | None = getattr(crawler.spider, "crawl", None)
        if crawl is None or crawl.owners is None:
            raise NotConfigured
        stalls = cls(crawl, crawl.owners, time.monotonic())
        crawler.signals.connect(stalls._opened, signal=signals.spider_opened)
        crawler.signals.connect(stalls._answer_came, signal=signals.response_downloaded)
        crawler.signals.connect(stalls._closed, signal=signals.spider_closed)
        return stalls

    def line(self, now: float) -> str | None:
        """Return what is to be said now, by the monotonic clock; None while all goes on, or where it was just said."""
        waiting, stalled = len(self._crawl.frontier), now - self._answered
        if not waiting or stalled < _STALL_SECONDS or now - self._said < _LINE_SECONDS:
            return None
        self._said = now
        self._owners.tick(now)
        counts, ready = self._owners.counts, self._owners.next_ready()
        when = "" if ready is None else f" (the first {max(ready - now, 0):.0f} s more)"
        return (
            f"Nothing fetched for {stalled:.0f} s while {waiting:,} documents wait; of their owners "
            f"{counts.waiting:,} wait{when}, {counts.ready:,} may be asked, {counts.busy:,} are being asked, "
            f"{counts.parked:,} are parked"
        )

    def _say(self) -> None:
        if line := self.line(time.monotonic()):
            logger.info("%s", line)

    def _answer_came(self) -> None:
        self._answered = time.monotonic()

    def _opened(self) -> None:
        self._look = create_looping_call(self._say)
        self._look.start(_LOOK_SECONDS, now=False)

    def _closed(self) -> None:
        if self._look is not None:
            self._look.stop()
