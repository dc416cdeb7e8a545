"""Changes of a store as bytes: each with its table, key and value, or with the changed parts of the value.

Keys ascend within a table, so that of each one only what the one before does not begin with is told. Of a document,
what changes is mostly its score, in the middle; of all else, which is JSON, a few numbers here and there.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from crawl4llm.frontier import CURRENT, TABLES, Store, is_document

_IN_PART: Final = ("state", CURRENT)
"""Tables for whose values only the changed parts are written."""
_HEAD: Final = struct.Struct("<BHHI")
"""Kind; bytes of the key that are as before, and others; bytes of the value."""
_HUNK: Final = struct.Struct("<IHH")
"""Bytes that are as before, bytes that are there no more, and new bytes, which follow."""
_IS_PATCH: Final = 0x80
_GONE: Final = 0xFFFFFFFF
"""Stands for the size of a value that was deleted."""
_PARTS: Final = re.compile(rb"[^,]*,|[^,]+")
_LOOK: Final = 64
"""Parts of the value before among which is looked for one that was moved."""


class Patch(NamedTuple):
    """A value of which some parts have changed."""

    hunks: bytes

    def applied_to(self, before: bytes) -> bytes:
        """Return the new value. Raises ValueError if the hunks are invalid, or exceed the old value."""
        parts, place, at = list[bytes](), 0, 0
        while at < len(self.hunks):
            start = at + _HUNK.size
            kept, gone, size = _HUNK.unpack(self.hunks[at:start].ljust(_HUNK.size, b"\xff"))
            at = start + size
            if at > len(self.hunks) or place + kept + gone > len(before):
                raise ValueError("it changes what is not there")
            parts += [before[place : place + kept], self.hunks[start:at]]
            place += kept + gone
        return b"".join([*parts, before[place:]])


Change = tuple[str, bytes, bytes | Patch | None]
"""Table, key and new value; None for a deleted entry."""


Values = tuple[str, bytes, bytes | None, bytes | None]
"""Table, key, new value, and the one before, if whoever reads the changes has it."""


def encoded(changes: Iterable[Values]) -> bytes:
    """Return changes as bytes."""
    parts: list[bytes] = []
    last = b""
    for table, key, value, before in changes:
        kind, told = TABLES.index(table), value
        if value is not None and before is not None and table in _IN_PART:
            is_whole = is_document(value) or is_document(before)
            hunks = _in_the_middle(before, value) if is_whole else _by_parts(before, value)
            with suppress(struct.error):  # of a hunk that is too long: the value is told whole
                told = b"".join(_HUNK.pack(kept, gone, len(new)) + new for kept, gone, new in hunks)
                kind |= _IS_PATCH
        same, size = _same(last, key), _GONE if told is None else len(told)
        parts += [_HEAD.pack(kind, same, len(key) - same, size), key[same:], told or b""]
        last = key
    return b"".join(parts)


def records(data: bytes) -> Iterator[Change]:
    """Yield the changes. Raises ValueError if the data are no changes."""
    place, key = 0, b""
    while place < len(data):
        if len(data) - place < _HEAD.size:
            raise ValueError("it is cut short")
        kind, same, others, size = _HEAD.unpack_from(data, place)
        start = place + _HEAD.size
        middle = start + others
        place = middle + (0 if size == _GONE else size)
        number = kind & ~_IS_PATCH
        if place > len(data) or number >= len(TABLES) or same > len(key):
            raise ValueError("it is cut short")
        key = key[:same] + data[start:middle]
        value = None if size == _GONE else data[middle:place]
        yield TABLES[number], key, Patch(value) if kind & _IS_PATCH and value is not None else value


def restore(store: Store, data: bytes) -> None:
    """Make changes in a store. Raises ValueError if the data are none, or of another store."""
    for table, key, value in records(data):
        if value is None:
            store.delete(table, key)
        else:
            new = value if isinstance(value, bytes) else value.applied_to(store.get(table, key) or b"")
            store.put(table, key, new)


def _in_the_middle(before: bytes, value: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the hunk by which a document differs from the one before."""
    start = _same(before, value)
    end = _same(before[start:][::-1], value[start:][::-1])
    yield start, len(before) - end - start, value[start : len(value) - end]


def _by_parts(before: bytes, value: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the hunks from one value to another, by parts that end with commas."""
    old, place, kept, new = _PARTS.findall(before), 0, 0, b""
    for part in _PARTS.findall(value):
        try:
            found = old.index(part, place, place + _LOOK)
        except ValueError:
            new += part
            continue
        if new or found > place:
            yield kept, sum(map(len, old[place:found])), new
            kept, new = 0, b""
        place = found + 1
        kept += len(part)
    if new or place < len(old):
        yield kept, sum(map(len, old[place:])), new


def _same(one: bytes, other: bytes) -> int:
    """Return with how many equal bytes two values begin."""
    size = min(len(one), len(other))
    differing = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return size - (differing.bit_length() + 7) // 8
