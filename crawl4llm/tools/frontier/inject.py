"""``scrapy frontier JOBDIR --inject FILE``: more seeds for a crawl."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.crawl.job.job_commits import add_seeds
from crawl4llm.crawl.seeds import read_seeds
from crawl4llm.crawl.stored_crawl import StoredCrawl
from crawl4llm.options import read_options

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add ``--inject``."""
    parser.add_argument(
        "--inject", metavar="FILE", help="add the seeds of a file to a paused crawl, which takes them up when resumed"
    )


def run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Leave the seeds that were not visited in the store; yield how many there are of each kind."""
    with StoredCrawl(opts.jobdir, change=True) as crawl:
        with closing(crawl.open_corpus(settings)) as corpus:
            seeds = read_seeds(Path(opts.inject), corpus)
        crawl.require_begun()
        waiting = set(crawl.state.seeds)
        not_waiting = [key for key in seeds.keys if key not in waiting]
        new = [key for key in not_waiting if key not in crawl.visited]
        if new:
            add_seeds(crawl.store, new)
            crawl.store.commit()
        counts = {
            "new": len(new),
            "visited": len(not_waiting) - len(new),
            "injected before": len(seeds.keys) - len(not_waiting),
            **{kind.rpartition("/")[2]: count for kind, count in seeds.counts.items() if kind != "seeds/given"},
        }
        yield from (f"{kind:<16} {count:,}" for kind, count in counts.items())
        wanted = read_options(settings).crawl_max_pages
        if new and crawl.pages >= wanted:
            yield f"The crawl has all its pages: resume it with CRAWL_MAX_PAGES greater than {wanted}."
