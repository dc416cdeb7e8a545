"""Shared by ``live`` and ``simulate``: a whole crawl by one command, in whatever folder."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import usage
from crawl4llm.base.errors import InputError
from crawl4llm.base.terminal import complain, end_when_interrupted, guard_log, harmless, positive_integer
from crawl4llm.commands._crawling import Crawling
from crawl4llm.commands._help import HelpFormatter
from crawl4llm.commands._visiting import hide_versions

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from crawl4llm.engine import Again, Faults

logger = logging.getLogger(__name__)


class Starting:
    """Takes the settings of a profile, and crawls if nothing is wrong. It is no ScrapyCommand itself: Scrapy would take
    it for one."""

    kind: ClassVar[str]
    """``live`` or ``simulation``."""
    epilog: ClassVar[str]
    """The end of the help."""
    not_by_s: ClassVar[Mapping[str, str]]
    """Settings that ``-s`` may not give, and the option that does."""
    requires_crawler_process = False
    settings: Settings | None
    exitcode: int

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add what both have."""
        super().add_options(parser)  # type: ignore[misc]  # of the command
        parser.formatter_class, parser.epilog = HelpFormatter, self.epilog
        parser.usage = usage(type(self).__module__.rpartition(".")[2], self.syntax())  # type: ignore[attr-defined]
        end_when_interrupted()
        parser.add_argument("--pages", type=positive_integer, metavar="N", help="end at N pages (CRAWL_MAX_PAGES)")
        scorer = "fastText model that scores pages (SCORER_MODEL)"
        parser.add_argument("--scorer", metavar="MODEL", help=scorer)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Take the profile, and Scrapy's options."""
        # here, as Scrapy imports every command to run one
        from crawl4llm.engine import profile_for

        assert self.settings is not None
        try:
            self.settings, self.profile = profile_for(self.kind, self.settings)
        except InputError as error:
            complain(error)
            sys.exit(1)
        super().process_options(args, opts)  # type: ignore[misc]  # of the command
        if unknown := next((arg for arg in args if arg.startswith("-")), None):
            raise UsageError(f"unknown option {harmless(unknown)}", print_help=False)
        hide_versions(self.settings)

    def give(self, **values: Any) -> None:
        """Set what options of the command give; None leaves a setting as it is."""
        assert self.settings is not None
        for name, value in values.items():
            if value is not None:
                self.settings.set(name, str(value), priority="cmdline")

    def refuse_by_s(self, faults: Faults, opts: argparse.Namespace) -> None:
        """Note settings that were given by ``-s``, and for which the command has an option."""
        for name in dict.fromkeys(given.partition("=")[0] for given in opts.set):
            if name in self.not_by_s:
                faults.lines.append(f"-s {name}= does not go here; give {self.not_by_s[name]}")

    def crawl(self, out: Path, seeds: Path | Sequence[str] | None, again: Again, warnings: Sequence[str] = ()) -> None:
        """Crawl; if nothing could be begun, leave nothing in the output folder."""
        # here, as Scrapy imports every command to run one
        from scrapy.crawler import AsyncCrawlerProcess

        from crawl4llm.engine import JOB, log_in_json

        assert self.settings is not None
        made = [path for path in (out / JOB, out, *out.parents) if not os.path.lexists(path)]
        log_in_json(self.settings)
        process = AsyncCrawlerProcess(self.settings)
        guard_log()
        for warning in warnings:
            logger.warning("%s", warning)
        given = str(seeds) if isinstance(seeds, Path) else seeds
        self.exitcode = Crawling(process, given, again).begin()
        if out / JOB in made and not (out / JOB / "job.json").exists():
            with suppress(OSError):
                (out / JOB / "lock").unlink()
            for folder in made:
                with suppress(OSError):  # something is in it
                    folder.rmdir()


def tell(faults: Faults) -> int:
    """Say what is wrong, a line each; return the exit status."""
    for line in faults.lines:
        complain(line)
    return 1
