"""``scrapy explain``: explain the outcome of a page in a crawl."""

from __future__ import annotations

import argparse
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import usage
from crawl4llm.base.terminal import add_json_option, print_lines


class Command(ScrapyCommand):
    """Prints the findings of :mod:`crawl4llm.tools.explain`."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "ID-or-URL [--run DIR]"

    def short_desc(self) -> str:
        return "Explain the outcome of a page in a crawl"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--run", metavar="DIR", help="the crawl's output directory; its settings are used")
        add_json_option(parser)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print the facts of the page; exit status 0 only when it could be explained."""
        if len(args) != 1:
            raise UsageError(f"usage: {usage('explain', 'ID-or-URL [--run DIR]')}", print_help=False)

        # here, as Scrapy imports every command to run one
        from crawl4llm.tools.explain import explain

        assert self.settings is not None
        self.exitcode = print_lines(explain(self.settings, args[0], opts.run), as_json=opts.json)
