"""The documents to which two pages link; endless mazes have few of them, because their addresses are always new."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, MutableMapping
from typing import Any, Final
from zlib import crc32

from crawl4llm.policies import Pieces

_BITS: Final = 1 << 23
_PIECE_BYTES: Final = 1 << 10
_PIECE_SHIFT: Final = 13
"""Bits of a bit's number that give its place in the piece."""
_MOST: Final = 400_000
"""Most documents in a filter: with two bits each, its rate of false positives is then 1 in 100."""
_MOST_RECENT: Final = 100_000
"""Most recently added keys that are remembered, so that links on every page of a site cost little."""


class LinkedTwice:
    """The last 400,000 to 800,000 added documents, in two filters of 1 MB: when the younger is full the older is
    forgotten. There are false positives, but no false negatives. Its answers depend only on the added documents and
    their order."""

    def __init__(self) -> None:
        self._young, self._old = bytearray(_BITS // 8), bytearray(_BITS // 8)
        self._count = self._generation = 0
        """Documents in the younger filter, and the number of filters before it."""
        self._recent: set[str] = set()
        self._stored: MutableMapping[str, Any] = {}
        self._changed: set[int] = set()
        """Pieces of the younger filter that have unsaved changes."""

    def keep_in(self, pieces: Pieces) -> None:
        """Restore it from ``pieces``, and keep it there. Raises StoreError."""
        self._stored = stored = pieces.mapping("budgets/linked_twice", _is_piece, seldom_read=True)
        self._generation, self._count = stored.get("filters", [0, 0])
        for filled, generation in ((self._young, self._generation), (self._old, self._generation - 1)):
            for number in range(_BITS // 8 // _PIECE_BYTES):
                if piece := stored.get(f"{generation % 2}/{number}"):
                    filled[number * _PIECE_BYTES : (number + 1) * _PIECE_BYTES] = b64decode(piece)

    def save(self) -> None:
        """Write changes, which become durable with the next commit."""
        for number in sorted(self._changed):
            piece = self._young[number * _PIECE_BYTES : (number + 1) * _PIECE_BYTES]
            self._stored[f"{self._generation % 2}/{number}"] = b64encode(piece).decode()
        self._stored["filters"] = [self._generation, self._count]
        self._changed.clear()

    def add(self, keys: Iterable[str]) -> None:
        """Add documents."""
        recent, young = self._recent, self._young
        for key in keys:
            if key in recent:
                continue
            recent.add(key)
            first, second = _places(key)
            if young[first >> 3] >> (first & 7) & 1 and young[second >> 3] >> (second & 7) & 1:
                continue
            young[first >> 3] |= 1 << (first & 7)
            young[second >> 3] |= 1 << (second & 7)
            self._changed.update((first >> _PIECE_SHIFT, second >> _PIECE_SHIFT))
            self._count += 1
            if self._count >= _MOST:
                self._turn()
                young = self._young
        if len(recent) > _MOST_RECENT:
            recent.clear()

    def __contains__(self, key: str) -> bool:
        first, second = _places(key)
        return any(
            bits[first >> 3] >> (first & 7) & 1 and bits[second >> 3] >> (second & 7) & 1
            for bits in (self._young, self._old)
        )

    def _turn(self) -> None:
        """Begin another filter."""
        self.save()
        self._old, self._young = self._young, bytearray(_BITS // 8)
        self._generation, self._count = self._generation + 1, 0
        self._changed.update(range(_BITS // 8 // _PIECE_BYTES))
        self._recent.clear()


def _places(key: str) -> tuple[int, int]:
    """Return the numbers of a key's two bits."""
    hashed = crc32(key.encode("utf-8", "surrogatepass"))
    return hashed & (_BITS - 1), hashed * 0x9E3779B1 >> 20 & (_BITS - 1)


def _is_piece(value: Any) -> bool:
    """Return whether a value of the store is a piece of a filter, or the number of filters with that of documents."""
    if isinstance(value, str):
        try:
            return len(b64decode(value, validate=True)) == _PIECE_BYTES
        except ValueError:
            return False
    return isinstance(value, list) and len(value) == 2 and all(type(number) is int for number in value)
