"""Writes tables from hashes to numbers: two columns, sorted by hash and then by number, of any length.

Entries are spread by the first bits of their hashes over buckets small enough to be sorted in memory, which are then
written one after the other.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice
from operator import eq, itemgetter
from pathlib import Path
from typing import BinaryIO, Final

SORTED_AT_ONCE: Final = 1 << 19
"""Entries, about, that are sorted in memory, where they take some 150 bytes each."""
_HASH_BITS: Final = 64

Choose = Callable[[Sequence[int]], Iterable[int]]
"""Of several numbers under one hash, given in ascending order: those that stay, in that order."""


class TableWriter:
    """Writes one table of ``expected`` entries. Files whose names begin with ``scratch`` take what is not in memory."""

    def __init__(self, scratch: Path, expected: int, sorted_at_once: int = SORTED_AT_ONCE) -> None:
        bits = (expected // sorted_at_once).bit_length()
        self._shift = _HASH_BITS - bits
        self._buckets = [_Bucket(scratch.with_name(f"{scratch.name}-{number}")) for number in range(1 << bits)]
        self._buffered_at_once = sorted_at_once
        self._buffered = 0

    def add(self, hashes: array[int], numbers: Sequence[int]) -> None:
        """Add entries; over all calls, numbers must ascend."""
        if len(self._buckets) == 1:
            self._buckets[0].hashes.extend(hashes)
            self._buckets[0].numbers.extend(numbers)
            return
        for hashed, number in zip(hashes, numbers, strict=True):
            bucket = self._buckets[hashed >> self._shift]
            bucket.hashes.append(hashed)
            bucket.numbers.append(number)
        self._buffered += len(hashes)
        if self._buffered >= self._buffered_at_once:
            for bucket in self._buckets:
                bucket.spill()
            self._buffered = 0

    def write(self, hashes: BinaryIO, numbers: BinaryIO, choose: Choose | None = None) -> None:
        """Write the columns; ``choose`` is asked wherever numbers share a hash."""
        for bucket in self._buckets:
            for column, file in zip(bucket.take(choose), (hashes, numbers), strict=True):
                column.tofile(file)


class _Bucket:
    """Entries, in memory and in files."""

    def __init__(self, path: Path) -> None:
        self._spilt = 0
        self._hash_file, self._number_file = (path.with_suffix(suffix) for suffix in (".hashes.tmp", ".numbers.tmp"))
        self.hashes, self.numbers = array("Q"), array("I")

    def spill(self) -> None:
        """Move the entries from memory to the files."""
        self._spilt += len(self.hashes)
        for column, path in ((self.hashes, self._hash_file), (self.numbers, self._number_file)):
            with path.open("ab") as file:
                column.tofile(file)
            del column[:]

    def take(self, choose: Choose | None) -> tuple[array[int], array[int]]:
        """All entries, sorted; they leave the bucket."""
        if self._spilt:
            self.spill()
            for column, path in ((self.hashes, self._hash_file), (self.numbers, self._number_file)):
                with path.open("rb") as file:
                    column.fromfile(file, self._spilt)
                path.unlink()
        order = sorted(range(len(self.hashes)), key=self.hashes.__getitem__)
        hashes = array("Q", map(self.hashes.__getitem__, order))
        numbers = array("I", map(self.numbers.__getitem__, order))
        self.hashes, self.numbers = array("Q"), array("I")
        if choose is None or not any(map(eq, hashes, islice(hashes, 1, None))):
            return hashes, numbers
        return _chosen(hashes, numbers, choose)


def _chosen(hashes: array[int], numbers: array[int], choose: Choose) -> tuple[array[int], array[int]]:
    chosen = array("Q"), array("I")
    for hashed, entries in groupby(zip(hashes, numbers, strict=True), key=itemgetter(0)):
        group = [number for _, number in entries]
        staying = list(choose(group)) if len(group) > 1 else group
        chosen[0].extend([hashed] * len(staying))
        chosen[1].extend(staying)
    return chosen
