"""``scrapy corpus``: ``index`` makes the index of a corpus, ``demo`` the demo web, ``build`` a ClueWeb22 tree,
``ranks`` a file of harmonic centralities for the policy ``harmonic``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.command_lines import command, given_settings
from crawl4llm.base.errors import InputError
from crawl4llm.base.processes import cores
from crawl4llm.base.tables import Fact, Part, facts
from crawl4llm.base.terminal import add_tasks_option, positive_integer
from crawl4llm.base.whole_files import check_new_file, write_new
from crawl4llm.tools._action import Action
from simulate import (
    FULL_ID_POSITION,
    HOSTS,
    PAGES,
    build_corpus,
    build_demo,
    data_dir,
    ensure_demo,
    index_corpus,
    rank_pages,
)

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _add_index_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--jobs", type=positive_integer, metavar="N", help="number of processes (default: one per core)"
    )
    add_tasks_option(parser)


def _index(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    for name, value in index_corpus(settings, opts.jobs or cores(), opts.tasks):
        yield Fact(name, value, width=12)


def _add_demo_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options; ``--seed`` and ``--jobs`` other actions have added."""
    parser.add_argument("--to", type=Path, metavar="DIR", help="folder to build in (default: in Scrapy's data dir)")
    parser.add_argument(
        "--pages", type=positive_integer, default=PAGES, metavar="N", help=f"number of pages (default: {PAGES})"
    )
    parser.add_argument(
        "--hosts", type=positive_integer, default=HOSTS, metavar="N", help=f"number of hosts (default: {HOSTS})"
    )


def _demo(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Build the demo web; yield its paths."""
    size = {"pages": opts.pages, "hosts": opts.hosts, "seed": opts.seed, "jobs": opts.jobs}
    paths = ensure_demo(data_dir(), **size) if opts.to is None else build_demo(opts.to, **size)
    yield Fact("corpus", paths.corpus, width=8)
    yield Fact("model", paths.model, width=8)
    yield f"Next: {command('crawl', 'influence', simulation=True, CORPUS=paths.corpus, SCORER_MODEL=paths.model)}"


def _add_build_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options; ``--to`` and ``--jobs`` other actions have added."""
    parser.add_argument(
        "--from", dest="source", metavar="CORPUS", help="source of the build, a value of CORPUS (default: that setting)"
    )
    parser.add_argument(
        "--manifest", type=Path, metavar="FILE", help="manifest.tsv of an earlier build, to keep its ids"
    )
    parser.add_argument(
        "--link-id-position",
        type=int,
        choices=(0, FULL_ID_POSITION),
        default=FULL_ID_POSITION,
        help="5: links as in ClueWeb22, with their target's id last (default); 0: only the id, as the published code "
        "reads them by default",
    )


def _build(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Build a tree; yield its counts and path."""
    if opts.to is None:
        raise InputError("give the folder to build in: --to DIR")
    if opts.source is not None:
        settings.set("CORPUS", opts.source, priority="cmdline")
    if settings.getpriority("CORPUS_CANONICAL_LINKS") is None:
        settings.set("CORPUS_CANONICAL_LINKS", True, priority="default")  # a tree is built once: no link is to be lost
    counts = build_corpus(
        settings, opts.to, opts.manifest, opts.jobs or cores(), slim_links=opts.link_id_position != FULL_ID_POSITION
    )
    yield from facts({**counts, "tree": opts.to})


def _rank(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    if opts.out is None:
        raise InputError("give the file to write: --out FILE")
    check_new_file(opts.out)
    ranks = rank_pages(settings)
    best_first = sorted(ranks.items(), key=lambda ranked: (-ranked[1], ranked[0]))
    write_new(opts.out, "".join(f"{key}\t{value!r}\n" for key, value in best_first), "the ranks")
    yield Fact("pages", len(ranks), width=7)
    yield Fact("ranks", opts.out, width=7)
    given = given_settings(settings) | {"URL_POLICY": "harmonic", "HARMONIC_RANKS": opts.out}
    yield f"Next: {command('crawl', 'influence', simulation=True, **given)}"


def _add_rank_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file to write, which must not exist")


INDEX = Action(
    "Build the index: of a ClueWeb22 tree, for seeds given as URLs; of WARC files, for everything. After an "
    "interruption the next run continues.",
    _index,
    add_options=_add_index_options,
)
DEMO = Action(
    "Build the demo web and its model in a folder (also takes --seed and --jobs).",
    _demo,
    add_options=_add_demo_options,
)
BUILD = Action(
    "Write a corpus in the layout of ClueWeb22 to --to DIR (also takes --jobs); after an interruption the same "
    "command continues.",
    _build,
    add_options=_add_build_options,
)
RANKS = Action(
    "Write the harmonic centrality of every page to --out FILE (.gz: compressed), best first, for HARMONIC_RANKS. It "
    "is exact, over the links between documents of the corpus; the time grows with the number of pages times the "
    "number of links.",
    _rank,
    add_options=_add_rank_options,
)
