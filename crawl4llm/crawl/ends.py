"""Reasons for the end of a crawl, in words of Scrapy's ``finish_reason``."""

from __future__ import annotations

from typing import NamedTuple

from crawl4llm.parts import ENDS

MAX_PAGES, FRONTIER_EMPTY = "max_pages", "frontier_empty"
BAD_INPUT, TOO_MANY_ERRORS, INTERNAL_ERROR = "bad_input", "too_many_errors", "internal_error"
ONLY_PARKED, UNANSWERED = "only_parked", "unanswered"
"""Reasons of a crawl that ends after CRAWL_WAIT seconds because it waits for nothing else."""
LIMITS = tuple(
    f"closespider_{name}"
    for name in ("timeout", "pagecount", "itemcount", "timeout_no_item", "pagecount_no_item", "errorcount")
)
"""Reasons of a crawl that ends at one of Scrapy's limits, which the user set; the last one is a limit of errors."""


def is_done(reason: str) -> bool:
    """Return whether a crawl that ended for a reason has completed its task."""
    return reason in (MAX_PAGES, FRONTIER_EMPTY) or reason in ENDS


class Stop(NamedTuple):
    """The reason why a crawl was stopped before its end, with all that it has saved."""

    reason: str
    """A word, for Scrapy's ``finish_reason``."""
    message: str
    """One line that says what to do."""
