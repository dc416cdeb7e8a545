"""The documents of an export while it is made: a row each in files of the work folder, and their pages in archives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from crawl4llm.base.compression import InflateError, inflate, plausible
from crawl4llm.base.errors import CorruptRecord, InputError, MissingRecord, as_input_error, reading
from crawl4llm.base.files import PreadFile, keep_open
from crawl4llm.base.whole_files import replacing
from crawl4llm.warc import CONTENT_TYPE, SIGNALS, RecordReader, StoredRecord, html_of_record, may_be_html, parse_stored

LISTED, PREPARED = "listed", "prepared"
"""Names of the files of rows that no reason has left out yet: as they are listed, and when they are prepared."""
BLOCK = 1024
"""Most documents whose rows stand in one file, and which are prepared, and saved, at once."""
_ABOUT_WITHIN = 1 << 16
"""Bytes after a page's record in which records about it are looked for; our own metadata takes some hundred."""
_OPEN_FILES = 256


@lru_cache(maxsize=_OPEN_FILES)  # making a path takes as long as reading a row
def rows_path(work: Path, what: str, block: int) -> Path:
    """Return the path of a block's rows in a work folder; ``what`` is LISTED or PREPARED."""
    return work / f"{what}.{block}.jsonl"


def texts_path(work: Path, block: int) -> Path:
    """Return the path of the texts that were extracted for a block, in a work folder."""
    return work / f"texts.{block}"


def load_all(lines: Sequence[bytes]) -> list[Any]:
    """Parse some lines of JSON at once. Raises ValueError if one of them is not JSON."""
    values: list[Any] = orjson.loads(b"[%b]" % b",".join(lines))
    if len(values) != len(lines):  # one holds a comma between two values
        raise ValueError("a line holds more than one value")
    return values


class Row(NamedTuple):
    """A document. Its number is its place in the order of the sources."""

    id: str
    """The document key; a normalised URL if the archive has none."""
    url: str
    date: str | None
    """Date of the capture: W3C date-time in UTC; as it is archived once the head of the record is read."""
    digest: str | None
    """WARC-Payload-Digest of the record that holds the page; None if only its head tells it."""
    file: int
    """Number of the source file in which that record lies."""
    offset: int
    length: int
    after: int
    """Bytes from its end to the next document or the end of the file: records about it stand there."""
    text: Sequence[int] | None
    """File, offset and length of the record that holds the text; None if it is still to be extracted. A negative number
    is that of a file of extracted texts."""
    text_digest: str | None = None
    """SHA-1 of the text as it is stored, in hex; None if it is not prepared."""
    influence: float | None = None
    language: str | None = None
    scored: bool = False
    """True if influence is that of a crawl log, which may be null."""
    reason: str | None = None
    """The reason for leaving it out, if that is known already."""
    text_bytes: int = 0
    words: int = 0
    link_share: float | None = None
    """Share of the text's words that stand in links; None if the archive has no HTML of the page."""
    signature: str | None = None
    """Signature of the text (:mod:`crawl4llm.scoring.signatures`), in hex; None if texts are not compared."""
    signals: str = ""
    """The opt-out signals about the uses of the page, as :func:`crawl4llm.optouts.said.as_text` has it."""


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a file of rows, whole or not at all. Raises InputError if that fails (disk full)."""
    with as_input_error(f"{path} cannot be written"), replacing(path, fsync=True) as file:
        file.writelines(orjson.dumps([*row], option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def write_listed(work: Path, rows: Iterable[Row]) -> int:
    """Write the listed rows, divided in blocks; return how many there are."""
    left, documents = iter(rows), 0
    while some := list(islice(left, BLOCK)):
        write_rows(rows_path(work, LISTED, documents // BLOCK), some)
        documents += len(some)
    return documents


def _parsed(path: Path, lines: Sequence[bytes]) -> list[Row]:
    try:
        return [Row(*values) for values in load_all(lines)]
    except (TypeError, ValueError):
        raise _damaged(path) from None


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is damaged; remove the output directory and export again")


class Block(NamedTuple):
    """Documents whose rows stand in one file."""

    number: int
    start: int
    size: int
    """Documents."""

    @property
    def numbers(self) -> range:
        """The numbers of the documents."""
        return range(self.start, self.start + self.size)


def blocks_of(documents: int, shares: int) -> list[Block]:
    """Divide documents in blocks for this many tasks: if there are few, into as many."""
    size = max(min(BLOCK, -(-documents // shares)), 1)
    starts = range(0, documents, size)
    return [Block(number, start, min(size, documents - start)) for number, start in enumerate(starts)]


class SourceFile(NamedTuple):
    """A file that records are read from."""

    path: str
    size: int
    changed: int
    """Its time of change in nanoseconds."""
    points: str
    """Path of the entry points into a file that is compressed as a whole."""
    named: bool
    """True if an index of ours says which URL is at a place: a different URL there means an index of another file."""


class About(NamedTuple):
    """The metadata record of a page in our archives."""

    influence: float | None
    language: str | None
    signals: str = ""
    """The opt-out signals about the uses of the page."""


_NOTHING = About(None, None)


class Reader:
    """A reader of rows and extracted texts in the work folder ``work``, and of source files.

    Of a record, no more than ``largest`` bytes and its heads are read; one that has more raises TooLarge.
    """

    def __init__(self, files: Sequence[SourceFile], work: Path, largest: int | None = None) -> None:
        self.files, self.work, self.largest = files, work, largest
        self._records = RecordReader(partial(locate, files), largest)
        self._opened = lru_cache(maxsize=keep_open(_OPEN_FILES))(PreadFile)
        self._block = lru_cache(maxsize=1)(self._listed)

    def __reduce__(self) -> tuple[type[Reader], tuple[Any, ...]]:
        return Reader, (self.files, self.work, self.largest)

    def listed(self, number: int) -> Row:
        """Return the row of a document as it was listed. Raises InputError."""
        return self._block(number // BLOCK)[number % BLOCK]

    def _listed(self, block: int) -> list[Row]:
        path = rows_path(self.work, LISTED, block)
        with as_input_error(f"{path} cannot be read"):
            return _parsed(path, path.read_bytes().splitlines())

    def prepared(self, block: int, place: int, length: int) -> Row:
        """Return the prepared row of a document, by its place in the file of its block. Raises InputError."""
        path = rows_path(self.work, PREPARED, block)
        with as_input_error(f"{path} cannot be read"):
            return _parsed(path, [self._opened(path).read(length, place)])[0]

    def text(self, row: Row) -> bytes:
        """Read the text of a row that has one, as it is stored; see :func:`as_text`. Raises PageError; InputError if
        the work folder is damaged."""
        assert row.text is not None
        file, offset, length = row.text
        if file < 0:
            return self._extracted(-1 - file, offset, length)
        data = self._read(file, offset, length)
        block = _block_of_ours(data, row.url) if self.files[file].named else None
        return self._parse(file, offset, data, row.url).record.block(data) if block is None else block

    def _extracted(self, block: int, offset: int, length: int) -> bytes:
        path = texts_path(self.work, block)
        with as_input_error(f"{path} cannot be read"):
            data = self._opened(path).read(length, offset)
        with suppress(InflateError):
            if len(data) == length:
                return inflate(data, "gzip", plausible(length))
        raise _damaged(path)

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
                return html_of_record(stored, self.largest).data
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
        file = self.files[number]
        stored = parse_stored(data, f"{file.path}: record at {offset}")
        if stored.record.size is None or len(data) < stored.record.size:
            raise CorruptRecord(f"{stored.at}: is cut short")
        if file.named and stored.record.url != url:
            raise CorruptRecord(f"{stored.at}: is of another page than the index says")
        return stored

    def _read(self, number: int, offset: int, length: int) -> bytes:
        file = self.files[number]
        if file.named and offset + length > file.size:
            raise CorruptRecord(f"{file.path}: record at {offset}: is cut short, or its entry in the index is damaged")
        try:
            return self._records.data(number, offset, length)
        except OSError as error:
            raise CorruptRecord(f"{file.path}: cannot be read: {error.strerror}") from error


def as_text(data: bytes) -> str:
    """Return a text as it is exported; bytes that are not UTF-8 become U+FFFD."""
    return data.decode("utf-8", "replace")


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
