"""The length of a page's text, in characters: the published implementation's ``length``."""

from __future__ import annotations

from crawl4llm.policies._policy import EACH, PolicyOptions
from crawl4llm.policies._scorer_policy import ScorerPolicy


class Policy(ScorerPolicy):
    """Looks at the page before it is crawled, as ``influence`` does."""

    name = "length"
    partitioned = EACH

    @classmethod
    def scorers(cls, options: PolicyOptions) -> list[str]:
        return ["length"]
