"""A WARC file taken apart: its records one after the other, and the stretches between them that hold none."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.errors import CorruptRecord
from crawl4llm.base.input_files import PreadFile
from crawl4llm.warc.container import UnreadableFile, open_records
from crawl4llm.warc.frames import Frame, WholeFileCompressed
from crawl4llm.warc.gzip import GZIP_MAGIC
from crawl4llm.warc.zstd import ZSTD_START

_inflate: Any
try:
    from isal import isal_zlib as _inflate
except ImportError:  # there are machines for which it is not made
    _inflate = zlib

_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_READ: Final = 1 << 16
_INFLATED: Final = 1 << 20
"""Bytes that are held of a record at once: one can be far longer than what it takes in the file."""
_NO_POINTS: Final = Path("/dev/null/points")


class Stretch(NamedTuple):
    """A part of the file. All parts together, in their order, are the file."""

    offset: int
    length: int
    frame: Frame | None
    """The record that it is; None for damage."""


class WarcReader:
    """A WARC file opened for reading, compressed by record or not at all. Raises UnreadableFile, and OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = PreadFile(path)
        self.size = self._file.size
        self._records = open_records(path, _NO_POINTS)
        start = self._file.read(len(GZIP_MAGIC) + 1, 0)
        self._is_gzip = start.startswith(GZIP_MAGIC)
        self._is_zstd = ZSTD_START.match(start) is not None

    def stretches(self) -> Iterator[Stretch]:
        """All parts, in file order. Raises UnreadableFile where records are not compressed one by one.

        What stands before the first record of a Zstandard file is its dictionary, and no part.
        """
        end: int | None = None if self._is_zstd else 0
        try:
            for frame in self._records.frames():
                yield from self._between(frame.offset if end is None else end, frame.offset)
                end = frame.offset
                if frame.length:
                    yield Stretch(frame.offset, frame.length, frame if frame.record else None)
                    end += frame.length
        except WholeFileCompressed:
            raise UnreadableFile(f"{self.path}: is compressed as a whole, not record by record") from None
        yield from self._between(end or 0, self.size)

    def _between(self, start: int, end: int) -> Iterator[Stretch]:
        """Damage between two records, unless that is line ends in a file that is not compressed."""
        if start < end and (self._is_gzip or self._is_zstd or self.raw(start, end - start).strip(b"\r\n")):
            yield Stretch(start, end - start, None)

    def raw(self, offset: int, length: int) -> bytes:
        """Bytes of the file as they are."""
        return self._file.read(length, offset)

    def read(self, offset: int, length: int) -> bytes:
        """A record, decompressed. Raises CorruptRecord."""
        return self._records.read(offset, length)

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        """A record, decompressed, in pieces. Raises CorruptRecord where it is damaged."""
        if self._is_gzip:
            yield from self._inflated(offset, length)
        elif self._is_zstd:
            yield self._records.read(offset, length)
        else:
            yield from self._stored(offset, offset + length)

    def _inflated(self, offset: int, length: int) -> Iterator[bytes]:
        member = _inflate.decompressobj(_GZIP_WINDOW)
        at, end = offset, offset + length
        try:
            while not member.eof:
                data = member.unconsumed_tail
                if not data:
                    data = self._file.read(min(_READ, end - at), at)
                    at += len(data)
                    if not data:
                        raise CorruptRecord("the gzip member is cut short")
                yield member.decompress(data, _INFLATED)
        except _inflate.error as error:
            raise CorruptRecord(f"the gzip member is damaged ({error})") from error

    def _stored(self, at: int, end: int) -> Iterator[bytes]:
        while at < end:
            data = self._file.read(min(_INFLATED, end - at), at)
            if not data:
                raise CorruptRecord("the record is cut short")
            yield data
            at += len(data)


def header_values(head: bytes, name: str) -> list[bytes]:
    """All values of a field that may be repeated (ISO 28500:2017, 5.7)."""
    return [value.strip() for value in re.findall(rb"(?im)^%b:([^\n]*)" % re.escape(name.encode()), head)]
