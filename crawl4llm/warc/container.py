"""Opens an archive file by what it begins with, whatever its name says."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from crawl4llm.base.errors import CorruptRecord
from crawl4llm.base.input_files import PreadFile
from crawl4llm.warc.frames import Frame, RecordFile, WholeFileCompressed
from crawl4llm.warc.gzip import GZIP_MAGIC, GzipRecords
from crawl4llm.warc.plain import PlainRecords
from crawl4llm.warc.records import LONGEST_LINE, RECORD_START
from crawl4llm.warc.whole_gzip import MissingPackage, ReadAhead, WholeGzip
from crawl4llm.warc.zstd import ZSTD_START, ZstdRecords

T = TypeVar("T")


class UnreadableFile(Exception):
    """A file of which no record can be read. The message is one line that names it and says what to do."""


def open_records(path: Path, points: Path) -> RecordFile:
    """An archive file for look-ups; ``points`` is the file of its entry points where it is compressed as a whole.

    Raises UnreadableFile, and OSError where the file cannot be opened.
    """
    file = PreadFile(path)
    return PlainRecords(_whole_gzip(file, points)) if points.exists() else _records(file)


def scan(path: Path, points: Path, collect: Callable[[Iterable[Frame]], T]) -> T:
    """What ``collect`` makes of all records of a file; ``points`` is written where the file is compressed as a whole.

    Raises UnreadableFile, and OSError where the file cannot be read.
    """
    file = PreadFile(path)
    records = _records(file)
    try:
        return collect(records.frames())
    except WholeFileCompressed:
        if not isinstance(records, GzipRecords):
            raise UnreadableFile(f"{path}: is compressed as a whole, not record by record; unpack it") from None
    return collect(PlainRecords(ReadAhead(_whole_gzip(file, points))).frames())


def _records(file: PreadFile) -> RecordFile:
    start = file.read(LONGEST_LINE, 0)
    if start.startswith(GZIP_MAGIC):
        return GzipRecords(file)
    if ZSTD_START.match(start):
        try:
            return ZstdRecords(file)
        except CorruptRecord as error:
            raise UnreadableFile(str(error)) from error
    if RECORD_START.match(start.lstrip(b"\r\n")):
        return PlainRecords(file)
    fault = "is empty" if not start else "is neither a WARC nor an ARC file"
    raise UnreadableFile(f"{file.path}: {fault}; fetch it again or take it away")


def _whole_gzip(file: PreadFile, points: Path) -> WholeGzip:
    try:
        return WholeGzip(file, points)
    except MissingPackage:
        raise UnreadableFile(
            f"{file.path}: is compressed as a whole, not record by record; to read it: pip install indexed_gzip"
        ) from None


def begins_like_archive(path: Path) -> bool:
    """Whether a file begins like an archive file. Raises OSError where it cannot be read."""
    start = PreadFile(path).read(LONGEST_LINE, 0)
    if start.startswith(GZIP_MAGIC):
        try:
            start = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(start, LONGEST_LINE)
        except zlib.error:
            return False
    return bool(ZSTD_START.match(start) or RECORD_START.match(start.lstrip(b"\r\n")))
