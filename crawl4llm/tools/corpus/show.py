"""``scrapy corpus``: ``show`` prints a document, ``sample`` the keys of random ones."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError, MissingRecord
from crawl4llm.base.pages import Corpus, Link
from crawl4llm.base.terminal import positive_integer
from crawl4llm.crawl.seeds import find_document, not_held
from crawl4llm.tools._action import Action
from crawl4llm.tools.corpus.ranked import ranked_seeds
from simulate.open import open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _show(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    corpus = open_corpus(settings)
    key = find_document(corpus, opts.arguments[0])
    if key not in corpus:
        raise not_held(corpus, key)
    page = corpus.page(key)
    text = _text(corpus, key)
    yield f"id        {key}"
    yield f"url       {page.url}"
    yield f"date      {page.date or '-'}"
    yield f"language  {page.language or '-'}"
    yield f"html      {'-' if page.html is None else f'{len(page.html)} bytes'}"
    yield f"text      {'-' if text is None else f'{len(text)} characters'}"
    yield f"inlinks   {len(corpus.inlinks(key))}"
    if text:
        yield f"\n{text}\n"
    if page.outlinks is None:
        yield "outlinks  -"
    else:
        yield from _describe_links(corpus, page.outlinks)


def _text(corpus: Corpus, key: str) -> str | None:
    try:
        return corpus.text(key)
    except MissingRecord:
        return None


def _describe_links(corpus: Corpus, links: list[Link]) -> Iterator[str]:
    held = [link.key in corpus for link in links]
    yield f"outlinks  {len(links)}, {sum(held)} of them held by the corpus"
    for link, mark in zip(links, held, strict=True):
        yield f"{'+' if mark else '-'} {link.key or 'no id'}  {link.url}  {' '.join(link.anchor.split())}".rstrip()


def _sample(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    if opts.ranks is not None:
        yield from ranked_seeds(opts.ranks, opts.n, opts.without)
        return
    if opts.without is not None:
        raise InputError("--without goes with --ranks FILE")
    corpus = open_corpus(settings)
    corpus.check()
    yield from corpus.sample(opts.n, opts.seed)


def _add_sample_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument("-n", "--n", type=positive_integer, default=100, metavar="N", help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the draw (default: 0)")
    parser.add_argument(
        "--ranks",
        type=Path,
        metavar="FILE",
        help="of no corpus, but the home pages of the N hosts of highest PageRank in Common Crawl's ranks",
    )
    parser.add_argument(
        "--without", type=Path, metavar="LIST", help="leave out those of a file of domains, such as spam"
    )


SHOW = Action(
    "Print a document: URL, date, language, text, and its outlinks, with a + where the corpus holds the target.",
    _show,
    "ID-or-URL",
)
SAMPLE = Action(
    "Print the keys of random documents, one a line; the same for the same corpus, number and seed. With --ranks, "
    "seeds for a live crawl.",
    _sample,
    add_options=_add_sample_options,
)
