"""What is known of documents that wait to be crawled: their URLs, and the links to them that were seen."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, Final

from crawl4llm.policies._learning.features import anchor_features, places_of, url_features

_MOST_ANCHORS: Final = 6
"""Links to one document whose anchors are looked at."""


class Waiting:
    """A document of which nothing is known but its URL, until links to it are seen."""

    __slots__ = (
        "anchors",
        "depth",
        "first",
        "least",
        "links",
        "most",
        "parent",
        "places",
        "score",
        "total",
        "url",
        "words",
    )

    def __init__(self, url: str, depth: int = 0, parent: str | None = None) -> None:
        self.url = url
        self.depth = depth
        self.parent = parent
        """Key of the page on which it was first seen."""
        self.places = array("I", places_of(url))
        self.words = array("I", sorted(set(url_features(url, depth))))
        self.anchors = array("I")
        """Features of the anchors."""
        self.links, self.total, self.first, self.least, self.most = 0, 0.0, 0.0, 1.0, 0.0
        """Number of pages that link to it; sum, first, minimum and maximum of their targets of learning."""
        self.score = 0.0
        """What was predicted last."""

    def linked(self, target: float, anchor: str, *, boilerplate: bool) -> None:
        """A page links to it whose own target of learning is ``target``."""
        if not self.links:
            self.first = target
        self.links += 1
        self.total += target
        self.least, self.most = min(self.least, target), max(self.most, target)
        if self.links <= _MOST_ANCHORS:
            found = anchor_features(anchor, self.url, boilerplate=boilerplate)
            self.anchors = array("I", sorted({*self.anchors, *found}))

    @property
    def features(self) -> Iterator[int]:
        """Of its URL and of the anchors of links to it."""
        yield from self.words
        yield from self.anchors

    def save(self) -> list[Any]:
        """Everything that :meth:`load` takes, as JSON has it."""
        numbers = [self.links, self.total, self.first, self.least, self.most, self.score]
        return [self.url, self.depth, self.parent, self.anchors.tolist(), *numbers]

    @classmethod
    def load(cls, saved: list[Any]) -> Waiting:
        """What :meth:`save` gave."""
        waiting = cls(*saved[:3])
        waiting.anchors = array("I", saved[3])
        waiting.links, waiting.total, waiting.first, waiting.least, waiting.most, waiting.score = saved[4:]
        return waiting


def worst_of(waiting: Mapping[str, Waiting], most: int) -> list[str]:
    """Where there are more than ``most``, keys of those with the lowest scores: but for them, nine tenths of it."""
    if len(waiting) <= most:
        return []
    return sorted(waiting, key=lambda key: (waiting[key].score, key))[: len(waiting) - most * 9 // 10]
