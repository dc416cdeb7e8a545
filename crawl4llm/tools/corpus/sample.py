"""``scrapy corpus sample``: random documents, as seeds."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from crawl4llm.base.terminal import positive_integer
from simulate.open import open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

HELP = "Print the keys of random documents, one a line; the same for the same corpus, number and seed."
ARGUMENTS = ""


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add ``--n`` and ``--seed``."""
    parser.add_argument("--n", type=positive_integer, default=100, metavar="N", help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the draw (default: 0)")


def run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Yield the keys drawn."""
    corpus = open_corpus(settings)
    corpus.check()
    yield from corpus.sample(opts.n, opts.seed)
