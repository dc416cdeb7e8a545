"""Live logging: sends the figures of a crawl, while it runs, to what shows them (LIVE_LOGGING).

``LOGGERS`` names the loggers, each in a module of its own: they import packages of extras.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call

from crawl4llm.base.errors import InputError
from crawl4llm.base.installed import to_install
from crawl4llm.base.run_folder import SETTINGS
from crawl4llm.base.stats import PREFIX
from crawl4llm.engine.scheduler import BAD_INPUT, iteration_done

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawl4llm.crawl.driven import Driven

LOGGERS = {
    "tensorboard": "crawl4llm.engine.live_logging.tensorboard_logger.TensorBoardLogger",
    "wandb": "crawl4llm.engine.live_logging.wandb_logger.WandbLogger",
}
"""By the word that LIVE_LOGGING takes, which is also the name of the extra that brings its package."""


class LiveLogger(Protocol):
    """A logger of figures while a crawl runs."""

    def __init__(self, output: Path, description: Mapping[str, Any]) -> None:
        """Begin: ``output`` is the crawl's directory, ``description`` its ``settings.json``. Raises InputError."""

    def log(self, crawled: int, figures: Mapping[str, float]) -> None:
        """Log the figures of ``crawl4llm.base.stats``, by their keys, at so many pages crawled."""

    def close(self) -> None:
        """Send what is left, and release all resources."""


def load_loggers(names: Iterable[str]) -> list[type[LiveLogger]]:
    """Return the classes of some LOGGERS. Raises InputError where a package is not installed."""
    classes: list[type[LiveLogger]] = []
    for name in names:
        module, _, class_name = LOGGERS[name].rpartition(".")
        try:
            classes.append(getattr(import_module(module), class_name))
        except ImportError as error:
            reason = f"is not installed ({error.name}); {to_install(name)}"
            raise InputError(f"LIVE_LOGGING {name} {reason}") from None
    return classes


_SECONDS = 10.0  # between figures in continuous order, where there are no iterations


class LiveLogging:
    """Scrapy extension: logs what ``crawl4llm.base.stats`` documents, without the prefix, against pages crawled.

    Where a logger cannot start, the crawl ends before its first page as ``bad_input``.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._loggers: list[LiveLogger] = []
        self._logged = -1  # pages crawled when figures were last logged
        self._repeated: Any = None
        self._closing: asyncio.Task[None] | None = None
        crawler.signals.connect(self._open, signal=signals.spider_opened)
        crawler.signals.connect(self._log, signal=iteration_done)
        crawler.signals.connect(self._close, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LiveLogging:
        if not crawler.settings.get("LIVE_LOGGING"):
            raise NotConfigured
        return cls(crawler)

    def _open(self, spider: Any) -> None:
        crawl: Driven | None = getattr(spider, "crawl", None)
        if crawl is None or crawl.options.dry_run:
            return
        try:
            loggers, output = load_loggers(crawl.options.live_logging), spider.run.output
            description = json.loads((output / SETTINGS).read_text(encoding="utf-8"))
            for logger in loggers:
                self._loggers.append(logger(output, description))
        except InputError as error:
            crawl.failure = str(error)
            assert self._crawler.engine is not None
            self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=BAD_INPUT))
            return
        if crawl.continuous:
            self._repeated = create_looping_call(self._log, crawl)
            self._repeated.start(_SECONDS, now=False)

    def _log(self, crawl: Driven) -> None:
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
