"""``scrapy crawl``, with an exit status that tells whether the work was done."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import tempfile
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.commands.crawl import Command as ScrapyCrawl

from crawl4llm.base.errors import InputError, NothingToDo
from crawl4llm.base.terminal import (
    INTERRUPTED,
    complain,
    end_when_interrupted,
    guard_log,
    print_lines,
    raise_if_interrupted,
    raise_when_interrupted,
    say_interrupted,
)
from crawl4llm.commands._visiting import Visiting

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawl4llm.engine import Run

logger = logging.getLogger(__name__)

_COLLECTIONS = 50_000, 5, 10
"""When Python's collector runs: modules and pages leave few cycles, and it would look at all that is alive again and
again. But each collection promotes the connections that are open, which end soon, in cycles, and wait for a later one:
so the older generations are not left alone for long."""


class Command(Visiting, ScrapyCrawl):
    """Runs the ``influence`` spider on a run that is opened, and found good, before the reactor starts.

    Scrapy's own command exits with 0 after a CloseSpider at start-up, a lost worker or Ctrl-C. Other spiders get
    pages of the corpus.
    """

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add options; Scrapy calls this first of the command that is to run."""
        super().add_options(parser)
        end_when_interrupted()

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Check Scrapy's own settings, before the first of them is used."""
        super().process_options(args, opts)
        if args != ["influence"]:  # whose values are checked first
            return
        gc.set_threshold(*_COLLECTIONS)

        # here, as Scrapy imports every command to run one
        from crawl4llm.engine import check_values, log_in_json

        assert self.settings is not None
        try:
            check_values(self.settings)
        except InputError as error:
            complain(error)
            sys.exit(1)
        log_in_json(self.settings)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.crawler_process is not None
        if args != ["influence"]:
            spiders = self.crawler_process.spider_loader.list()
            if len(args) == 1 and args[0] not in spiders:
                complain(f"there is no spider {args[0]}; known are: {', '.join(spiders)}")
                self.exitcode = 1
            else:
                self.visit(super().run, args, opts)
            return

        # here, as Scrapy imports every command to run one
        from crawl4llm.engine import asks_for_log, check_mode, unheeded, web_class
        from crawl4llm.options import read_options

        guard_log()
        assert self.settings is not None
        if not asks_for_log(self.settings):
            # Scrapy's lists of components would bury what a user of this project wants to see
            logging.getLogger("scrapy").setLevel(logging.WARNING)
        raise_when_interrupted()  # until the reactor runs, from when on Scrapy takes the signals
        try:
            crawler = self.crawler_process.create_crawler("influence")
            seeds = self._seeds(opts.spargs)
            profile, options = web_class(crawler.settings).profile, read_options(crawler.settings)
            check_mode(crawler.settings, profile)
            for line in unheeded(crawler.settings, options, profile):
                logger.warning("%s", line)
            if options.dry_run:
                self._dry_run(crawler, seeds)
            else:
                self._run(crawler, seeds)
        except NothingToDo as error:
            print_lines([str(error)])
        except InputError as error:
            complain(error)
            self.exitcode = 1
        except KeyboardInterrupt:
            say_interrupted()
            self.exitcode = INTERRUPTED

    @staticmethod
    def _seeds(spider_args: dict[str, str]) -> str | None:
        """Return the seeds file, if one is given. Raises InputError for none, and for what Scrapy would pass over."""
        for name in spider_args:
            if name != "seeds":
                raise InputError(f"-a {name}= is not known; there is -a seeds=FILE, and settings are -s NAME=VALUE")
        seeds = spider_args.get("seeds")
        if seeds is not None and not seeds.strip():
            raise InputError("-a seeds= is empty; give a file with one id or URL a line, or leave it out")
        return seeds

    def _run(self, crawler: Crawler, seeds: str | None) -> None:
        """Crawl, write ``stats.json``, print the summary."""
        # here, as Scrapy imports every command to run one
        from crawl4llm.base.run_folder import STATS
        from crawl4llm.base.stats import PREFIX
        from crawl4llm.engine import Run, begun_again, opening, summary

        run, again = Run(crawler.settings, seeds), begun_again(crawler.settings, seeds)
        if finished := run.finished:
            run.close()
            if not (run.output / STATS).exists():  # killed just before it was written
                run.write_stats({PREFIX + key: value for key, value in run.crawl.statistics().items()})
            jobdir = crawler.settings["JOBDIR"]
            done = f"This crawl is finished; its JOBDIR {jobdir} can take a greater CRAWL_MAX_PAGES"
            print_lines([done, summary(run.crawl, finished, run.output, again=again)])
            self._judge(run, finished)
            return
        logger.info("%s", opening(run.crawl, len(run.seeds.keys), run.output))
        reason = self._crawl(crawler, run)
        if (run.crawl.failure or reason in ("start_failed", "shutdown")) and run.give_back_if_empty():
            self._judge(run, reason)  # the same command can begin anew
            if self.exitcode == INTERRUPTED:
                say_interrupted()
            return
        print_lines([summary(run.crawl, reason, run.output, run.costs(self._stats(crawler)), again)])
        self._judge(run, reason)
        with suppress(InputError) if run.crawl.failure else nullcontext():  # one error is told, not what follows of it
            run.write_stats(self._stats(crawler))

    def _dry_run(self, crawler: Crawler, seeds: str | None) -> None:
        """Crawl a little, print what the whole would take."""
        # here, as Scrapy imports every command to run one
        from crawl4llm.engine import DryRun

        with tempfile.TemporaryDirectory(prefix="crawl4llm-") as folder:
            dry = DryRun(crawler.settings, seeds, Path(folder))
            reason = self._crawl(crawler, dry.run)
            self._judge(dry.run, reason)
            if not self.exitcode:
                self.exitcode = print_lines(dry.estimate())

    def _crawl(self, crawler: Crawler, run: Run) -> str:
        """Run the crawl to its end; return why it ended."""
        assert self.crawler_process is not None
        gc.freeze()  # what is alive now stays so to the end
        try:
            raise_if_interrupted()
            self.crawler_process.crawl(crawler, run=run)
            self.crawler_process.start()
        finally:
            run.close()
            gc.freeze()  # or Python would look for garbage in all of it once more before it ends
        unfinished = "start_failed" if self.crawler_process.bootstrap_failed else "shutdown"
        return str(self._stats(crawler).get("finish_reason", unfinished))

    @staticmethod
    def _stats(crawler: Crawler) -> dict[str, Any]:
        """Return Scrapy's stats; none where Scrapy failed before it made them."""
        with suppress(RuntimeError):
            return dict(crawler.stats.get_stats()) if crawler.stats else {}
        return {}

    def _judge(self, run: Run, reason: str) -> None:
        """Set the exit status: 0 only when the work was done."""
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
