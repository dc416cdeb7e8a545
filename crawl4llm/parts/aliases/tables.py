"""Tables with a bounded number of rows, and a bounded number of places for each owner."""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

Row = list[Any]
"""Its number, then its content, in JSON values."""
_MASK: Final = (1 << 63) - 1


def hashed(*texts: str) -> int:
    """Return a number from 0 to 2^63 - 1 for some texts, the same on any machine."""
    data = "\0".join((*texts, "")).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") & _MASK


_start_of = lru_cache(maxsize=4096)(hashed)
"""Start of the places of an owner."""


class Table:
    """Rows of owners, by numbers (:func:`hashed`). A row replaces another one at its place.

    An owner's places lie side by side, ``window`` of the ``most`` in all. Other owners may share them. The content of a
    table depends only on the rows that were added, and on their order.
    """

    def __init__(self, rows: MutableMapping[str, Any], most: int, window: int) -> None:
        """``rows``: the stored rows, by the numbers of their places."""
        self._rows = rows
        self._most, self._window = most, window

    def place(self, owner: str, number: int) -> str:
        """Return the name of the place of a row."""
        return str((_start_of(owner) + number % self._window) % self._most)

    def at(self, place: str) -> Row | None:
        """Return the row at a place, of any owner."""
        row: Row | None = self._rows.get(place)
        return row

    def get(self, owner: str, number: int) -> Row | None:
        """Return a row of an owner; None if it is not there, or another row has taken its place."""
        row = self.at(self.place(owner, number))
        return row if row is not None and row[0] == number else None

    def put(self, owner: str, row: Row) -> None:
        """Put a row in its place."""
        self._rows[self.place(owner, row[0])] = row

    def drop(self, owner: str, number: int) -> None:
        """Remove a row, if it is there."""
        if self.get(owner, number) is not None:
            del self._rows[self.place(owner, number)]
