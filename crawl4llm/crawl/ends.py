"""Why a crawl ends, in words that are Scrapy's ``finish_reason``."""

from __future__ import annotations

from typing import NamedTuple

from crawl4llm.parts.budgets import BUDGETS_SPENT
from crawl4llm.parts.known_texts import ALL_KNOWN

MAX_PAGES, FRONTIER_EMPTY = "max_pages", "frontier_empty"
ONLY_PARKED, UNANSWERED = "only_parked", "unanswered"
"""Reasons for which a crawl ends after CRAWL_WAIT seconds: it waits for nothing else."""
DONE = (MAX_PAGES, FRONTIER_EMPTY, BUDGETS_SPENT, ALL_KNOWN)
"""Reasons for which a crawl ends that has done what it was to do."""
LIMITS = tuple(
    f"closespider_{name}"
    for name in ("timeout", "pagecount", "itemcount", "timeout_no_item", "pagecount_no_item", "errorcount")
)
"""Reasons for which a crawl ends at a limit of Scrapy's that its user has set; the last one is of errors."""


class Stop(NamedTuple):
    """Why a crawl was stopped before its end, with all that it has saved."""

    reason: str
    """A word, for Scrapy's ``finish_reason``."""
    message: str
    """One line that says what to do."""
