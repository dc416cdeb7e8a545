"""Importance metrics and the models by which Cho et al. 1998 (sections 2 and 3) measure a crawler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crawl4llm.tools.evaluate.along import Band
from crawl4llm.tools.evaluate.documents import Floats, Integers
from crawl4llm.tools.evaluate.population import Population


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
