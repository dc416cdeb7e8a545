"""Counts of a crawl: its figures, and the state of each document, which is exactly one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from crawl4llm.base.reasons import ERROR, NO_TEXT
from crawl4llm.frontier import Frontier, Outcome, Owners

if TYPE_CHECKING:
    from crawl4llm.frontier import VisitedSet

REDIRECTS = "redirects/followed"
"""The count of redirect hops within a fetch."""


UNCOUNTED = "pages/uncounted"
"""The count of archived pages that do not count towards N."""


def counted(counts: Mapping[str, int]) -> int:
    """Return the number of pages that count towards N, from the figures of a crawl."""
    return int(counts.get("pages/crawled", 0)) - int(counts.get(UNCOUNTED, 0))


class Balance(NamedTuple):
    """The states of all documents discovered; each document is in exactly one."""

    discovered: int
    archived: int
    redirected: int
    """Redirect hops within a fetch, which belong to the document that led to them, and documents that ended with a
    redirect to another owner."""
    failed: int
    dropped: int
    queued: int
    """In the frontier, without those of parked owners."""
    leased: int
    parked: int
    """Of parked owners, or set aside because an owner or URL prefix has no budget, or a site never answered."""

    def __str__(self) -> str:
        """Return the equation."""
        names = ("archived", "redirected", "failed", "dropped", "queued", "leased", "parked")
        states = " + ".join(f"{getattr(self, name):,} {name}" for name in names)
        return f"{self.discovered:,} discovered = {states}"

    @property
    def problem(self) -> str | None:
        """The fault, in one line; None if every document is accounted for."""
        missing = self.discovered - sum(self[1:])
        if not missing:
            return None
        what = f"{missing:,} documents are in no state" if missing > 0 else f"{-missing:,} documents are in two states"
        return f"{what}: {self} does not hold"

    def check(self) -> None:
        """Raise RuntimeError unless every document is accounted for."""
        if problem := self.problem:
            raise RuntimeError(f"not committed: {problem}")


def balance(
    visited: VisitedSet, frontier: Frontier, counts: Mapping[str, int], owners: Owners | None, set_aside: int = 0
) -> Balance:
    """Add up the documents of a crawl. ``counts``: its :attr:`Counters.counts`; ``owners``: those of its frontier, if
    it has any; ``set_aside``: documents that wait for a budget, or because their sites never answered."""
    ended = {outcome: sum(reasons.values()) for outcome, reasons in ended_documents(frontier, counts).items()}
    parked = 0 if owners is None else owners.documents.parked
    return Balance(
        discovered=len(visited),
        archived=ended[Outcome.ARCHIVED],
        redirected=ended[Outcome.REDIRECTED] + counts.get(REDIRECTS, 0),
        failed=ended[Outcome.FAILED],
        dropped=ended[Outcome.DROPPED],
        queued=len(frontier) - parked,
        leased=frontier.leased,
        parked=parked + set_aside,
    )


def ended_documents(frontier: Frontier, counts: Mapping[str, int]) -> dict[Outcome, Counter[str]]:
    """Count the documents that ended, by outcome and reason, with those that never entered the frontier."""
    ended: dict[Outcome, Counter[str]] = {outcome: Counter() for outcome in Outcome}
    for (outcome, reason), count in frontier.outcomes.items():
        ended[outcome][reason or ""] += count
    for key, count in counts.items():
        kind, _, reason = key.partition("/")
        if kind in {Outcome.FAILED.value, Outcome.DROPPED.value}:
            ended[Outcome(kind)][reason] += count
    return ended


class Counters:
    """Figures of :mod:`crawl4llm.base.stats`, the mean influence score, and the length of a run of errors."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """Counts by the keys of :mod:`crawl4llm.base.stats`."""
        self.errors_in_row = 0
        """Unanticipated errors since the last success."""
        self.influence_sum = 0.0
        self.influence_pages = 0
        """Crawled pages that have an influence score."""

    @property
    def crawled(self) -> int:
        """Pages crawled so far."""
        return self.counts["pages/crawled"]

    @property
    def counted(self) -> int:
        """Crawled pages that count towards N."""
        return counted(self.counts)

    @property
    def mean_influence(self) -> float | None:
        """Mean influence score of the crawled pages that have one."""
        return self.influence_sum / self.influence_pages if self.influence_pages else None

    def page(self, influence: float | None, *, is_counted: bool = True) -> None:
        """Count a crawled page; ``is_counted``: whether it counts towards N."""
        self.counts["pages/crawled"] += 1
        if not is_counted:
            self.counts[UNCOUNTED] += 1
        if influence is not None:
            self.influence_sum += influence
            self.influence_pages += 1

    def figures(self, frontier: Frontier) -> dict[str, float | None]:
        """Return the figures, including those of documents that left the frontier without a page."""
        figures: dict[str, float | None] = dict(self.counts)
        for (outcome, reason), count in frontier.outcomes.items():
            if outcome is not Outcome.ARCHIVED:
                figures[f"{outcome.value}/{reason}"] = count + (figures.get(f"{outcome.value}/{reason}") or 0)
        figures["influence/mean"] = self.mean_influence
        return figures

    def heard(self, reason: str | None) -> None:
        """Note the result of a fetch or of scoring; ``reason`` is None on success."""
        self.errors_in_row = self.errors_in_row + 1 if reason == ERROR else 0

    def note(self, reason: str | None) -> None:
        """Count a page without text, or an unanticipated error.

        :meth:`heard` is called when a fetch is answered, in any order. This method is called in the order of the crawl,
        so that the counts of a commit do not depend on answers that came early.
        """
        self.counts["pages/no_text"] += reason == NO_TEXT
        self.counts["errors"] += reason == ERROR
