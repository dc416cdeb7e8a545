"""Steering: lets a live crawl with JOBDIR heed ``control.json``, block lists and the seeds in ``inject/`` while it
runs."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy import signals
from scrapy.exceptions import DontCloseSpider, NotConfigured
from scrapy.utils.asyncio import create_looping_call

from crawl4llm.base.domain_lists import DomainList
from crawl4llm.base.errors import InputError
from crawl4llm.base.output_dir import BLOCKED
from crawl4llm.crawl import CONTROL, Control, Injected, InjectFolder, publish_blocked, read_control
from crawl4llm.live.pace import Pace
from crawl4llm.live.stopping import is_stopping
from crawl4llm.options import read_options
from crawl4llm.parts import NAME, BlocklistsPart, file_stamp, publish

if TYPE_CHECKING:
    from types import FrameType

    from scrapy.crawler import Crawler

    from crawl4llm.base.pages import Corpus
    from crawl4llm.crawl import Driven
    from crawl4llm.parts import Blocklists

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.5
_DROP_SECONDS: Final = 0.1
"""Seconds per check for dropping queued documents of blocked owners."""


class Steering:
    """Scrapy extension. Looks at all places twice a second, and at once when SIGHUP comes.

    An unusable file is logged in one line, once; the earlier instructions stay in force.
    """

    def __init__(self, crawler: Crawler, jobdir: Path, run: Any) -> None:
        """``run``: that of the spider, as :class:`crawl4llm.engine.Run` is."""
        self._crawler, self._jobdir, self._output = crawler, jobdir, run.output
        self._crawl: Driven = run.crawl
        self._corpus: Corpus = run.web.corpus
        options = read_options(crawler.settings)
        self._max_pages, self._leases = options.crawl_max_pages, options.crawl_concurrent_leases
        self._concurrency = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._control = run.web.control
        self._seen: object = None
        """The state of control.json when it was last read."""
        self._folder = InjectFolder(jobdir)
        self._taken: dict[Path, int] = {}
        """Files that are being read, await a commit, or were of no use, with their times of change."""
        self._had_terminal = os.isatty(2)
        self._before: Any = None
        self._tasks: set[asyncio.Future[None]] = set()
        part = run.parts.get(BlocklistsPart)
        self._lists = None if part is None else part.lists
        self._reading: asyncio.Future[None] | None = None
        """Reads block lists that have changed."""
        self._looking = create_looping_call(self._look)
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        crawler.signals.connect(self._keep_open, signal=signals.spider_idle)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)
        self._crawl.block(self._control.blocked)  # before anything is asked for
        if self._lists is not None:
            self._crawl.lists_changed()  # perhaps while nothing ran

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Steering:
        """Build it for the spider's crawl. Raises NotConfigured if that ends with its process."""
        run = getattr(crawler.spider, "run", None)
        if run is None or run.job is None:
            raise NotConfigured
        return cls(crawler, Path(crawler.settings["JOBDIR"]), run)

    def _opened(self) -> None:
        with _said("; no seeds can be injected"):
            self._folder.make()
        self._apply(self._control)
        if self._control != Control():
            logger.info("%s: %s", self._jobdir / CONTROL, _told(self._control))
        loop = asyncio.get_running_loop()

        def reread(_number: int, _frame: FrameType | None) -> None:
            if self._had_terminal and not os.isatty(2):  # it was closed: that ends the crawl, as ever
                signal.signal(signal.SIGHUP, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGHUP)
            loop.call_soon_threadsafe(partial(self._look, asked=True))

        # Not by the loop's add_signal_handler(), which would take Twisted its wakeup descriptor (signal.set_wakeup_fd).
        self._before = signal.signal(signal.SIGHUP, reread)
        self._looking.start(_LOOK_SECONDS)

    def _keep_open(self) -> None:
        """Let a crawl that has nothing more to do wait for seeds that are there."""
        self._look()
        if self._tasks:
            raise DontCloseSpider

    def _closed(self) -> None:
        self._looking.stop()
        signal.signal(signal.SIGHUP, self._before)
        for task in (*self._tasks, *filter(None, [self._reading])):
            task.cancel()

    def _look(self, *, asked: bool = False) -> None:
        """Apply changed files; ``asked``: apply a control.json or a list even if it looks unchanged."""
        if is_stopping(self._crawler) or self._crawl.failure is not None:
            return
        seen = file_stamp(self._jobdir / CONTROL)
        if asked or seen != self._seen:
            self._seen = seen
            self._read_control(say=asked)
        self._look_at_lists(asked=asked)
        self._take_seeds()
        self._drop()

    def _drop(self) -> None:
        """Drop some of the queued documents of blocked owners."""
        until = time.monotonic() + _DROP_SECONDS
        while self._crawl.finished is None and self._crawl.drop_blocked() and time.monotonic() < until:
            pass

    def _read_control(self, *, say: bool) -> None:
        with _said("; the earlier instructions stay in force"):
            control = read_control(self._jobdir)
            if control != self._control:
                self._apply(control)
                say = True
            if say:
                logger.info("%s: %s", self._jobdir / CONTROL, _told(control))

    def _apply(self, control: Control) -> None:
        self._control = control
        concurrency = control.concurrent_requests or self._concurrency
        self._crawl.limit(max_pages=control.max_pages or self._max_pages, concurrent_leases=self._leases or concurrency)
        self._crawl.block(control.blocked)
        self._crawler.engine.downloader.total_concurrency = concurrency
        if (pace := self._crawler.get_downloader_middleware(Pace)) is not None:
            pace.steer(control)
        elif control.delay is not None or control.delays:
            logger.warning("%s: delays hold in continuous order only", self._jobdir / CONTROL)
        with _said("; exports do not know the blocked domains"):
            if control.blocked or (self._output / BLOCKED).exists():
                publish_blocked(self._jobdir, self._output)
        self._crawl.wake()

    def _look_at_lists(self, *, asked: bool) -> None:
        """Begin to read block lists that have changed; with ``asked`` all."""
        if self._lists is None or (self._reading is not None and not self._reading.done()):
            return
        if places := self._lists.changed(asked=asked):
            self._reading = asyncio.ensure_future(self._read_lists(self._lists, places))

    async def _read_lists(self, lists: Blocklists, places: list[int]) -> None:
        """Read block lists beside the crawl, and let them hold; the output has them first."""
        new = list(lists.lists)
        for place in places:
            with _said("; the earlier list stays in force"):
                one = await asyncio.to_thread(DomainList, new[place].path, NAME)
                if one.digest != new[place].digest:
                    new[place] = one
        changed = [one for one in new if one not in lists.lists]
        if not changed:
            return
        with _said("; exports use the earlier lists"):
            await asyncio.to_thread(publish, new, self._output)
        lists.hold(new)
        self._crawl.lists_changed()
        self._drop()
        for one in changed:
            if one.fault is not None:
                logger.warning("%s", one.fault)
            logger.info("%s %s: %s domains", NAME, one.path, f"{len(one):,}")

    def _take_seeds(self) -> None:
        try:
            waiting = self._folder.waiting()
        except InputError as error:
            if self._taken.get(self._jobdir) is None:
                self._taken[self._jobdir] = 0
                logger.error("%s", error)  # noqa: TRY400 - one line
            return
        for path, changed in waiting:
            if self._taken.get(path) != changed:
                self._taken[path] = changed
                task = asyncio.ensure_future(self._inject(path))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _inject(self, path: Path) -> None:
        """Read a file beside the crawl, and hand its seeds over."""
        with _said("; the file stays in place, and is read again after a change"):
            seeds = await asyncio.to_thread(self._folder.read, path, self._corpus)
            self._crawl.inject(Injected(seeds, partial(self._finish, path, len(seeds.keys))))
            self._crawl.wake()

    def _finish(self, path: Path, seeds: int) -> None:
        """Put a file aside whose seeds were taken up."""
        with _said():
            self._folder.finish(path)
            self._taken.pop(path, None)
            logger.info("%s: %s seeds taken up", path, f"{seeds:,}")


@contextmanager
def _said(consequence: str = "") -> Iterator[None]:
    """Log in one line why the block cannot be done, and the consequence."""
    try:
        yield
    except InputError as error:
        logger.error("%s%s", error, consequence)  # noqa: TRY400 - one line


def _told(control: Control) -> str:
    """Return the content of the control file, in a line."""
    said = {name: value for name, value in vars(control).items() if value}
    return ", ".join(f"{name} {_short(value)}" for name, value in said.items()) or "nothing; the settings apply"


def _short(value: object) -> str:
    return f"of {len(value):,}" if isinstance(value, dict | tuple) else str(value)
