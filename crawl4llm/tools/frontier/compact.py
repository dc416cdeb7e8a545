"""``scrapy frontier JOBDIR --compact``: a smaller and faster store."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tqdm import tqdm

from crawl4llm.base.errors import InputError
from crawl4llm.crawl.stored_crawl import StoredCrawl
from crawl4llm.frontier.store import put_in_place

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add ``--compact``."""
    parser.add_argument("--compact", action="store_true", help="rewrite a paused crawl's store without what is free")


def run(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Merge the frontier, copy the store, put the copy in its place; yield the sizes before and after.

    Killed at any moment it leaves the store before or the one after, each with the same crawl.
    """
    with StoredCrawl(opts.jobdir, change=True) as crawl:
        before = crawl.store_path.stat().st_size
        for _ in tqdm(crawl.frontier.rewrite(lambda _entry: False), "Merging", unit=" pieces", disable=None):
            crawl.frontier.save()
            crawl.store.commit()
        copy = crawl.store_path.with_name(f"{crawl.store_path.name}.compact")
        try:
            copy.unlink(missing_ok=True)  # of an earlier attempt that was killed
            crawl.store.copy_to(copy)
            put_in_place(copy, crawl.store_path)
        except OSError as error:
            raise InputError(f"{copy} cannot be written: {error.strerror}") from None
        finally:
            copy.unlink(missing_ok=True)
        after = crawl.store_path.stat().st_size
    yield f"before  {before / 1e6:,.1f} MB"
    yield f"after   {after / 1e6:,.1f} MB"
