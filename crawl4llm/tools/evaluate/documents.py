"""The numbered documents of an evaluation: 64-bit fingerprints stand for their keys.

A corpus of a hundred million documents then takes 1.6 GB, where its keys would take ten times as much. Two of them have
one fingerprint with a probability of 3 in 10,000.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Fingerprints: TypeAlias = NDArray[np.uint64]
"""What document keys are told apart by, see crawl4llm.tools.evaluate.documents."""


ABSENT = -1
"""The number of a key that is none of the documents'."""

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
        given = as_array(fingerprints(keys))
        self._places: Integers = np.argsort(given, kind="stable").astype(np.int64)
        self._sorted: Fingerprints = given[self._places]

    def __len__(self) -> int:
        return len(self._sorted)

    def numbers(self, wanted: Fingerprints) -> Integers:
        """Return the number of each document wanted, ABSENT where it is not among these."""
        if not len(self):
            return np.full(len(wanted), ABSENT, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self) - 1)
        return np.where(self._sorted[at] == wanted, self._places[at], ABSENT)

    def numbers_of(self, keys: Iterable[str]) -> Integers:
        """Return the number of each key."""
        return self.numbers(as_array(fingerprints(keys)))
