"""The index: one CDXJ line a content record, in crawl order.

``SURT TIMESTAMP {json}`` with the fields, values and key order of cdxj-indexer (all values strings; no ``status`` for a
record without an HTTP response), and one field of our own at the end: ``id``, the document key. cdxj-indexer leaves out
conversion records unless told to list them (``--records conversion``), and then writes the same line. ``filename`` is a
file's final name, also while it still bears ``.open``. A redirect on the way to a page has a line with an empty ``id``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any, Final

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
        """The line of the index, with its line feed."""
        status = "" if self.status is None else f'"status": {quoted(self.status)}, '
        language = "" if self.language is None else f', "language": {quoted(self.language)}'
        fields = (
            f'{{"url": {quoted(self.url)}, "mime": {quoted(self.mime)}, {status}"digest": {quoted(self.digest)}, '
            f'"length": "{self.length}", "offset": "{self.offset}", "filename": {quoted(self.filename)}, '
            f'"id": {quoted(self.id)}{language}}}'
        )
        return f"{urlkey(self.url)} {self.timestamp} {fields}\n".encode("ascii")


def timestamp(date: str) -> str:
    """A WARC-Date (``2022-08-01T12:00:00.123Z``) as CDXJ's 14 digits, cut to the second."""
    return f"{date[:4]}{date[5:7]}{date[8:10]}{date[11:13]}{date[14:16]}{date[17:19]}"


def place_of(fields: dict[str, Any]) -> tuple[str, int, int]:
    """Return file name, offset and length that a line's JSON states.

    Raises ValueError where a number cannot be of a file or the name leads out of its folder, LookupError or TypeError
    where one is missing or of another kind.
    """
    offset, length = (_number(fields[name]) for name in ("offset", "length"))
    filename = fields["filename"]
    if not is_within(filename):
        raise ValueError(f"{filename!r:.200} is no name of a file in its folder")
    return filename, offset, length


def _number(value: object) -> int:
    """A number of bytes: a string in our indexes, as such in some of others."""
    if _BYTES.fullmatch(str(value)) is None:
        raise ValueError(f"{value!r:.40} is no offset or length")
    return int(str(value))


def read(path: Path, *, redirects: bool = False, end: int | None = None) -> Iterator[Entry]:
    """The entries of documents in an index, in file order; with ``redirects`` those of redirects to them, too.

    ``end``: how many bytes of the file to read. Raises InputError that names the file and line that cannot be used.
    """
    position = 0
    try:
        with open_input(path) as lines:
            for number, line in enumerate(lines, 1):
                if end is not None and position >= end:
                    break
                position += len(line)
                entry = _parse(line.decode(), path, number)
                if entry.id or redirects:
                    yield entry
    except OSError as exc:
        raise InputError(f"cannot read the index {path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"cannot read the index {path}: it is not text ({exc})") from exc


def _parse(line: str, path: Path, number: int) -> Entry:
    try:
        _, stamp, fields = line.split(" ", 2)
        data = json.loads(fields)
        filename, offset, length = place_of(data)
        entry = Entry(
            url=data["url"],
            timestamp=stamp,
            mime=data["mime"],
            status=data.get("status"),
            digest=data["digest"],
            length=length,
            offset=offset,
            filename=filename,
            id=data["id"],
            language=data.get("language"),
        )
        if not all(isinstance(text, str) for text in (entry.url, entry.mime, entry.digest, entry.id)):
            raise ValueError("a value is no text")  # noqa: TRY301 - as what is no CDXJ does
    except KeyError as exc:
        raise InputError(f"{path} line {number}: no {exc} in this entry; is it the index of a crawl?") from exc
    except (AttributeError, RecursionError, TypeError, ValueError) as exc:
        raise InputError(f"{path} line {number}: not a CDXJ entry ({exc}); is the file cut short?") from exc
    return entry
