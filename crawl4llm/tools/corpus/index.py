"""``scrapy corpus index``: the index from URLs to documents."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from crawl4llm.base.terminal import positive_integer
from crawl4llm.options import cores
from simulate.open import index_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

HELP = (
    "Build the index: of a ClueWeb22 tree, for seeds given as URLs; of WARC files, for everything. After an "
    "interruption the next run goes on from there."
)
ARGUMENTS = ""


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add ``--jobs``."""
    parser.add_argument("--jobs", type=positive_integer, metavar="N", help="processes (default: one for each core)")


def run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Build, then yield what the index holds and where it lies."""
    for name, value in index_corpus(settings, opts.jobs or cores()):
        yield f"{name:<12}{value}"
