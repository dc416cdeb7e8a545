"""Scrapy components that misbehave in the ways that real ones do."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from crawl4llm.crawl.crawl import Crawl
from crawl4llm.crawl.reorder_buffer import lease_of
from crawl4llm.engine.scheduler import iteration_done
from crawl4llm.live.wire import WireHandler
from crawl4llm.policies import Candidate, Rating
from crawl4llm.policies.influence import Policy
from crawl4llm.spiders.influence import InfluenceSpider


def every_third(request: Request | None) -> bool:
    """A third of the documents, by their record number."""
    return int(lease_of(request).entry.key[-5:]) % 3 == 0


class Watching:
    """A downloader middleware that counts the documents asked for, and touches nothing."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Watching:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        assert lease_of(request)
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value("watched")


class Ignoring:
    """A downloader middleware that refuses some requests, as a robots.txt middleware does."""

    def process_request(self, request: Request) -> None:
        if every_third(request):
            raise IgnoreRequest("not this one")


class Retrying:
    """A downloader middleware that asks for some pages a second time."""

    def process_response(self, request: Request, response: Response) -> Request | Response:
        if every_third(request) and not request.meta.get("again"):
            return request.replace(meta={**request.meta, "again": True})
        return response


class Swallowing:
    """A downloader middleware that breaks on some responses."""

    def process_response(self, request: Request, response: Response) -> Response:
        if every_third(request):
            raise RuntimeError("middleware broke")
        return response


class Refusing:
    """An extension whose signal handler refuses some requests before the scheduler sees them."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Refusing:
        extension = cls()
        crawler.signals.connect(extension.scheduled, signal=signals.request_scheduled)
        return extension

    def scheduled(self, request: Request) -> None:
        if every_third(request):
            raise IgnoreRequest("not this one")


class BrokenSpider(InfluenceSpider):
    """A spider whose callback raises on some pages."""

    name = "influence"

    def parse(self, response: Response, **kwargs: Any) -> None:
        if every_third(response.request):
            raise RuntimeError("callback broke")
        super().parse(response, **kwargs)


class AlwaysBrokenSpider(InfluenceSpider):
    """A spider whose callback always raises."""

    name = "influence"

    def parse(self, response: Response, **kwargs: Any) -> None:
        raise RuntimeError("callback broke")


class ForgetfulSpider(InfluenceSpider):
    """A spider whose callback drops some pages without a word: a ninth of them, because Scrapy takes up to five seconds
    to say that it has nothing else to do."""

    name = "influence"

    def parse(self, response: Response, **kwargs: Any) -> None:
        if int(lease_of(response.request).entry.key[-5:]) % 9:
            super().parse(response, **kwargs)


class Interrupting(Policy):
    """A policy during whose n-th scoring, n from INTERRUPT_AT, somebody presses Ctrl-C."""

    scorings = 0

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        ratings = await super().score(candidates)
        self.scorings += 1
        if self.scorings == int(os.environ.get("INTERRUPT_AT", "0")):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.3)  # by then all requests under way are answered, and Scrapy closes the scheduler
        return ratings


class Hoarding:
    """An extension that takes all files that the process may have open, when two batches are done."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Hoarding:
        extension = cls()
        extension._crawler = crawler
        extension._hoarded = []
        crawler.signals.connect(extension._take, signal=iteration_done)
        crawler.signals.connect(extension._give_back, signal=signals.spider_closed)
        return extension

    _crawler: Crawler
    _hoarded: list[int]

    def _take(self, crawl: Crawl) -> None:
        if crawl.iteration == 2:
            assert isinstance(self._crawler.spider, InfluenceSpider)
            self._crawler.spider.run.web.corpus.close()
            with suppress(OSError):
                self._hoarded.extend(os.open(os.devnull, os.O_RDONLY) for _ in count())

    def _give_back(self) -> None:
        for handle in self._hoarded:
            os.close(handle)


class LosesItsTurn(WireHandler):
    """A handler whose crawl may send nothing more for a while, from when the first request was given to its connection
    on: as if the process had stood still before it came to write."""

    _calls = 0

    def _request(self, connection: Any, send: Any, request: Any) -> Any:
        answered = super()._request(connection, send, request)
        self._calls += 1
        if self._calls == 1:
            crawl = self._of.spider.crawl  # type: ignore[union-attr]
            may_send, crawl.may_send = crawl.may_send, lambda *_, **__: False
            Path(os.environ["LOST"]).touch()
            asyncio.get_running_loop().call_later(2, setattr, crawl, "may_send", may_send)
        return answered
