"""``scrapy corpus``: ``show`` prints a document, ``sample`` the keys of random ones."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from crawl4llm.base.errors import MissingRecord
from crawl4llm.base.pages import Corpus, Link
from crawl4llm.base.terminal import positive_integer
from crawl4llm.crawl.seeds import find_document, not_held
from crawl4llm.tools._action import Action
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
    corpus = open_corpus(settings)
    corpus.check()
    yield from corpus.sample(opts.n, opts.seed)


def _add_sample_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument("--n", type=positive_integer, default=100, metavar="N", help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the draw (default: 0)")


SHOW = Action(
    "Print a document: URL, date, language, text, and its outlinks, with a + where the corpus holds the target.",
    _show,
    "ID-or-URL",
)
SAMPLE = Action(
    "Print the keys of random documents, one a line; the same for the same corpus, number and seed.",
    _sample,
    add_options=_add_sample_options,
)
