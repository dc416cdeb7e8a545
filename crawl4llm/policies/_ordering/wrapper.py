"""A policy around another one, whose scores it changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crawl4llm.policies import Candidate, CrawledPage, Policy, Rating

if TYPE_CHECKING:
    from crawl4llm.frontier import Entry
    from crawl4llm.options import Options


class Wrapper(ABC):
    """Passes every call on. The inner policy only ever sees scores of its own."""

    scores_influence = False

    def __init__(self, inner: Policy, name: str) -> None:
        self.name = f"{name}({inner.name})"
        self.looks_ahead = inner.looks_ahead
        self.reranks = inner.reranks
        self.corpus_parts = inner.corpus_parts
        self._inner = inner

    @abstractmethod
    def _outer_score(self, key: str, score: float) -> float:
        """What the frontier orders a document by that the inner policy scored so."""

    @abstractmethod
    def _inner_score(self, score: float) -> float:
        """The inner policy's score of a document by what the frontier orders it by."""

    @classmethod
    def scorers(cls, options: Options) -> Sequence[str]:
        """None; the inner policy has its own."""
        return ()

    def identity(self) -> Mapping[str, object]:
        return self._inner.identity()

    def crawled(self, page: CrawledPage) -> None:
        self._inner.crawled(page._replace(entry=self._inner_entry(page.entry)))

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        ratings = await self._inner.score(candidates)
        return [
            rated if rated.score is None else rated._replace(score=self._outer_score(candidate.key, rated.score))
            for candidate, rated in zip(candidates, ratings, strict=True)
        ]

    def reranked(self) -> Iterable[tuple[str, float]]:
        return ((key, self._outer_score(key, score)) for key, score in self._inner.reranked())

    def dequeued(self, entries: Sequence[Entry]) -> None:
        self._inner.dequeued([self._inner_entry(entry) for entry in entries])

    def save(self) -> bytes:
        return self._inner.save()

    def load(self, state: bytes) -> None:
        self._inner.load(state)

    def _inner_entry(self, entry: Entry) -> Entry:
        return replace(entry, score=self._inner_score(entry.score))
