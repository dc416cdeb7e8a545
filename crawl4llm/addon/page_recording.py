"""Archives and logs the pages that other people's spiders crawl."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse, TextResponse

from crawl4llm.addon.meta import FIRST, TEXT, found, influence_of, is_page, score_of
from crawl4llm.addon.run import POLICY, AddonRun
from crawl4llm.base.crawl_log import CrawlLine
from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import PageRecord, utc_date
from crawl4llm.base.stats import PREFIX
from crawl4llm.base.urls import normalise_url
from crawl4llm.crawl.page_writer import Counters
from crawl4llm.frontier import Outcome
from crawl4llm.live.capturing import captures_of
from crawl4llm.warc.header_values import utf8

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class PageRecording:
    """Spider middleware: a page on its way to the spider is archived, and gets a line in the crawl log.

    A page's document key is its normalised URL. Where a URL is crawled again, ``#2`` and so on follows: an archive
    has one name for each of its records.
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
        if self._run.failure is not None or not is_page(response.request, response):
            return
        if not isinstance(response, TextResponse):
            self._run.lost(response.request, Outcome.DROPPED, "not_text")
            return
        try:
            self._record(response)
        except InputError as error:
            self._run.stop(error)

    def _record(self, response: TextResponse) -> None:
        assert response.request is not None
        key = self._new_key(response.url)
        influence = influence_of(response)
        score, origin = score_of(response.request), found(response.request)
        priority = None if score == FIRST else score
        html = utf8(response.text) if isinstance(response, HtmlResponse) else None
        captures = captures_of(response.request)
        date = captures[-1].date if captures else utc_date()
        self._run.archive.write(
            PageRecord(key, response.url, date, html, response.text, captures=captures),
            {
                "id": key,
                "method": response.request.method,
                "influence": influence,
                "priority": priority,
                "order": self._counters.crawled,
                "depth": origin.depth,
                "policy": POLICY,
                "extractor": self._run.extractor,
                "model-digest": self._run.model_digest,
            },
            response.meta.pop(TEXT, None),
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
        self._run.log.write([line], [])
        self._count(influence)

    def _count(self, influence: float | None) -> None:
        self._counters.page(influence)
        self._run.publish("pages/crawled", self._counters.crawled)
        if self._counters.mean_influence is not None:
            self._run.publish("influence/mean", self._counters.mean_influence)

    def _new_key(self, url: str) -> str:
        key = normalise_url(url)
        self._times_crawled[key] += 1
        times = self._times_crawled[key]
        return key if times == 1 else f"{key}#{times}"
