"""Means of influence scores: a running one, and one of few values that leans on a larger population's."""

from __future__ import annotations

from typing import Final

from crawl4llm.base.shapes import NUMBER, Where, whole

_ROUNDING: Final = 1e-6


def are_shares(total: float, count: int) -> bool:
    """Return whether a sum can be that of a number of values from 0 to 1."""
    return 0 <= total <= count * (1 + _ROUNDING)


MEAN: Final = (NUMBER, whole())
"""The shape of a sum and a number of values, as policies save them."""
MEAN_OF_SHARES: Final = Where(MEAN, lambda mean: are_shares(*mean))


def shrunken(total: float, count: int, towards: float, weight: float) -> float:
    """Return the mean of values, as if there were ``weight`` more that are ``towards``, a larger population's mean."""
    return (total + weight * towards) / (count + weight)


class RunningMean:
    """Mean of the influence scores seen so far, a stand-in if one is unknown; one half before the first."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def known_or_mean(self, influence: float | None) -> float:
        """Return a page's influence score, which is counted; the mean of those before if it has none."""
        if influence is None:
            return self.value
        self.total += influence
        self.count += 1
        return influence

    @property
    def value(self) -> float:
        """The mean."""
        return self.total / self.count if self.count else 0.5
