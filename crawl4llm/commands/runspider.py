"""``scrapy runspider``: a spider of one's own, on the corpus."""

from __future__ import annotations

import argparse

from scrapy.commands.runspider import Command as Scrapys

from crawl4llm.commands._visiting import Visiting


class Command(Visiting, Scrapys):
    """Runs a spider on the corpus: all that it asks for comes from there."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        self.visit(super().run, args, opts)
