"""Rank correlation, undefined where there is nothing to rank."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm, spearmanr

from crawl4llm.tools.evaluate.documents import Floats
from crawl4llm.tools.evaluate.measures import CONFIDENCE


class Correlation(NamedTuple):
    """Spearman's rank correlation of ``pairs`` pairs with its 95% confidence interval.

    The interval is that of Bonett and Wright 2000, for a sample of a larger population.
    """

    value: float | None
    low: float | None
    high: float | None
    pairs: int
    undefined: str | None = None
    """Why there is no value."""


def rank_correlation(x: Floats, y: Floats) -> Correlation:
    """The correlation of the pairs in which both are numbers."""
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    pairs = len(x)
    if pairs < 3:
        return Correlation(None, None, None, pairs, "fewer than three pages have both")
    if x.min() == x.max() or y.min() == y.max():
        return Correlation(None, None, None, pairs, "one of the two is the same for all pages")
    value = float(spearmanr(x, y).statistic)
    if abs(value) >= 1 or pairs <= 3:
        return Correlation(value, None, None, pairs)
    reach = norm.ppf((1 + CONFIDENCE) / 2) * np.sqrt((1 + value**2 / 2) / (pairs - 3))
    low, high = np.tanh(np.arctanh(value) - reach), np.tanh(np.arctanh(value) + reach)
    return Correlation(value, float(low), float(high), pairs)
