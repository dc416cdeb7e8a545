"""Numbers by name from a file that a setting names, such as ranks of hosts: 16 bytes of memory each."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np


def finite(text: str) -> float:
    """Return a number. Raises ValueError, also for NaN and infinity."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not finite")
    return value


class Values:
    """Numbers by name, of which the first counts; 64 bits of a hash stand for the name."""

    def __init__(self, values: Iterable[tuple[str, float]]) -> None:
        names, numbers = bytearray(), array("d")
        for name, value in values:
            names += _hashed(name)
            numbers.append(value)
        hashes = np.frombuffer(bytes(names), dtype="<u8")
        order = np.argsort(hashes, kind="stable")
        self._names, self._values = hashes[order], np.array(numbers)[order]

    def __len__(self) -> int:
        return len(self._names)

    def of(self, name: str) -> float | None:
        """Return the number of a name; None if it is not known."""
        wanted = np.uint64(int.from_bytes(_hashed(name), "little"))
        place = int(np.searchsorted(self._names, wanted))
        if place < len(self._names) and self._names[place] == wanted:
            return float(self._values[place])
        return None

    def digest(self, kind: str) -> str:
        """Return the SHA-256, in hex, of all names and numbers, and of what ``kind`` they are."""
        return hashlib.sha256(kind.encode() + self._names.tobytes() + self._values.tobytes()).hexdigest()


def _hashed(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
