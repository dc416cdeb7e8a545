"""``scrapy check``: the contracts of spiders of one's own, on the corpus."""

from __future__ import annotations

import argparse

from scrapy.commands.check import Command as Scrapys

from crawl4llm.commands._visiting import Visiting
from crawl4llm.engine import OURS


class Command(Visiting, Scrapys):
    """Checks contracts on pages of the corpus, if there are spiders besides ours, which has none."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.crawler_process is not None
        if self.crawler_process.spider_loader.list() == [OURS]:
            super().run(args, opts)
        else:
            self.visit(super().run, args, opts)
