"""Gzip files: records that are compressed one by one (ISO 28500:2017, annex D), found without inflating them.

A record's head has the length of the record, and a gzip member ends with the length of its content (RFC 1952, 2.3.1).
So a record ends where the expected length stands directly before bytes that look like the head of a gzip member. Only
if there is no such place (a wrong Content-Length, damage) is the member inflated to find its end. Files that are
compressed as a whole are read through entry points.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.compression import GZIP_WBITS, InflateError, gunzip_pieces
from crawl4llm.base.errors import CorruptRecord
from crawl4llm.base.files import PreadFile
from crawl4llm.base.whole_files import writing
from crawl4llm.warc.records import RECORD_START, Frame, UnreadableFile, WholeFileCompressed, heads_or_none, read_packed

GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_MEMBER_START = re.compile(re.escape(GZIP_MAGIC))
_LENGTH_BYTES, _SMALLEST_MEMBER = 4, 18
_LONGEST_END: Final = 4
"""Most bytes after a record's block: two line ends (ISO 28500:2017, 4), in some files fewer."""
_FIRST_READ, _FIRST_INFLATED = 2048, 1024
_NEXT_READ, _NEXT_INFLATED = 1 << 16, 1 << 20
_SEARCHED: Final = 1 << 18
"""Bytes searched at once: few enough that their records are still in the processor's cache when they are read."""


class GzipRecords:
    """The records of a gzip file with one member each."""

    def __init__(self, file: PreadFile) -> None:
        self._file = file

    def read(self, offset: int, length: int, most: int | None = None) -> bytes:
        return read_packed(self._file, "gzip", offset, length, most)

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        starts = range(offset, offset + length, _NEXT_READ)
        stored = (self._file.read(min(_NEXT_READ, offset + length - start), start) for start in starts)
        try:
            yield from gunzip_pieces(lambda: next(stored, b""))
        except InflateError as error:
            raise CorruptRecord(f"the gzip member is damaged ({error})") from error

    def frames(self) -> Iterator[Frame]:
        """Yield all records, in file order. Raises WholeFileCompressed if a member holds several."""
        starts = self._member_starts()
        position: int | None = 0
        while position is not None:
            opening = _Opening(self._file, position)
            record, http = heads_or_none(opening)
            end, following = self._end(position, record.size if record else None, starts)
            if end is None:
                end, record, http = position, None, None
            yield Frame(position, end - position, record, http, opening)
            position = following

    def _end(self, position: int, size: int | None, starts: Iterator[tuple[int, int]]) -> tuple[int | None, int | None]:
        """Return the end of a member, None for a damaged one; and the start of the next, None after the last."""
        end = None
        for start, stated in starts:
            if start < position + _SMALLEST_MEMBER or (end is not None and start < end):
                continue
            if end is not None or _agree(stated, size):
                return end or start, start
            if RECORD_START.match(_Opening(self._file, start).data):
                end = self._measure(position, size)
                if end is None or end <= start:
                    return end, start
        tail = self._file.read(_LENGTH_BYTES, max(0, self._file.size - _LENGTH_BYTES))
        if end is None and _agree(int.from_bytes(tail, "little"), size):
            return self._file.size, None
        return end or self._measure(position, size), None

    def _member_starts(self) -> Iterator[tuple[int, int]]:
        """Yield possible starts of members, each with the length before it, if there is one."""
        for base in range(0, self._file.size, _SEARCHED):
            data = self._file.read(_SEARCHED + _LENGTH_BYTES + len(GZIP_MAGIC) - 1, base)
            for match in _MEMBER_START.finditer(data, _LENGTH_BYTES):
                start = match.start()
                yield base + start, int.from_bytes(data[start - _LENGTH_BYTES : start], "little")

    def _measure(self, position: int, size: int | None) -> int | None:
        """Return the end of the member at ``position``, by inflating it; None for a damaged one."""
        member = zlib.decompressobj(GZIP_WBITS)
        inflated, beyond = 0, b""
        while not member.eof:
            data = member.unconsumed_tail
            if not data:
                data = self._file.read(_NEXT_READ, position)
                position += len(data)
            try:
                content = member.decompress(data, _NEXT_INFLATED)
            except zlib.error:
                return None
            if not (data or content or member.eof):
                return None
            if size is not None and len(beyond) < _NEXT_READ:
                beyond += content[max(0, size - inflated) :]
                if RECORD_START.match(beyond.lstrip(b"\r\n")):
                    raise WholeFileCompressed
            inflated += len(content)
        return position - len(member.unused_data)


class _Opening:
    """The beginning of a gzip member's content."""

    def __init__(self, file: PreadFile, position: int) -> None:
        self._file = file
        self._member = zlib.decompressobj(GZIP_WBITS)
        self._damaged = False
        data = file.read(_FIRST_READ, position)
        self._position = position + len(data)
        self.data = self._inflate(data, _FIRST_INFLATED)

    def grow(self) -> bool:
        """Make ``data`` longer; return False at the end."""
        data = self._member.unconsumed_tail
        if not data and not self._member.eof:
            data = self._file.read(_FIRST_READ, self._position)
            self._position += len(data)
        if not data or self._damaged or self._member.eof:
            return False
        self.data += self._inflate(data, 2 * len(self.data) + 1)
        return True

    def _inflate(self, data: bytes, limit: int) -> bytes:
        try:
            return self._member.decompress(data, limit)
        except zlib.error:
            self._damaged = True
            return b""


def _agree(stated: int, size: int | None) -> bool:
    return size is not None and (stated - size) % (1 << 32) <= _LONGEST_END


_SPACING: Final = 1 << 22
"""Uncompressed bytes between two entry points: about 7 ms for a record, for 5% more disk."""
_BUFFER: Final = 1 << 16
_READ_AHEAD: Final = 1 << 24


class WholeGzip:
    """The contents of a gzip file that is compressed as a whole, by position: a :class:`crawl4llm.warc.plain.Source`.

    Such a file, for example of ClueWeb09, can only be inflated from its start. Every few megabytes, indexed_gzip notes
    the state of the decompressor (see zlib's ``examples/zran.c``) in a file of entry points.

    ``points`` is the file of its entry points, which is made if it is missing. Raises UnreadableFile without that
    package, and InputError if the file cannot be written.
    """

    def __init__(self, path: Path, points: Path) -> None:
        self.path = path
        options: dict[str, Any] = {"index_file": str(points)} if points.exists() else {"spacing": _SPACING}
        try:
            package = import_module("indexed_gzip")
        except ImportError:
            raise UnreadableFile(
                f"{path}: is compressed as a whole, not record by record; to read it: pip install indexed_gzip"
            ) from None
        self._errors = (package.ZranError, package.NotCoveredError, OSError, EOFError)
        # Each read opens the file anew: forks would share the place in an open one.
        self._contents = package.IndexedGzipFile(str(path), drop_handles=True, buffer_size=_BUFFER, **options)
        if not points.exists():
            self._contents.build_full_index()
            temporary = points.with_name(f"{points.name}.{os.getpid()}.tmp")
            with writing(points):
                self._contents.export_index(str(temporary))
                temporary.replace(points)

    def read(self, size: int, position: int) -> bytes:
        """Return up to ``size`` bytes from ``position``; fewer at the end, and before damage."""
        try:
            return bytes(self._contents.pread(size, position))
        except self._errors:
            return b""


class ReadAhead:
    """A source read from front to back, in large steps, because each step costs inflating from the entry point before
    it."""

    def __init__(self, source: WholeGzip) -> None:
        self.path = source.path
        self._source = source
        self._start, self._data = 0, b""

    def read(self, size: int, position: int) -> bytes:
        """Return up to ``size`` bytes from ``position``."""
        start = position - self._start
        if not 0 <= start <= start + size <= len(self._data):
            self._start, start = position, 0
            self._data = self._source.read(max(size, _READ_AHEAD), position)
        return self._data[start : start + size]
