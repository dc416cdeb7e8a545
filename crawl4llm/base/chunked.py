"""The decoder of the chunked transfer coding (RFC 9112, 7.1), for answers as they come and for archived bodies.

Like browsers it accepts more than the grammar: blanks around a size (Chromium: only after it), lines that end with a
bare line feed, any text in an extension. Sizes must be hexadecimal digits, and data must end where its size says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_SIZE: Final = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_LONGEST_LINE: Final = 1 << 12
"""Most bytes of a line with a size and its extensions, or of a trailer field."""
_LONGEST_TRAILER: Final = 1 << 16
"""Most bytes of all trailer fields, which are skipped (RFC 9112, 7.1.2)."""


class NotChunked(ValueError):
    """Data that is not in the chunked coding."""


class Chunks:
    """The decoder of one chunked body, which comes in parts."""

    def __init__(self) -> None:
        self.begun = self.ended = 0
        """Chunks whose size was read, and complete chunks."""
        self.beyond: bytes | None = None
        """Bytes after the body's end; None before the end is reached."""
        self._line = b""
        """The unfinished line at the end of the last part."""
        self._left = 0
        """Bytes of the current chunk that are still to come."""
        self._take_line = self._size
        self._trailer = 0

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Yield the data of the next part of a body. Raises NotChunked."""
        part, at = self._line + part if self._line else part, 0
        self._line = b""
        while self.beyond is None:
            if self._left:
                data = part[at : at + self._left]
                at += len(data)
                self._left -= len(data)
                if data:
                    yield data
                if self._left:
                    return
            end = part.find(b"\n", at, at + _LONGEST_LINE)
            if end < 0:
                self._line = part[at:]
                if len(self._line) >= _LONGEST_LINE:
                    raise NotChunked("a line between chunks is too long")
                return
            is_last = self._take_line(part[at:end].removesuffix(b"\r"))
            at = end + 1
            if is_last:
                self.beyond = part[at:]

    def _size(self, line: bytes) -> bool:
        size = _SIZE.fullmatch(line)
        if size is None:
            raise NotChunked("a chunk has no size")
        self.begun += 1
        self._left = int(size[1], 16)
        self._take_line = self._end if self._left else self._field
        return False

    def _end(self, line: bytes) -> bool:
        if line:
            raise NotChunked("a chunk does not end where its size says")
        self.ended += 1
        self._take_line = self._size
        return False

    def _field(self, line: bytes) -> bool:
        self._trailer += len(line) + 2
        if self._trailer > _LONGEST_TRAILER:
            raise NotChunked("the trailer section is too long")
        return not line


def joined(body: bytes) -> bytes:
    """Return the data of a chunked body, as far as it can be decoded; a body whose first chunk is invalid is returned
    unchanged."""
    chunks, parts = Chunks(), list[bytes]()
    try:
        parts.extend(chunks.feed(body))
    except NotChunked:
        return b"".join(parts) if chunks.ended else body
    return b"".join(parts) if chunks.begun else body
