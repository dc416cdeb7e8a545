"""The one way to unpack compressed data, up to a bound: gzip, deflate, Zstandard and Brotli.

A caller names the most bytes that it takes. All members or frames together give at most that, or one error. Data read
line by line from a file needs none of this: lines have a bound of their own.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from crawl4llm.base.compression import GZIP_WBITS, isal_or_zlib, zstd

_brotli: Any = None
with suppress(ImportError):  # newer versions of Scrapy bring it
    _brotli = import_module("brotli")
    if not hasattr(_brotli.Decompressor, "can_accept_more_data"):  # before 1.2 nothing bounds what it makes
        _brotli = None

CODINGS: Final = {"gzip": b"\x1f\x8b", "deflate": b"", "br": b"", "zstd": b"\x28\xb5\x2f\xfd"}
"""The content codings of HTTP (RFC 9110, 8.4.1; RFC 9659), with the bytes that begin all data of each, if any do.
``deflate`` is the zlib format, from some servers without its head."""
ZSTD_START: Final = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)
"""The magic number of a frame, or of a skippable one, which pzstd writes first (RFC 8878, 3.1)."""
_MOST_MEMBERS: Final = 1 << 16
"""Members or frames of one piece of data: empty ones take time and give nothing, so that no size bounds them."""
_WINDOW: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: 27}
"""A Zstandard frame may ask for a window of 2 GiB. This is the library's own limit, 128 MiB, of which a frame takes as
much memory as it has content."""
_PIECE: Final = 1 << 20
_FIRST_FED: Final = 1 << 10
"""Bytes with which a second member begins: a member's object copies what follows it, and there can be many."""
_LEAST_ALLOWED, _MOST_RATIO = 1 << 26, 100
_ERRORS: Final = (zlib.error, isal_or_zlib.error, zstd.ZstdError, *([_brotli.error] if _brotli else []))


class InflateError(ValueError):
    """Compressed data that cannot be used."""


class Damaged(InflateError):
    """Data that is not in its coding, or is cut short."""


class TooMuch(InflateError):
    """Data that unpacks to more than its reader takes."""

    def __init__(self, most: int) -> None:
        super().__init__(f"it unpacks to more than {most:,} bytes")


def plausible(stored: int) -> int:
    """Return the most bytes that compressed data of a size may hold, for readers without a limit of their own: a
    hundred times the size, or 64 MiB if that is more."""
    return max(_LEAST_ALLOWED, _MOST_RATIO * stored)


def inflate(data: bytes, coding: str, most: int, dictionary: zstd.ZstdDict | None = None) -> bytes:
    """Return what all members or frames in ``data`` hold, joined; empty data gives empty bytes.

    ``coding``: a name from :data:`CODINGS`. Zero bytes after a gzip member are padding, as for ``gzip``(1). Raises
    TooMuch for more than ``most`` bytes, and Damaged for data that is not whole.
    """
    room = _Room(most + 1, most + 1)
    content = _joined(_pieces(data, coding, room, strict=True, dictionary=dictionary))
    if room.left <= 0:
        del content  # whoever keeps the error would keep it too
        raise TooMuch(most)
    return content


def inflate_start(data: bytes, coding: str, most: int, bound: int | None = None) -> bytes:
    """Return the first bytes that ``data`` holds, ``most`` at most; the data may break off. Junk behind a whole
    member is left out.

    Raises Damaged for data that is not in its coding, and TooMuch if it holds more than ``bound`` bytes.
    """
    if bound is None:
        return _joined(_pieces(data, coding, _Room(most, most), strict=False))[:most]
    room = _Room(bound + 1, min(max(most, 1), _PIECE))
    content = _joined(_first(_pieces(data, coding, room, strict=False), most))
    if room.left <= 0:
        del content  # whoever keeps the error would keep it too
        raise TooMuch(bound)
    return content[:most]


def inflate_pieces(data: bytes, coding: str, most: int, at_once: int) -> Iterator[bytes]:
    """Yield the first ``most`` bytes that ``data`` holds, in pieces of ``at_once`` bytes at most; see
    :func:`inflate_start`. Raises Damaged at the place of the damage."""
    return _pieces(data, coding, _Room(most, at_once), strict=False)


def is_marked(data: bytes, coding: str) -> bool:
    """Return whether data begins as all data of a coding does; True for the codings without a mark."""
    return (ZSTD_START.match(data) is not None) if coding == "zstd" else data.startswith(CODINGS[coding])


def gunzip_pieces(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Yield the contents of the gzip member that ``read`` gives, by a megabyte at most. Raises Damaged."""
    member = isal_or_zlib.decompressobj(GZIP_WBITS)
    while not member.eof:
        data = member.unconsumed_tail or read()
        if not data:
            raise Damaged("the gzip member is cut short")
        try:
            yield member.decompress(data, _PIECE)
        except isal_or_zlib.error as error:
            raise Damaged(str(error)) from error


@dataclass
class _Room:
    """The bytes that are still taken."""

    left: int
    at_once: int


class _BrotliStream:
    """A Brotli stream with the interface of the other libraries' objects."""

    unused_data = b""

    def __init__(self) -> None:
        if _brotli is None:
            raise InflateError("it needs the package brotli, version 1.2 or newer")
        self._stream = _brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._stream.is_finished())

    def decompress(self, data: bytes, most: int) -> bytes:
        content: bytes = self._stream.process(data, output_buffer_limit=most)
        return content


def _pieces(
    data: bytes, coding: str, room: _Room, *, strict: bool, dictionary: zstd.ZstdDict | None = None
) -> Iterator[bytes]:
    """Yield what the members of a coding hold, as far as there is room."""
    if coding == "zstd":
        return _of_members(data, lambda: zstd.ZstdDecompressor(dictionary, _WINDOW), room, strict=strict)
    if coding == "br":
        return _of_one(data, _BrotliStream(), room, strict=strict)
    if coding == "deflate":
        return _of_deflate(data, room, strict=strict)
    library = isal_or_zlib if strict else zlib  # isal inflates 32 KiB at once, however little is asked for
    return _of_members(data, lambda: library.decompressobj(GZIP_WBITS), room, strict=strict)


def _of_deflate(data: bytes, room: _Room, *, strict: bool) -> Iterator[bytes]:
    """Yield what a stream holds in the zlib format or, if it does not begin in that, without its head."""
    pieces = _of_one(data, zlib.decompressobj(), room, strict=strict)
    try:
        yield next(pieces, b"")
    except Damaged:
        pieces = _of_one(data, zlib.decompressobj(-zlib.MAX_WBITS), room, strict=strict)
    yield from pieces


def _of_members(data: bytes, opened: Callable[[], Any], room: _Room, *, strict: bool) -> Iterator[bytes]:
    """Yield what all members hold; ``opened`` makes an object for one of them. Raises Damaged."""
    at = 0
    for number in range(_MOST_MEMBERS):
        if at >= len(data) or room.left <= 0:
            return
        try:
            at = yield from _of_member(data, at, opened(), room, strict=strict)
        except Damaged:
            if number and not strict:
                return
            raise
        at = _behind_zeros(data, at)
    raise Damaged(f"it has more than {_MOST_MEMBERS:,} members")


def _of_one(data: bytes, stream: Any, room: _Room, *, strict: bool) -> Iterator[bytes]:
    """Yield what a stream holds that has no mark: what follows it is no other."""
    if data:
        yield from _of_member(data, 0, stream, room, strict=strict)


def _of_member(data: bytes, at: int, member: Any, room: _Room, *, strict: bool) -> Generator[bytes, None, int]:
    """Yield what the member that begins at a place holds; returns where it ends. Raises Damaged."""
    fed = max(_FIRST_FED, 0 if at else room.at_once)  # what is fed and not yet taken is copied for each piece
    rest = b""
    while not member.eof and room.left > 0:
        piece = rest or data[at : at + fed]
        try:
            content = member.decompress(piece, min(room.left, room.at_once))
        except _ERRORS as error:
            raise Damaged(str(error)) from error
        if not (piece or content or member.eof):
            if strict:
                raise Damaged("it is cut short")
            return len(data)
        room.left -= len(content)
        yield content
        at += 0 if rest else len(piece)
        fed = min(2 * fed, _PIECE)
        rest = getattr(member, "unconsumed_tail", b"")
    return at - len(member.unused_data)


def _behind_zeros(data: bytes, at: int) -> int:
    """Return where zero bytes end that begin at a place; no member of any coding begins with one."""
    while piece := data[at : at + _FIRST_FED]:
        rest = piece.lstrip(b"\0")
        at += len(piece) - len(rest)
        if rest:
            break
    return at


def _first(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    """Yield the pieces that begin within the first ``most`` bytes; the others are made and dropped."""
    size = 0
    for piece in pieces:
        if size < most:
            yield piece
        size += len(piece)


def _joined(pieces: Iterator[bytes]) -> bytes:
    """Return the pieces as one; a single one is not copied."""
    parts = list(pieces)
    return parts[0] if len(parts) == 1 else b"".join(parts)
