"""A crawl that a command runs: ``crawl``, ``live`` and ``simulate``."""

from __future__ import annotations

import gc
import logging
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawl4llm.base.errors import InputError, NothingToDo
from crawl4llm.base.terminal import (
    INTERRUPTED,
    complain,
    guard_log,
    print_lines,
    raise_if_interrupted,
    raise_when_interrupted,
    say_interrupted,
)

if TYPE_CHECKING:
    from scrapy.crawler import Crawler, CrawlerProcessBase

    from crawl4llm.engine import Again, Run

logger = logging.getLogger("crawl4llm.commands.crawl")  # as logs have always had it

_COLLECTIONS = 50_000, 5, 10
"""When Python's collector runs: modules and pages leave few cycles, and it would look at all that is alive again and
again. But each collection promotes the connections that are open, which end soon, in cycles, and wait for a later one:
so the older generations are not left alone for long."""


class Crawling:
    """Runs the spider ``influence`` on a run that is opened, and found good, before the reactor starts.

    ``again``: returns the command that begins the crawl again with other settings, for the summary.
    """

    def __init__(self, process: CrawlerProcessBase, seeds: str | Sequence[str] | None, again: Again) -> None:
        self._process, self._seeds, self._again = process, seeds, again
        self.exitcode = 0

    def begin(self) -> int:
        """Crawl; return the exit status, which is 0 only if the work was done."""
        # here, as Scrapy imports every command to run one
        from crawl4llm.engine import asks_for_log, check_mode, unheeded, web_class
        from crawl4llm.options import read_options

        guard_log()
        gc.set_threshold(*_COLLECTIONS)
        settings = self._process.settings
        if not asks_for_log(settings):
            # Scrapy's lists of components would bury what a user of this project wants to see
            logging.getLogger("scrapy").setLevel(logging.WARNING)
        raise_when_interrupted()  # until the reactor runs, from when on Scrapy takes the signals
        try:
            crawler = self._process.create_crawler("influence")
            profile, options = web_class(crawler.settings).profile, read_options(crawler.settings)
            check_mode(crawler.settings, profile)
            for line in unheeded(crawler.settings, options, profile):
                logger.warning("%s", line)
            if options.dry_run:
                self._dry_run(crawler)
            else:
                self._run(crawler)
        except NothingToDo as error:
            self.exitcode = print_lines([str(error)])
        except InputError as error:
            complain(error)
            self.exitcode = 1
        except KeyboardInterrupt:
            say_interrupted()
            self.exitcode = INTERRUPTED
        return self.exitcode

    def _run(self, crawler: Crawler) -> None:
        """Crawl, write ``stats.json``, print the summary."""
        # here, as Scrapy imports every command to run one
        from crawl4llm.base.run_folder import STATS
        from crawl4llm.base.stats import PREFIX
        from crawl4llm.engine import Run, opening, summary

        run = Run(crawler.settings, self._seeds)
        if finished := run.finished:
            run.close()
            if not (run.output / STATS).exists():  # killed just before it was written
                run.write_stats({PREFIX + key: value for key, value in run.crawl.statistics().items()})
            jobdir = crawler.settings["JOBDIR"]
            done = f"This crawl is finished; its JOBDIR {jobdir} can take a greater CRAWL_MAX_PAGES"
            self.exitcode = print_lines([done, summary(run.crawl, finished, run.output, again=self._again)])
            self._judge(run, finished)
            return
        logger.info("%s", opening(run.crawl, len(run.seeds.keys), run.output))
        reason = self._crawl(crawler, run)
        if (run.crawl.failure or reason in ("start_failed", "shutdown")) and run.give_back_if_empty():
            self._judge(run, reason)  # the same command can begin anew
            if self.exitcode == INTERRUPTED:
                say_interrupted()
            return
        costs = run.costs(self._stats(crawler))
        self.exitcode = print_lines([summary(run.crawl, reason, run.output, costs, self._again)])
        self._judge(run, reason)
        with suppress(InputError) if run.crawl.failure else nullcontext():  # one error is told, not what follows of it
            run.write_stats(self._stats(crawler))

    def _dry_run(self, crawler: Crawler) -> None:
        """Crawl a little, print what the whole would take."""
        # here, as Scrapy imports every command to run one
        from crawl4llm.engine import DryRun

        with tempfile.TemporaryDirectory(prefix="crawl4llm-") as folder:
            dry = DryRun(crawler.settings, self._seeds, Path(folder))
            reason = self._crawl(crawler, dry.run)
            self._judge(dry.run, reason)
            if not self.exitcode:
                self.exitcode = print_lines(dry.estimate())

    def _crawl(self, crawler: Crawler, run: Run) -> str:
        """Run the crawl to its end; return why it ended."""
        gc.freeze()  # what is alive now stays so to the end
        try:
            raise_if_interrupted()
            self._process.crawl(crawler, run=run)
            self._process.start()
        finally:
            run.close()
            gc.freeze()  # or Python would look for garbage in all of it once more before it ends
        unfinished = "start_failed" if self._process.bootstrap_failed else "shutdown"
        return str(self._stats(crawler).get("finish_reason", unfinished))

    @staticmethod
    def _stats(crawler: Crawler) -> dict[str, Any]:
        """Return Scrapy's stats; none where Scrapy failed before it made them."""
        with suppress(RuntimeError):
            return dict(crawler.stats.get_stats()) if crawler.stats else {}
        return {}

    def _judge(self, run: Run, reason: str) -> None:
        """Set the exit status to another than 0 unless the work was done."""
        # here, as Scrapy imports every command to run one
        from crawl4llm.crawl import LIMITS, ONLY_PARKED, UNANSWERED, is_done
        from crawl4llm.engine import mostly_failed

        if run.crawl.failure:
            complain(run.crawl.failure)
        elif run.crawl.stopped:
            complain(run.crawl.stopped.message)
        elif reason == ONLY_PARKED:
            return
        elif reason == "shutdown":
            self.exitcode = INTERRUPTED
            return
        elif fault := mostly_failed(run.crawl, run.output):
            complain(fault)
        elif not run.crawl.crawled:
            complain(f"no page was crawled ({reason})")
        elif not (is_done(reason) or reason in (run.crawl.finished, UNANSWERED, *LIMITS[:-1])):
            complain(f"the crawl ended early ({reason}); see the log")
        else:
            return
        self.exitcode = 1
