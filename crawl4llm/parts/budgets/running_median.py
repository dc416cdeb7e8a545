"""The running median of numbers, in a few kilobytes."""

from __future__ import annotations

import struct
from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Final

_WORD, _DOUBLE = struct.Struct(">Q"), struct.Struct(">d")
_SIGN: Final = 1 << 63
_SHIFT: Final = 44
"""Low bits of a number that are ignored: numbers that differ by less than 1 in 256 count as equal."""


class RunningMedian:
    """The median of all numbers so far, by a histogram whose bins are proportional to the numbers."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._bins: list[int] = []
        self._place = self._below = self._total = 0
        """The index of the median's bin, the count of numbers in earlier bins, and the total."""

    def add(self, number: float) -> None:
        """Add a number."""
        bin_ = _bin_of(number)
        if bin_ not in self._counts:
            if self._bins and bin_ < self._bins[self._place]:
                self._place += 1
            insort(self._bins, bin_)
        self._count(bin_, 1)

    def is_below(self, number: float) -> bool:
        """Return whether a number is above the median; False before the first number."""
        return bool(self._bins) and _bin_of(number) > self._bins[self._place]

    def save(self) -> list[list[int]]:
        """Return it in JSON values."""
        return [[bin_, self._counts[bin_]] for bin_ in self._bins]

    def load(self, state: Sequence[Sequence[int]]) -> None:
        """Restore in a new object the state that :meth:`save` returned."""
        self._bins = [bin_ for bin_, _ in state]
        self._counts = dict.fromkeys(self._bins, 0)
        for bin_, count in state:
            self._count(bin_, count)

    def _count(self, bin_: int, count: int) -> None:
        self._counts[bin_] = self._counts.get(bin_, 0) + count
        self._total += count
        if bisect_left(self._bins, bin_) < self._place:
            self._below += count
        while 2 * self._below >= self._total and self._place:
            self._place -= 1
            self._below -= self._counts[self._bins[self._place]]
        while 2 * (self._below + self._counts[self._bins[self._place]]) < self._total:
            self._below += self._counts[self._bins[self._place]]
            self._place += 1


def _bin_of(number: float) -> int:
    """Return an integer that is ordered like the numbers, without their ignored bits."""
    (bits,) = _WORD.unpack(_DOUBLE.pack(number + 0.0))
    return int((bits ^ _SIGN if bits < _SIGN else ~bits & (2 * _SIGN - 1)) >> _SHIFT)
