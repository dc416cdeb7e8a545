"""What a run has achieved after each number of pages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl4llm.tools.evaluate.documents import Floats, Integers
from crawl4llm.tools.evaluate.population import Oracle

_POINTS = 400


class Band(NamedTuple):
    """A curve with its confidence band, one value for each point along a crawl."""

    value: Floats
    low: Floats
    high: Floats


def points_along(pages: int, most: int = _POINTS) -> Integers:
    """At most so many numbers of pages, evenly spread from 1 to ``pages``, which is one of them."""
    return np.unique(np.linspace(1, pages, min(pages, most)).round().astype(np.int64))


def precision(influence: Floats, oracle: Oracle, at: Integers) -> Band:
    """The share of oracle pages among the first so many pages crawled (Craw4LLM, figure 4, left)."""
    return Band(*(_hits(influence, threshold)[at - 1] / at for threshold in _thresholds(oracle)))


def recall(influence: Floats, oracle: Oracle, at: Integers) -> Band:
    """The share of the oracle set among the first so many pages crawled (Craw4LLM, figure 4, right)."""
    size = oracle.size.value
    return Band(*(np.minimum(_hits(influence, threshold)[at - 1] / size, 1.0) for threshold in _thresholds(oracle)))


def harvest_rate(influence: Floats, oracle: Oracle, fetched: Integers, at: Integers) -> Band:
    """Oracle pages among the first so many pages crawled, for each page fetched to get there."""
    return Band(*(_hits(influence, threshold)[at - 1] / fetched[at - 1] for threshold in _thresholds(oracle)))


def mean_so_far(values: Floats, at: Integers) -> Floats:
    """The mean of the first so many values, NaN left out; NaN where there is none."""
    known = np.isfinite(values)
    sums, counts = np.cumsum(np.where(known, values, 0.0))[at - 1], np.cumsum(known)[at - 1]
    means: Floats = np.divide(sums, counts, out=np.full(len(at), np.nan), where=counts > 0)
    return means


def oracle_hits(influence: Floats, oracle: Oracle) -> Integers:
    """Oracle pages among the first so many pages, for each number of pages from 1."""
    return _hits(influence, oracle.threshold.value)


def _hits(influence: Floats, threshold: float) -> Integers:
    return np.cumsum(influence >= threshold).astype(np.int64)


def _thresholds(oracle: Oracle) -> tuple[float, float, float]:
    """The threshold, then those at which fewest and most pages belong to the oracle set."""
    return oracle.threshold.value, oracle.threshold.high, oracle.threshold.low
