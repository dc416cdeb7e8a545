"""The progress of a running crawl: a bar on a terminal, otherwise log lines at intervals."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import create_looping_call

from crawl4llm.base.terminal import wants_bar
from crawl4llm.crawl import Driven
from crawl4llm.engine.scheduler import iteration_done

if TYPE_CHECKING:
    from tqdm import tqdm

logger = logging.getLogger(__name__)

_BAR_SECONDS = 0.5
_LOG_SECONDS = 10.0
"""Seconds between log lines; earlier iterations are logged at LOG_LEVEL=DEBUG only."""
_SAME_SECONDS = 600.0
"""Seconds before a log line is repeated unchanged."""


class Progress:
    """Scrapy extension; shows the crawl of a spider that has one."""

    def __init__(self) -> None:
        self._shown = ExitStack()
        self._logged = time.monotonic()
        self._said = ""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Progress:
        extension = cls()
        crawler.signals.connect(extension._opened, signal=signals.spider_opened)
        crawler.signals.connect(extension._closed, signal=signals.spider_closed)
        crawler.signals.connect(extension._iteration_done, signal=iteration_done)
        return extension

    def _opened(self, spider: Any) -> None:
        crawl: Driven | None = getattr(spider, "crawl", None)
        if crawl is None:
            return
        self._bar = wants_bar(crawl.options.progress_bar)
        if self._bar:
            # here, as it takes 8 ms and 1 MB, which a crawl without a bar saves
            from tqdm import tqdm
            from tqdm.contrib.logging import logging_redirect_tqdm

            self._shown.enter_context(logging_redirect_tqdm())
            bar = self._shown.enter_context(tqdm(total=crawl.options.crawl_max_pages, unit=" pages", smoothing=0.1))
            self._shown.callback(_show, bar, crawl)
            self._repeat(_BAR_SECONDS, _show, bar, crawl)
        elif crawl.continuous:
            self._repeat(_LOG_SECONDS, self._log_news, crawl)

    def _repeat(self, seconds: float, function: Any, *args: Any) -> None:
        call = create_looping_call(function, *args)
        call.start(seconds, now=False)
        self._shown.callback(call.stop)

    def _log_news(self, crawl: Driven) -> None:
        """Log the progress of the crawl, if it has changed or was not logged for long."""
        line, now = _line(crawl), time.monotonic()
        if line != self._said or now >= self._logged + _SAME_SECONDS:
            self._said, self._logged = line, now
            logger.info("%s", line)

    def _iteration_done(self, crawl: Driven) -> None:
        if self._bar:
            return
        is_due = time.monotonic() - self._logged >= _LOG_SECONDS
        if is_due:
            self._logged = time.monotonic()
        logger.log(logging.INFO if is_due else logging.DEBUG, "%s", _line(crawl))

    def _closed(self) -> None:
        self._shown.close()


def _show(bar: tqdm[Any], crawl: Driven) -> None:
    bar.n = crawl.crawled + crawl.answered
    states = crawl.balance
    # In front, as a narrow terminal cuts off what stands behind.
    bar.set_description_str(f"mean influence {in_short(crawl.counters.mean_influence)}", refresh=False)
    bar.set_postfix_str(f"visited {states.discovered:,}, frontier {states.queued:,}")


def _line(crawl: Driven) -> str:
    place = "" if crawl.continuous else f"iteration {crawl.iteration - 1}: "
    states = crawl.balance
    counts = crawl.crawled, crawl.options.crawl_max_pages, states.discovered, states.queued
    numbers = (f"{count:,}" for count in counts)
    influence = in_short(crawl.counters.mean_influence)
    return "{}crawled {} of {}, visited {}, frontier {}, mean influence {}".format(place, *numbers, influence)


def in_short(score: float | None) -> str:
    """Return a mean score with three decimals, ``-`` for None."""
    return "-" if score is None else f"{score:.3f}"
