"""What the worker processes find out of a page for an evaluation."""

from __future__ import annotations

from typing import Final, NamedTuple

from crawl4llm.scoring.rating import PageRater, rate_text
from crawl4llm.tools.evaluate.documents import fingerprints

_BLANK, _OTHER = b"\0", b"\1"
_CLASSES: Final = b"".join(_BLANK if chr(byte) in " \n\r\t\v\f\0" else _OTHER for byte in range(256))


class ScoredPage(NamedTuple):
    """A page's influence score and the size of its text."""

    score: float | None
    reason: str | None
    """As in crawl4llm.policies.Rating."""
    tokens: int


class Targets(NamedTuple):
    """What a page links to."""

    fingerprints: bytes
    """Those of the documents it links to, each once, itself not among them."""


def scored_page(rater: PageRater, key: str) -> ScoredPage:
    """Score and tokens from one look at the text."""
    text = rater.text(key)
    return ScoredPage(*rate_text(rater.scorer, text, key), count_tokens(text))


def count_tokens(text: str) -> int:
    """The runs of bytes between blanks: what fastText takes for words (its ``Dictionary::readWord``)."""
    return (_BLANK + text.encode("utf-8", "replace").translate(_CLASSES)).count(_BLANK + _OTHER)


def targets(rater: PageRater, key: str) -> Targets:
    """The documents that a page links to."""
    linked = dict.fromkeys(link.key for link in rater.corpus.outlinks(key) if link.key is not None)
    linked.pop(key, None)
    return Targets(fingerprints(linked))
