"""``scrapy frontier``: look at the crawl in a JOBDIR, and change it while it is paused."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.terminal import complain, print_lines
from crawl4llm.tools.frontier import ACTIONS, SHOW, load_action


class Command(ScrapyCommand):
    """Hands over to one of :mod:`crawl4llm.tools.frontier` and prints the lines it yields."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "JOBDIR [options]"

    def short_desc(self) -> str:
        return "Show, check or change what a crawl with JOBDIR holds"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}: documents by state and host, the best documents, leases. Without an option it is "
            "shown, also while the crawl runs."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        group = parser.add_argument_group("frontier")
        for name in (SHOW, *ACTIONS):
            load_action(name).add_options(group)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the action whose option is given; exit status 0 only when its work was done."""
        assert self.settings is not None
        unknown = [arg for arg in args if arg.startswith("-")]
        if unknown:
            raise UsageError(f"unknown option {unknown[0]}", print_help=False)
        if len(args) != 1:
            raise UsageError("usage: scrapy frontier JOBDIR [options]", print_help=False)
        opts.jobdir = Path(args[0])
        given = [name for name in ACTIONS if getattr(opts, name) not in {None, False}]
        if len(given) > 1:
            complain(f"--{given[0]} and --{given[1]} were given; give one, then the other")
            self.exitcode = 1
            return
        self.exitcode = print_lines(load_action(given[0] if given else SHOW).run(self.settings, opts))
