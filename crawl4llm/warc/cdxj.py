"""The index: one CDXJ line a content record, in crawl order.

``SURT TIMESTAMP {json}`` with the fields, values and key order of cdxj-indexer (all values strings; no ``status`` for a
record without an HTTP response), and one field of our own at the end: ``id``, the document key. cdxj-indexer leaves out
conversion records unless told to list them (``--records conversion``), and then writes the same line. ``filename`` is a
file's final name, also while it still bears ``.open``. A redirect on the way to a page has a line with an empty ``id``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import open_input
from crawl4llm.base.within import is_within
from crawl4llm.warc.urlkey import urlkey

INDEX_NAME, TEXT_INDEX_NAME = "index.cdxj", "text.cdxj"
"""Names of the index, and of that of the text files where these are written."""
REVISIT_MIME = "warc/revisit"
"""What an index gives as media type of a revisit record (cdxj-indexer)."""
_BYTES: Final = re.compile(r"[0-9]{1,17}")
"""An offset or a length; no file system has files in which a longer number would fit."""
_FAULTS: Final = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What parsing raises for what is no line of an index."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a document's content record lies, and what it holds."""

    url: str
    """WARC-Target-URI."""
    timestamp: str
    """WARC-Date as 14 digits."""
    mime: str
    status: str | None
    """HTTP status code; None for a record without an HTTP response."""
    digest: str
    """WARC-Payload-Digest: ``sha1:`` and Base32."""
    length: int
    """Bytes of the compressed record."""
    offset: int
    """Its first byte in the file."""
    filename: str
    id: str
    """The document key; empty for a redirect on the way to a document."""
    language: str | None = None
    """In the index of text files: the page's language as its source tells it, empty where it tells none.

    None elsewhere, and where `scrapy archive repair` made the line again: the page's metadata record tells it too.
    """

    def line(self) -> bytes:
        """Return the line of the index, with its line feed."""
        status = "" if self.status is None else f'"status": {quoted(self.status)}, '
        language = "" if self.language is None else f', "language": {quoted(self.language)}'
        fields = (
            f'{{"url": {quoted(self.url)}, "mime": {quoted(self.mime)}, {status}"digest": {quoted(self.digest)}, '
            f'"length": "{self.length}", "offset": "{self.offset}", "filename": {quoted(self.filename)}, '
            f'"id": {quoted(self.id)}{language}}}'
        )
        return f"{urlkey(self.url)} {self.timestamp} {fields}\n".encode("ascii")


def timestamp(date: str) -> str:
    """Return a WARC-Date (``2022-08-01T12:00:00.123Z``) as CDXJ's 14 digits, cut to the second."""
    return f"{date[:4]}{date[5:7]}{date[8:10]}{date[11:13]}{date[14:16]}{date[17:19]}"


class IndexLine(NamedTuple):
    """A line of an index, ours or another's, as it stands."""

    key: str
    timestamp: str
    fields: dict[str, Any]

    @property
    def id(self) -> str:
        """The document key; empty where it is not known."""
        return str(self.fields.get("id", ""))

    @property
    def place(self) -> tuple[str, int, int]:
        """File, offset and length of the record.

        Raises ValueError where a number cannot be of a file or the name leads out of its folder, LookupError or
        TypeError where one is missing or of another kind.
        """
        offset, length = (_number(self.fields[name]) for name in ("offset", "length"))
        filename = self.fields["filename"]
        if not is_within(filename):
            raise ValueError(f"{filename!r:.200} is no name of a file in its folder")
        return filename, offset, length

    def at(self, filename: str, offset: int, length: int) -> bytes:
        """Return the line of the same record at another place."""
        fields = self.fields | {"filename": filename, "offset": str(offset), "length": str(length)}
        return f"{self.key} {self.timestamp} {json.dumps(fields)}\n".encode("ascii")


def _number(value: object) -> int:
    """Return a number of bytes: a string in our indexes, as such in some of others."""
    if _BYTES.fullmatch(str(value)) is None:
        raise ValueError(f"{value!r:.40} is no offset or length")
    return int(str(value))


def parse_index_line(line: bytes) -> IndexLine | None:
    """Return the line, if it is a whole one."""
    try:
        parsed = _parse(line.decode("ascii"))
        whole = line.endswith(b"\n") and parsed.place[2] > 0
    except _FAULTS:
        return None
    return parsed if whole else None


def parse_many(lines: Sequence[bytes]) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield time stamp and fields of many lines, in a quarter of the time of parsing each; values are not checked.

    Raises LookupError or ValueError where one is no line of an index.
    """
    parts = [line.split(b" ", 2) for line in lines]
    fields = orjson.loads(b"[%b]" % b",".join([part[2] for part in parts]))
    return zip([part[1] for part in parts], fields, strict=True)  # strict: one may hold a comma between two values


def read(path: Path, *, redirects: bool = False, end: int | None = None) -> Iterator[Entry]:
    """Yield the entries of documents in an index, in file order; with ``redirects`` those of redirects to them, too.

    ``end``: how many bytes of the file to read. Raises InputError that names the file and line that cannot be used.
    """
    position = 0
    try:
        with open_input(path) as lines:
            for number, line in enumerate(lines, 1):
                if end is not None and position >= end:
                    break
                position += len(line)
                entry = _entry(line.decode(), f"{path} line {number}")
                if entry.id or redirects:
                    yield entry
    except OSError as exc:
        raise InputError(f"cannot read the index {path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"cannot read the index {path}: it is not text ({exc})") from exc


def _entry(line: str, at: str) -> Entry:
    try:
        parsed = _parse(line)
        filename, offset, length = parsed.place
        url, mime, digest, key = (parsed.fields[name] for name in ("url", "mime", "digest", "id"))
        status, language = map(parsed.fields.get, ("status", "language"))
        entry = Entry(url, parsed.timestamp, mime, status, digest, length, offset, filename, key, language)
        if not all(isinstance(text, str) for text in (url, mime, digest, key)):
            raise ValueError("a value is no text")
    except KeyError as exc:
        raise InputError(f"{at}: no {exc} in this entry; is it the index of a crawl?") from exc
    except _FAULTS as exc:
        raise InputError(f"{at}: not a CDXJ entry ({exc}); is the file cut short?") from exc
    return entry


def _parse(line: str) -> IndexLine:
    key, stamp, fields = line.split(" ", 2)
    return IndexLine(key, stamp, json.loads(fields))
