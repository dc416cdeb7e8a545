"""``scrapy corpus demo``: the generated web."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.arguments import positive_integer
from simulate.demo.demo import HOSTS, PAGES, build_demo, demo_paths, describe, ensure_demo
from simulate.open import data_dir

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

HELP = "Build the demo web and its model in a folder (also takes --seed and --jobs), or describe it."
ARGUMENTS = ""


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add ``--to``, ``--pages``, ``--hosts``, ``--describe``; ``--seed`` and ``--jobs`` other actions have added."""
    parser.add_argument("--to", type=Path, metavar="DIR", help="where to build (default: in Scrapy's data dir)")
    parser.add_argument(
        "--pages", type=positive_integer, default=PAGES, metavar="N", help=f"how many pages (default: {PAGES})"
    )
    parser.add_argument(
        "--hosts", type=positive_integer, default=HOSTS, metavar="N", help=f"how many hosts (default: {HOSTS})"
    )
    parser.add_argument(
        "--describe", action="store_true", help="print the web's traits; with --to DIR, of the one already built there"
    )


def run(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Build unless it is there to be described; yield where things lie, or the traits."""
    size = {"pages": opts.pages, "hosts": opts.hosts, "seed": opts.seed, "jobs": opts.jobs}
    if opts.to is None:
        paths = ensure_demo(data_dir(), **size)
    elif opts.describe and opts.to.exists():
        paths = demo_paths(opts.to)
    else:
        paths = build_demo(opts.to, **size)
    yield f"corpus  {paths.corpus}"
    yield f"model   {paths.model}"
    if opts.describe:
        yield from describe(*paths)
    else:
        yield f"Next: scrapy crawl influence -s CORPUS={paths.corpus} -s SCORER_MODEL={paths.model}"
