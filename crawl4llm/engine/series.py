"""The series of a running crawl: writes ``series.jsonl``, which ``scrapy dashboard`` shows."""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
from collections.abc import Mapping
from typing import Any, Final

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call

from crawl4llm.base import crawl_log
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import PreadFile
from crawl4llm.base.processes import Usage, usage
from crawl4llm.base.series import Scores, SeriesFile
from crawl4llm.base.stats import PREFIX
from crawl4llm.crawl import Driven
from crawl4llm.engine.run import Run
from crawl4llm.engine.scheduler import iteration_done

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0
"""Seconds between points without a commit or an iteration, so that a waiting crawl is seen to wait."""
_LEAST_SECONDS: Final = 0.1
_SHARE: Final = 1000
"""A point covers at least a thousandth of the time that the crawl has run, so they become rarer."""
_USAGE_SECONDS, _USAGE_REST = 5.0, 1000
"""Least seconds between measurements of processes, and least times the duration of one, because the system walks
through the whole memory of each process."""
_NOT_COUNTS: Final = ("pages/crawled", "pages/visited", "frontier/queued", "influence/mean", "new_quality/")


class Series:
    """Scrapy extension: adds a point to the series after commits and iterations, once a second, and at the end.

    If the file cannot be written, the log says so once, and the crawl continues without it.
    """

    def __init__(self, crawler: Crawler, run: Run) -> None:
        self._crawler, self._run = crawler, run
        self._crawl: Driven = run.crawl
        self._file: SeriesFile | None = None
        self._last = self._next_measure = float("-inf")
        """Times of the last point and of the next measurement, by the monotonic clock."""
        self._usage: tuple[list[Usage | None], int] = ([None, None], 0)
        self._looking = create_looping_call(self._add_if_due)
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        crawler.signals.connect(self._add_if_due, signal=iteration_done)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Series:
        """Build it for the spider's run. Raises NotConfigured if there is no run, or only a dry run."""
        run: Run | None = getattr(crawler.spider, "run", None)
        if run is None or run.crawl.options.dry_run or run.crawl.options.storage is not None:
            raise NotConfigured
        return cls(crawler, run)

    def _opened(self) -> None:
        try:
            self._file = SeriesFile(self._run.output, self._crawl.counters.crawled)
            self._log = PreadFile(self._run.output / crawl_log.NAME)
        except (InputError, OSError) as error:
            self._give_up(error)
            return
        last = self._file.last
        self._before = 0.0 if last is None else float(last["seconds"])
        self._began = time.monotonic()
        self._scores = Scores(self._crawl.options.quality_threshold, last if self._fits(last) else None)
        self._crawl.after_commit.append(self._add_if_due)
        self._looking.start(_LOOK_SECONDS)

    def _fits(self, point: Mapping[str, Any] | None) -> bool:
        """Return whether a point ends at a line of the log; otherwise pages were removed, and the log is read again."""
        end = 0 if point is None else int(point["log"])
        return 0 < end <= self._log.size and self._log.read(1, end - 1) == b"\n"

    @property
    def _seconds(self) -> float:
        """Seconds that the crawl has run, in this process and earlier ones."""
        return self._before + time.monotonic() - self._began

    def _add_if_due(self) -> None:
        if self._file and time.monotonic() - self._last >= max(_LEAST_SECONDS, self._seconds / _SHARE):
            self._add(self._crawl.statistics())

    def _add(self, figures: Mapping[str, Any]) -> None:
        """Add a point with these figures of :mod:`crawl4llm.base.stats`."""
        if self._file is None:
            return
        self._last = time.monotonic()
        try:
            while self._scores.read(self._log):
                pass
            self._file.add(self._point(figures))
        except (InputError, OSError) as error:
            self._give_up(error)

    def _point(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        crawl, (used, workers) = self._crawl, self._measure()
        counts = {key: count for key, count in sorted(figures.items()) if count and not key.startswith(_NOT_COUNTS)}
        owners = None
        if crawl.owners is not None:
            states = zip(crawl.owners.counts, crawl.owners.documents, strict=True)
            owners = dict(zip(crawl.owners.counts._fields, states, strict=True))
        return {
            "crawled": figures.get("pages/crawled", 0),
            "visited": figures.get("pages/visited", 0),
            "queued": figures.get("frontier/queued", 0),
            **self._scores.point(),
            "counts": counts,
            "seconds": round(self._seconds, 3),
            "time": round(time.time(), 3),
            "owners": owners,
            "behind": crawl.lag() + crawl.answered,
            "memory": [one and one.memory for one in used],
            "cpu": [one and round(one.cpu, 2) for one in used],
            "workers": workers,
            "received": self._crawler.stats.get_value("downloader/response_bytes", 0),
        }

    def _measure(self) -> tuple[list[Usage | None], int]:
        """Return the usage of the crawler and its worker processes, and the number of these."""
        if time.monotonic() >= self._next_measure:
            began = time.process_time()
            found = [usage(child.pid) for child in multiprocessing.active_children() if child.pid is not None]
            workers = [one for one in found if one is not None]
            both = Usage(sum(one.memory for one in workers), sum(one.cpu for one in workers)) if workers else None
            self._usage = [usage(os.getpid()), both], len(workers)
            took = time.process_time() - began
            self._next_measure = time.monotonic() + max(_USAGE_SECONDS, _USAGE_REST * took)
        return self._usage

    def _closed(self) -> None:
        """Add the last point, with the last figures, because the crawl itself is closed."""
        if self._looking.running:
            self._looking.stop()
        stats = self._crawler.stats.get_stats().items()
        self._add({key.removeprefix(PREFIX): value for key, value in stats if key.startswith(PREFIX)})
        if self._file is not None:
            self._file.close()

    def _give_up(self, error: InputError | OSError) -> None:
        logger.warning("%s; the crawl continues without it", error)
        self._file = None
