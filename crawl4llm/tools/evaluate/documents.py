"""The numbered documents of an evaluation: 64-bit fingerprints stand for their keys.

Two of a hundred million documents have one fingerprint with a probability of 3 in 10,000.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import count, islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl4llm.tools.evaluate.columns import AT_ONCE, stored, stored_rows

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Fingerprints: TypeAlias = NDArray[np.uint64]
"""Fingerprints of document keys, see crawl4llm.tools.evaluate.documents."""


ABSENT = -1
"""The number of a key without a document."""

_SIZE = 8


def fingerprints(keys: Iterable[str]) -> bytes:
    """Return the fingerprints of keys, one after the other, little-endian."""
    data = bytearray()
    for key in keys:
        data += blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()
    return bytes(data)


def as_array(data: bytes) -> Fingerprints:
    """Return the result of :func:`fingerprints` as numbers."""
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)


class Documents:
    """Documents in a fixed order; a key that comes twice has the number of its first place."""

    def __init__(self, keys: Iterable[str]) -> None:
        from crawl4llm.base.reductions import reduced  # an extra

        given, places = stored(_numbered(iter(keys)), np.uint64, np.int64)
        columns = {"fingerprint": given, "place": places}
        ordered = reduced("SELECT fingerprint, place FROM given ORDER BY fingerprint, place", columns)
        self._sorted: Fingerprints
        self._places: Integers
        self._sorted, self._places = stored_rows(ordered, "u8", "i8")

    def __len__(self) -> int:
        return len(self._sorted)

    def numbers(self, wanted: Fingerprints) -> Integers:
        """Return the number of each document wanted, ABSENT if it is not among these."""
        if not len(self):
            return np.full(len(wanted), ABSENT, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self) - 1)
        return np.where(self._sorted[at] == wanted, self._places[at], ABSENT)

    def numbers_of(self, keys: Iterable[str]) -> Integers:
        """Return the number of each key."""
        return self.numbers(as_array(fingerprints(keys)))


def _numbered(keys: Iterator[str]) -> Iterator[tuple[Fingerprints, Integers]]:
    for start in count(0, AT_ONCE):
        some = as_array(fingerprints(islice(keys, AT_ONCE)))
        if not len(some):
            return
        yield some, np.arange(start, start + len(some))
