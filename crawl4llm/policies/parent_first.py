"""The influence score of the page on which a document was first seen.

It is called QFirst in "Neural Prioritisation for Web Crawling" (arXiv 2506.16146).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from crawl4llm.policies._means import RunningMean
from crawl4llm.policies._policy import EACH, BasePolicy, Candidate, CrawledPage, Rating
from crawl4llm.policies._seen_links import SEED_SCORE


class Policy(BasePolicy):
    """A page without an influence score counts as the mean of the pages before it."""

    name = "parent_first"
    partitioned = EACH

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._influence: dict[str, float] = {}
        """Of the pages crawled since documents were last scored."""
        self._mean = RunningMean()

    def crawled(self, page: CrawledPage) -> None:
        self._influence[page.entry.key] = self._mean.known_or_mean(page.influence)

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        ratings = [Rating(self._score_of(candidate.parent)) for candidate in candidates]
        self._influence.clear()
        return ratings

    def save(self) -> bytes:
        return struct.pack("<dq", self._mean.total, self._mean.count)

    def load(self, state: bytes) -> None:
        self._mean.total, self._mean.count = struct.unpack("<dq", state)

    def _score_of(self, parent: str | None) -> float:
        return SEED_SCORE if parent is None else self._influence[parent]
