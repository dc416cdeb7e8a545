"""What a number is like over all pages of a web, known or estimated from a uniform sample of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import binom, binomtest

from crawl4llm.tools.evaluate.documents import Floats

CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A number with its 95% confidence interval, which is the number itself where it is known."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """A number that is known."""
        return cls(value, value, value)


class Population:
    """The values of all ``size`` pages, or of a sample of them. A page without a value (NaN) has the lowest one."""

    def __init__(self, values: Floats, size: int) -> None:
        known = values[np.isfinite(values)]
        self.lowest = float(known.min()) if len(known) else 0.0
        self.size = size
        self.sampled = len(values) < size
        self._descending = np.sort(np.where(np.isfinite(values), values, self.lowest))[::-1]

    def value_at(self, rank: int) -> Estimate:
        """The value of the page with a rank, from 1 for the highest value to ``size``.

        In a sample, the quantile; its interval is that of the order statistics (David and Nagaraja 2003, 7.1).
        """
        n = len(self._descending)
        if not self.sampled:
            return Estimate.exact(float(self._descending[rank - 1]))
        share = rank / self.size
        tail = (1 - CONFIDENCE) / 2
        places = [np.ceil(share * n), binom.ppf(1 - tail, n, share) + 1, binom.ppf(tail, n, share)]
        value, low, high = (float(self._descending[int(np.clip(place, 1, n)) - 1]) for place in places)
        return Estimate(value, low, high)

    def count_from(self, value: float) -> Estimate:
        """How many pages have at least a value; of a sample, with the interval of Wilson 1927."""
        n = len(self._descending)
        found = int(np.searchsorted(-self._descending, -value, side="right"))
        if not self.sampled:
            return Estimate.exact(found)
        interval = binomtest(found, n).proportion_ci(CONFIDENCE, method="wilson")
        return Estimate(*(share * self.size for share in (found / n, interval.low, interval.high)))


class Oracle(NamedTuple):
    """The oracle set: the best tenth of all pages by influence (Craw4LLM, section 3)."""

    threshold: Estimate
    """The influence score from which a page belongs to it; all of equal score belong or do not."""
    size: Estimate
    """How many pages belong to it."""


def oracle_of(influence: Population) -> Oracle:
    """The oracle set of a web: a tenth of its pages, rounded up."""
    threshold = influence.value_at(-(-influence.size // 10))
    return Oracle(threshold, influence.count_from(threshold.value))
