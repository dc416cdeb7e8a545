"""Why a crawl ends, in words that are Scrapy's ``finish_reason``."""

from __future__ import annotations

from typing import NamedTuple

from crawl4llm.parts import ENDS

MAX_PAGES, FRONTIER_EMPTY = "max_pages", "frontier_empty"
BAD_INPUT, TOO_MANY_ERRORS, INTERNAL_ERROR = "bad_input", "too_many_errors", "internal_error"
ONLY_PARKED, UNANSWERED = "only_parked", "unanswered"
"""Reasons for which a crawl ends after CRAWL_WAIT seconds: it waits for nothing else."""
LIMITS = tuple(
    f"closespider_{name}"
    for name in ("timeout", "pagecount", "itemcount", "timeout_no_item", "pagecount_no_item", "errorcount")
)
"""Reasons for which a crawl ends at a limit of Scrapy's that its user has set; the last one is of errors."""


def is_done(reason: str) -> bool:
    """Return whether a crawl that ended for a reason has done what it was to do."""
    return reason in (MAX_PAGES, FRONTIER_EMPTY) or reason in ENDS


class Stop(NamedTuple):
    """Why a crawl was stopped before its end, with all that it has saved."""

    reason: str
    """A word, for Scrapy's ``finish_reason``."""
    message: str
    """One line that says what to do."""
