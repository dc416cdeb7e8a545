"""``scrapy report``: the requests of a live crawl, and the documents that it did not fetch."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import usage
from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import Part
from crawl4llm.base.terminal import add_json_option, positive_integer, print_lines


class Command(ScrapyCommand):
    """Prints the report of :mod:`crawl4llm.tools.report` on the logs of requests and of failures."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "JOBDIR|STORAGE|OUTPUT_DIR [--owner DOMAIN] [options]"

    def short_desc(self) -> str:
        return "Report the requests of a live crawl, and the documents that it did not fetch, with the reasons"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}: by day and by owner, or every request to one owner. The crawl may be running. An "
            f"OUTPUT_DIR has no log of requests, unless scrapy cluster merge wrote it. Without that log, and for a "
            f"simulation, the report has only the documents."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        group = parser.add_argument_group("report")
        group.add_argument("--owner", metavar="DOMAIN", help="list every request to the owner of this domain")
        group.add_argument("--since", metavar="DAY", help="from this day on (UTC), like 2026-05-31")
        group.add_argument(
            "--owners", metavar="K", type=positive_integer, default=20, help="show the K largest owners (default: 20)"
        )
        add_json_option(group)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print the report; exit status 0 only when all of the log could be read."""
        if len(args) != 1 or args[0].startswith("-"):
            raise UsageError(f"usage: {usage('report', self.syntax())}", print_help=False)

        self.exitcode = print_lines(self._lines(args[0], opts), as_json=opts.json)

    def _lines(self, given: str, opts: argparse.Namespace) -> Iterator[Part]:
        # here, as Scrapy imports every command to run one
        from crawl4llm.base.crawl_log import FAILURES
        from crawl4llm.base.domains import Domain, owner_of
        from crawl4llm.tools.opened_run import run_folder
        from crawl4llm.tools.report import (
            Log,
            checked_day,
            columns,
            is_merged,
            overview,
            owner_report,
            refusals,
            refused,
            set_aside,
            simulation,
        )

        assert self.settings is not None
        since = None if opts.since is None else checked_day(opts.since)
        path = run_folder(given, self.settings)
        owner = None if opts.owner is None else owner_of(f"http://{Domain(opts.owner.strip()).name}/")
        if (simulated := simulation(path, self.settings, opts.owners)) is not None:
            if owner is not None or since is not None:
                raise InputError(f"{path} is a simulation: it sent no requests, so leave out --owner and --since")
            yield from simulated
            return
        log = None if (path / FAILURES).is_file() and not is_merged(path) else Log(path, since)
        if log is None and since is not None:
            raise InputError(f"{path} is an OUTPUT_DIR; --since needs the log of requests in a JOBDIR: give that")
        output, unknown, aside = path, None, None
        if log is not None:
            try:
                output = log.output(self.settings)
                aside = None if is_merged(path) else set_aside(path, owner)
            except InputError as error:  # JOBDIR alone is enough to answer for what was sent
                unknown = f"documents that were not fetched are not counted: {error}"
        if owner is not None:
            if log is None:
                raise InputError(f"{path} is an OUTPUT_DIR; the log of requests is in a JOBDIR or a storage")
            counts = {} if unknown else columns(refused(output, owner, aside or {})[1])
            yield from owner_report(log, owner, counts)
            return
        if log is not None:
            yield from overview(log, opts.owners)
        if unknown is None:
            yield from refusals(output, opts.owners, aside)
        else:
            yield unknown
