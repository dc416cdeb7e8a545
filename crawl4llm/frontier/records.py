"""Entries as bytes whose order is the frontier's: a record is a sort key and the rest of the entry."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from crawl4llm.frontier import Entry

_DOUBLE, _WORD = struct.Struct(">d"), struct.Struct(">Q")
_HEAD = struct.Struct("<IIBI")
_SIGN, _POSITIVE = 1 << 63, (1 << 63) - 1
_IS_NEGATIVE_ZERO, _HAS_PARENT, _URL_IS_KEY = 1, 2, 4
SCORE_BYTES = 8


class Record(NamedTuple):
    """An entry as it is stored; records sort as their entries do."""

    sort_key: bytes
    """Eight bytes for the score, best first; then the document key in UTF-8, whose order is that of code points."""
    rest: bytes


def encode(entry: Entry) -> Record:
    """The record of an entry."""
    key = entry.key.encode("utf-8", "surrogatepass")
    flags = 0
    url = parent = b""
    if entry.url == entry.key:
        flags |= _URL_IS_KEY
    else:
        url = entry.url.encode("utf-8", "surrogatepass")
    if entry.parent is not None:
        flags |= _HAS_PARENT
        parent = entry.parent.encode("utf-8", "surrogatepass")
    score = _order(entry.score)
    if not entry.score and str(entry.score)[0] == "-":
        flags |= _IS_NEGATIVE_ZERO
    return Record(score + key, _HEAD.pack(entry.depth, entry.attempts, flags, len(url)) + url + parent)


def decode(record: tuple[bytes, bytes]) -> Entry:
    """The entry of a record."""
    sort_key, rest = record
    depth, attempts, flags, url_bytes = _HEAD.unpack_from(rest)
    key = str(sort_key[SCORE_BYTES:], "utf-8", "surrogatepass")
    middle = _HEAD.size + url_bytes
    url = key if flags & _URL_IS_KEY else str(rest[_HEAD.size : middle], "utf-8", "surrogatepass")
    parent = str(rest[middle:], "utf-8", "surrogatepass") if flags & _HAS_PARENT else None
    score = -0.0 if flags & _IS_NEGATIVE_ZERO else score_of(sort_key)
    return Entry(key, url, score, depth, parent, attempts)


def score_of(sort_key: bytes) -> float:
    """The score in a sort key."""
    (word,) = _WORD.unpack_from(sort_key)
    bits = _POSITIVE - word if word < _SIGN else word
    score: float = _DOUBLE.unpack(_WORD.pack(bits))[0]
    return score


def _order(score: float) -> bytes:
    """Eight bytes that ascend as scores descend.

    The bits of a double, taken as an integer, ascend with positive numbers and with the size of negative ones
    (IEEE 754-2008, 3.4); the two zeros are made one.
    """
    (bits,) = _WORD.unpack(_DOUBLE.pack(score + 0.0))
    return _WORD.pack(_POSITIVE - bits if bits < _SIGN else bits)


def pack(records: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Records as one block."""
    parts = [part for record in records for part in record]
    return struct.pack(f"<I{len(parts)}I", len(records), *map(len, parts)) + b"".join(parts)


def unpack(block: bytes) -> list[tuple[bytes, bytes]]:
    """The records of a block, in order. Raises ValueError where it is none."""
    try:
        (count,) = struct.unpack_from("<I", block)
        lengths = struct.unpack_from(f"<{2 * count}I", block, 4)
    except struct.error as error:
        raise ValueError("a block cut short") from error
    place = 4 + 8 * count
    if place + sum(lengths) != len(block):
        raise ValueError("a block of the wrong length")
    parts = []
    for length in lengths:
        parts.append(block[place : place + length])
        place += length
    return list(zip(parts[::2], parts[1::2], strict=True))
