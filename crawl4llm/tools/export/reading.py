"""Reads a row's page: its text, its content, and its metadata in the archive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from crawl4llm.base.compression import InflateError, inflate, plausible
from crawl4llm.base.errors import CorruptRecord, MissingRecord, reading
from crawl4llm.base.files import PreadFile, keep_open
from crawl4llm.tools.export.rows import SPOOL, Row, spool_path
from crawl4llm.tools.export.sources import SourceFile
from crawl4llm.warc import (
    CONTENT_TYPE,
    SIGNALS,
    RecordReader,
    StoredRecord,
    html_of_record,
    may_be_html,
    parse_stored,
)

_ABOUT_WITHIN = 1 << 16
"""Bytes after a page's record in which records about it are looked for; our own metadata takes some hundred."""
_OPEN_SPOOLS = 16


class About(NamedTuple):
    """The metadata record of a page in our archives."""

    influence: float | None
    language: str | None
    signals: str = ""
    """The opt-out signals about the uses of the page."""


_NOTHING = About(None, None)


class Reader:
    """A reader of source files; ``work`` is the work folder with the texts that were extracted.

    Of a record, no more than ``largest`` bytes and its heads are read; one that has more raises TooLarge.
    """

    def __init__(self, files: Sequence[SourceFile], work: Path, largest: int | None = None) -> None:
        self._files = files
        self._largest = largest
        self._records = RecordReader(partial(locate, files), largest)
        self._spool = lru_cache(maxsize=keep_open(_OPEN_SPOOLS))(lambda number: PreadFile(spool_path(work, number)))

    def text(self, row: Row) -> bytes:
        """Read the text of a row that has one, as it is stored; see :func:`as_text`. Raises PageError."""
        assert row.text is not None
        file, offset, length = row.text
        if file <= SPOOL:
            return self._spooled(file, offset, length)
        data = self._read(file, offset, length)
        block = _block_of_ours(data, row.url) if self._files[file].named else None
        return self._parse(file, offset, data, row.url).record.block(data) if block is None else block

    def _spooled(self, file: int, offset: int, length: int) -> bytes:
        spool = self._spool(file)
        try:
            return inflate(spool.read(length, offset), "gzip", plausible(length))
        except InflateError as error:
            raise CorruptRecord(f"{spool.path}: text at {offset}: {error}") from error

    def content(self, row: Row) -> StoredRecord:
        """Read the record that holds a page. Raises PageError."""
        return self._parse(row.file, row.offset, self._read(row.file, row.offset, row.length), row.url)

    def html(self, stored: StoredRecord, *, is_html: bool) -> bytes:
        """Return the HTML in the record of a page, in UTF-8; empty if it has none. ``is_html``: it is known to be HTML.
        Raises PageError."""
        fields = stored.http.fields if stored.http else stored.record.fields
        if not (is_html or may_be_html(fields.listed(CONTENT_TYPE))):
            return b""
        with reading(stored.at):
            try:
                return html_of_record(stored, self._largest).data
            except ValueError as error:
                raise CorruptRecord(f"{stored.at}: {error}") from error

    def about(self, row: Row) -> About:
        """Read the metadata record behind a page, if this project wrote it; otherwise return nothing.

        It has the page's URL, and its block begins with the document key. No records are parsed: this is done for each
        document of an export.
        """
        if not row.after:
            return _NOTHING
        try:
            data = self._read(row.file, row.offset + row.length, min(row.after, _ABOUT_WITHIN))
        except (CorruptRecord, MissingRecord):
            return _NOTHING
        of_page = b"\r\nWARC-Target-URI: %b\r\n" % row.url.encode("utf-8", "replace")
        at = data.find(of_page)
        while at >= 0:
            start = data.find(b"\r\n\r\n", at) + 2
            end = data.find(b"\r\n\r\n", start + 2)
            if start > at and end > 0 and data.startswith(b"id: ", start + 2):
                block = data[start : end + 2]
                language = _field(block, b"language").decode("utf-8", "replace")
                signals = _field(block, SIGNALS.encode()).decode("utf-8", "replace")
                return About(_number(_field(block, b"influence")), language or None, signals)
            at = data.find(of_page, at + 1)
        return _NOTHING

    def _parse(self, number: int, offset: int, data: bytes, url: str) -> StoredRecord:
        """Parse a record; CorruptRecord if an index of ours says that it is of another URL."""
        file = self._files[number]
        stored = parse_stored(data, f"{file.path}: record at {offset}")
        if stored.record.size is None or len(data) < stored.record.size:
            raise CorruptRecord(f"{stored.at}: is cut short")
        if file.named and stored.record.url != url:
            raise CorruptRecord(f"{stored.at}: is of another page than the index says")
        return stored

    def _read(self, number: int, offset: int, length: int) -> bytes:
        file = self._files[number]
        if file.named and offset + length > file.size:
            raise CorruptRecord(f"{file.path}: record at {offset}: is cut short, or its entry in the index is damaged")
        try:
            return self._records.data(number, offset, length)
        except OSError as error:
            raise CorruptRecord(f"{file.path}: cannot be read: {error.strerror}") from error


def as_text(data: bytes) -> tuple[str, bytes]:
    """Return a text as it is exported, and the same in UTF-8; bytes that are not UTF-8 become U+FFFD."""
    try:
        return data.decode(), data
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        return text, text.encode()


def locate(files: Sequence[SourceFile], number: int) -> tuple[Path, Path]:
    """Return the paths of a file by its number, and of its entry points."""
    return Path(files[number].path), Path(files[number].points)


def _block_of_ours(data: bytes, url: str) -> bytes | None:
    """Return the block of a record with the head that this project writes, ten times as fast as by parsing.

    None if it has another head, or is of another URL.
    """
    block_at = data.find(b"\r\n\r\n") + 4
    head, block = data[:block_at], data[block_at:-4]
    ours = (
        b"\r\nWARC-Target-URI: %b\r\n" % url.encode("utf-8", "replace") in head
        and b"\r\nContent-Length: %d\r\n" % len(block) in head
        and data.endswith(b"\r\n\r\n")
    )
    return block if ours else None


def _field(head: bytes, name: bytes) -> bytes:
    """Return the value of a field in a block that begins and ends with a line end; empty if the field is missing."""
    start = head.find(b"\r\n%b: " % name)
    if start < 0:
        return b""
    start += len(name) + 4
    return head[start : head.find(b"\r\n", start)]


def _number(field: bytes) -> float | None:
    try:
        number = float(field)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
