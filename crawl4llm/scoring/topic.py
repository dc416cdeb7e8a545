"""Mentions of a topic in a page's title and text (Cho et al. 1998, section 7)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Corpus
from crawl4llm.scoring.rating import PageRater
from crawl4llm.scoring.text import title_of


class Mentions(NamedTuple):
    """A page's mentions of a topic."""

    in_title: bool
    in_body: int
    """Occurrences in its text."""


def mentions_of(topic: Sequence[str]) -> Callable[[PageRater, str], Mentions]:
    """Return the task that searches a page for any of some words."""
    return partial(_mentions, topic=tuple(topic))


def topic_pattern(topic: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for any of the words, as a whole and in any case."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, topic))})(?!\w)", re.IGNORECASE)


def has_titles(corpus: Corpus) -> bool:
    """Return whether the corpus holds HTML, and so titles; otherwise the first line of a text stands for its title."""
    try:
        corpus.require("html")
    except InputError:
        return False
    return True


def _mentions(rater: PageRater, key: str, topic: tuple[str, ...]) -> Mentions:
    words = topic_pattern(topic)
    text = rater.text(key)
    title = title_of(rater.corpus.html(key)) if has_titles(rater.corpus) else text.strip().partition("\n")[0]
    return Mentions(words.search(title) is not None, sum(1 for _ in words.finditer(text)))
