"""Reading of CDXJ indexes of WARC files: a line for each content record, in crawl order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import open_input
from crawl4llm.base.within import is_within
from crawl4llm.warc.page_records import Entry

INDEX_NAME, TEXT_INDEX_NAME = "index.cdxj", "text.cdxj"
"""Names of the index, and of that of text files, if these are written."""
REVISIT_MIME = "warc/revisit"
"""Media type in an index of a revisit record (cdxj-indexer)."""
PURPOSE, SITE, SIGNALS = "purpose", "site", "opt-out-signals"
ABOUT: Final = (PURPOSE, SITE, SIGNALS)
"""Fields of metadata records that the index repeats: purpose and site of exchanges that belong to no page, and opt-out
signals. So an export need not read the metadata of each page."""
_BYTES: Final = re.compile(r"[0-9]{1,17}")
"""An offset or a length; no file is so large that a longer number would be needed."""
_FAULTS: Final = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Parse errors of text that is not a line of an index."""


class IndexLine(NamedTuple):
    """An unparsed line of an index, of this project or another."""

    key: str
    timestamp: str
    fields: dict[str, Any]

    @property
    def id(self) -> str:
        """The document key; empty if it is not known."""
        return str(self.fields.get("id", ""))

    @property
    def place(self) -> tuple[str, int, int]:
        """File, offset and length of the record. Raises ValueError, LookupError or TypeError if one cannot be used."""
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
    """Return a number of bytes, which is a string in this project's indexes and in some others."""
    if _BYTES.fullmatch(str(value)) is None:
        raise ValueError(f"{value!r:.40} is no offset or length")
    return int(str(value))


def parse_index_line(line: bytes) -> IndexLine | None:
    """Return the line, if it is complete."""
    try:
        parsed = _parse(line.decode("ascii"))
        whole = line.endswith(b"\n") and parsed.place[2] > 0
    except _FAULTS:
        return None
    return parsed if whole else None


def parse_many(lines: Sequence[bytes]) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield time stamp and fields of many lines, in a quarter of the time of parsing each; values are not checked.

    Raises LookupError or ValueError for text that is not a line of an index.
    """
    parts = [line.split(b" ", 2) for line in lines]
    fields = orjson.loads(b"[%b]" % b",".join([part[2] for part in parts]))
    return zip([part[1] for part in parts], fields, strict=True)  # strict: one may hold a comma between two values


def read(path: Path, *, redirects: bool = False, end: int | None = None) -> Iterator[Entry]:
    """Yield the entries of documents in an index, in file order; with ``redirects`` also those of redirects to them,
    and of exchanges that belong to no page.

    ``end``: how many bytes of the file to read. Raises InputError that names the file and line that cannot be used.
    """
    position = 0
    told = f"cannot read the index {path}"
    not_text = as_input_error(told, form="{}: it is not text ({})", errors=UnicodeDecodeError)
    with not_text, as_input_error(told), open_input(path) as lines:
        for number, line in enumerate(lines, 1):
            if end is not None and position >= end:
                break
            position += len(line)
            entry = parse_entry(line.decode(), f"{path} line {number}")
            if entry.id or redirects:
                yield entry


def parse_entry(line: str, at: str) -> Entry:
    """Return the entry of a line of an index. Raises InputError, with ``at``, for other text."""
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
