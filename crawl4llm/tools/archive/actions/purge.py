"""``scrapy archive purge``: a domain that opted out leaves a dataset, and what was exported from it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.domains import domain_to_purge
from crawl4llm.base.terminal import add_question_options, can_ask, confirm
from crawl4llm.options import cores
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.tools.archive.jobs import require_idle, resumable
from crawl4llm.tools.archive.purging import purge
from crawl4llm.tools.archive.purging_exports import purge_export

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

HELP = (
    "Remove a domain that opted out, and all below it, from WARC files, indexes, texts, crawl log and exports; what "
    "went is noted in purged.jsonl (also takes --jobs)."
)
ARGUMENTS = "DOMAIN DIR"


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add ``--export``, ``--listing``, ``--whole-suffix`` and ``--yes``."""
    parser.add_argument(
        "--export", type=Path, action="append", default=[], metavar="DIR", help="also from this export; may be repeated"
    )
    parser.add_argument(
        "--listing",
        type=Path,
        metavar="FILE",
        help="what `scrapy frontier --purge` listed (default: purge-DOMAIN.jsonl in DIR)",
    )
    add_question_options(parser)


def run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Purge, and yield what went."""
    domain = domain_to_purge(opts.arguments[0], whole_suffix=opts.whole_suffix)
    ask = None if opts.yes or not can_ask() else confirm
    dataset = Dataset(Path(opts.arguments[1]))
    require_idle(dataset, settings)
    with resumable(dataset, settings):
        yield from purge(dataset, domain, opts.jobs or cores(), opts.listing, ask)
    for folder in opts.export:
        yield from purge_export(folder, domain, ask)
