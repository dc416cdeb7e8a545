"""``scrapy bench``, which would measure a crawl of the corpus that ends at its first page."""

from __future__ import annotations

import argparse

from scrapy.commands.bench import Command as Scrapys

from crawl4llm.base.terminal import complain


class Command(Scrapys):
    """Refuses, and names the benchmarks of Scrapy and of this project."""

    requires_crawler_process = False

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        complain(
            "scrapy bench measures Scrapy alone, on a server of its own; run it outside of this project, and "
            "python -m benchmarks.simulation in a checkout of crawl4llm"
        )
        self.exitcode = 1
