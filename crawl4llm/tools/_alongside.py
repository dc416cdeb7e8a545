"""Files in which the same documents stand in nearly the same order, read side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, TypeVar

_AHEAD: Final = 10_000
"""Entries that a file may be ahead of the other one."""

V = TypeVar("V")


class Alongside(Generic[V]):
    """Values by document from a file in which documents stand in nearly the same order as they are asked for."""

    def __init__(self, items: Iterable[tuple[str, V]]) -> None:
        self._items = iter(items)
        self._following = next(self._items, None)
        self._passed: dict[str, V] = {}

    def take(self, key: str) -> V | None:
        """Return the value of a document, None if it has none near; each can be taken once."""
        following = self._following
        if following is None or following[0] != key:
            return self._search(key)
        self._following = next(self._items, None)
        return following[1]

    def _search(self, key: str) -> V | None:
        while key not in self._passed and self._following is not None and len(self._passed) < _AHEAD:
            self._passed.setdefault(*self._following)
            self._following = next(self._items, None)
        return self._passed.pop(key, None)
