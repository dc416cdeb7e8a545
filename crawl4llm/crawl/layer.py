"""A layer before a frontier, which passes on all calls that it does not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crawl4llm.frontier import Frontier, Outcome


class Layer:
    """The part of :class:`crawl4llm.frontier.Frontier` that is the frontier's within."""

    def __init__(self, within: Frontier) -> None:
        self._within = within

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        return self._within.rerank(scores)

    def __len__(self) -> int:
        return len(self._within)

    @property
    def leased(self) -> int:
        return self._within.leased

    @property
    def outcomes(self) -> Mapping[tuple[Outcome, str | None], int]:
        return self._within.outcomes
