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


def gunzip(data: bytes) -> bytes:
    """The contents of the gzip members in ``data``, joined (RFC 1952 section 2.2); empty data gives empty bytes.

    Zero bytes after the last member are padding, as for ``gzip``(1).

    Raises ``zlib.error`` for data that is not gzip or whose check sum does not hold, ``EOFError`` for a member that is
    cut short.
    """
    content, data = _gunzip_member(data) if data else (b"", b"")
    if not data:
        return content
    parts = [content]
    while data := data.lstrip(b"\0"):
        content, data = _gunzip_member(data)
        parts.append(content)
    return b"".join(parts)


def _gunzip_member(data: bytes) -> tuple[bytes, bytes]:
    """The content of the first member, and what follows it."""
    member = _inflate.decompressobj(_GZIP_WINDOW)
    try:
        content = member.decompress(data)
    except _inflate.error as error:
        raise zlib.error(str(error)) from error
    if not member.eof:
        raise EOFError("the gzip member is cut short")
    return content, member.unused_data
