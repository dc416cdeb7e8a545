"""The normaliser: scores of different scales put on one, by the scores seen so far.

Each score is compared with those seen up to it, itself included, in the order in which documents are discovered. So the
result does not depend on how many documents come at once, and the first of all, or one of constant scores, is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


class ZScore:
    """Standard deviations (of the population) above the mean, by Welford's method (Knuth, TAOCP 2, 4.2.2)."""

    def __init__(self) -> None:
        self._count, self._mean, self._squares = 0.0, 0.0, 0.0

    def seen(self, score: float) -> float:
        """Return the next score, normalised."""
        self._count += 1
        distance = score - self._mean
        self._mean += distance / self._count
        self._squares += distance * (score - self._mean)
        deviation = math.sqrt(self._squares / self._count)
        return (score - self._mean) / deviation if deviation else 0.0

    def dump(self) -> list[float]:
        """Return the state, which depends on the scores so far."""
        return [self._count, self._mean, self._squares]

    def restore(self, dumped: Sequence[float]) -> None:
        """Set the state to a dumped one, a list of finite numbers. Raises ValueError if it is another's."""
        self._count, self._mean, self._squares = dumped
        if min(self._count, self._squares) < 0:
            raise ValueError("no count, or no sum of squares")
