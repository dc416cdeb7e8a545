"""Tables of hashes and numbers, sorted on disk."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from simulate.indexes import Code

SORTED_AT_ONCE: Final = 1 << 21
"""Approximate number of entries that are sorted in memory, at about 50 bytes each."""

Choose = Callable[[Sequence[int]], Iterable[int]]
"""Returns which of several numbers under one hash stay; both are in ascending order."""


class TableWriter:
    """A writer of one table of ``expected`` entries: two columns, sorted by hash and then by number, of any length.

    The first bits of their hashes spread entries over unnamed files in ``folder``. Each file is small enough to be
    sorted in memory; the files are written in turn.
    """

    def __init__(self, folder: Path, expected: int, number: Code = "I") -> None:
        """``number``: the type of the numbers."""
        self._entry = np.dtype([("hash", np.uint64), ("number", number)])
        bits = (expected // SORTED_AT_ONCE).bit_length()
        self._last_of_bucket = (np.arange(1, 1 << bits, dtype=np.uint64) << np.uint64(64 - bits)) - np.uint64(1)
        self._buckets = [TemporaryFile(dir=folder) for _ in range(1 << bits)]  # noqa: SIM115 - until written

    def add(self, hashes: array[int], numbers: Sequence[int]) -> None:
        """Add entries; over all calls, numbers must ascend."""
        entries = np.empty(len(hashes), self._entry)
        entries["hash"], entries["number"] = hashes, numbers
        buckets = np.searchsorted(self._last_of_bucket, entries["hash"])
        for bucket in np.unique(buckets):
            entries[buckets == bucket].tofile(self._buckets[bucket])

    def write(self, hashes: BinaryIO, numbers: BinaryIO, choose: Choose | None = None) -> None:
        """Write the columns; ``choose`` is asked wherever numbers share a hash."""
        for bucket in self._buckets:
            with bucket:
                bucket.seek(0)
                entries = np.fromfile(bucket, self._entry)
            entries = entries[np.argsort(entries["hash"], kind="stable")]
            if choose is not None:
                entries = _chosen(entries, choose)
            for name, file in (("hash", hashes), ("number", numbers)):
                entries[name].tofile(file)


def _chosen(entries: NDArray[np.void], choose: Choose) -> NDArray[np.void]:
    hashes, stays = entries["hash"], np.ones(len(entries), bool)
    starts = np.concatenate(([0], np.flatnonzero(hashes[1:] != hashes[:-1]) + 1, [len(entries)]))
    for run in np.flatnonzero(np.diff(starts) > 1):
        place = slice(starts[run], starts[run + 1])
        group = entries["number"][place].tolist()
        stays[place] = np.isin(group, list(choose(group)))
    return entries[stays]
