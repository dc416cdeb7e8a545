"""The influence score of the least page that links to a document, of those seen so far.

It is called QMin in "Neural Prioritisation for Web Crawling" (arXiv 2506.16146).
"""

from __future__ import annotations

from crawl4llm.base.shapes import NUMBER
from crawl4llm.policies._policy import EACH
from crawl4llm.policies._seen_links import SEED_SCORE, SeenLinksPolicy


class Policy(SeenLinksPolicy[float]):
    """A linking page without an influence score counts as the mean of the pages before it."""

    name = "parent_min"
    partitioned = EACH
    seed_score = SEED_SCORE
    _shape = NUMBER

    def _seen(self, known: float | None, influence: float) -> float:
        return influence if known is None else min(known, influence)

    def _score(self, known: float) -> float:
        return known
