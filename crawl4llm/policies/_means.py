"""Running means of many populations, the smaller of which lean on larger ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")


class RunningMeans(Generic[K]):
    """Means by key, of the ``most`` keys that were last added to: memory stays bounded in a crawl of any length."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sums: OrderedDict[K, tuple[float, int]] = OrderedDict()

    def add(self, key: K, value: float) -> None:
        """Count a value."""
        total, count = self._sums.pop(key, (0.0, 0))
        self._sums[key] = total + value, count + 1
        if len(self._sums) > self._most:
            self._sums.popitem(last=False)

    def count(self, key: K) -> int:
        """How many values a key has."""
        return self._sums.get(key, (0.0, 0))[1]

    def shrunken(self, key: K, towards: float, weight: float) -> float:
        """The mean of a key, as if it had ``weight`` values more that are ``towards``: that of a larger population."""
        total, count = self._sums.get(key, (0.0, 0))
        return (total + weight * towards) / (count + weight)

    def save(self) -> Iterator[tuple[K, float, int]]:
        """What :meth:`load` takes, in an order that matters."""
        return ((key, total, count) for key, (total, count) in self._sums.items())

    def load(self, sums: Iterable[tuple[K, float, int]]) -> None:
        """Go on from what :meth:`save` gave."""
        self._sums = OrderedDict((key, (total, count)) for key, total, count in sums)
