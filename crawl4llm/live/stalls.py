"""The watchdog: says in the log why nothing is fetched, and stops the crawl before a disk is full."""

from __future__ import annotations

import logging
import math
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call

from crawl4llm.crawl import UNANSWERED, Driven
from crawl4llm.frontier import Owners

logger = logging.getLogger(__name__)

DISK_LOW: Final = "disk_low"
_STALL_SECONDS, _LINE_SECONDS, _LOOK_SECONDS = 30.0, 60.0, 5.0
"""Without an answer that is a stall; between two lines, at least; between two looks."""


class Stalls:
    """Scrapy extension; reports stalls only if the frontier is ordered by owners. ``folders``: the crawl writes to
    their disks."""

    def __init__(self, crawl: Driven, owners: Owners | None, now: float, folders: Sequence[Path] = ()) -> None:
        self._crawl, self._owners, self._folders = crawl, owners, folders
        self._answered = now
        self._said = -math.inf
        self._look: Any = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Stalls:
        """Build it for the spider's crawl. Raises NotConfigured if there is no crawl."""
        crawl: Driven | None = getattr(crawler.spider, "crawl", None)
        if crawl is None:
            raise NotConfigured
        run: Any = crawler.spider
        folders = [run.run.output, *([Path(crawler.settings["JOBDIR"])] if run.run.job is not None else [])]
        stalls = cls(crawl, crawl.owners, time.monotonic(), folders)
        crawler.signals.connect(stalls._opened, signal=signals.spider_opened)
        crawler.signals.connect(stalls._answer_came, signal=signals.response_downloaded)
        crawler.signals.connect(stalls._closed, signal=signals.spider_closed)
        return stalls

    def line(self, now: float) -> str | None:
        """Return the line to log at a monotonic time; None while the crawl progresses, or if it was just logged."""
        stalled = now - self._answered
        if self._owners is None or stalled < _STALL_SECONDS or now - self._said < _LINE_SECONDS:
            return None
        if self._crawl.waits_only == UNANSWERED:
            return None  # whoever ends the wait says so
        states = self._crawl.balance
        waiting = states.queued + self._owners.documents.parked + self._crawl.unanswered_sites
        if not (waiting or states.leased):
            return None
        self._said = now
        return f"Nothing fetched for {stalled:.0f} s: {self._why(self._owners, waiting, now)}"

    def _why(self, owners: Owners, waiting: int, now: float) -> str:
        lag = self._crawl.lag()
        if lag or self._crawl.must_wait:
            return f"the workers are full, {lag + self._crawl.answered:,} pages wait for their scores"
        if not waiting:
            return f"the frontier is empty, and {self._crawl.in_flight:,} documents are in flight"
        owners.tick(now)
        counts, ready = owners.counts, owners.next_ready()
        when = "" if ready is None else f" (the first {max(ready - now, 0):.0f} s more)"
        return (
            f"{waiting:,} documents wait. Of their owners, {counts.waiting:,} wait{when}, {counts.ready:,} are ready "
            f"for a request, {counts.busy:,} have one in flight, {counts.parked:,} are parked"
            + (f"; {aside:,} are of sites that never answered" if (aside := self._crawl.unanswered_sites) else "")
        )

    def check_disks(self) -> None:
        """Stop the crawl if a disk has too little free space."""
        least = self._crawl.options.disk_min_free
        for folder in self._folders if least else ():
            with suppress(OSError):  # of a folder that is gone the next commit tells
                if (free := shutil.disk_usage(folder).free) < least:
                    fault = f"the disk of {folder} has {free / 1e6:,.0f} MB free, less than DISK_MIN_FREE"
                    self._crawl.stop(DISK_LOW, f"{fault} ({least / 1e6:,.0f} MB); make room, and resume the crawl")

    def _watch(self) -> None:
        self.check_disks()
        if line := self.line(time.monotonic()):
            logger.info("%s", line)

    def _answer_came(self) -> None:
        self._answered = time.monotonic()

    def _opened(self) -> None:
        self._look = create_looping_call(self._watch)
        self._look.start(_LOOK_SECONDS)

    def _closed(self) -> None:
        if self._look is not None:
            self._look.stop()
