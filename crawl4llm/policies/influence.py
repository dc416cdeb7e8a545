"""The paper's policy: a page's own influence score, M(FetchPage(u)) (Craw4LLM, equation 1)."""

from __future__ import annotations

from collections.abc import Sequence

from crawl4llm.policies._policy import EACH, BasePolicy, Candidate, Rating
from crawl4llm.scoring import rating


class Policy(BasePolicy):
    """Looks at the page itself before it is crawled, which only a simulation can do."""

    name = "influence"
    partitioned = EACH
    looks_ahead = True
    scores_influence = True

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        return await self._workers.run(rating.influence, [candidate.key for candidate in candidates])
