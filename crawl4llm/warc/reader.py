"""Read a document back from the archive through its index entry."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from crawl4llm.base.compression import decompress
from crawl4llm.base.errors import CorruptRecord, MissingRecord
from crawl4llm.base.files import ArchiveError
from crawl4llm.base.input_files import open_regular
from crawl4llm.base.within import require_within
from crawl4llm.warc.cdxj import INDEX_NAME, Entry, read
from crawl4llm.warc.exchanges import REVISIT_MIME
from crawl4llm.warc.files import OPEN_SUFFIX
from crawl4llm.warc.http_messages import HEADERS_FIELD, RECONSTRUCTED
from crawl4llm.warc.payload import html_in_utf8
from crawl4llm.warc.records import HttpHead, Record, field_name, parse_heads
from crawl4llm.warc.serialise import digest

_HEADERS = field_name(HEADERS_FIELD)


class StoredRecord(NamedTuple):
    """A record as it was read."""

    record: Record
    http: HttpHead | None
    data: bytes
    """All of it, heads included."""

    @property
    def payload(self) -> bytes:
        """What its payload digest is over."""
        return self.data[self.http.body_at if self.http else self.record.block_at : self.record.size]


def read_record(directory: Path, entry: Entry) -> bytes:
    """The html or text of the document in UTF-8, checked against the digest in its entry.

    ``directory`` holds the WARC files; one that is still open is read as well. For a revisit it is the payload of the
    first record of that digest that is there; all of the index is searched for it. Raises MissingRecord where the file
    is gone, CorruptRecord where the record is damaged or another than the entry says, ArchiveError for other failures.
    """
    if entry.mime == REVISIT_MIME:
        return _original(directory, entry)
    stored = read_stored(directory, entry.filename, entry.offset, entry.length)
    at = f"{directory / entry.filename} at offset {entry.offset}"
    payload = stored.payload
    if digest(payload) != entry.digest:
        raise CorruptRecord(f"{at}: not the content that the index describes")
    if stored.http is None or stored.record.fields.text(_HEADERS) == RECONSTRUCTED:
        return payload
    try:
        return html_in_utf8(stored.data, stored.record, stored.http)
    except ValueError as error:
        raise CorruptRecord(f"{at}: {error}") from error


def read_stored(directory: Path, filename: str, offset: int, length: int) -> StoredRecord:
    """The record at a place of a file, which may still be open. Errors as for :func:`read_record`."""
    path = directory / filename
    try:
        data = decompress(_read(directory, path, offset, length))
        return StoredRecord(*parse_heads(_Whole(data)), data)
    except ValueError as error:
        raise CorruptRecord(f"{path} at offset {offset}: not a whole WARC record ({error})") from error


class _Whole:
    """A record of which all is there."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def grow(self) -> bool:
        return False


def _original(directory: Path, revisit: Entry) -> bytes:
    for entry in read(directory / INDEX_NAME):
        if entry.digest == revisit.digest and entry.mime != REVISIT_MIME:
            with suppress(MissingRecord):
                return read_record(directory, entry)
    raise MissingRecord(f"{directory / INDEX_NAME} leads to no record of the payload {revisit.digest}")


def _read(directory: Path, path: Path, offset: int, length: int) -> bytes:
    for candidate in (path, path.with_name(path.name + OPEN_SUFFIX)):
        require_within(directory, candidate)
        with suppress(FileNotFoundError):
            return _pread(candidate, length, offset)
    raise MissingRecord(f"{path} does not exist")


def _pread(path: Path, length: int, offset: int) -> bytes:
    try:
        fd, size = open_regular(path)
        try:
            return os.pread(fd, max(0, min(length, size - offset)), offset)
        finally:
            os.close(fd)
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise ArchiveError.of("read", path, exc) from exc
