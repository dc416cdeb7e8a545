"""A table of the latest entries, bounded by their number or by the memory that they take."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

V = TypeVar("V")


class Recent(OrderedDict[str, V]):
    """Entries in the order in which they were noted; only :meth:`note` and :meth:`forget` change which there are."""

    def __init__(self, most: int, size_of: Callable[[str, V], int] = lambda _key, _value: 1) -> None:
        """``most`` limits the sum of ``size_of`` over the entries. One entry stays, whatever its size."""
        super().__init__()
        self._most, self._size_of = most, size_of
        self.size = 0

    def note(self, key: str, value: V) -> None:
        """Put an entry last, in the place of the one with its key. If there is too much, forget the first ones."""
        self.forget(key)
        self[key] = value
        self.size += self._size_of(key, value)
        while self.size > self._most and len(self) > 1:
            self.size -= self._size_of(*self.popitem(last=False))

    def forget(self, key: str) -> None:
        """Remove the entry with a key, if there is one."""
        if key in self:
            self.size -= self._size_of(key, self.pop(key))

    def recalled(self, key: str) -> V | None:
        """Return the entry with a key, and put it last; None if the table lacks it."""
        if key in self:
            self.move_to_end(key)
        return self.get(key)
