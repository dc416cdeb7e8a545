"""Compression: gzip and Zstandard, and the libraries for them, by isal where it is installed.

Records are compressed one by one, into gzip members (ISO 28500:2017, annex D.2) or Zstandard frames.
Frames are as "Zstandard Compression for WARC Files 1.0" (IIPC) has them: one a record, with content size and checksum,
without a dictionary. The same bytes in give the same bytes out: no head carries a time or a file name; but for isal, to
which it can matter where the stack of a process lies (see _SMALL). That, and which library compresses, shows in the
compressed bytes only, never in what they hold.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
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
"""The faster of the two, which have the same interface; unpacking is :mod:`crawl4llm.base.inflating`'s."""
crc32: Callable[[bytes, int], int] = isal_or_zlib.crc32
"""zlib's checksum (RFC 1952, section 8) of bytes that come after others with a checksum, or with 0 after none; isal's
takes a seventh of the time."""

GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
"""Window bits by which zlib and isal expect a gzip head and tail, and check the tail's CRC and length."""
_ISAL_LEVEL, _ZLIB_LEVEL, _ZSTD_LEVEL = 2, 1, 3
"""zlib's level 1 needs as much space as isal's 2; its level 6 takes 1.6 times the time for 13% less."""
_SMALL, _SMALL_LEVEL = 1 << 12, 3
"""What isal's levels 1 and 2 make of small records depends on bits 16 to 47 of the stack's address, in one process of a
thousand (1.9.1, with AVX-512). Level 3 does not; it takes 7 to 28% more time for so many bytes, twice as much for large
ones, where the other levels are so in one process of ten thousand.
"""

NAME = f"igzip level {_ISAL_LEVEL}" if _isal else f"zlib level {_ZLIB_LEVEL}"
"""Library and level that make gzip members. isal takes a fraction of zlib's time (benchmarks/archive.py)."""


class Compression(NamedTuple):
    """A way to compress records."""

    suffix: str
    """Suffix of file names."""
    compress: Callable[[bytes], bytes]
    """Function that makes one complete member or frame of a record."""


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
    """Return a function that makes Zstandard frames; one compressor for all takes a third of the time of many."""
    parameter = zstd.CompressionParameter
    compressor = zstd.ZstdCompressor(options={parameter.compression_level: _ZSTD_LEVEL, parameter.checksum_flag: 1})

    def compress_frame(data: bytes) -> bytes:
        compressor.set_pledged_input_size(len(data))
        return compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)

    return compress_frame


COMPRESSIONS = {"gzip": Compression(".warc.gz", compress), "zstd": Compression(".warc.zst", _zstd())}
"""By the name that WARC_COMPRESSION takes."""


def largest_stored(most: int) -> int:
    """Return the most bytes into which ``most`` bytes are ever compressed; what takes more is not read."""
    return most + (most >> 3) + (1 << 16)
