"""The spider of a crawl: ``scrapy crawl influence``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from urllib.parse import quote

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.python.failure import Failure

from crawl4llm.base.errors import InputError
from crawl4llm.base.reasons import BOMB, ERROR, ROBOTS_UNKNOWN
from crawl4llm.crawl import BAD_INPUT, lease_of, leased, leases_of, page_of, pages_of
from crawl4llm.engine import Run
from crawl4llm.frontier import Lease, Outcome
from crawl4llm.optouts import as_text


class InfluenceSpider(Spider):
    """Crawls by Algorithm 1 of Craw4LLM; its seeds and outlinks go to the frontier in bulk, not as requests.

    ``seeds``: a file of seeds, which a live crawl needs; without one, CRAWL_SEEDS random documents of the corpus.
    ``run``: the run, if it was opened before the reactor started (as the project's ``crawl`` command does).
    """

    name = "influence"

    def __init__(self, run: Run, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.crawl = run.crawl

    @classmethod
    def from_crawler(
        cls, crawler: Crawler, *args: Any, run: Run | None = None, seeds: str | None = None, **kwargs: Any
    ) -> InfluenceSpider:
        return super().from_crawler(crawler, *args, run=run or Run(crawler.settings, seeds), **kwargs)

    async def start(self) -> AsyncIterator[Any]:
        """Yield no requests, because the scheduler begins with the seeds."""
        return
        yield  # makes it a generator

    def request_for(self, lease: Lease) -> Request:
        """Return the request that fetches a leased document.

        A seed is requested by its key if that is a URL. Otherwise, or if Scrapy does not accept its URL, it is
        requested as ``corpus://KEY``. The key is percent-encoded, because it may be such a URL itself.
        """
        make = partial(Request, callback=self.parse, meta=leased(lease), errback=self.on_failure, dont_filter=True)
        try:
            return make(lease.entry.url or lease.entry.key)
        except ValueError:
            return make(f"corpus://{quote(lease.entry.key, safe='')}")

    def parse(self, response: Response, **_: Any) -> None:
        """Handle the answer to a request: the page, or an HTTP status without a page."""
        lease, page = lease_of(response.request), page_of(response.request)
        if page is None:
            from crawl4llm.live import capturing, request_log  # live only; slow to import

            why = None
            if response.status in capturing.REFUSALS and response.request is not None:
                said = ", ".join(filter(None, [f"HTTP {response.status}", request_log.price_of(response)]))
                why = capturing.keep_head(self.crawl, response.request, capturing.REFUSAL, said)
            self.crawl.failed(lease, f"http_{response.status}", why)
        else:
            self.crawl.fetched(lease, page, response.status)

    def parse_several(self, response: Response) -> None:
        """Handle the answer to a request for several documents."""
        request = response.request
        assert request is not None
        answers = 0
        for lease, found in zip(leases_of(request), pages_of(request), strict=True):
            if isinstance(found, Exception):
                self._failed(lease, found, request)
                continue
            answers += 1
            if found is None:
                self.crawl.failed(lease, "http_404")
            else:
                self.crawl.fetched(lease, found, response.status)
        self.crawler.stats.inc_value("response_received_count", answers - 1)  # Scrapy has counted one

    def on_failure(self, failure: Failure) -> None:
        """Handle the error of a request without an answer."""
        assert failure.value is not None
        request = failure.request  # type: ignore[attr-defined]  # Scrapy sets it
        for lease in leases_of(request):
            self._failed(lease, failure.value, request)

    def _failed(self, lease: Lease, raised: BaseException, request: Request) -> None:
        if isinstance(raised, InputError):  # no page's fault, perhaps that no file can be opened, nor anything imported
            self._end(raised)
            return
        from crawl4llm.live import capturing, fetching, opt_outs, places, stopping, verdicts  # slow to import

        error = verdicts.machine_error(raised) or raised
        if isinstance(error, stopping.NotHeld) or (isinstance(error, places.Later) and error.reason is None):
            self.crawl.give_back(lease)
            return
        if isinstance(error, stopping.Withdrawn):
            if hop := capturing.hop_of(request):
                self.crawl.broken_off(lease, hop)
            return
        if isinstance(error, fetching.Elsewhere):
            self.crawl.redirected(lease, error.page)
            return
        if isinstance(error, places.Later):
            self.crawl.failed(lease, str(error.reason), getattr(error.__cause__, "why", None), final=error.final)
            return
        if isinstance(error, InputError):
            self._end(error)
            return
        known, why = verdicts.verdict(error), getattr(error, "why", None)
        if isinstance(error, opt_outs.OptedOut) and why is None:  # the answer itself says so
            signals = {"opt-out-signals": as_text(error.verdict.said)}
            why = capturing.keep_head(self.crawl, request, capturing.OPT_OUT_HEAD, error.rule, signals)
        if known == (Outcome.FAILED, BOMB):
            why = capturing.keep_bomb(self.crawl, request)
        if known is None:
            self.logger.error("Cannot fetch %s", lease.entry.key, exc_info=error)
            self.crawl.failed(lease, ERROR, final=False)
        elif known[0] is Outcome.DROPPED:
            self.crawl.dropped(lease, known[1], why)
        else:
            self.crawl.failed(lease, known[1], why, final=known[1] != ROBOTS_UNKNOWN)

    def _end(self, error: InputError) -> None:
        """End the crawl here; it can be resumed."""
        if self.crawl.failure is None:
            self.crawl.failure = str(error)
            self._closing = asyncio.ensure_future(self.crawler.engine.close_spider_async(reason=BAD_INPUT))

    def closed(self, reason: str) -> None:
        """Close log and archive."""
        try:
            self.run.close()
        except InputError as error:
            self.crawl.failure = self.crawl.failure or str(error)
