"""A weighted sum of several scorers' scores, normalised: the published implementation's ensembles."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.shapes import NUMBER, Where
from crawl4llm.policies._policy import NO, PolicyOptions, saved_state
from crawl4llm.policies._scorer_policy import ScorerPolicy
from crawl4llm.scoring import parse_weights

_LEAST_0: Final = Where(NUMBER, lambda number: number >= 0)
_STATE: Final = [(_LEAST_0, NUMBER, _LEAST_0)]


@dataclass
class ZScore:
    """Standard deviations (of the population) above the mean, by Welford's method (Knuth, TAOCP 2, 4.2.2).

    Each score is compared with those seen so far, itself included, in the order of discovery. So the result does not
    depend on the size of the groups that documents come in. The first score is 0, and so are constant scores.
    """

    count: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    def seen(self, score: float) -> float:
        """Return the next score, normalised."""
        self.count += 1
        distance = score - self.mean
        self.mean += distance / self.count
        self.squares += distance * (score - self.mean)
        deviation = math.sqrt(self.squares / self.count)
        return (score - self.mean) / deviation if deviation else 0.0


class Policy(ScorerPolicy):
    """ENSEMBLE_WEIGHTS of scores that are put on one scale by :class:`ZScore`.

    Looks at the page before it is crawled, as ``influence`` does.
    """

    name = "ensemble"
    partitioned = NO  # its normalisers learn from each document, in the order of all

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._weights = list(parse_weights(self._options.ensemble_weights).values())
        self._normalisers = [ZScore() for _ in self._weights]

    @classmethod
    def scorers(cls, options: PolicyOptions) -> list[str]:
        if not options.ensemble_weights:
            fault = "ENSEMBLE_WEIGHTS is not set; give scorers and their weights, for example fasttext:1,length:0.5"
            raise InputError(fault)
        return list(parse_weights(options.ensemble_weights))

    def identity(self) -> Mapping[str, object]:
        return {**super().identity(), "ensemble_weights": self._weights, "ensemble_normaliser": "zscore"}

    def save(self) -> bytes:
        return json.dumps([astuple(normaliser) for normaliser in self._normalisers]).encode()

    def load(self, state: bytes) -> None:
        self._normalisers = [ZScore(*saved) for _, saved in zip(self._weights, saved_state(state, _STATE), strict=True)]

    def _combined(self, scores: Sequence[float]) -> float:
        normalised = [normaliser.seen(score) for normaliser, score in zip(self._normalisers, scores, strict=True)]
        return sum(weight * score for weight, score in zip(self._weights, normalised, strict=True))
