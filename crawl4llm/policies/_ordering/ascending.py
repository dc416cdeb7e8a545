"""ORDER = asc: the lowest scores first, as the published implementation's ``order`` has it."""

from __future__ import annotations

from crawl4llm.policies import Policy
from crawl4llm.policies._ordering.wrapper import Wrapper


class Ascending(Wrapper):
    """Negative scores. Ties break by key, ascending, in either order."""

    def __init__(self, inner: Policy) -> None:
        super().__init__(inner, "asc")

    def _outer_score(self, key: str, score: float) -> float:
        return -score

    def _inner_score(self, score: float) -> float:
        return -score
