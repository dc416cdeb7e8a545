"""The one way to unpack what is compressed: gzip, deflate, Zstandard and Brotli, to so many bytes and no more.

A caller names the most that it takes. All members or frames together give at most that, or one error. Data that is read
line by line from a file needs none of this: its lines have a longest.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
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
_RAW_WINDOW: Final = -zlib.MAX_WBITS
_PIECE: Final = 1 << 20
_FIRST_FED: Final = 1 << 10
"""Bytes with which a second member begins: a member's object copies what follows it, and there can be many."""
_LEAST_ALLOWED, _MOST_RATIO = 1 << 26, 100
_ERRORS: Final = (zlib.error, isal_or_zlib.error, zstd.ZstdError)


class InflateError(ValueError):
    """Compressed data that cannot be used."""


class Damaged(InflateError):
    """Data that is not in its coding, or is cut short."""


class TooMuch(InflateError):
    """Data that unpacks to more than its reader takes."""

    def __init__(self, most: int) -> None:
        super().__init__(f"it unpacks to more than {most:,} bytes")


def plausible(stored: int) -> int:
    """Return the most bytes that so many compressed ones are taken to hold where the reader has no limit of its own: a
    hundred times as many, and 64 MiB in any case."""
    return max(_LEAST_ALLOWED, _MOST_RATIO * stored)


def inflate(data: bytes, coding: str, most: int, dictionary: zstd.ZstdDict | None = None) -> bytes:
    """Return what all members or frames in ``data`` hold, joined; empty data gives empty bytes.

    ``coding``: a name from :data:`CODINGS`. Zero bytes after a gzip member are padding, as for ``gzip``(1). Raises
    TooMuch for more than ``most`` bytes, and Damaged for data that is not whole.
    """
    if not data:
        return b""
    if coding == "br":
        content, is_whole = _brotli_start(data, most + 1)
    elif coding == "deflate":
        content, is_whole = _deflate_start(data, most + 1)
    else:
        content, is_whole = _members(data, _opener(coding, dictionary), most + 1)
    if len(content) > most:
        raise TooMuch(most)
    if not is_whole:
        raise Damaged(f"the {coding} data is cut short")
    return content


def inflate_start(data: bytes, coding: str, most: int) -> bytes:
    """Return the first bytes, ``most`` at most, of what ``data`` holds, which may break off. What follows a whole
    member and is none is left out. Raises Damaged for data that is not in its coding."""
    if not data:
        return b""
    if coding == "br":
        return _brotli_start(data, most)[0]
    if coding == "deflate":
        return _deflate_start(data, most)[0]
    return _members(data, _opener(coding, by_zlib=True), most, strict=False)[0]


def is_marked(data: bytes, coding: str) -> bool:
    """Return whether data begins as all data of a coding does; True for the codings without a mark."""
    return data.startswith(CODINGS[coding])


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


def _opener(coding: str, dictionary: zstd.ZstdDict | None = None, *, by_zlib: bool = False) -> Callable[[], Any]:
    """Return what makes an object for one member of a coding. isal inflates 32 KiB at once, however little is asked
    for."""
    if coding == "zstd":
        return lambda: zstd.ZstdDecompressor(dictionary, _WINDOW)
    library = zlib if by_zlib else isal_or_zlib
    return lambda: library.decompressobj(GZIP_WBITS)


def _members(data: bytes, opened: Callable[[], Any], most: int, *, strict: bool = True) -> tuple[bytes, bool]:
    """Return up to ``most`` bytes of what the members hold, and whether the last of them is whole."""
    parts: list[bytes] = []
    at = 0
    for _ in range(_MOST_MEMBERS):
        try:
            content, end = _member(data, at, opened(), most)
        except _ERRORS as error:
            if at and not strict:
                return _joined(parts), True
            raise Damaged(str(error)) from error
        parts.append(content)
        most -= len(content)
        if end is None or most <= 0:
            return _joined(parts), end is not None
        at = end
        while data[at : at + 1] == b"\0":  # no member begins so; what is no gzip is damaged all the same
            at = _behind_zeros(data, at)
        if at >= len(data):
            return _joined(parts), True
    raise Damaged(f"it has more than {_MOST_MEMBERS:,} members")


def _member(data: bytes, at: int, member: Any, most: int) -> tuple[bytes, int | None]:
    """Return up to ``most`` bytes of the member that begins at a place, and where it ends; None where it is cut, by
    ``most`` or by the end of the data."""
    parts: list[bytes] = []
    fed = _FIRST_FED if at else len(data)
    while at < len(data) and most > 0:
        piece = data[at : at + fed] if at or fed < len(data) else data
        content = member.decompress(piece, most)
        at += len(piece)
        most -= len(content)
        parts.append(content)
        if member.eof:
            return _joined(parts), at - len(member.unused_data)
        fed = min(2 * fed, _PIECE)
    return _joined(parts), None


def _joined(parts: list[bytes]) -> bytes:
    """Return the parts as one; a single one is not copied."""
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _behind_zeros(data: bytes, at: int) -> int:
    """Return where zero bytes end that begin at a place."""
    piece = data[at : at + _FIRST_FED]
    return at + len(piece) - len(piece.lstrip(b"\0"))


def _deflate_start(data: bytes, most: int) -> tuple[bytes, bool]:
    """Return up to ``most`` bytes of what a stream holds, and whether that is all."""
    for window in (zlib.MAX_WBITS, _RAW_WINDOW):
        stream = zlib.decompressobj(window)
        with suppress(zlib.error):
            return stream.decompress(data, most), stream.eof
    raise Damaged("it is no deflate data")


def _brotli_start(data: bytes, most: int) -> tuple[bytes, bool]:
    if _brotli is None:
        raise InflateError("it needs the package brotli, version 1.2 or newer")
    stream = _brotli.Decompressor()
    try:
        content: bytes = stream.process(data, output_buffer_limit=most)
    except _brotli.error as error:
        raise Damaged(str(error)) from error
    return content[:most], stream.is_finished()
