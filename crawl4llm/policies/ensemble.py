"""A weighted sum of several scorers' scores, normalised: the published implementation's ensembles."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from crawl4llm.base.errors import InputError
from crawl4llm.base.shapes import NUMBER
from crawl4llm.policies._policy import NO, CrawlSettings, saved_state
from crawl4llm.policies._scorer_policy import ScorerPolicy
from crawl4llm.scoring.normalisers import ZScore
from crawl4llm.scoring.scorer import parse_weights


class Policy(ScorerPolicy):
    """ENSEMBLE_WEIGHTS of scores that are put on one scale (see crawl4llm.scoring.normalisers).

    Looks at the page before it is crawled, as ``influence`` does.
    """

    name = "ensemble"
    partitioned = NO  # its normalisers learn from each document, in the order of all

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._weights = list(parse_weights(self._options.ensemble_weights).values())
        self._normalisers = [ZScore() for _ in self._weights]

    @classmethod
    def scorers(cls, options: CrawlSettings) -> list[str]:
        if not options.ensemble_weights:
            fault = "ENSEMBLE_WEIGHTS is not set; give scorers and their weights, for example fasttext:1,length:0.5"
            raise InputError(fault)
        return list(parse_weights(options.ensemble_weights))

    def identity(self) -> Mapping[str, object]:
        return {**super().identity(), "ensemble_weights": self._weights, "ensemble_normaliser": "zscore"}

    def save(self) -> bytes:
        return json.dumps([normaliser.dump() for normaliser in self._normalisers]).encode()

    def load(self, state: bytes) -> None:
        for normaliser, dumped in zip(self._normalisers, saved_state(state, [[NUMBER]]), strict=True):
            normaliser.restore(dumped)

    def _combined(self, scores: Sequence[float]) -> float:
        normalised = [normaliser.seen(score) for normaliser, score in zip(self._normalisers, scores, strict=True)]
        return sum(weight * score for weight, score in zip(self._weights, normalised, strict=True))
