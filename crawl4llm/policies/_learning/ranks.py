"""Influence scores as targets of learning: how a page ranks among those crawled lately."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from typing import Final

_WINDOW: Final = 1000
"""Pages that a page is compared to."""
_POWER: Final = 4
"""Stresses the top: what a crawl is after are its best pages, and a page in the middle is little better than the worst
(docs/policies.md has the figures)."""


class RecentRanks:
    """The rank of a score, 0 to 1, to the power of 4; the same for any scorer that puts pages in the same order."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque()
        self._ordered: list[float] = []

    def add(self, score: float) -> float:
        """Count a page; returns its target, between 0 and 1. Pages of equal score share the mean of their ranks."""
        if len(self._recent) == _WINDOW:
            del self._ordered[bisect_left(self._ordered, self._recent.popleft())]
        self._recent.append(score)
        insort(self._ordered, score)
        rank = (bisect_left(self._ordered, score) + bisect_right(self._ordered, score)) / 2
        return (rank / len(self._ordered)) ** _POWER

    def save(self) -> list[float]:
        """The scores of the window, as :meth:`load` takes them."""
        return list(self._recent)

    def load(self, recent: list[float]) -> None:
        """Go on from what :meth:`save` gave."""
        self._recent, self._ordered = deque(recent), sorted(recent)
