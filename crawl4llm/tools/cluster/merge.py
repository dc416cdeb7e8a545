"""``scrapy cluster merge``: writes a crawl from its storage as one run folder."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import Fact, Line, Part
from crawl4llm.base.whole_files import check_free, whole_folder
from crawl4llm.cluster import History
from crawl4llm.tools._action import Action
from crawl4llm.tools._merging import merge

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    if not opts.out:
        raise InputError("give the folder to write: --out DIR")
    out = Path(opts.out)
    check_free(out)
    history = History(opts.arguments[0])
    with whole_folder(out) as folder:
        pages = merge(history, folder, out, settings, index_only=opts.index_only)
    ended = history.end["reason"] if history.end else None
    yield Fact("pages", pages, "")
    yield Fact("ended", ended, "")
    yield Line(f"{out}: {pages:,} pages" + ("" if ended else "; the crawl has not ended"))


def _add_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--out", metavar="DIR", help="the run folder to write")
    group.add_argument(
        "--index-only", action="store_true", help="leave the pages in the storage, and write only an index"
    )


MERGE = Action("write the crawl as one run folder", _run, "STORAGE", _add_options)
