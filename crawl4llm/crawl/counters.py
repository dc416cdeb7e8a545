"""What is counted of a crawl's pages while it runs, and the balance of its documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from crawl4llm.frontier import Frontier, Outcome
from crawl4llm.frontier.visited import VisitedSet
from crawl4llm.scoring.rating import ERROR, NO_TEXT

REDIRECTS = "redirects/followed"
"""The count of redirect hops; absent in a crawl that was begun by a version that did not count them."""


class Balance(NamedTuple):
    """The states of all visited documents; each document is in exactly one."""

    visited: int
    queued: int
    leased: int
    ended: int
    """Archived, failed or dropped, those included that never entered the frontier."""
    redirects: int | None
    """Redirect hops followed: visited, and part of the document that led to them. None: not counted."""

    @property
    def problem(self) -> str | None:
        """What is wrong, in a few words; None where every document is accounted for.

        Where redirects were not counted, more documents may be visited than are in a state.
        """
        missing = self.visited - self.queued - self.leased - self.ended - (self.redirects or 0)
        if missing < 0:
            return f"{-missing:,} documents more are queued, on lease or ended than were visited"
        return f"{missing:,} visited documents are in no state" if missing and self.redirects is not None else None


def balance(visited: VisitedSet, frontier: Frontier, counts: Mapping[str, int]) -> Balance:
    """Add up the documents of a crawl; ``counts``: its :attr:`Counters.counts`."""
    ended = sum(frontier.outcomes.values())
    never_queued = (f"{Outcome.FAILED.value}/", f"{Outcome.DROPPED.value}/")
    ended += sum(count for key, count in counts.items() if key.startswith(never_queued))
    return Balance(len(visited), len(frontier), frontier.leased, ended, counts.get(REDIRECTS))


class Counters:
    """Figures of :mod:`crawl4llm.base.stats`, the mean influence score, and how long all has been going wrong."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """By the keys of :mod:`crawl4llm.base.stats`."""
        self.errors_in_row = 0
        """Unanticipated errors since a page last went well."""
        self.influence_sum = 0.0
        self.influence_pages = 0
        """Pages crawled that have an influence score."""

    @property
    def crawled(self) -> int:
        """Pages crawled so far."""
        return self.counts["pages/crawled"]

    @property
    def mean_influence(self) -> float | None:
        """Mean influence score of the pages crawled, as far as they have one."""
        return self.influence_sum / self.influence_pages if self.influence_pages else None

    def page(self, influence: float | None) -> None:
        """One more page is crawled."""
        self.counts["pages/crawled"] += 1
        if influence is not None:
            self.influence_sum += influence
            self.influence_pages += 1

    def heard(self, reason: str | None) -> None:
        """Something came of a fetch or of scoring; ``reason`` says what went wrong, if something did."""
        self.errors_in_row = self.errors_in_row + 1 if reason == ERROR else 0

    def note(self, reason: str | None) -> None:
        """Count a page without text, or an unanticipated error.

        Apart from :meth:`heard`: that is for a fetch as soon as it is answered, in any order; this is for all in the
        order of the crawl, so that the counts of a commit do not depend on what else has been answered.
        """
        self.counts["pages/no_text"] += reason == NO_TEXT
        self.counts["errors"] += reason == ERROR
