"""Decompression of gzip members, with isal's faster inflate where it is installed."""

from __future__ import annotations

import zlib
from typing import Any

_inflate: Any
try:
    from isal import isal_zlib as _inflate
except ImportError:  # there are machines for which it is not made
    _inflate = zlib

_GZIP_WINDOW = 16 + zlib.MAX_WBITS
"""Tells zlib to expect a gzip head and tail, and to check the tail's CRC and length."""


def gunzip(data: bytes, most: int | None = None) -> bytes:
    """The contents of the gzip members in ``data``, joined (RFC 1952 section 2.2); empty data gives empty bytes.

    Zero bytes after the last member are padding, as for ``gzip``(1). Where there are more than ``most`` bytes, one more
    than that is inflated.

    Raises ``zlib.error`` for data that is not gzip or whose check sum does not hold, ``EOFError`` for a member that is
    cut short.
    """
    content, data = _gunzip_member(data, most) if data else (b"", b"")
    if not data:
        return content
    parts = [content]
    while data := data.lstrip(b"\0"):
        if most is not None:
            most -= len(content)
        content, data = _gunzip_member(data, most)
        parts.append(content)
    return b"".join(parts)


def largest_stored(most: int) -> int:
    """What a compressor makes of ``most`` bytes that cannot be made less, at most; what takes more is not read."""
    return most + (most >> 3) + (1 << 16)


def _gunzip_member(data: bytes, most: int | None) -> tuple[bytes, bytes]:
    """The content of the first member, and what follows it; nothing follows where the content is cut off."""
    member = _inflate.decompressobj(_GZIP_WINDOW)
    try:
        content = member.decompress(data, 0 if most is None else most + 1)  # 0 means all
    except _inflate.error as error:
        raise zlib.error(str(error)) from error
    if most is not None and len(content) > most:
        return content, b""
    if not member.eof:
        raise EOFError("the gzip member is cut short")
    return content, member.unused_data
