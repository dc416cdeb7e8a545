"""The visited set: every document ever discovered (V of Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from crawl4llm.frontier.visited.memory import MemoryVisited

__all__ = ["MemoryVisited", "VisitedSet"]


class VisitedSet(Protocol):
    """Remembers keys. Exact: a key that was never added is always new. One contract test suite for all."""

    def add(self, keys: Iterable[str]) -> list[str]:
        """Add keys; returns those that were new, each once, in the order given."""
        ...

    def __contains__(self, key: object) -> bool: ...

    def __len__(self) -> int: ...
