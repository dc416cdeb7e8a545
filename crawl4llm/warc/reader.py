"""The only reader of archive files, which recognises them by their first bytes, not by their names."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from crawl4llm.base.charsets import Html
from crawl4llm.base.compression import ZSTD_START, Damaged, inflate_start
from crawl4llm.base.errors import CorruptRecord, MissingRecord
from crawl4llm.base.files import ArchiveError, PreadFile, keep_open
from crawl4llm.base.object_store import open_archive_file
from crawl4llm.base.within import require_within
from crawl4llm.warc import records as warc
from crawl4llm.warc.archive import OPEN_SUFFIX
from crawl4llm.warc.cdxj import INDEX_NAME, REVISIT_MIME, read
from crawl4llm.warc.gzip import GZIP_MAGIC, GzipRecords, ReadAhead, WholeGzip
from crawl4llm.warc.http_messages import HEADERS_FIELD, RECONSTRUCTED
from crawl4llm.warc.page_records import Entry, digest
from crawl4llm.warc.payload import entity, html_of
from crawl4llm.warc.plain import PlainRecords
from crawl4llm.warc.zstd import ZstdRecords

MAX_OPEN: Final = 256
"""Most files kept open."""
_HEADS: Final = 1 << 21
"""Most bytes of the heads of a record, and of line ends after it."""
_HEADERS: Final = warc.field_name(HEADERS_FIELD)
_NOT_MODIFIED: Final = 304

T = TypeVar("T")
F = TypeVar("F", bound=Hashable)


def open_records(path: Path, points: Path) -> warc.RecordFile:
    """Open an archive file for look-ups; ``points`` has its entry points if it is compressed as a whole.

    Raises UnreadableFile, and OSError if the file cannot be opened.
    """
    file = open_archive_file(path)
    return PlainRecords(WholeGzip(file.path, points)) if points.exists() else _records(file)


def scan(path: Path, points: Path, collect: Callable[[Iterable[warc.Frame]], T]) -> T:
    """Pass all records of a file to ``collect`` and return its result; write ``points`` if it is compressed as a whole.

    Raises UnreadableFile, and OSError if the file cannot be read.
    """
    file = open_archive_file(path)
    records = _records(file)
    try:
        return collect(records.frames())
    except warc.WholeFileCompressed:
        if not isinstance(records, GzipRecords):
            raise warc.UnreadableFile(f"{path}: is compressed as a whole, not record by record; unpack it") from None
    return collect(PlainRecords(ReadAhead(WholeGzip(path, points))).frames())


def _records(file: PreadFile) -> warc.RecordFile:
    start = file.read(warc.LONGEST_LINE, 0)
    if start.startswith(GZIP_MAGIC):
        return GzipRecords(file)
    if ZSTD_START.match(start):
        try:
            return ZstdRecords(file)
        except CorruptRecord as error:
            raise warc.UnreadableFile(str(error)) from error
    if warc.RECORD_START.match(start.lstrip(b"\r\n")):
        return PlainRecords(file)
    fault = "is empty" if not start else "is neither a WARC nor an ARC file"
    raise warc.UnreadableFile(f"{file.path}: {fault}; fetch it again or take it away")


def begins_like_archive(path: Path) -> bool:
    """Return whether a file begins like an archive file. Raises OSError if it cannot be read."""
    start = open_archive_file(path).read(warc.LONGEST_LINE, 0)
    if start.startswith(GZIP_MAGIC):
        try:
            start = inflate_start(start, "gzip", warc.LONGEST_LINE)
        except Damaged:
            return False
    return bool(ZSTD_START.match(start) or warc.RECORD_START.match(start.lstrip(b"\r\n")))


class StoredRecord(NamedTuple):
    """A record that was read."""

    record: warc.Record
    http: warc.HttpHead | None
    data: bytes
    """All its bytes, heads included."""
    at: str
    """File and offset, for messages."""

    @property
    def payload(self) -> bytes:
        """The bytes under its payload digest."""
        return self.data[self.http.body_at if self.http else self.record.block_at : self.record.size]


def parse_stored(data: bytes, at: str) -> StoredRecord:
    """Return the record whose bytes are ``data``. Raises CorruptRecord for other bytes."""
    try:
        return StoredRecord(*warc.parse_heads(warc.Whole(data)), data, at)
    except ValueError as error:
        raise CorruptRecord(f"{at}: not a whole record ({error})") from error


class RecordReader(Generic[F]):
    """Reads records by file and place, one ``pread`` each, from files that stay open.

    ``locate`` gives a file's path and that of its entry points (see :func:`open_records`). At most ``largest`` bytes of
    a record are read after its heads. ``advice`` ends the messages about files that have changed.
    """

    def __init__(self, locate: Callable[[F], tuple[Path, Path]], largest: int | None = None, advice: str = "") -> None:
        self._locate, self._largest, self._advice = locate, largest, advice
        # Not a method: with a reference back to this object, files would stay open until the garbage is collected.
        self._opened = lru_cache(maxsize=keep_open(MAX_OPEN))(partial(_open_located, locate))

    def data(self, file: F, offset: int, length: int) -> bytes:
        """Return a record's bytes. Raises MissingRecord if the file is gone; CorruptRecord, TooLarge and OSError."""
        try:
            records = self._opened(file)[1]
            return records.read(offset, length, None if self._largest is None else self._largest + _HEADS)
        except FileNotFoundError:
            raise MissingRecord(f"{self._locate(file)[0]}: was removed after indexing{self._advice}") from None
        except warc.UnreadableFile as error:
            raise CorruptRecord(str(error)) from error

    def read(self, file: F, offset: int, length: int) -> StoredRecord:
        """Return a record. Raises the errors of :meth:`data`."""
        data = self.data(file, offset, length)
        path = self._opened(file)[0]
        try:
            stored = parse_stored(data, f"{path}: record at {offset}")
        except CorruptRecord as error:
            raise CorruptRecord(f"{error}{self._advice}") from error
        if self._largest is not None and len(stored.payload) > self._largest:
            raise warc.too_large(path, offset)
        return stored

    def close(self) -> None:
        """Close every file that is not being read; the next look-up opens its file again."""
        self._opened.cache_clear()


def _open_located(locate: Callable[[F], tuple[Path, Path]], file: F) -> tuple[Path, warc.RecordFile]:
    path, points = locate(file)
    return path, open_records(path, points)


def read_stored(directory: Path, filename: str, offset: int, length: int) -> StoredRecord:
    """Return the record at a place of a file, which may still be open. Raises the errors of :func:`read_record`."""
    path = directory / filename
    for candidate in (path, path.with_name(path.name + OPEN_SUFFIX)):
        require_within(directory, candidate)
        try:
            file = open_archive_file(candidate)
            data = _records(file).read(offset, min(length, file.size))
        except FileNotFoundError:
            continue
        except warc.UnreadableFile as error:
            raise CorruptRecord(str(error)) from error
        except OSError as error:
            raise ArchiveError.of("read", path, error) from error
        return parse_stored(data, f"{path}: record at {offset}")
    raise MissingRecord(f"{path} does not exist")


def read_record(directory: Path, entry: Entry) -> bytes:
    """Return the html or text of the document in UTF-8, checked against the digest in its entry.

    ``directory`` holds the WARC files; one that is still open is read as well. A revisit has the payload of the first
    record with its digest, which is searched in the whole index, decoded by the revisit's own HTTP head. Raises
    MissingRecord if the file is gone, CorruptRecord if the record is damaged or does not match the entry, and
    ArchiveError for other failures.
    """
    return read_page(directory, entry).data


def read_page(directory: Path, entry: Entry) -> Html:
    """Like :func:`read_record`, with the charset in which it came."""
    revisit = None
    if entry.mime == REVISIT_MIME:
        revisit = read_stored(directory, entry.filename, entry.offset, entry.length)
        if revisit.record.fields.text(warc.PAYLOAD_DIGEST) != entry.digest:
            raise CorruptRecord(f"{revisit.at}: not the content that the index describes")
        stored = _original(directory, entry)
    else:
        stored = _checked(directory, entry)
    if stored.http is None or stored.record.fields.text(_HEADERS) == RECONSTRUCTED:
        return Html(stored.payload)
    try:
        return html_of_record(stored, None, revisit)
    except ValueError as error:
        raise CorruptRecord(f"{stored.at}: {error}") from error


def html_of_record(stored: StoredRecord, most: int | None, revisit: StoredRecord | None = None) -> Html:
    """Return the HTML in a record, in UTF-8. Raises the errors of :func:`crawl4llm.warc.payload.html_of`.

    ``revisit``: the record of another capture with the same payload. Its HTTP head tells how to decode that (ISO
    28500:2017, 6.7.2), unless it says only that nothing has changed (304, RFC 9110, 15.4.5).
    """
    head = revisit.http if revisit and revisit.http and revisit.http.status != _NOT_MODIFIED else stored.http
    fields = head.fields if head else stored.record.fields
    return html_of(entity(stored.data, stored.record, stored.http), fields, most)


def _checked(directory: Path, entry: Entry) -> StoredRecord:
    """Return the record of an entry that is not a revisit. Raises the errors of :func:`read_record`."""
    stored = read_stored(directory, entry.filename, entry.offset, entry.length)
    if digest(stored.payload) != entry.digest:
        raise CorruptRecord(f"{stored.at}: not the content that the index describes")
    return stored


def _original(directory: Path, revisit: Entry) -> StoredRecord:
    for entry in read(directory / INDEX_NAME):
        if entry.digest == revisit.digest and entry.mime != REVISIT_MIME:
            with suppress(MissingRecord):
                return _checked(directory, entry)
    raise MissingRecord(f"{directory / INDEX_NAME} leads to no record of the payload {revisit.digest}")


class Stretch(NamedTuple):
    """A part of a file. All parts together, in order, are the whole file."""

    offset: int
    length: int
    frame: warc.Frame | None
    """The record in it; None for damage."""


class WarcReader:
    """Reads a WARC file part by part, compressed by record or not at all. Raises UnreadableFile, and OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open_archive_file(path)
        self.size = self._file.size
        self._records = _records(self._file)
        self.read = self._records.read
        self.pieces = self._records.pieces

    def stretches(self) -> Iterator[Stretch]:
        """Yield all parts, in file order. Raises UnreadableFile if records are not compressed one by one.

        The dictionary before the first record of a Zstandard file is not a part.
        """
        end: int | None = None if isinstance(self._records, ZstdRecords) else 0
        try:
            for frame in self._records.frames():
                yield from self._between(frame.offset if end is None else end, frame.offset)
                end = frame.offset
                if frame.length:
                    yield Stretch(frame.offset, frame.length, frame if frame.record else None)
                    end += frame.length
        except warc.WholeFileCompressed:
            raise warc.UnreadableFile(f"{self.path}: is compressed as a whole, not record by record") from None
        yield from self._between(end or 0, self.size)

    def _between(self, start: int, end: int) -> Iterator[Stretch]:
        """Yield damage between two records, unless it is line ends in an uncompressed file."""
        is_plain = isinstance(self._records, PlainRecords)
        if start < end and not (is_plain and not self.raw(start, end - start).strip(b"\r\n")):
            yield Stretch(start, end - start, None)

    def raw(self, offset: int, length: int) -> bytes:
        """Return unchanged bytes of the file."""
        return self._file.read(length, offset)
