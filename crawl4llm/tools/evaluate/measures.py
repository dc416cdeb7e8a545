"""What a run has achieved after each number of pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crawl4llm.tools.evaluate.documents import Floats, Integers
from crawl4llm.tools.evaluate.population import Oracle, Population

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


_ROUNDING = 1e-12
"""Means of the same scores, summed in another order, may differ so much."""


def best(influence: Floats, pool: int, n: int) -> Integers:
    """Places in the crawl of the ``n`` pages with the highest influence among the first ``pool`` pages.

    Of equal ones the first crawled count; pages without a score come last.
    """
    scores = np.nan_to_num(influence[:pool], nan=-np.inf)
    return np.sort(np.argsort(-scores, kind="stable")[:n]).astype(np.int64)


def mean_of_best(influence: Floats, pool: int, n: int) -> float:
    """Mean influence of the pages that :func:`best` selects; a page without a score counts as 0."""
    return float(np.nan_to_num(influence[best(influence, pool, n)], nan=0.0).mean())


def pool_to_match(influence: Floats, n: int, mean: float) -> int | None:
    """How many pages must be crawled until the best ``n`` of them reach a mean influence; None if all do not.

    A larger pool is never worse, so that halving finds the smallest.
    """
    low, high = n, len(influence)
    mean -= _ROUNDING
    if high < n or mean_of_best(influence, high, n) < mean:
        return None
    while low < high:
        middle = (low + high) // 2
        if mean_of_best(influence, middle, n) >= mean:
            high = middle
        else:
            low = middle + 1
    return low


def pages_to_find(hits: Integers, wanted: int) -> int | None:
    """How many pages must be crawled until ``wanted`` oracle pages are among them; None if all do not.

    ``hits`` are the oracle pages found so far, after each page.
    """
    if not wanted:
        return 0
    place = int(np.searchsorted(hits, wanted))
    return None if place == len(hits) else place + 1


def oracle_share(influence: Floats, chosen: Integers, oracle: Oracle) -> float:
    """The share of oracle pages among those chosen."""
    return float(np.mean(influence[chosen] >= oracle.threshold.value))


@dataclass(frozen=True)
class Importance:
    """I(P): a number for each page, the higher the more important."""

    id: str
    name: str
    definition: str
    of_document: Floats
    """By the document's number."""
    web: Population
    """The values of all pages of the web that counts."""
    goal: float
    """G: a page is hot, under Crawl & Stop with Threshold, from this value on."""

    @property
    def goal_share(self) -> float:
        """The share of hot pages in the web."""
        return self.web.count_from(self.goal).value / self.web.size


def crawl_and_stop(crawled: Floats, web: Population, at: Integers) -> Band:
    """P_CS for each K in ``at``; ``crawled`` has the importance of the pages crawled, in crawl order."""
    bands = [share_of_hot(crawled[:pages], web) for pages in at]
    return Band(*np.array(bands, dtype=np.float64).reshape(-1, 3).T)


def crawl_and_stop_with_threshold(crawled: Floats, web: Population, goal: float, at: Integers) -> Band:
    """P_ST: the share of all hot pages that are among the first K pages crawled."""
    found = np.cumsum(crawled >= goal)[at - 1]
    hot = web.count_from(goal)
    if not hot.low:
        return Band(*(np.full(len(at), np.nan),) * 3)
    return Band(*(np.minimum(found / count, 1.0) for count in (hot.value, hot.high, hot.low)))


def share_of_hot(pages: Floats, web: Population) -> tuple[float, float, float]:
    """P_CS of the first K pages crawled, or P_BC of a buffer of K pages, with its confidence interval.

    It is the share of pages as important as the K-th most important page of the web. Undefined (NaN) where that page
    has the lowest importance there is, since every page has that.
    """
    value, low, high = web.value_at(min(len(pages), web.size))
    if value <= web.lowest:
        return (np.nan, np.nan, np.nan)
    share, lowest, highest = (float(np.count_nonzero(pages >= least)) / len(pages) for least in (value, high, low))
    return share, lowest, highest
