"""Scores the pages that other people's spiders fetch, before the spider sees them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse
from scrapy.http.request import NO_CALLBACK

from crawl4llm.addon.meta import INFLUENCE, TEXT, is_page
from crawl4llm.addon.run import AddonRun
from crawl4llm.base.errors import InputError
from crawl4llm.base.reasons import NO_TEXT
from crawl4llm.frontier import Outcome
from crawl4llm.live.reasons import verdict
from crawl4llm.scoring.rating import HtmlPage, RatedText
from crawl4llm.warc.header_values import utf8

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class PageScoring:
    """Downloader middleware: callbacks find a page's influence score in ``response.meta["influence"]``.

    HTML is scored. What Scrapy fetches for itself (robots.txt, the files of media pipelines) is left alone. A request
    whose response is being scored counts as one of CONCURRENT_REQUESTS, so that downloads wait for the scorer.
    """

    def __init__(self, run: AddonRun) -> None:
        self._run = run

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PageScoring:
        return cls(AddonRun.of(crawler))

    async def process_response(self, request: Request, response: Response) -> Response:
        if self._concerns(request):
            self._run.count("pages/fetched")
            request.meta[INFLUENCE] = await self._influence(request, response)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        if self._concerns(request):
            self._run.lost(request, *(verdict(exception) or (Outcome.FAILED, _name(exception))))

    def _concerns(self, request: Request) -> bool:
        return request.callback is not NO_CALLBACK and self._run.failure is None

    async def _influence(self, request: Request, response: Response) -> float | None:
        if response.status != 200:
            self._run.lost(request, Outcome.FAILED, f"http_{response.status}")
            return None
        if not is_page(request, response):
            return None
        if not isinstance(response, HtmlResponse):
            self._run.count("unscored/not_html")
            return None
        try:
            rating = await self._run.workers.rate(HtmlPage(response.url, utf8(response.text)))
        except InputError as error:
            self._run.stop(error)
            return None
        if isinstance(rating, RatedText):
            request.meta[TEXT] = rating.text
        if rating.reason == NO_TEXT:
            self._run.count("pages/no_text")
        elif rating.reason is not None:
            self._run.count(f"unscored/{rating.reason}")
        return rating.score


def _name(exception: Exception) -> str:
    """``SomeOtherError`` is counted as ``some_other``."""
    name = type(exception).__name__.removesuffix("Error")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
