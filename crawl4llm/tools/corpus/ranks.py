"""``scrapy corpus ranks``: harmonic centrality of the corpus's pages, for the policy ``harmonic``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.command_lines import command, given_settings
from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import Fact, Part
from crawl4llm.base.whole_files import check_new_file, write_new
from crawl4llm.tools._action import Action
from simulate import rank_pages

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
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


def _add_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file to write, which must not exist")


RANKS = Action(
    "Write the harmonic centrality of every page to --out FILE (.gz: compressed), best first, for HARMONIC_RANKS. It "
    "is exact, over the links between documents of the corpus; the time grows with the number of pages times the "
    "number of links.",
    _run,
    add_options=_add_options,
)
