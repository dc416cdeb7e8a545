"""Gzip files that are compressed as a whole, as ClueWeb09's are: read through the entry points that indexed_gzip keeps.

Such a file can only be inflated from its start. indexed_gzip notes, every few megabytes, what it takes to go on from
there (as zlib's ``examples/zran.c`` shows), and keeps that in a file beside the index.
"""

from __future__ import annotations

import io
import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.files import writing
from crawl4llm.base.input_files import PreadFile

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_SPACING: Final = 1 << 22
"""Uncompressed bytes between two entry points: some 7 ms to a record, for 5% more disk."""
_BUFFER: Final = 1 << 16
_READ_AHEAD: Final = 1 << 24


class MissingPackage(Exception):
    """indexed_gzip is not installed."""


class WholeGzip:
    """The contents of a gzip file by position: a :class:`crawl4llm.warc.plain.Source`.

    ``points`` is the file of its entry points, made where it is not there yet. Raises MissingPackage, and InputError
    where the file cannot be written.
    """

    def __init__(self, file: PreadFile, points: Path) -> None:
        self.path = file.path
        options: dict[str, Any] = {"index_file": str(points)} if points.exists() else {"spacing": _SPACING}
        self._contents, self._errors = _open(_ForIndexedGzip(file), options)
        if not points.exists():
            self._contents.build_full_index()
            temporary = points.with_name(f"{points.name}.{os.getpid()}.tmp")
            with writing(points):
                self._contents.export_index(str(temporary))
                temporary.replace(points)

    def read(self, size: int, position: int) -> bytes:
        """Up to ``size`` bytes from ``position``; fewer at the end, and where damage ends what can be inflated."""
        try:
            return bytes(self._contents.pread(size, position))
        except self._errors:
            return b""


class ReadAhead:
    """A source read from front to back, in large steps: each step costs inflating from the entry point before it."""

    def __init__(self, source: WholeGzip) -> None:
        self.path = source.path
        self._source = source
        self._start, self._data = 0, b""

    def read(self, size: int, position: int) -> bytes:
        """Up to ``size`` bytes from ``position``."""
        start = position - self._start
        if not 0 <= start <= start + size <= len(self._data):
            self._start, start = position, 0
            self._data = self._source.read(max(size, _READ_AHEAD), position)
        return self._data[start : start + size]


class _ForIndexedGzip(io.RawIOBase):
    """The file as indexed_gzip wants it: with a position, which is the object's own and not shared with a fork."""

    def __init__(self, file: PreadFile) -> None:
        self._file = file
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._file.size}[whence]
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        data = self._file.read(len(view), self._position)
        view[: len(data)] = data
        self._position += len(data)
        return len(data)


def _open(file: _ForIndexedGzip, options: dict[str, Any]) -> tuple[Any, tuple[type[Exception], ...]]:
    try:
        indexed_gzip = import_module("indexed_gzip")
    except ImportError:
        raise MissingPackage from None
    contents = indexed_gzip.IndexedGzipFile(fileobj=file, buffer_size=_BUFFER, **options)
    return contents, (indexed_gzip.ZranError, indexed_gzip.NotCoveredError, OSError, EOFError)
