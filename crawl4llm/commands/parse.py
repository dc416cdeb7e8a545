"""``scrapy parse``: the output of your own spider for a page of the corpus."""

from __future__ import annotations

import argparse

from scrapy.commands.parse import Command as Scrapys
from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import usage
from crawl4llm.commands._visiting import Visiting


class Command(Visiting, Scrapys):
    """Gives a document to a spider of one's own, which must be named."""

    def syntax(self) -> str:
        return "[options] --spider NAME ID-or-URL"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1 or not opts.spider:
            raise UsageError(f"usage: {usage('parse', '--spider NAME ID-or-URL')}", print_help=False)
        self.visit(super().run, args, opts, args[0])
