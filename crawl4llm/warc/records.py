"""Heads of archive records: WARC of any version (ISO 28500), ARC, and the HTTP head inside.

They are read as leniently as crawlers have written them. Lines may end with a bare line feed (as in ClueWeb09), field
names may be in any case, and target URIs may stand in angle brackets (as in WARC/1.0's grammar). Fields may be folded
(ISO 28500:2017, 4; RFC 9112, 5.2). In ARC records, URLs may contain blanks, a length of -1 stands for none, and dates
may have too few or too many digits. A status line may lack the version of HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Final, NamedTuple, NewType, Protocol

from crawl4llm.base.compression import InflateError, TooMuch, inflate, largest_stored, plausible, zstd
from crawl4llm.base.errors import CorruptRecord, TooLarge
from crawl4llm.base.files import PreadFile

_ARC_ADDRESS_DATE: Final = rb"[\w.:-]+ \d{14}|(?:\d{1,3}(?:\.\d{1,3}){3}|0) \d{8,20}"
"""Part of an ARC record's first line that tells it from other lines: few lines of text have an IP address and a
number."""
_ARC_START: Final = rb"[A-Za-z][A-Za-z0-9+.-]*:(?=[^\n]* -?\d{1,17}\r?\n)[^\n]*? (?:%b) [^\n]*\n" % _ARC_ADDRESS_DATE
RECORD_START: Final = re.compile(rb"WARC/\d+\.\d+[ \t]*\r?\n|%b" % _ARC_START)
"""The first line of a WARC record, or of an ARC record."""
LONGEST_LINE: Final = 16_384
"""Bytes in which a record's first line must end."""

_LONGEST_HEAD: Final = 1 << 20
_LENGTH = re.compile(rb"\d{1,17}")
"""Length of a block; no file is so large that a longer number would be needed."""
_ARC_LINE = re.compile(rb"(.*?) (%b) (.*?)(?<![^ ])(-?\d+)\r?\n" % _ARC_ADDRESS_DATE)
_ARC_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)?(\d\d)?(\d\d)?")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:?\d\d)?)?")
_STATUS_LINE = re.compile(rb"HTTP(?:/[\d.]+)?[ \t]+(\d{3})", re.IGNORECASE)
_BLANKS: Final = (b" ", b"\t")
_FOLD = re.compile(rb"(?<![ \t])[ \t]*\r?\n[ \t]+")  # from the first blank only: time is linear
_PADDED_NAME = re.compile(rb"(\n[^\s:]+)[ \t]+:")

Name = NewType("Name", bytes)
"""A field's name in the form for searching."""


def field_name(name: str) -> Name:
    """Return the name of a field for :class:`Fields`; case does not matter (ISO 28500:2017, 4)."""
    return Name(f"\n{name.lower()}:".encode())


TYPE: Final = field_name("WARC-Type")
TARGET_URI: Final = field_name("WARC-Target-URI")
DATE: Final = field_name("WARC-Date")
CONTENT_LENGTH: Final = field_name("Content-Length")
CONTENT_TYPE: Final = field_name("Content-Type")
PAYLOAD_DIGEST: Final = field_name("WARC-Payload-Digest")


class Fields:
    """The named fields of a WARC or HTTP head, found on demand."""

    __slots__ = ("_head", "_searched")

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._searched = head.lower()

    def get(self, name: Name) -> bytes:
        """Return the first field of a name; empty if it is missing."""
        name_at = self._searched.find(name)
        if name_at < 0:
            return b""
        start, head = name_at + len(name), self._head
        end = head.find(b"\n", start)
        if end < 0:
            return head[start:].strip()
        if head.startswith(_BLANKS, end + 1):
            return self._folded(start)[0]
        return head[start:end].strip()

    def listed(self, name: Name) -> bytes:
        """Return all fields of a name as one list (RFC 9110, 5.3)."""
        first = self.get(name)
        at = self._searched.find(name)
        if at < 0 or (at := self._searched.find(name, at + 1)) < 0:
            return first
        values = [first]
        while at >= 0:
            value, end = self._folded(at + len(name))
            values.append(value)
            at = self._searched.find(name, end)
        return b", ".join(values)

    def _folded(self, start: int) -> tuple[bytes, int]:
        """Return the value that begins at an offset, perhaps on several lines, and the end of its last line."""
        end = self._head.find(b"\n", start)
        while end >= 0 and self._head.startswith(_BLANKS, end + 1):
            end = self._head.find(b"\n", end + 1)
        end = end if end >= 0 else len(self._head)
        return _FOLD.sub(b" ", self._head[start:end]).strip(), end

    def text(self, name: Name) -> str:
        """Return the same as :meth:`get`, decoded."""
        return self.get(name).decode("utf-8", "replace")

    def has(self, names: re.Pattern[bytes]) -> bool:
        """Return whether a field has a name in ``names``, a pattern of names in lower case, each after a line feed."""
        return names.search(self._searched) is not None

    def pairs(self) -> list[tuple[bytes, bytes]]:
        """Return all fields, in order."""
        head = _FOLD.sub(b" ", self._head) if b"\n " in self._head or b"\n\t" in self._head else self._head
        parts = (line.partition(b":") for line in head.split(b"\n")[1:])
        return [(name.strip(), value.strip()) for name, colon, value in parts if colon]


class Record(NamedTuple):
    """The head of a record."""

    kind: str
    """``WARC-Type``, in lower case; an ARC record is a ``response``, the head of its file ``filedesc``."""
    fields: Fields
    block_at: int
    """Offset of its block in the record."""
    length: int | None
    """Bytes of the block; None if the record does not say."""

    @property
    def size(self) -> int | None:
        """Bytes of head and block."""
        return None if self.length is None else self.block_at + self.length

    @property
    def url(self) -> str:
        """The target URI; bytes that are not UTF-8 become surrogate escapes."""
        return self.fields.get(TARGET_URI).strip(b"<>").decode("utf-8", "surrogateescape")

    @property
    def date(self) -> str | None:
        """The capture's date in UTC, ``2022-08-01T12:00:00Z``; None if there is no valid one."""
        return _utc(self.fields.text(DATE))

    def block(self, data: bytes) -> bytes:
        """Return the block of the record whose bytes are ``data``."""
        return data[self.block_at : self.size]


class HttpHead(NamedTuple):
    """The head of an HTTP response."""

    status: int
    fields: Fields
    body_at: int
    """Offset of the body in the record."""


def parse_record(data: bytes) -> Record | None:
    """Return the head at the start of ``data``; None while it is incomplete. Raises ValueError if no head begins
    there."""
    if data.startswith(b"WARC/"):
        return _parse_warc(data)
    if RECORD_START.match(data) and (line := _ARC_LINE.match(data)):
        return _parse_arc(line)
    if b"\n" in data or len(data) >= LONGEST_LINE:
        raise ValueError("neither a WARC nor an ARC record")
    return None


def parse_http(data: bytes, start: int) -> HttpHead | None:
    """Return the HTTP head at ``start``; None while it is incomplete. Raises ValueError if no head begins there."""
    status = _STATUS_LINE.match(data, start)
    if status is None:
        if len(data) - start < 16:
            return None
        raise ValueError("no HTTP status line")
    end = _head_end(data, start)
    if end is None:
        return None
    head = data[start : end[0]]
    if b" :" in head or b"\t:" in head:  # blanks behind names, where servers have put them (RFC 9112, 5.1)
        head = _PADDED_NAME.sub(rb"\1:", head)
    return HttpHead(int(status[1]), Fields(head), end[1])


class Opening(Protocol):
    """The beginning of a record, which can be extended."""

    data: bytes

    def grow(self) -> bool:
        """Make ``data`` longer; return False at the end."""


class Whole:
    """A complete record."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def grow(self) -> bool:
        """Return False, because all of the record is there."""
        return False


def parse_heads(opening: Opening) -> tuple[Record, HttpHead | None]:
    """Return a record's head, and that of an HTTP response in it. Raises ValueError unless complete heads begin
    there."""
    while (record := parse_record(opening.data)) is None:
        _grow(opening)
    http = None
    if record.kind in {"response", "revisit"}:
        try:
            while (http := parse_http(opening.data, record.block_at)) is None:
                _grow(opening)
        except ValueError:
            http = None
    return record, http


def _grow(opening: Opening) -> None:
    if len(opening.data) >= _LONGEST_HEAD or not opening.grow():
        raise ValueError("the record's head has no end")


def _head_end(data: bytes, start: int) -> tuple[int, int] | None:
    """Return the ends of a head, without and with its empty line; None if it has none."""
    at = data.find(b"\n\r\n", start)
    bare = data.find(b"\n\n", start, at + 1 if at >= 0 else len(data))  # two searches are faster than an expression
    if bare >= 0:
        return bare, bare + 2
    return (at, at + 3) if at >= 0 else None


def _parse_warc(data: bytes) -> Record | None:
    end = _head_end(data, 0)
    if end is None:
        return None
    fields = Fields(data[: end[0]])
    length = fields.get(CONTENT_LENGTH)
    kind = fields.text(TYPE).lower()
    return Record(kind, fields, end[1], int(length) if _LENGTH.fullmatch(length) else None)


def _parse_arc(line: re.Match[bytes]) -> Record:
    """Parse a URL record's line: URL, IP address, archive date, content type, further fields in version 2, length."""
    url, address_date, others, length = line.groups()
    kind = "filedesc" if url.startswith(b"filedesc:") else "response"
    date = address_date.rpartition(b" ")[2][:14].ljust(14, b"0")
    fields = Fields(b"\nWARC-Target-URI:%b\nWARC-Date:%b\nContent-Type:%b" % (url, date, others.split(b" ")[0]))
    return Record(kind, fields, line.end(), int(length) if _LENGTH.fullmatch(length) else None)


def _utc(date: str) -> str | None:
    if arc := _ARC_DATE.fullmatch(date):
        day, time, zone = "-".join(arc.groups()[:3]), ":".join(part or "00" for part in arc.groups()[3:]), "Z"
    elif warc := _DATE.fullmatch(date):
        day, time, zone = warc[1], warc[2] or "00:00:00", warc[3] or "Z"
    else:
        return None
    zone = "+0000" if zone == "Z" else zone.replace(":", "")
    try:
        moment = datetime.strptime(f"{day}T{time}{zone}", "%Y-%m-%dT%H:%M:%S%z").astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class Frame(NamedTuple):
    """A record's place in its file, and its heads."""

    offset: int
    length: int
    """Bytes that it takes in the file, or in the contents of a file that is compressed as a whole."""
    record: Record | None
    """Its head; None for a damaged or incomplete record."""
    http: HttpHead | None
    """The HTTP head in it; None if the block is not an HTTP response."""
    opening: Opening
    """Its beginning, which may be extended until the next frame is requested."""


class RecordFile(Protocol):
    """An archive file opened for reading, which forks and threads may share."""

    def frames(self) -> Iterator[Frame]:
        """Yield all records, in file order. Damage costs only the damaged records."""

    def read(self, offset: int, length: int, most: int | None = None) -> bytes:
        """Return a record's bytes, decompressed. Raises CorruptRecord, and TooLarge for more than ``most``."""

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        """Yield a record's bytes in pieces, because they may be far more than those in the file. Raises
        CorruptRecord."""


class WholeFileCompressed(Exception):
    """A file is compressed as a whole, not record by record, so that it can be read only from its start."""


class UnreadableFile(Exception):
    """A file without any readable record. The message is one line that names it and says what to do."""


def too_large(path: Path, offset: int) -> TooLarge:
    """Return the error for a record that is too large."""
    return TooLarge(f"{path}: record at {offset}: the page is larger than DOWNLOAD_MAXSIZE")


def read_packed(
    file: PreadFile, coding: str, offset: int, length: int, most: int | None, dictionary: zstd.ZstdDict | None = None
) -> bytes:
    """Return the bytes of a record that is compressed by itself. Raises the errors of :meth:`RecordFile.read`."""
    if most is not None and length > largest_stored(most):
        raise too_large(file.path, offset)
    try:
        return inflate(file.read(length, offset), coding, plausible(length) if most is None else most, dictionary)
    except InflateError as error:
        if most is not None and isinstance(error, TooMuch):
            raise too_large(file.path, offset) from error
        raise CorruptRecord(f"{file.path}: record at {offset}: {error}") from error


def heads_or_none(opening: Opening) -> tuple[Record | None, HttpHead | None]:
    """Return the heads of a record for a Frame."""
    try:
        return parse_heads(opening)
    except ValueError:
        return None, None
