"""``scrapy corpus build``: a corpus as a ClueWeb22 tree."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError
from crawl4llm.options import cores, read_options
from simulate.build.chunks import TextOptions
from simulate.build.pool import BuildOptions
from simulate.build.tree import build_tree
from simulate.clueweb22.record_parser import FULL_ID_POSITION
from simulate.open import open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

HELP = (
    "Write a corpus in the layout of ClueWeb22 to --to DIR (also takes --jobs); after an interruption the same command "
    "goes on from there."
)
ARGUMENTS = ""


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add ``--from``, ``--manifest``, ``--link-id-position``; ``--to`` and ``--jobs`` other actions have added."""
    parser.add_argument(
        "--from", dest="source", metavar="CORPUS", help="what to build from, as for CORPUS (default: that setting)"
    )
    parser.add_argument(
        "--manifest", type=Path, metavar="FILE", help="manifest.tsv of an earlier build, whose ids are kept"
    )
    parser.add_argument(
        "--link-id-position",
        type=int,
        choices=(0, FULL_ID_POSITION),
        default=FULL_ID_POSITION,
        help="5: links as in ClueWeb22, their target's id last (default); 0: nothing but the id, as the published code "
        "reads them unless told otherwise; crawl such a tree with -s CLUEWEB22_LINK_ID_POSITION=0",
    )


def run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Build, then yield what was counted and where the tree lies."""
    if opts.to is None:
        raise InputError("say where to build: scrapy corpus build --to DIR")
    if opts.source is not None:
        settings.set("CORPUS", opts.source, priority="cmdline")
    if settings.getpriority("CORPUS_CANONICAL_LINKS") is None:
        settings.set("CORPUS_CANONICAL_LINKS", True, priority="default")  # a tree is built once: no link is to be lost
    options = read_options(settings)
    source = open_corpus(settings)
    source.check()
    summary = build_tree(
        source,
        opts.to,
        BuildOptions(
            TextOptions(options.text_extractor, always_extract=options.simulation_text == "extracted"),
            default_date=options.simulation_date,
            time_limit=options.text_time_limit,
            slim_links=opts.link_id_position != FULL_ID_POSITION,
        ),
        manifest=opts.manifest,
        jobs=opts.jobs or cores(),
    )
    width = max(map(len, summary.counts))
    for name, count in summary.counts.items():
        yield f"{name:{width}}  {count}"
    yield f"{'tree':{width}}  {opts.to}"
