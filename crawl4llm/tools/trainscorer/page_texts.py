"""Main texts of a corpus's pages, taken in worker processes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from crawl4llm.base.errors import MissingRecord
from crawl4llm.base.pages import Corpus
from crawl4llm.options import Options
from crawl4llm.scoring.rating import Rating
from crawl4llm.scoring.text import EXTRACTORS, extract_text
from crawl4llm.scoring.workers import PageWorkers

_PAGES_AT_ONCE = 1024


@dataclass(frozen=True)
class TextTaker:
    """What a worker needs: pickled where processes are spawned, inherited where they are forked."""

    corpus: Corpus
    extractor: str
    clean_text: bool
    """Whether the corpus's own text is taken; else the HTML, and the text only of pages that have no HTML."""


def page_text(taker: TextTaker, key: str) -> str:
    """The text of a page. Raises PageError."""
    if taker.clean_text:
        return taker.corpus.text(key)
    with suppress(MissingRecord):
        return extract_text(taker.corpus.html(key), EXTRACTORS[taker.extractor])
    return taker.corpus.text(key)


def page_texts(taker: TextTaker, keys: Iterable[str], options: Options) -> Iterator[str | Rating]:
    """The texts of pages, in their order; for a page whose text cannot be had, a Rating with the reason."""
    keys = iter(keys)
    with PageWorkers(taker, options.workers, options.text_time_limit) as workers:
        workers.start()
        while some := list(islice(keys, _PAGES_AT_ONCE)):
            yield from asyncio.run(workers.run(page_text, some))
