"""Normalisers: scores of different scales put on one, by the scores seen so far.

Each score is compared with those seen up to it, itself included, in the order in which documents are discovered. So the
result does not depend on how many documents come at once, and the first of all, or one of constant scores, is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol


class Normaliser(Protocol):
    """A normaliser of the scores of one scorer."""

    def seen(self, score: float) -> float:
        """Return the next score, normalised."""

    def dump(self) -> list[float]:
        """Return the state, which depends on the scores so far."""

    def restore(self, dumped: Sequence[float]) -> None:
        """Set the state to a dumped one, a list of finite numbers. Raises ValueError if it is another's."""


class Unchanged:
    """Scores as they are."""

    def seen(self, score: float) -> float:
        return score

    def dump(self) -> list[float]:
        return []

    def restore(self, dumped: Sequence[float]) -> None:
        """Restore nothing: there is no state."""


class ZScore:
    """Standard deviations (of the population) above the mean, by Welford's method (Knuth, TAOCP 2, 4.2.2)."""

    def __init__(self) -> None:
        self._count, self._mean, self._squares = 0.0, 0.0, 0.0

    def seen(self, score: float) -> float:
        self._count += 1
        distance = score - self._mean
        self._mean += distance / self._count
        self._squares += distance * (score - self._mean)
        deviation = math.sqrt(self._squares / self._count)
        return (score - self._mean) / deviation if deviation else 0.0

    def dump(self) -> list[float]:
        return [self._count, self._mean, self._squares]

    def restore(self, dumped: Sequence[float]) -> None:
        self._count, self._mean, self._squares = dumped
        if min(self._count, self._squares) < 0:
            raise ValueError("no count, or no sum of squares")


class MinMax:
    """The place between the least and the largest score, from 0 to 1."""

    def __init__(self) -> None:
        self._bounds: list[float] = []

    def seen(self, score: float) -> float:
        least, largest = self._bounds or (score, score)
        self._bounds = least, largest = [min(least, score), max(largest, score)]
        return (score - least) / (largest - least) if largest > least else 0.0

    def dump(self) -> list[float]:
        return self._bounds

    def restore(self, dumped: Sequence[float]) -> None:
        if len(dumped) not in {0, 2}:
            raise ValueError("not two bounds")
        self._bounds = list(dumped)


NORMALISERS: dict[str, type[Unchanged] | type[ZScore] | type[MinMax]]
NORMALISERS = {"none": Unchanged, "zscore": ZScore, "minmax": MinMax}
"""By their names in ENSEMBLE_NORMALISER."""
