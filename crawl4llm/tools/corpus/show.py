"""``scrapy corpus show``: one document."""

from __future__ import annotations

import argparse
import string
from collections.abc import Iterator
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError, MissingRecord
from crawl4llm.base.pages import Corpus, Link
from simulate.open import open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

HELP = "Print a document: URL, date, language, text, and its outlinks, with a + where the corpus holds the target."
ARGUMENTS = "ID-or-URL"

_NEAR, _LONGEST_MISTYPED = 3, 200


def add_options(parser: argparse._ArgumentGroup) -> None:
    """It has none."""


def run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Yield the document's lines."""
    corpus = open_corpus(settings)
    key = find_document(corpus, opts.arguments[0])
    if key not in corpus:
        raise not_held(corpus, key)
    yield from _describe(corpus, key)


def find_document(corpus: Corpus, given: str) -> str:
    """The key of the document that a key or URL means, which the corpus may not hold. Raises MissingRecord."""
    is_key = corpus.is_key(given)
    if is_key and ("://" not in given or given in corpus):  # a URL may be a key, and still be looked for as URLs are
        return given
    try:
        key = corpus.resolve(given)
    except InputError:
        if "." in given or "/" in given:
            raise
        key = None  # without an index of URLs, what is no URL either
    if key is None and not is_key:
        raise not_held(corpus, given)
    return key or given


def not_held(corpus: Corpus, given: str) -> MissingRecord:
    """What is said of a key or URL that leads nowhere, with keys of the corpus that are but one character away."""
    near = [key for key in dict.fromkeys(_one_character_away(given)) if corpus.is_key(key) and key in corpus][:_NEAR]
    example = next(iter(corpus.keys()), None)
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; ids look like {example}" if example else ""
    fault = "does not hold" if corpus.is_key(given) else "holds no document at"
    return MissingRecord(f"the corpus {fault} {given}{hint}")


def _one_character_away(text: str) -> Iterator[str]:
    """What a slip of the pen may have made of a key: neighbours swapped, one character too many, missing, another."""
    if len(text) > _LONGEST_MISTYPED:
        return
    splits = [(text[:at], text[at:]) for at in range(len(text) + 1)]
    letters = "".join(sorted({*text, *string.digits, *string.ascii_lowercase}))
    yield from (head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1)
    yield from (head + tail[1:] for head, tail in splits if tail)
    yield from (head + letter + tail for head, tail in splits for letter in letters)
    yield from (head + letter + tail[1:] for head, tail in splits if tail for letter in letters)


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
