"""Zstandard-compressed archive files: one frame for each record, perhaps after a dictionary.

The layout is that of "Zstandard Compression for WARC Files 1.0" (IIPC); sections are those of RFC 8878.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from crawl4llm.base.compression import ZSTD_START, inflate, zstd
from crawl4llm.base.errors import CorruptRecord, as_input_error
from crawl4llm.base.files import PreadFile
from crawl4llm.warc.records import RECORD_START, Frame, WholeFileCompressed, heads_or_none, read_packed

_FRAME_MAGIC, _DICTIONARY_MAGIC = b"\x28\xb5\x2f\xfd", b"\x5d\x2a\x4d\x18"
_SKIPPABLE_HEAD: Final = 8
_DICTIONARY_ID_BYTES, _CONTENT_SIZE_BYTES = (0, 1, 2, 4), (0, 2, 4, 8)
_RUN_BLOCK, _RESERVED_BLOCK = 1, 3
_FIRST_READ, _FIRST_INFLATED = 2048, 1024
_SEARCHED: Final = 1 << 20
_LARGEST_DICTIONARY: Final = 1 << 24
"""Most bytes of a dictionary; a hundred thousand are usual."""


class ZstdRecords:
    """The records of a Zstandard file with one frame each."""

    def __init__(self, file: PreadFile) -> None:
        self._file = file
        self._dictionary = _read_dictionary(file)

    def read(self, offset: int, length: int, most: int | None = None) -> bytes:
        return read_packed(self._file, "zstd", offset, length, most, self._dictionary)

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        yield self.read(offset, length)

    def frames(self) -> Iterator[Frame]:
        """Yield all records, in file order. Raises WholeFileCompressed if the first frame holds several."""
        position, first = 0, True
        while position < self._file.size:
            end = self._frame_end(position)
            opening = _Opening(self._file, position, self._dictionary)
            record, http = heads_or_none(opening) if end else (None, None)
            if end and not opening.data:
                position = end  # a skippable frame
                continue
            if first and record and record.size is not None and self._goes_on(position, record.size):
                raise WholeFileCompressed
            yield Frame(position, (end or position) - position, record, http, opening)
            position = end or self._next_record(position + 1)
            first = False

    def _frame_end(self, start: int) -> int | None:
        """Return the end of the frame at ``start``, by its blocks' heads (3.1.1); None without a complete frame."""
        head = self._file.read(_SKIPPABLE_HEAD, start)
        if not ZSTD_START.match(head) or len(head) < _SKIPPABLE_HEAD:
            return None
        if not head.startswith(_FRAME_MAGIC):
            end = start + _SKIPPABLE_HEAD + int.from_bytes(head[4:], "little")
            return end if end <= self._file.size else None
        descriptor = head[4]
        single_segment = descriptor >> 5 & 1
        content_size = _CONTENT_SIZE_BYTES[descriptor >> 6] or single_segment
        position = start + 5 + (1 - single_segment) + _DICTIONARY_ID_BYTES[descriptor & 3] + content_size
        last = 0
        while not last:
            block = int.from_bytes(self._file.read(3, position), "little")
            last, kind, size = block & 1, block >> 1 & 3, block >> 3
            if position >= self._file.size or kind == _RESERVED_BLOCK:
                return None
            position += 3 + (1 if kind == _RUN_BLOCK else size)
        position += 4 * (descriptor >> 2 & 1)  # the checksum
        if position == self._file.size or ZSTD_START.match(self._file.read(_SKIPPABLE_HEAD, position)):
            return position
        return position if self._is_whole(start, position) else None

    def _is_whole(self, start: int, end: int) -> bool:
        frame = _Frame(self._file, start, self._dictionary)
        try:
            while frame.decompress(_SEARCHED):
                pass
        except zstd.ZstdError:
            return False
        return frame.ended_at == end

    def _goes_on(self, start: int, size: int) -> bool:
        """Return whether another record follows the first one, of ``size`` bytes, in the frame at ``start``."""
        frame, inflated, beyond = _Frame(self._file, start, self._dictionary), 0, b""
        with suppress(zstd.ZstdError):
            while len(beyond) < _FIRST_INFLATED and (content := frame.decompress(_SEARCHED)):
                beyond += content[max(0, size - inflated) :]
                inflated += len(content)
        return RECORD_START.match(beyond.lstrip(b"\r\n")) is not None

    def _next_record(self, position: int) -> int:
        """Return the next place, from ``position``, at which a frame with a record begins; otherwise the end."""
        while data := self._file.read(_SEARCHED + len(_FRAME_MAGIC) - 1, position):
            found = data.find(_FRAME_MAGIC)
            while found >= 0:
                if RECORD_START.match(_Opening(self._file, position + found, self._dictionary).data):
                    return position + found
                found = data.find(_FRAME_MAGIC, found + 1)
            position += min(_SEARCHED, len(data))
        return self._file.size


class _Frame:
    """A frame that is decompressed piece by piece."""

    def __init__(self, file: PreadFile, position: int, dictionary: zstd.ZstdDict | None) -> None:
        self._file = file
        self._position = position
        self._frame = zstd.ZstdDecompressor(dictionary)

    def decompress(self, most: int) -> bytes:
        """Return the next piece, of ``most`` bytes at most; empty if there is no more. Raises ZstdError."""
        content = b""
        while not (content or self._frame.eof):
            data = self._file.read(_FIRST_READ, self._position) if self._frame.needs_input else b""
            self._position += len(data)
            content = self._frame.decompress(data, most)
            if not (data or content):
                break
        return content

    @property
    def ended_at(self) -> int | None:
        """Offset of its end in the file; None before it is reached."""
        return self._position - len(self._frame.unused_data) if self._frame.eof else None


class _Opening:
    """The beginning of a frame's content."""

    def __init__(self, file: PreadFile, position: int, dictionary: zstd.ZstdDict | None) -> None:
        self._frame = _Frame(file, position, dictionary)
        self.data = b""
        self.grow()

    def grow(self) -> bool:
        """Make ``data`` longer; return False at the end."""
        try:
            content = self._frame.decompress(len(self.data) + _FIRST_INFLATED)
        except zstd.ZstdError:
            return False
        self.data += content
        return bool(content)


def _read_dictionary(file: PreadFile) -> zstd.ZstdDict | None:
    """Return the dictionary in the file's first frame, which may be compressed itself."""
    head = file.read(_SKIPPABLE_HEAD, 0)
    if not head.startswith(_DICTIONARY_MAGIC):
        return None
    content = file.read(min(int.from_bytes(head[4:], "little"), _LARGEST_DICTIONARY), _SKIPPABLE_HEAD)
    told, errors = f"{file.path}: its dictionary is damaged", (zstd.ZstdError, ValueError)
    with as_input_error(told, CorruptRecord, errors=errors):
        if content.startswith(_FRAME_MAGIC):
            content = inflate(content, "zstd", _LARGEST_DICTIONARY)
        return zstd.ZstdDict(content)
