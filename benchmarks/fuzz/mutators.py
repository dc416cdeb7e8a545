"""Changes to inputs: of bytes, for an engine without any of its own; and of JSON by value, packed or in lines."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from benchmarks.fuzz.target import Mutate

_ODD: Final = (
    b"\0",
    b"\xff",
    b"\n",
    b"\r\n",
    b" ",
    b"\t",
    b"%",
    b"%00",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"-1",
    b"9" * 20,
)
_REPEATED: Final = (2, 10, 1000)
_LONGEST_VALUE: Final = 1 << 13


def of_bytes(data: bytes, draw: random.Random, tokens: Sequence[bytes], others: Sequence[bytes], longest: int) -> bytes:
    """Return data with one to four changes, cut at ``longest`` bytes. ``others``: inputs of which parts are taken."""
    changed = bytearray(data)
    for _ in range(draw.randrange(1, 5)):
        at = draw.randrange(len(changed) + 1)
        end = min(len(changed), at + draw.choice((1, 2, 4, 16, 256)))
        way = draw.randrange(7)
        if way == 0 and at < len(changed):
            changed[at] ^= 1 << draw.randrange(8)
        elif way == 1:
            del changed[at:end]
        elif way == 2:
            changed[at:at] = draw.choice((*tokens, *_ODD))
        elif way == 3:
            changed[at:end] = draw.choice((*tokens, *_ODD))
        elif way == 4:
            changed[at:at] = changed[at:end] * draw.choice(_REPEATED)
        elif way == 5:
            changed[at:at] = draw.randbytes(draw.choice((1, 3, 40)))
        else:
            other = draw.choice(others)
            start = draw.randrange(len(other) + 1)
            changed[at:end] = other[start : start + draw.choice((8, 64, 512))]
        del changed[longest:]
    return bytes(changed)


@cache
def _values() -> list[Any]:
    """Return hostile values that are not too long for an input."""
    from benchmarks.mutating import Outside, dumped

    return [value for value in Outside(Path("/outside")).values() if len(dumped(value)) < _LONGEST_VALUE]


def of_json(data: bytes, draw: random.Random) -> bytes | None:
    """Return JSON with another value; None for what is no JSON."""
    from benchmarks.mutating import changed, dumped

    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return dumped(changed(content, draw, _values())[0]).encode()


def of_json_lines(data: bytes, draw: random.Random) -> bytes | None:
    """Return lines of JSON, which may have a few words before it, with another value in one line."""
    lines = data.split(b"\n")
    number = draw.randrange(len(lines))
    starts = [at for at in (lines[number].find(mark) for mark in (b"{", b"[")) if at >= 0]
    start = min(starts, default=0)
    content = of_json(lines[number][start:], draw)
    if content is None:
        return None
    lines[number] = lines[number][:start] + content
    if draw.random() < 0.1:
        lines.insert(number, draw.choice(lines))
    return b"\n".join(lines)


def in_members(mark: bytes, unpack: Callable[[bytes], bytes], pack: Callable[[bytes], bytes]) -> Mutate:
    """Return a mutator of compressed members one after the other, each of which begins with a mark: of one of them the
    content is changed."""

    def mutate(data: bytes, draw: random.Random) -> bytes | None:
        members = data.split(mark)[1:]
        if not members:
            return None
        number = draw.randrange(len(members))
        try:
            content = unpack(mark + members[number])
        except Exception:  # noqa: BLE001 - each library has errors of its own
            return None
        content = of_bytes(content, draw, (b"\r\n\r\n", b"WARC/1.1\r\n"), [content], 1 << 16)
        members[number] = pack(content)[len(mark) :]
        if draw.random() < 0.05:  # as files that are compressed as a whole
            members[number] = pack(content + content)[len(mark) :]
        return b"".join(mark + member for member in members)

    return mutate


GZIP: Final = in_members(b"\x1f\x8b\x08", gzip.decompress, gzip.compress)
