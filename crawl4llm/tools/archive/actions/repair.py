"""``scrapy archive repair``: a dataset of whole pages, from one that was cut short or damaged."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.options import cores
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.tools.archive.jobs import require_idle, resumable
from crawl4llm.tools.archive.repairing import repair

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

HELP = (
    "Cut files back to their last whole page, take out damaged ones, and mend the indexes; what is cut is kept in "
    "FILE.cut (also takes --jobs)."
)
ARGUMENTS = "DIR"


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add ``--discard``."""
    parser.add_argument("--discard", action="store_true", help="do not keep what is cut")


def run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Repair, and yield what was changed."""
    dataset = Dataset(Path(opts.arguments[0]))
    require_idle(dataset, settings)
    with resumable(dataset, settings):
        yield from repair(dataset, opts.jobs or cores(), discard=opts.discard)
