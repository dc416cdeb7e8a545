"""``scrapy view``: open a page of the corpus in the browser."""

from __future__ import annotations

import argparse

from scrapy.commands.view import Command as Scrapys
from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import usage
from crawl4llm.commands._visiting import Visiting


class Command(Visiting, Scrapys):
    """Shows a document as Scrapy's command shows a URL."""

    def syntax(self) -> str:
        return "[options] ID-or-URL"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError(f"usage: {usage('view', 'ID-or-URL')}", print_help=False)
        self.visit(super().run, args, opts, args[0])
