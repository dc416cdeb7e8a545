"""The mean influence score of the pages that link to a document, of those seen so far."""

from __future__ import annotations

from crawl4llm.base.shapes import NUMBER, Where
from crawl4llm.policies._policy import EACH
from crawl4llm.policies._seen_links import SEED_SCORE, SeenLinksPolicy


class Policy(SeenLinksPolicy[list[float]]):
    """Keeps sum and number. A linking page without an influence score counts as the mean of the pages before it."""

    name = "parent_mean"
    partitioned = EACH
    seed_score = SEED_SCORE
    _shape = NUMBER, Where(NUMBER, lambda pages: pages > 0)

    def _seen(self, known: list[float] | None, influence: float) -> list[float]:
        total, pages = known or (0.0, 0)
        return [total + influence, pages + 1]

    def _score(self, known: list[float]) -> float:
        total, pages = known
        return total / pages
