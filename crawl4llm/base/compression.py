"""Compression and bounded decompression: gzip and Zstandard both ways, deflate and Brotli for reading.

Each record is compressed into a gzip member (ISO 28500:2017, annex D.2) or a Zstandard frame, by isal if it is
installed. Frames follow "Zstandard Compression for WARC Files 1.0" (IIPC): one a record, with content size and
checksum, without a dictionary.

Equal input gives equal output, because no head has a time or a file name. An exception is isal: its output can depend
on the address of the process's stack (see _SMALL). The library and this exception change the compressed bytes only,
never their content.

A caller names the most bytes that decompression may give. All members or frames together give at most that, or one
error. Data that is read line by line needs no such bound, because lines have their own.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, NamedTuple

if sys.version_info >= (3, 14):
    from compression import zstd as zstd  # noqa: PLC0414 - others import it from here
else:
    from backports import zstd as zstd  # noqa: PLC0414 - likewise

_isal: Any = None
with suppress(ImportError):  # there are machines for which it is not made
    _isal = import_module("isal.isal_zlib")
isal_or_zlib: Any = _isal or zlib
"""isal's zlib if it is installed, otherwise Python's; both have the same interface."""
crc32: Callable[[bytes, int], int] = isal_or_zlib.crc32
"""The CRC of zlib (RFC 1952, section 8) over bytes that follow others with the given checksum (0 for none); isal takes
a seventh of the time."""

GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
"""Window bits for zlib and isal that make them expect a gzip head and check the tail's CRC and length."""
_ISAL_LEVEL, _ZLIB_LEVEL, _ZSTD_LEVEL = 2, 1, 3
"""zlib's level 1 needs as much space as isal's 2; its level 6 takes 1.6 times the time for 13% less."""
_SMALL, _SMALL_LEVEL = 1 << 12, 3
"""For small records, the output of isal's levels 1 and 2 depends on bits 16 to 47 of the stack's address, in one
process of a thousand (1.9.1, with AVX-512). Level 3 does not. It takes 7 to 28% more time for small records and twice
as much for large ones, for which the other levels differ in one process of ten thousand."""

NAME = f"igzip level {_ISAL_LEVEL}" if _isal else f"zlib level {_ZLIB_LEVEL}"
"""Library and level of gzip members. isal takes a fraction of zlib's time (benchmarks/archive.py)."""


class Compression(NamedTuple):
    """A way to compress records."""

    suffix: str
    """Suffix of file names."""
    compress: Callable[[bytes], bytes]
    """Function from a record to one complete member or frame."""


def compress_with_zlib(data: bytes, level: int = _ZLIB_LEVEL) -> bytes:
    """Return one complete gzip member, made by Python's own library."""
    compressor = zlib.compressobj(level, zlib.DEFLATED, GZIP_WBITS)
    return compressor.compress(data) + compressor.flush()


def compress(data: bytes) -> bytes:
    """Return one complete gzip member."""
    if _isal is None:
        return compress_with_zlib(data)
    level = _ISAL_LEVEL if len(data) > _SMALL else _SMALL_LEVEL
    member: bytes = _isal.compress(data, level, wbits=GZIP_WBITS)
    return member


def _zstd() -> Callable[[bytes], bytes]:
    """Return a function that makes Zstandard frames; sharing one compressor takes a third of the time."""
    parameter = zstd.CompressionParameter
    compressor = zstd.ZstdCompressor(options={parameter.compression_level: _ZSTD_LEVEL, parameter.checksum_flag: 1})

    def compress_frame(data: bytes) -> bytes:
        compressor.set_pledged_input_size(len(data))
        return compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)

    return compress_frame


COMPRESSIONS = {"gzip": Compression(".warc.gz", compress), "zstd": Compression(".warc.zst", _zstd())}
"""Compressions by their WARC_COMPRESSION name."""


# -- unpacking --------------------------------------------------------------------------------------------------------

_brotli: Any = import_module("brotli")  # it has no types
CODINGS: Final = {"gzip": b"\x1f\x8b", "deflate": b"", "br": b"", "zstd": b"\x28\xb5\x2f\xfd"}
"""The content codings of HTTP (RFC 9110, 8.4.1; RFC 9659), each with its magic number or an empty string. ``deflate``
is the zlib format; some servers leave out its head."""
ZSTD_START: Final = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)
"""The magic number of a frame, or of a skippable frame, which pzstd writes first (RFC 8878, 3.1)."""
_MOST_MEMBERS: Final = 1 << 16
"""Most members or frames of one piece of data: empty ones take time and give no bytes, so no size bounds them."""
_WINDOW: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: 27}
"""A Zstandard frame may ask for a window of 2 GiB. The limit is the library's own, 128 MiB; a frame uses only as much
memory as it has content."""
_PIECE: Final = 1 << 20
_FIRST_FED: Final = 1 << 10
"""Bytes with which a second member is fed first, because its object copies all that follows, and there can be many
members."""
_LEAST_ALLOWED, _MOST_RATIO = 1 << 26, 100
_ERRORS: Final = (zlib.error, isal_or_zlib.error, zstd.ZstdError, _brotli.error)


class InflateError(ValueError):
    """Compressed data that cannot be used."""


class Damaged(InflateError):
    """Data that is not in its coding, or is cut short."""


class TooMuch(InflateError):
    """Data that unpacks to more bytes than its reader accepts."""

    def __init__(self, most: int) -> None:
        super().__init__(f"it unpacks to more than {most:,} bytes")


def largest_stored(most: int) -> int:
    """Return the most bytes into which ``most`` bytes are ever compressed; larger records are not read."""
    return most + (most >> 3) + (1 << 16)


def plausible(stored: int) -> int:
    """Return the most bytes that ``stored`` compressed bytes may hold, for readers without their own limit: the larger
    of 100 times the size and 64 MiB."""
    return max(_LEAST_ALLOWED, _MOST_RATIO * stored)


def inflate(data: bytes, coding: str, most: int, dictionary: zstd.ZstdDict | None = None) -> bytes:
    """Return the content of all members or frames in ``data``, joined; empty data gives empty bytes.

    ``coding``: a name from :data:`CODINGS`. Zero bytes after a gzip member are padding, as for ``gzip``(1). Raises
    TooMuch for more than ``most`` bytes, and Damaged for incomplete or damaged data.
    """
    room = _Room(most + 1, most + 1)
    content = _joined(_pieces(data, coding, room, strict=True, dictionary=dictionary))
    if room.left <= 0:
        del content  # whoever keeps the error would keep it too
        raise TooMuch(most)
    return content


def inflate_start(data: bytes, coding: str, most: int, bound: int | None = None) -> bytes:
    """Return the first ``most`` bytes of the content of ``data``, which may be cut short; bytes after a whole member
    that are no member are ignored.

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
    """Yield the first ``most`` bytes of the content of ``data``, in pieces of at most ``at_once`` bytes; see
    :func:`inflate_start`. Raises Damaged when it reaches the damage."""
    return _pieces(data, coding, _Room(most, at_once), strict=False)


def is_marked(data: bytes, coding: str) -> bool:
    """Return whether data begins with the magic number of a coding; True for codings without one."""
    return (ZSTD_START.match(data) is not None) if coding == "zstd" else data.startswith(CODINGS[coding])


def gunzip_pieces(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Yield the contents of the gzip member that ``read`` gives, in pieces of at most one megabyte. Raises Damaged."""
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
    """The number of bytes that may still be given."""

    left: int
    at_once: int


class _BrotliStream:
    """A Brotli stream with the interface of the other libraries' objects."""

    unused_data = b""

    def __init__(self) -> None:
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
    """Yield the content of the members of a coding, up to the bound."""
    if coding == "zstd":
        return _of_members(data, lambda: zstd.ZstdDecompressor(dictionary, _WINDOW), room, strict=strict)
    if coding == "br":
        return _of_one(data, _BrotliStream(), room, strict=strict)
    if coding == "deflate":
        return _of_deflate(data, room, strict=strict)
    library = isal_or_zlib if strict else zlib  # isal inflates 32 KiB at once, however little is asked for
    return _of_members(data, lambda: library.decompressobj(GZIP_WBITS), room, strict=strict)


def _of_deflate(data: bytes, room: _Room, *, strict: bool) -> Iterator[bytes]:
    """Yield the content of a deflate stream, with or without the head of the zlib format."""
    pieces = _of_one(data, zlib.decompressobj(), room, strict=strict)
    try:
        yield next(pieces, b"")
    except Damaged:
        pieces = _of_one(data, zlib.decompressobj(-zlib.MAX_WBITS), room, strict=strict)
    yield from pieces


def _of_members(data: bytes, opened: Callable[[], Any], room: _Room, *, strict: bool) -> Iterator[bytes]:
    """Yield the content of all members; ``opened`` makes the decompressor of one. Raises Damaged."""
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
    """Yield the content of a coding without a magic number, whose streams cannot follow each other."""
    if data:
        yield from _of_member(data, 0, stream, room, strict=strict)


def _of_member(data: bytes, at: int, member: Any, room: _Room, *, strict: bool) -> Generator[bytes, None, int]:
    """Yield the content of the member at an offset, and return the offset of its end. Raises Damaged."""
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
    """Return the offset after a run of zero bytes; no member of any coding begins with one."""
    while piece := data[at : at + _FIRST_FED]:
        rest = piece.lstrip(b"\0")
        at += len(piece) - len(rest)
        if rest:
            break
    return at


def _first(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    """Yield the pieces that begin within the first ``most`` bytes, and discard the others."""
    size = 0
    for piece in pieces:
        if size < most:
            yield piece
        size += len(piece)


def _joined(pieces: Iterator[bytes]) -> bytes:
    """Return the pieces as one; a single one is not copied."""
    parts = list(pieces)
    return parts[0] if len(parts) == 1 else b"".join(parts)
