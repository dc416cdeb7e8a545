"""Reads single records of a collection: one ``pread`` each, on files that are kept open."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from crawl4llm.base.errors import CorruptRecord, MissingRecord
from crawl4llm.base.input_files import keep_open
from crawl4llm.warc.container import UnreadableFile, open_records
from crawl4llm.warc.frames import RecordFile, too_large
from crawl4llm.warc.records import HttpHead, Record, parse_heads
from simulate.warcs.index_build import points_path

MAX_OPEN: Final = 256
"""Files kept open at most."""
HEADS: Final = 1 << 21
"""Bytes that the heads of a record may have, and line ends behind it."""


class StoredRecord(NamedTuple):
    """A record as it was read."""

    record: Record
    http: HttpHead | None
    data: bytes
    """All of it, heads included."""
    at: str
    """File and offset, for messages."""


class RecordReader:
    """Records by file and place.

    ``index`` is the folder of the index, ``largest`` the bytes that what a record holds may have, its heads left out.
    """

    def __init__(self, root: Path, index: Path, max_open: int = MAX_OPEN, *, largest: int | None = None) -> None:
        self._root = root
        self._largest = largest
        self._index = index
        self._opened = lru_cache(maxsize=keep_open(max_open))(self._open)

    def read(self, file: str, offset: int, length: int) -> StoredRecord:
        """A record. Raises MissingRecord where the file is gone, CorruptRecord where no record is there; TooLarge."""
        path = self._root / file
        try:
            data = self._opened(file).read(offset, length, None if self._largest is None else self._largest + HEADS)
        except FileNotFoundError:
            raise MissingRecord(f"{path}: is gone since it was indexed; run `scrapy corpus index`") from None
        except UnreadableFile as error:
            raise CorruptRecord(str(error)) from error
        at = f"{path}: record at {offset}"
        try:
            record, http = parse_heads(_Whole(data))
        except ValueError as error:
            raise CorruptRecord(f"{at}: {error}; if the file has changed, run `scrapy corpus index`") from error
        end = len(data) if record.size is None else min(record.size, len(data))
        if self._largest is not None and end - (http.body_at if http else record.block_at) > self._largest:
            raise too_large(path, offset)
        return StoredRecord(record, http, data, at)

    def close(self) -> None:
        """Close every file that is not being read; the next look-up opens its file again."""
        self._opened.cache_clear()

    def _open(self, file: str) -> RecordFile:
        return open_records(self._root / file, points_path(self._index, file))


class _Whole:
    """A record of which all is there."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def grow(self) -> bool:
        return False
