"""A polite stop of a live crawl: no more requests are sent, and those in flight get a little time."""

from __future__ import annotations

import time

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import create_looping_call

from crawl4llm.crawl import Driven
from crawl4llm.options import read_options

abort_downloads = object()
"""Scrapy signal: the time of the requests in flight is up. Download handlers end them with :class:`Withdrawn`."""

_LOOK_SECONDS = 0.1


class Withdrawn(IgnoreRequest):
    """The crawl is stopping: the request was not sent, or its answer not waited for. It counts as no attempt."""


class NotHeld(Withdrawn):
    """Another worker may be asking the owner by now: the request was not sent. Its document goes back to the frontier,
    whoever has that."""


def crawl_of(crawler: Crawler) -> Driven | None:
    """Return the crawl of the spider; None for those of others, which archive by other ways, or not."""
    crawl = getattr(crawler.spider, "crawl", None)
    return crawl if isinstance(crawl, Driven) else None


def is_stopping(crawler: Crawler) -> bool:
    """Return whether the crawl is stopping (Ctrl-C, SIGTERM, or by itself), so that no more requests may be sent."""
    crawl = crawl_of(crawler)
    return crawler.engine is not None and (not crawler.engine.running or (crawl is not None and bool(crawl.stopped)))


class Stopping:
    """Scrapy extension: withdraws requests that wait in the downloader, and aborts requests in flight after
    SHUTDOWN_GRACE.

    Scrapy itself would send all that the downloader holds, at the pace of its delays, and wait for every answer.
    """

    def __init__(self, crawler: Crawler, grace: float) -> None:
        self._crawler, self._grace = crawler, grace
        self._stopped: float | None = None
        self._aborted = False
        self._look = create_looping_call(self._withdraw)
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Stopping:
        """Build it with the checked SHUTDOWN_GRACE."""
        return cls(crawler, read_options(crawler.settings).shutdown_grace)

    def _opened(self) -> None:
        self._look.start(_LOOK_SECONDS, now=False)

    def _closed(self) -> None:
        self._look.stop()

    def _withdraw(self) -> None:
        """End waiting requests; called now and then, since Scrapy has no signal for the beginning of a stop."""
        if not is_stopping(self._crawler):
            return
        self._stopped = self._stopped or time.monotonic()
        for slot in self._crawler.engine.downloader.slots.values():
            while slot.queue:
                _, answered = slot.queue.popleft()
                answered.errback(Withdrawn("the crawl is stopping"))
        if not self._aborted and time.monotonic() - self._stopped >= self._grace:
            self._aborted = True
            self._crawler.signals.send_catch_log(abort_downloads)
