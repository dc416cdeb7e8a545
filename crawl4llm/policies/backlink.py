"""Backlink count IB': the number of pages seen so far that link to a document (Cho et al. 1998, section 2)."""

from __future__ import annotations

from crawl4llm.base.shapes import whole
from crawl4llm.policies._policy import EACH
from crawl4llm.policies._seen_links import SeenLinksPolicy


class Policy(SeenLinksPolicy[int]):
    """Each linking page counts once, as in the pairs (u1, u2) of the paper's figure 1."""

    name = "backlink"
    partitioned = EACH
    seed_score = 0.0
    _shape = whole()

    def _seen(self, known: int | None, influence: float) -> int:
        return (known or 0) + 1

    def _score(self, known: int) -> float:
        return float(known)
