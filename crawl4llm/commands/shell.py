"""``scrapy shell``: Scrapy's console, with pages of the corpus."""

from __future__ import annotations

import argparse

from scrapy.commands.shell import Command as Scrapys

from crawl4llm.commands._visiting import Visiting


class Command(Visiting, Scrapys):
    """Opens Scrapy's console, on a document if one is given."""

    def syntax(self) -> str:
        return "[options] [ID-or-URL]"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        self.visit(super().run, args, opts, args[0] if args else None)
