"""The records of a ClueWeb22 tree: their ids, their places in files, and the text, links and HTML in them.

A look-up takes two ``pread`` calls on handles that are kept open. Shapes are those of the dataset's documentation
(``clueweb22-format.md``, "Records"). A record of another shape raises MalformedRecordError with a short reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from crawl4llm.base.compression import Damaged, TooMuch, inflate, inflate_start, largest_stored, plausible
from crawl4llm.base.errors import CorruptRecord, MissingRecord, TooLarge
from crawl4llm.base.files import PreadFile, keep_open
from crawl4llm.base.input_files import parse_json
from crawl4llm.base.pages import Link

LANGUAGES: Final = ("de", "en", "es", "fr", "it", "ja", "nl", "po", "pt", "zh_chs", "other")

TXT, HTML, INLINK, OUTLINK = "txt", "html", "inlink", "outlink"
KINDS: Final = (TXT, HTML, INLINK, OUTLINK)
"""The kinds of records that are handled; each is a folder of the tree. (``vdom`` and ``jpg`` are not.)"""

NO_DATE: Final = "2022-08-01T00:00:00Z"
"""Date of archive records of pages whose capture date the corpus does not hold: no clock enters a simulation, and
ClueWeb22 was crawled until then."""
RECORDS_PER_FILE, FILES_PER_SUBDIR, SUBDIRS_PER_STREAM = 20_000, 100, 81
"""The most that the publisher puts into one of each."""
OFFSET_WIDTH: Final = 11
"""Bytes of one line of an offset file: ten digits and a line feed."""

DATA_SUFFIX: Final = {TXT: ".json.gz", HTML: ".warc.gz", INLINK: ".json.gz", OUTLINK: ".json.gz"}
OFFSET_SUFFIX: Final = {TXT: ".offset", HTML: ".warc.offset", INLINK: ".offset", OUTLINK: ".offset"}
LIST_FIELD: Final = {OUTLINK: "outlinks", INLINK: "anchors"}
"""The field of a record with its links."""
_ID = re.compile(r"clueweb22-([a-z]+(?:_[a-z]+)*)([0-9]{2})([0-9]{2})-([0-9]{2})-([0-9]{5})")


def format_id(file_id: str, record: int) -> str:
    """Return the ClueWeb22-ID of a file's record."""
    return f"clueweb22-{file_id}-{record:05d}"


def split_id(text: str) -> tuple[str, int] | None:
    """Return file id and record number of a ClueWeb22-ID; None for anything that is not exactly one."""
    return (file_id_of(text), record_of(text)) if _ID.fullmatch(text) else None


def number_of(text: str) -> int | None:
    """Return the number of a ClueWeb22-ID among all that the layout has for its language; None for any other text."""
    match = _ID.fullmatch(text)
    if match is None:
        return None
    stream, subdir, file, record = map(int, match.groups()[1:])
    if subdir >= SUBDIRS_PER_STREAM or record >= RECORDS_PER_FILE:
        return None
    return ((stream * SUBDIRS_PER_STREAM + subdir) * FILES_PER_SUBDIR + file) * RECORDS_PER_FILE + record


def file_id_of(key: str) -> str:
    """Return the file id in a ClueWeb22-ID: ``zh_chs0012-00`` of ``clueweb22-zh_chs0012-00-00000``."""
    return key[10:-6]


def record_of(key: str) -> int:
    """Return the number of the record in its file: 7 of ``clueweb22-zh_chs0012-00-00007``."""
    return int(key[-5:])


def language_of(key: str) -> str:
    """Return the language in a ClueWeb22-ID: ``zh_chs`` of ``clueweb22-zh_chs0012-00-00000``."""
    return key[10:-13]


def data_path(root: Path, kind: str, file_id: str, suffixes: Mapping[str, str] = DATA_SUFFIX) -> Path:
    """Return where the records of a file lie."""
    # One join: a tree has tens of thousands of files, and joining is most of what it takes to check one.
    return root / f"{kind}/{file_id[:-7]}/{file_id[:-5]}/{file_id[:-3]}/{file_id}{suffixes[kind]}"


def offset_path(root: Path, kind: str, file_id: str) -> Path:
    """Return where a file's offsets lie: line i is the start of record i, the last line the end of the last."""
    return data_path(root, kind, file_id, OFFSET_SUFFIX)


MAX_OPEN: Final = 256
"""Data files kept open at most, each with its offset file."""
_START, _START_STORED = 512, 1024
"""Bytes of a record, and of its compressed form, that are read for its URL alone."""

Record = TypeVar("Record")


class RecordFiles:
    """The records of a tree, by kind and document."""

    def __init__(self, root: Path, max_open: int = MAX_OPEN) -> None:
        self._root = root
        # Not a method: with a reference back to this object, files would stay open until the garbage is collected.
        self._opened = lru_cache(maxsize=-(-keep_open(2 * max_open) // 2))(partial(_open, root))

    def read(
        self, kind: str, key: str, parse: Callable[[bytes, str], Record], most: int | None = None
    ) -> Record | None:
        """Return the result of ``parse`` for a document's record; None if it has none, or an empty line in its place.

        Raises MissingRecord for a key that is no id, CorruptRecord, and TooLarge for a record of more than ``most``
        bytes.
        """
        stored = self._stored(kind, key, None if most is None else largest_stored(most))
        if stored is None:
            return None
        try:
            data = inflate(stored, "gzip", plausible(len(stored)) if most is None else most)
            return parse(data, key) if data and not data.isspace() else None
        except ValueError as error:
            if most is not None and isinstance(error, TooMuch):
                raise self.too_large(kind, key) from None
            raise CorruptRecord(f"{self._named(kind, key)}: {error}") from error

    def start(self, kind: str, key: str) -> bytes:
        """Return the first bytes of a document's record, uncompressed; none if they cannot be read."""
        stored = self._stored(kind, key, start=_START_STORED)
        try:
            return inflate_start(stored, "gzip", _START) if stored else b""
        except Damaged:
            return b""

    def _stored(self, kind: str, key: str, most: int | None = None, *, start: int | None = None) -> bytes | None:
        """Return a record as it lies in the file, or no more than ``start`` bytes of it; None if file or record does
        not exist. Raises CorruptRecord if the offsets make no sense or point past the end of the data."""
        place = split_id(key)
        if place is None:
            raise MissingRecord(f"{key!r} is not a ClueWeb22-ID")
        try:
            data, offsets = self._opened(kind, place[0])
        except FileNotFoundError:
            return None
        lines = offsets.read(2 * OFFSET_WIDTH, place[1] * OFFSET_WIDTH)
        if len(lines) <= OFFSET_WIDTH:
            return None
        try:
            at, end = int(lines[:OFFSET_WIDTH]), int(lines[OFFSET_WIDTH:])
        except ValueError:
            at, end = -1, -1
        if not 0 <= at <= end <= data.size:
            raise CorruptRecord(f"{offsets.path}: broken offsets of {key}")
        if most is not None and end - at > most:
            raise self.too_large(kind, key)
        return data.read(end - at if start is None else min(end - at, start), at)

    def count(self, kind: str, file_id: str) -> int:
        """Return how many records a file has; 0 if there is no such file."""
        with suppress(FileNotFoundError):
            return max(0, self._opened(kind, file_id)[1].size // OFFSET_WIDTH - 1)
        return 0

    def too_large(self, kind: str, key: str) -> TooLarge:
        """Return the error for a record that is larger than is allowed."""
        return TooLarge(f"{self._named(kind, key)}: larger than DOWNLOAD_MAXSIZE")

    def _named(self, kind: str, key: str) -> str:
        return f"{data_path(self._root, kind, file_id_of(key))}: record {key}"

    def close(self) -> None:
        """Close every file that is not being read; the next look-up opens its file again."""
        self._opened.cache_clear()


def _open(root: Path, kind: str, file_id: str) -> tuple[PreadFile, PreadFile]:
    return PreadFile(data_path(root, kind, file_id)), PreadFile(offset_path(root, kind, file_id))


FULL_ID_POSITION = 5
"""Place of the id in a link as published."""

_ID_FIELD = "ClueWeb22-ID"
_NOT_BOILERPLATE = ("", "0")
_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n")
_FRACTION = re.compile(r"\.[0-9]+")
_TYPES_OF_KEYS = {str, type(None)}
_new_tuple = tuple.__new__


class MalformedRecordError(ValueError):
    """Raised for bytes that are no record of the kind and document asked for."""


class TextRecord(NamedTuple):
    """A record of kind ``txt``. Its URL may be cut at the first comma."""

    url: str
    language: str
    text: str


class LinkRecord(NamedTuple):
    """A record of kind ``outlink`` or ``inlink``; slimmed copies may leave ``url`` and ``language`` empty."""

    url: str
    language: str
    links: list[Link]


class HtmlRecord(NamedTuple):
    """A record of kind ``html``; ``date`` is in UTC to the second, None if the record's cannot be read."""

    url: str
    language: str
    date: str | None
    html: bytes


def parse_text(data: bytes, key: str) -> TextRecord:
    """Read a ``txt`` record of the document ``key``."""
    record = _json_record(data, key)
    text = record.get("Clean-Text")
    if not isinstance(text, str):
        raise MalformedRecordError("no Clean-Text")
    return TextRecord(_string(record, "URL").strip(), _string(record, "Language"), text)


def parse_links(data: bytes, key: str, kind: str, target_prefix: str = "") -> LinkRecord:
    """Read an ``outlink`` or ``inlink`` record.

    A link is ``[URL, URL hash, anchor text, header/footer flag, language, id]``. If the first is shorter, the record is
    of a slimmed copy, which the published implementation reads by default. Its ids come first, and URL and anchor are
    read as empty. Ids that do not start with ``target_prefix`` are read as None.
    """
    record = _json_record(data, key)
    field = LIST_FIELD[kind]
    links = record.get(field)
    if not isinstance(links, list):
        raise MalformedRecordError(f"no list {field}")
    try:
        read = _read_links(links)
    except (LookupError, TypeError, ValueError) as error:
        raise MalformedRecordError(f"a link in {field} has another shape ({error})") from error
    if target_prefix:
        read = [
            link if link.key is None or link.key.startswith(target_prefix) else link._replace(key=None) for link in read
        ]
    first = next((link.key for link in read if link.key is not None), None)
    if first is not None and kind == OUTLINK and split_id(first) is None:  # of inlinks it is the number that counts
        raise MalformedRecordError(f"a link in {field} has no id in its place, but {first[:60]!r}")
    return LinkRecord(_string(record, "url"), _string(record, "language"), read)


def parse_html(data: bytes, key: str) -> HtmlRecord:
    """Read an ``html`` record: a WARC head, then the HTML itself without any HTTP head (ISO 28500:2017 section 4)."""
    fields, start = _warc_head(data, key)
    length = fields.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        raise MalformedRecordError("no Content-Length")
    end = start + int(length)
    if end > len(data):
        raise MalformedRecordError(f"the HTML is cut short: {len(data) - start} of {length} bytes")
    date = _utc_seconds(fields.get("warc-date", ""))
    url = fields.get("warc-target-uri", "").strip("<>")
    return HtmlRecord(url, fields.get("language", ""), date, data[start:end])


def url_at_start(kind: str, start: bytes, key: str) -> str:
    """Return the URL of the document ``key`` that the first bytes of its ``txt`` or ``html`` record name; empty if they
    do not tell."""
    try:
        if kind == HTML:
            return _warc_head(start, key)[0].get("warc-target-uri", "").strip("<>")
        fields_before_text, found, _ = start.partition(b',"Clean-Text":')  # in a JSON string the quotes were escaped
        return _string(_json_record(fields_before_text + b"}", key), "URL").strip() if found else ""
    except MalformedRecordError:
        return ""


def _read_links(fields: list[Any]) -> list[Link]:
    if not fields:
        return []
    # Runs once for every crawled page, over some 30 links: no call for each link.
    if len(fields[0]) <= FULL_ID_POSITION:
        links = [_new_tuple(Link, ("", link[0], "", False, "", "")) for link in fields]
    else:
        links = [
            _new_tuple(Link, (url, key, anchor, flag not in _NOT_BOILERPLATE, "", ""))
            for url, _, anchor, flag, _, key in fields
        ]
    urls, keys, anchors, *_ = zip(*links, strict=True)
    if {*map(type, urls), *map(type, anchors)} != {str} or not {*map(type, keys)} <= _TYPES_OF_KEYS:
        raise TypeError("a field is not a string")
    return links


def _json_record(data: bytes, key: str) -> dict[str, Any]:
    try:
        record: Any = orjson.loads(data)
    except orjson.JSONDecodeError:  # is also raised at lone surrogates and NaN, which real records may have
        record = _odd_json(data)
    if not isinstance(record, dict):
        raise MalformedRecordError("not a JSON object")
    if record.get(_ID_FIELD, key) != key:
        raise MalformedRecordError(f"holds {record[_ID_FIELD]!r}")
    return record


def _odd_json(data: bytes) -> Any:
    """Parse JSON as Python's own library does, which takes more than orjson; with U+FFFD for each lone half of a
    surrogate pair, which nothing could encode."""
    try:
        text = json.dumps(parse_json(data), ensure_ascii=False)
        return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (ValueError, RecursionError) as error:
        raise MalformedRecordError(f"broken JSON ({error})") from error


def _string(record: dict[str, Any], field: str) -> str:
    value = record.get(field) or ""
    if not isinstance(value, str):
        raise MalformedRecordError(f"{field} is not a string")
    return value


def _warc_head(data: bytes, key: str) -> tuple[dict[str, str], int]:
    """Return the fields of the WARC head of a document, and the position of the block behind its blank line."""
    end = _BLANK_LINE.search(data)
    if end is None or not data.startswith(b"WARC/"):
        raise MalformedRecordError("no WARC head, or one that has no end")
    fields = {}
    for line in data[: end.start()].decode("utf-8", "replace").split("\n")[1:]:
        name, _, value = line.partition(":")
        fields[name.lower()] = value.strip()
    if (held := fields.get("clueweb22-id")) != key:
        raise MalformedRecordError(f"holds {held!r}")
    return fields, end.end()


def _utc_seconds(date: str) -> str | None:
    """Return a W3C date-time with or without fraction, in UTC to the second: ``2022-08-01T12:00:00Z``."""
    try:
        moment = datetime.fromisoformat(_FRACTION.sub("", date).replace("Z", "+00:00"))
        return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ") if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
