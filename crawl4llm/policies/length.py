"""The length of a page's text, in characters: the published implementation's ``length``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawl4llm.policies import EACH
from crawl4llm.policies._scorer_policy import ScorerPolicy

if TYPE_CHECKING:
    from crawl4llm.options import Options


class Policy(ScorerPolicy):
    """Looks at the page before it is crawled, as ``influence`` does."""

    name = "length"
    partitioned = EACH

    @classmethod
    def scorers(cls, options: Options) -> list[str]:
        return ["length"]
