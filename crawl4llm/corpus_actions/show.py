"""``scrapy corpus show``: one document."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from crawl4llm.errors import MissingRecord
from simulate.corpus import Corpus, Link
from simulate.open import open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

HELP = "Print a document: URL, date, language, text, and its outlinks, with a + where the corpus holds the target."
ARGUMENTS = "ID-or-URL"


def add_options(parser: argparse._ArgumentGroup) -> None:
    """It has none."""


def run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Yield the document's lines."""
    corpus = open_corpus(settings)
    yield from _describe(corpus, find_document(corpus, opts.arguments[0]))


def find_document(corpus: Corpus, given: str) -> str:
    """The key of the document that a key or URL means. Raises MissingRecord."""
    is_key = corpus.is_key(given)
    if is_key and ("://" not in given or given in corpus):  # a URL may be a key, and still be looked for as URLs are
        return given
    key = corpus.resolve(given) or (given if is_key else None)
    if key is None:
        raise MissingRecord(f"the corpus holds no document at {given}")
    return key


def _describe(corpus: Corpus, key: str) -> Iterator[str]:
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
