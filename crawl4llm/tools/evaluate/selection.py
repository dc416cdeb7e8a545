"""Crawl-then-select: what the best pages of a larger crawl are worth (Craw4LLM, section 3 and figure 3)."""

from __future__ import annotations

import numpy as np

from crawl4llm.tools.evaluate.documents import Floats, Integers
from crawl4llm.tools.evaluate.population import Oracle

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
