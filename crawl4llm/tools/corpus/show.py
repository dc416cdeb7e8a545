"""``scrapy corpus``: ``show`` prints a document, ``sample`` the keys of random ones."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError, MissingRecord
from crawl4llm.base.pages import Corpus, Link
from crawl4llm.base.tables import Fact, Line, Part, Rows
from crawl4llm.base.terminal import positive_integer
from crawl4llm.crawl import find_document, not_held
from crawl4llm.tools._action import Action
from crawl4llm.tools.corpus.ranked import ranked_seeds
from simulate import open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _show(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    corpus = open_corpus(settings)
    key = find_document(corpus, opts.arguments[0])
    if key not in corpus:
        raise not_held(corpus, key)
    page = corpus.page(key)
    text = _text(corpus, key)
    yield Fact("id", key)
    yield Fact("url", page.url)
    yield Fact("date", page.date)
    yield Fact("language", page.language)
    html = None if page.html is None else len(page.html)
    yield Fact("html", html, "-" if html is None else f"{html:,} bytes")
    yield Fact("characters", None if text is None else len(text), "")
    yield Fact("text", text, f"{'-' if text is None else f'{len(text):,} characters'}")
    yield Fact("inlinks", len(corpus.inlinks(key)))
    if text:
        yield Line(f"\n{text}\n")
    yield from _outlinks(corpus, page.outlinks)


def _text(corpus: Corpus, key: str) -> str | None:
    try:
        return corpus.text(key)
    except MissingRecord:
        return None


def _outlinks(corpus: Corpus, links: list[Link] | None) -> Iterator[Part]:
    if links is None:
        yield Fact("outlinks", None)
        return
    held = [link.key in corpus for link in links]
    yield Line(f"{'outlinks':<11}{len(links):,}, {sum(held):,} of them held by the corpus")
    rows = ((mark, link.key, link.url, link.anchor) for link, mark in zip(links, held, strict=True))
    yield Rows("outlinks", ("held", "id", "url", "anchor"), rows, line=_link_line)


def _link_line(held: bool, key: str | None, url: str, anchor: str) -> str:
    return f"{'+' if held else '-'} {key or 'no id'}  {url}  {' '.join(anchor.split())}".rstrip()


def _sample(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    if opts.ranks is not None:
        keys: Iterable[str] = ranked_seeds(opts.ranks, opts.n, opts.without)
        yield _keys(keys)
        return
    if opts.without is not None:
        raise InputError("--without goes with --ranks FILE")
    corpus = open_corpus(settings)
    corpus.check()
    yield _keys(corpus.sample(opts.n, opts.seed))


def _keys(keys: Iterable[str]) -> Rows:
    return Rows("documents", ("id",), ((key,) for key in keys), line=str)


def _add_sample_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument("-n", "--n", type=positive_integer, default=100, metavar="N", help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
    parser.add_argument(
        "--ranks",
        type=Path,
        metavar="FILE",
        help="instead of a corpus: the home pages of the N hosts of highest PageRank in Common Crawl's ranks",
    )
    parser.add_argument("--without", type=Path, metavar="LIST", help="leave out the domains in this file, such as spam")


SHOW = Action(
    "Print a document: URL, date, language, text, and its outlinks, with a + if the corpus holds the target.",
    _show,
    "ID-or-URL",
)
SAMPLE = Action(
    "Print the keys of random documents, one per line; the same corpus, number and seed give the same keys. With "
    "--ranks, print seeds for a live crawl.",
    _sample,
    add_options=_add_sample_options,
)
