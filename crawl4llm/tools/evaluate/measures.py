"""Measures of crawls: the oracle set, curves along a crawl, crawl-then-select, and the models of Cho et al. 1998."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crawl4llm.tools.evaluate.documents import Flags, Floats, Integers, stored_rows
from crawl4llm.tools.evaluate.runs import Run

CONFIDENCE = 0.95
_POINTS = 400
"""Of a curve, at most."""
_ROUNDING = 1e-12
"""Means of the same scores, summed in another order, may differ so much."""
_ORDERED = "SELECT if(isfinite(value), value, ?) AS known FROM given WHERE counts ORDER BY known"


class Estimate(NamedTuple):
    """A number with its 95% confidence interval, which is the number itself if it is known."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """Return a number that is known."""
        return cls(value, value, value)


class Population:
    """The values of all ``size`` pages, or of a sample of them. A page without a value (NaN) has the lowest one.

    They are those of documents; with ``within``, of those that it marks. They are sorted on disk.
    """

    def __init__(self, values: Floats, size: int, within: Flags | None = None) -> None:
        from crawl4llm.base.reductions import reduced  # an extra

        given = {"value": values, "counts": np.broadcast_to(True, len(values)) if within is None else within}
        ((lowest,),) = reduced("SELECT min(value) FROM given WHERE counts AND isfinite(value)", given)
        self.lowest = 0.0 if lowest is None else float(lowest)
        self.size = size
        ordered = reduced(_ORDERED, given, self.lowest)
        self._ascending: Floats
        (self._ascending,) = stored_rows(ordered, "f8")
        self.sampled = len(self._ascending) < size

    def value_at(self, rank: int) -> Estimate:
        """Return the value of the page with a rank, from 1 for the highest value to ``size``.

        In a sample, the quantile; its interval is that of the order statistics (David and Nagaraja 2003, 7.1).
        """
        n = len(self._ascending)
        if not self.sampled:
            return Estimate.exact(float(self._ascending[n - rank]))
        from scipy.stats import binom  # 45 MB, which only samples need

        share = rank / self.size
        tail = (1 - CONFIDENCE) / 2
        places = [np.ceil(share * n), binom.ppf(1 - tail, n, share) + 1, binom.ppf(tail, n, share)]
        value, low, high = (float(self._ascending[n - int(np.clip(place, 1, n))]) for place in places)
        return Estimate(value, low, high)

    def count_from(self, value: float) -> Estimate:
        """Return how many pages have at least a value; of a sample, with the interval of Wilson 1927."""
        n = len(self._ascending)
        found = n - int(np.searchsorted(self._ascending, value))
        if not self.sampled:
            return Estimate.exact(found)
        from scipy.stats import binomtest  # as above

        interval = binomtest(found, n).proportion_ci(CONFIDENCE, method="wilson")
        return Estimate(*(share * self.size for share in (found / n, interval.low, interval.high)))


class Oracle(NamedTuple):
    """The oracle set: the best tenth of all pages by influence (Craw4LLM, section 3)."""

    threshold: Estimate
    """The influence score from which a page belongs to it; all of equal score belong or do not."""
    size: Estimate
    """Its number of pages."""


def oracle_of(influence: Population) -> Oracle:
    """Return the oracle set of a web: a tenth of its pages, rounded up."""
    threshold = influence.value_at(-(-influence.size // 10))
    return Oracle(threshold, influence.count_from(threshold.value))


# -- along the crawl --------------------------------------------------------------------------------------------------


class Band(NamedTuple):
    """A curve with its confidence band, one value for each point along a crawl."""

    value: Floats
    low: Floats
    high: Floats


def points_along(pages: int, most: int = _POINTS) -> Integers:
    """Return at most ``most`` numbers of pages, evenly spread from 1 to ``pages``, which is one of them."""
    return np.unique(np.linspace(1, pages, min(pages, most)).round().astype(np.int64))


@dataclass(frozen=True)
class CrawledPages:
    """The pages of a run as documents of the survey; arrays are in crawl order.

    Its measures are values at each of some numbers of pages crawled.
    """

    run: Run
    numbers: Integers
    influence: Floats
    tokens: Integers
    oracle: Oracle
    """Of the corpus."""

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def name(self) -> str:
        """The run's name."""
        return self.run.name

    def hits(self) -> Integers:
        """Return the number of oracle pages after each page."""
        return _hits(self.influence, self.oracle.threshold.value)

    def precision(self, at: Integers) -> Band:
        """Return the share of oracle pages among the pages crawled (Craw4LLM, figure 4, left)."""
        return self._found_by(at, at)

    def recall(self, at: Integers) -> Band:
        """Return the share of the oracle set that is crawled (Craw4LLM, figure 4, right)."""
        return Band(*(np.minimum(share, 1.0) for share in self._found_by(at, self.oracle.size.value)))

    def harvest_rate(self, at: Integers) -> Band:
        """Return oracle pages crawled per page fetched."""
        return self._found_by(at, self.run.fetched[at - 1])

    def new_quality(self, at: Integers) -> Floats:
        """Return crawled pages of an influence of QUALITY_THRESHOLD or more, or of the oracle set without that setting,
        and with new texts, per 1,000 pages fetched."""
        given = self.run.quality_threshold
        threshold = self.oracle.threshold.value if given is None else given
        found = _hits(np.where(self.run.is_new, self.influence, np.nan), threshold)
        return 1000 * found[at - 1] / self.run.fetched[at - 1]

    def mean_influence(self, at: Integers) -> Floats:
        """Return the mean influence of the pages that have one; NaN if none has."""
        known = np.isfinite(self.influence)
        sums, counts = np.cumsum(np.where(known, self.influence, 0.0))[at - 1], np.cumsum(known)[at - 1]
        means: Floats = np.divide(sums, counts, out=np.full(len(at), np.nan), where=counts > 0)
        return means

    def _found_by(self, at: Integers, of: Integers | float) -> Band:
        """Return oracle pages found, as shares; the band is by the thresholds at which fewest and most belong to it."""
        value, low, high = self.oracle.threshold
        return Band(*(_hits(self.influence, threshold)[at - 1] / of for threshold in (value, high, low)))


def _hits(influence: Floats, threshold: float) -> Integers:
    return np.cumsum(influence >= threshold).astype(np.int64)


# -- crawl-then-select: what the best pages of a larger crawl are worth (Craw4LLM, section 3 and figure 3) ------------


def best(influence: Floats, pool: int, n: int) -> Integers:
    """Return the places in the crawl of the ``n`` pages with the highest influence among the first ``pool`` pages.

    Of equal ones the first crawled count; pages without a score come last.
    """
    scores = np.nan_to_num(influence[:pool], nan=-np.inf)
    return np.sort(np.argsort(-scores, kind="stable")[:n]).astype(np.int64)


def mean_of_best(influence: Floats, pool: int, n: int) -> float:
    """Return the mean influence of the pages that :func:`best` selects; a page without a score counts as 0."""
    return float(np.nan_to_num(influence[best(influence, pool, n)], nan=0.0).mean())


def pool_to_match(influence: Floats, n: int, mean: float) -> int | None:
    """Return how many pages must be crawled until the best ``n`` reach a mean influence; None if all do not.

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
    """Return how many pages must be crawled until ``wanted`` oracle pages are found; None if all do not.

    ``hits`` are the oracle pages found so far, after each page.
    """
    if not wanted:
        return 0
    place = int(np.searchsorted(hits, wanted))
    return None if place == len(hits) else place + 1


def oracle_share(influence: Floats, chosen: Integers, oracle: Oracle) -> float:
    """Return the share of oracle pages among those chosen."""
    return float(np.mean(influence[chosen] >= oracle.threshold.value))


# -- importance metrics and models of Cho et al. 1998, sections 2 and 3 -----------------------------------------------


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
    """Return P_CS for each K in ``at``; ``crawled`` has the importance of the pages crawled, in crawl order."""
    bands = [share_of_hot(crawled[:pages], web) for pages in at]
    return Band(*np.array(bands, dtype=np.float64).reshape(-1, 3).T)


def crawl_and_stop_with_threshold(crawled: Floats, web: Population, goal: float, at: Integers) -> Band:
    """Return P_ST: the share of all hot pages that are among the first K pages crawled."""
    found = np.cumsum(crawled >= goal)[at - 1]
    hot = web.count_from(goal)
    if not hot.low:
        return Band(*(np.full(len(at), np.nan),) * 3)
    return Band(*(np.minimum(found / count, 1.0) for count in (hot.value, hot.high, hot.low)))


def share_of_hot(pages: Floats, web: Population) -> tuple[float, float, float]:
    """Return P_CS of the first K pages crawled, or P_BC of a buffer of K pages, with its confidence interval.

    It is the share of pages as important as the K-th most important page of the web. Undefined (NaN) if that page has
    the lowest importance there is, since every page has that.
    """
    value, low, high = web.value_at(min(len(pages), web.size))
    if value <= web.lowest:
        return (np.nan, np.nan, np.nan)
    share, lowest, highest = (float(np.count_nonzero(pages >= least)) / len(pages) for least in (value, high, low))
    return share, lowest, highest
