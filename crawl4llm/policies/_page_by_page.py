"""What policies have in common that learn from each page before they score what was found on it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from crawl4llm.policies import BasePolicy, Candidate, CrawledPage, Rating
from crawl4llm.policies._seen_links import SEED_SCORE


class PageByPagePolicy(BasePolicy):
    """Takes pages one by one, so that no document's score depends on how many of them are told of at once."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._crawled: list[CrawledPage] = []
        """Pages of which nothing was learnt yet."""

    @abstractmethod
    def _take(self, page: CrawledPage, found: Sequence[Candidate]) -> Mapping[str, float]:
        """Learn from a page; returns the scores of the documents first found on it, by key."""

    def crawled(self, page: CrawledPage) -> None:
        self._crawled.append(page)

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        found: dict[str | None, list[Candidate]] = {}
        for candidate in candidates:
            found.setdefault(candidate.parent, []).append(candidate)
        scores = {candidate.key: SEED_SCORE for candidate in found.get(None, ())}
        for page in self._crawled:
            scores.update(self._take(page, found.get(page.entry.key, ())))
        self._crawled.clear()
        return [Rating(scores[candidate.key]) for candidate in candidates]
