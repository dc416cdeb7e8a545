"""Policies that look ahead and score a document's own text, by other scorers than the influence score's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from crawl4llm.policies._policy import EACH, SCORER_PREFIX, BasePolicy, Candidate, PolicyOptions, Rating
from crawl4llm.scoring import scores_by


class ScorerPolicy(BasePolicy):
    """URL_POLICY = ``scorer:NAME``: the score that a scorer, one of SCORERS or a dotted path, gives a page's text."""

    name = "scorer"
    looks_ahead = True
    partitioned = EACH

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._scorers = self.scorers(self._options)

    @classmethod
    def scorers(cls, options: PolicyOptions) -> list[str]:
        return [options.url_policy.removeprefix(SCORER_PREFIX)]

    def identity(self) -> Mapping[str, object]:
        rater = self._workers.rater
        return {"policy_scorers": {name: f"sha256:{rater.scorer_named(name).digest}" for name in self._scorers}}

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        task = partial(scores_by, names=self._scorers)
        pages = await self._workers.run(task, [candidate.key for candidate in candidates])
        return [page if isinstance(page, Rating) else Rating(self._combined(page)) for page in pages]

    def _combined(self, scores: Sequence[float]) -> float:
        """Return one score for those of all scorers. Called in the order in which documents were discovered."""
        return scores[0]
