"""The add-on's middlewares: score the pages that spiders fetch, archive them, and note where links were found."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware

from crawl4llm.addon import meta
from crawl4llm.addon.request_parts import ReadPage
from crawl4llm.addon.run import POLICY, AddonRun
from crawl4llm.base.crawl_log import CrawlLine
from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import PageRecord, utc_date
from crawl4llm.base.reasons import NO_TEXT, NOT_TEXT
from crawl4llm.base.stats import PREFIX
from crawl4llm.base.urls import normalise_url
from crawl4llm.crawl import UNCOUNTED, Counters
from crawl4llm.frontier import Outcome
from crawl4llm.live import captures_of, known_status, verdict
from crawl4llm.optouts import as_text, is_noindex, said_in_head, said_in_html
from crawl4llm.parts import Rated
from crawl4llm.scoring import HtmlPage, RatedText
from crawl4llm.warc import utf8


class Unwanted(IgnoreRequest):
    """A part wants a request dropped; that is counted already."""


class PageScoring:
    """Downloader middleware: callbacks find a page's influence score in ``response.meta["influence"]``.

    HTML is scored. Requests of Scrapy's own (robots.txt, the files of media pipelines) are left alone. A request whose
    response is being scored counts as one of CONCURRENT_REQUESTS, so that downloads wait for the scorer.
    """

    def __init__(self, run: AddonRun) -> None:
        self._run = run

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PageScoring:
        return cls(AddonRun.of(crawler))

    def process_request(self, request: Request) -> Response | None:
        """Drop requests that may not be sent, and answer those for known pages; and ask all parts, unless our scheduler
        has."""
        if self._run.failure is not None:
            return None
        try:
            if not (self._concerns(request) and self._run.parts_asked):
                wanted = self._run.wanted(request) if self._concerns(request) else self._run.may_be_sent(request)
                if not wanted:
                    raise Unwanted
            if self._concerns(request) and self._run.parts.is_known(request):
                return self._run.parts.known(request)
        except InputError as error:
            self._run.stop(error)
            raise Unwanted from None
        return None

    async def process_response(self, request: Request, response: Response) -> Response:
        if self._concerns(request) and meta.KNOWN not in request.meta:
            self._run.count("pages/fetched")
            request.meta[meta.INFLUENCE] = await self._influence(request, response)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        if self._concerns(request) and not isinstance(exception, Unwanted):
            self._run.lost(request, *(verdict(exception) or (Outcome.FAILED, _name(exception))))

    def _concerns(self, request: Request) -> bool:
        return request.callback is not NO_CALLBACK and self._run.failure is None

    async def _influence(self, request: Request, response: Response) -> float | None:
        if response.status != 200:
            self._run.lost(request, Outcome.FAILED, f"http_{known_status(response.status)}")
            return None
        if not meta.is_page(request, response):
            return None
        if not isinstance(response, HtmlResponse):
            self._run.count("unscored/not_html")
            return None
        try:
            rating = await self._run.workers.run(HtmlPage(response.url, utf8(response.text)))
        except InputError as error:
            self._run.stop(error)
            return None
        if isinstance(rating, RatedText):
            request.meta[meta.RATED] = rating
        if rating.reason == NO_TEXT:
            self._run.count("pages/no_text")
        elif rating.reason is not None:
            self._run.count(f"unscored/{rating.reason}")
        return rating.score


def _name(exception: Exception) -> str:
    """Return the name by which an exception is counted: ``some_other`` for ``SomeOtherError``."""
    name = type(exception).__name__.removesuffix("Error")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


logger = logging.getLogger(__name__)


class LinkScoring(BaseSpiderMiddleware):
    """Spider middleware: notes on each request that a spider makes where it was found."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._run = AddonRun.of(crawler)
        self._complained = False

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Start nothing when the add-on cannot do its work."""
        if self._run.failure is None:
            async for item in super().process_start(start):
                yield item

    def get_processed_item(self, item: Any, response: Response | None) -> Any:
        """Return None for an item of a known page, whose response has links alone; see BaseSpiderMiddleware."""
        return None if response is not None and meta.KNOWN in response.meta else item

    def get_processed_request(self, request: Request, response: Response | None) -> Request | None:
        """See BaseSpiderMiddleware; ``response`` is None for start requests."""
        if response is not None and (left := response.meta.get(meta.LEFT)) is not None:
            self._run.parts.counts[left] += 1
            return None
        nowhere = response is not None and response.meta.get(meta.LEADING_NOWHERE)
        if nowhere and normalise_url(request.url) in nowhere:
            return None
        meta.note_found(request, response)
        given = request.meta.get(meta.GIVEN)
        if given is not None and meta.as_score(given) is None and not self._complained:
            self._complained = True
            logger.warning("meta[%r] = %r of %s is not a number; such scores are ignored", meta.GIVEN, given, request)
        return request


class PageRecording:
    """Spider middleware: a page on its way to the spider is archived, and gets a line in the crawl log.

    A page's document key is its normalised URL. If a URL is crawled again, ``#2`` and so on is added, because each
    record of an archive has its own name.
    """

    def __init__(self, run: AddonRun) -> None:
        self._run = run
        self._counters = Counters()
        self._times_crawled: Counter[str] = Counter()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PageRecording:
        return cls(AddonRun.of(crawler))

    def process_spider_input(self, response: Response) -> None:
        assert response.request is not None
        if self._run.failure is not None or not meta.is_page(response.request, response):
            return
        if (refusal := response.meta.get(meta.KNOWN)) is not None:
            self._run.drop(response.request, refusal)
            return
        if not isinstance(response, TextResponse):
            self._run.lost(response.request, Outcome.DROPPED, NOT_TEXT)
            return
        try:
            self._record(response)
        except InputError as error:
            self._run.stop(error)

    def _record(self, response: TextResponse) -> None:
        assert response.request is not None
        key = self._new_key(response.url)
        influence = meta.influence_of(response)
        score, origin = meta.score_of(response.request), meta.found(response.request)
        priority = None if score == meta.FIRST else score
        html = utf8(response.text) if isinstance(response, HtmlResponse) else None
        captures = captures_of(response.request)
        date = captures[-1].date if captures else utc_date()
        crawler, headers = self._run.crawler_name, captures[-1].headers if captures else ()
        said = [*said_in_head(headers, crawler), *said_in_html(html or b"", crawler)]
        read = ReadPage(response.url, html, response.encoding, is_noindex(said), headers)
        rated = self._rated(response, influence, read)
        if rated.dropped is not None:
            self._run.drop(response.request, rated.dropped)
            return
        self._run.archive.write(
            PageRecord(key, response.url, date, html, response.text, captures=captures),
            {
                "id": key,
                "method": response.request.method,
                "influence": influence,
                "priority": priority,
                "order": self._counters.crawled,
                "depth": origin.depth,
                "opt-out-signals": as_text(said) or None,
                "policy": POLICY,
                "extractor": self._run.extractor,
                "model-digest": self._run.model_digest,
                **rated.metadata,
            },
            rated.text,
        )
        self._run.archive.flush()
        line: CrawlLine = {
            "order": self._counters.crawled,
            "iteration": None,
            "id": key,
            "url": response.url,
            "status": response.status,
            "priority": priority,
            "influence": influence,
            "depth": origin.depth,
            "parent": origin.page,
            "visited": self._run.stats.get_value("scheduler/enqueued", 0),
            "fetched": self._run.stats.get_value(f"{PREFIX}pages/fetched", 0),
        }
        self._run.log.write([{**line, **rated.line}], [])  # type: ignore[typeddict-item]
        self._counters.page(influence, is_counted=rated.is_counted)
        if (reason := self._run.parts.crawled(response.request, rated)) is not None:
            self._run.end(reason)
        self._run.publish("pages/crawled", self._counters.crawled)
        if not rated.is_counted:
            self._run.count(UNCOUNTED)
        if self._counters.mean_influence is not None:
            self._run.publish("influence/mean", self._counters.mean_influence)

    def _rated(self, response: TextResponse, influence: float | None, read: ReadPage) -> Rated:
        """Let the parts see a page, and record in its meta what they say about its links."""
        assert response.request is not None
        parts, rating = self._run.parts, response.meta.pop(meta.RATED, None)
        rated = parts.rated(self._counters.crawled, influence, rating, read)
        response.meta[meta.LEADING_NOWHERE] = parts.leading_nowhere(rated, read)
        if rated.left is not None:
            response.meta[meta.LEFT] = rated.left
        if not rated.is_counted:
            response.meta[meta.WORTH] = rated.worth
        elif self._run.budgets is not None and rating is not None:
            self._run.budgets.crawled(response.request, rating.score, rating.signature)
        return rated

    def _new_key(self, url: str) -> str:
        key = normalise_url(url)
        self._times_crawled[key] += 1
        times = self._times_crawled[key]
        return key if times == 1 else f"{key}#{times}"
