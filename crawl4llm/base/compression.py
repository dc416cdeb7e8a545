"""One record compressed by itself: a gzip member (ISO 28500:2017, annex D.2) or a Zstandard frame.

Frames are as "Zstandard Compression for WARC Files 1.0" (IIPC) has them: one a record, with content size and checksum,
without a dictionary. The same bytes in give the same bytes out: no head carries a time or a file name. Which library
compresses shows in the compressed bytes only, never in what they hold.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_isal: Any = None
with suppress(ImportError):  # there are machines for which it is not made
    _isal = import_module("isal.isal_zlib")

_GZIP_WBITS = 16 + zlib.MAX_WBITS
_ISAL_LEVEL = 2
_ZLIB_LEVEL = 1
"""Needs as much space as isal; level 6 takes 1.6 times the time for 13% less."""
_ZSTD_LEVEL = 3
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

NAME = f"igzip level {_ISAL_LEVEL}" if _isal else f"zlib level {_ZLIB_LEVEL}"
"""What makes gzip members. isal takes a fraction of zlib's time (benchmarks/archiving.py)."""


class Compression(NamedTuple):
    """A way to compress records."""

    suffix: str
    """What the names of files end with."""
    compress: Callable[[bytes], bytes]
    """Makes one complete member or frame of a record."""


def compress_with_zlib(data: bytes) -> bytes:
    """One complete gzip member, made by Python's own library."""
    compressor = zlib.compressobj(_ZLIB_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
    return compressor.compress(data) + compressor.flush()


def compress(data: bytes) -> bytes:
    """One complete gzip member."""
    if _isal is None:
        return compress_with_zlib(data)
    member: bytes = _isal.compress(data, _ISAL_LEVEL, wbits=_GZIP_WBITS)
    return member


def _zstd() -> Callable[[bytes], bytes]:
    """What makes Zstandard frames; one compressor for all takes a third of the time of one for each small record."""
    parameter = zstd.CompressionParameter
    compressor = zstd.ZstdCompressor(options={parameter.compression_level: _ZSTD_LEVEL, parameter.checksum_flag: 1})

    def compress_frame(data: bytes) -> bytes:
        compressor.set_pledged_input_size(len(data))
        return compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)

    return compress_frame


COMPRESSIONS = {"gzip": Compression(".warc.gz", compress), "zstd": Compression(".warc.zst", _zstd())}
"""By the name that WARC_COMPRESSION takes."""


def decompress(member: bytes) -> bytes:
    """What a member or frame holds. Raises ValueError where it is damaged or not whole."""
    try:
        return zstd.decompress(member) if member.startswith(_ZSTD_MAGIC) else gzip.decompress(member)
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        raise ValueError(str(error)) from error
