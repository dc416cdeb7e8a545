"""Somebody else's policy and scorer, with settings of their own."""

from __future__ import annotations

from typing import Any, ClassVar

from crawl4llm.policies import BasePolicy, Rating


class Weighted(BasePolicy):
    """Deep or shallow documents first."""

    name = "weighted"
    SETTINGS: ClassVar[dict[str, Any]] = {"WEIGHTED_BY_DEPTH": -1.0, "WEIGHTED_LABEL": "", "WEIGHTED_SHUFFLE": False}

    async def score(self, candidates: Any) -> list[Rating]:
        return [Rating(self._options.own["WEIGHTED_BY_DEPTH"] * candidate.depth) for candidate in candidates]


class Constant:
    """Gives every page the same score."""

    SETTINGS: ClassVar[dict[str, Any]] = {"CONSTANT_SCORE": 3}

    def __init__(self, options: Any) -> None:
        self._score = float(options.own["CONSTANT_SCORE"])
        self.digest = f"constant {self._score}"

    @classmethod
    def from_options(cls, options: Any) -> Constant:
        return cls(options)

    def score(self, texts: Any) -> list[float]:
        return [self._score for _ in texts]


class Clashing(Weighted):
    """Its setting is one of ours."""

    SETTINGS: ClassVar[dict[str, Any]] = {"CRAWL_MAX_PAGES": 5}


class Odd(Weighted):
    """Its setting has a default of a kind that is not taken."""

    SETTINGS: ClassVar[dict[str, Any]] = {"ODD_LIST": []}
