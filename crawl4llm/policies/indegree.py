"""The paper's graph baseline: the number of links to a page in the whole corpus (Craw4LLM, section 3, appendix A)."""

from __future__ import annotations

from collections.abc import Sequence

from crawl4llm.policies._policy import EACH, BasePolicy, Candidate, Rating
from crawl4llm.scoring import rating


class Policy(BasePolicy):
    """Static: known in full before the crawl, unlike links seen so far."""

    name = "indegree"
    partitioned = EACH
    corpus_parts = ("inlinks",)

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        return await self._workers.run(rating.indegree, [candidate.key for candidate in candidates])
