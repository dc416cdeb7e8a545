"""The Scrapy extension that feeds LIVE_LOGGING: after each iteration, or every ten seconds in continuous order."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.utils.asyncio import create_looping_call

from crawl4llm.base.errors import InputError
from crawl4llm.base.run_folder import SETTINGS
from crawl4llm.base.stats import PREFIX
from crawl4llm.engine.live_logging import LiveLogger, load_loggers
from crawl4llm.engine.scheduler import BAD_INPUT, iteration_done

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.crawler import Crawler

    from crawl4llm.crawl.algorithm import Crawl

_SECONDS = 10.0
"""Between figures in continuous order, where there are no iterations."""


class LiveLogging:
    """Logs what ``crawl4llm.base.stats`` documents, without the prefix, against pages crawled.

    Where a logger cannot start, the crawl ends before its first page as ``bad_input``.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._loggers: list[LiveLogger] = []
        self._logged = -1
        """Pages crawled when figures were last logged."""
        self._repeated: Any = None
        self._closing: asyncio.Task[None] | None = None
        crawler.signals.connect(self._open, signal=signals.spider_opened)
        crawler.signals.connect(self._log, signal=iteration_done)
        crawler.signals.connect(self._close, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LiveLogging:
        return cls(crawler)

    def _open(self, spider: Any) -> None:
        crawl: Crawl | None = getattr(spider, "crawl", None)
        if crawl is None or crawl.options.dry_run:
            return
        try:
            self._start(crawl.options.live_logging, spider.run.output)
        except InputError as error:
            crawl.failure = str(error)
            assert self._crawler.engine is not None
            self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=BAD_INPUT))
            return
        if crawl.continuous:
            self._repeated = create_looping_call(self._log, crawl)
            self._repeated.start(_SECONDS, now=False)

    def _start(self, names: tuple[str, ...], output: Path) -> None:
        loggers = load_loggers(names)
        description = json.loads((output / SETTINGS).read_text(encoding="utf-8"))
        for logger in loggers:
            self._loggers.append(logger(output, description))

    def _log(self, crawl: Crawl) -> None:
        assert self._crawler.stats is not None
        stats = sorted(self._crawler.stats.get_stats().items())
        figures = {key.removeprefix(PREFIX): value for key, value in stats if key.startswith(PREFIX)}
        self._logged = crawl.crawled
        for logger in self._loggers:
            logger.log(crawl.crawled, figures)

    def _close(self, spider: Any) -> None:
        if self._repeated is not None:
            self._repeated.stop()
        if self._loggers and spider.crawl.crawled > self._logged:
            self._log(spider.crawl)
        for logger in self._loggers:
            logger.close()
