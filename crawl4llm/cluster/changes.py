"""Changes of a store as bytes: each with its table, key and value, or with the changed part of the value.

Keys ascend within a table, so that of each one only what the one before does not begin with is told. Of a document,
what changes is mostly its score, in the middle; of all else, which is JSON, a few numbers here and there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from crawl4llm.frontier import CURRENT, TABLES, is_document

_IN_PART: Final = ("state", CURRENT)
"""Tables for whose values only the changed part is written."""
_HEAD: Final = struct.Struct("<BHHI")
"""Kind; bytes of the key that are as before, and others; bytes of the value."""
_ENDS: Final = struct.Struct("<HH")
_IS_DELTA: Final = 0x80
_IS_EDIT: Final = 0x40
_LONGEST: Final = 0xFFFF
_GONE: Final = 0xFFFFFFFF
"""Stands for the size of a value that was deleted."""
_LOOK: Final = 64
"""Parts of the value before among which is looked for one that was moved."""


class Delta(NamedTuple):
    """A value that has changed in the middle alone, as that of a document does with a new score."""

    start: int
    """Bytes at the beginning that are as before."""
    end: int
    """Bytes at the end that are."""
    middle: bytes

    def applied_to(self, before: bytes) -> bytes:
        """Return the new value."""
        return before[: self.start] + self.middle + before[len(before) - self.end :]


class Edit(NamedTuple):
    """A value of which some parts between commas have changed."""

    steps: bytes
    """Between commas: ``=3`` for three parts as before, ``-2`` for two that are there no more, ``+`` and a new part."""

    def applied_to(self, before: bytes) -> bytes:
        """Return the new value. Raises ValueError if the steps are invalid, or exceed the old value."""
        old, new, place = before.split(b","), list[bytes](), 0
        for step in self.steps.split(b","):
            if step.startswith(b"+"):
                new.append(step[1:])
                continue
            kind, count = step[:1], int(step[1:])
            if kind not in (b"=", b"-") or not 0 < count <= len(old) - place:
                raise ValueError("it changes what is not there")
            if kind == b"=":
                new += old[place : place + count]
            place += count
        return b",".join(new)


Change = tuple[str, bytes, bytes | Delta | Edit | None]
"""Table, key and new value; None for a deleted entry."""


Values = tuple[str, bytes, bytes | None, bytes | None]
"""Table, key, new value, and the one before, if whoever reads the changes has it."""


def encoded(changes: Iterable[Values]) -> bytes:
    """Return changes as bytes."""
    parts: list[bytes] = []
    last = b""
    for table, key, value, before in changes:
        kind, told = TABLES.index(table), value
        if value is None or before is None or table not in _IN_PART:
            pass
        elif not (is_document(value) or is_document(before)):
            kind, told = kind | _IS_EDIT, _edit(before, value)
        elif max((delta := _delta(before, value))[:2]) <= _LONGEST:
            kind, told = kind | _IS_DELTA, _ENDS.pack(delta.start, delta.end) + delta.middle
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
        number = kind & ~(_IS_DELTA | _IS_EDIT)
        if place > len(data) or number >= len(TABLES) or same > len(key):
            raise ValueError("it is cut short")
        key = key[:same] + data[start:middle]
        value: bytes | Delta | Edit | None = None if size == _GONE else data[middle:place]
        if kind & _IS_DELTA and isinstance(value, bytes):
            at_start, at_end = _ENDS.unpack_from(value)
            value = Delta(at_start, at_end, value[_ENDS.size :])
        elif kind & _IS_EDIT and isinstance(value, bytes):
            value = Edit(value)
        yield TABLES[number], key, value


def _delta(before: bytes, value: bytes) -> Delta:
    """Return how a document differs from the one before."""
    start = _same(before, value)
    end = _same(before[start:][::-1], value[start:][::-1])
    return Delta(start, end, value[start : len(value) - end])


def _edit(before: bytes, value: bytes) -> bytes:
    """Return the steps from one value to another."""
    old, steps, place, same = before.split(b","), list[bytes](), 0, 0
    for part in value.split(b","):
        if place < len(old) and old[place] == part:
            same += 1
        else:
            if same:
                steps.append(b"=%d" % same)
            try:
                found = old.index(part, place, place + _LOOK)
            except ValueError:
                steps.append(b"+" + part)
                same = 0
                continue
            steps.append(b"-%d" % (found - place))
            place, same = found, 1
        place += 1
    if same:
        steps.append(b"=%d" % same)
    return b",".join(steps)


def _same(one: bytes, other: bytes) -> int:
    """Return with how many equal bytes two values begin."""
    size = min(len(one), len(other))
    differing = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return size - (differing.bit_length() + 7) // 8
