"""The WARC records of a corpus's pages (ISO 28500:2017, version 1.1), with heads by warcio.

:mod:`crawl4llm.warc.exchanges` has those of pages that came over the network.

A page with html becomes a ``response`` (6.3). A corpus keeps no HTTP headers: the record's HTTP head is
reconstructed, and the extension field ``Crawl4LLM-HTTP-Headers: reconstructed`` says so. Where the URL is neither
http nor https there is no HTTP head to reconstruct, and the page becomes a ``resource`` (6.4). A page with text only
becomes a ``conversion`` (6.8) as in Common Crawl's WET files, ``Content-Type: text/plain`` in UTF-8; a page with
neither, one with an empty block, so that each page has exactly one content record. WET's
``WARC-Identified-Content-Language`` is left out: it holds ISO 639-3 codes that a language detector found, and a
corpus's own tag (``zh_chs``) is not one.

A ``metadata`` record (6.6) describes the content record. It names a response, revisit or resource in
``WARC-Concurrent-To``, as part of the same capture event (5.7, table A.1), and a conversion, where 5.7 forbids that, in
``WARC-Refers-To`` (5.11, table A.5). Digests are SHA-1 in Base32; a metadata record has a block digest only, for it has
no payload (5.9).

Nothing here reads a clock or draws a number: record ids come from the crawl id and the document key, dates from the
page or, where it has none, from the start of the crawl.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote
from uuid import UUID

from warcio.statusandheaders import StatusAndHeaders

from crawl4llm.base.files import ArchiveError
from crawl4llm.base.pages import PageRecord
from crawl4llm.base.urls import BLANKS, SCHEME
from crawl4llm.warc.http_messages import HEADERS_FIELD, RECONSTRUCTED

MAX_URI = 16 * 1024
"""Longest URI in a header, in bytes; FastWARC reads heads of 32 KiB at most unless told otherwise."""

_URI_CHARACTERS = ":/?#[]@!$&'()*+,;=%"
_PLAIN_URI = re.compile(r"[a-z][a-z0-9+.-]*:[A-Za-z0-9_.~:/?#\[\]@!$&'()*+,;=-]*")
"""A URI that is left as it is."""
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NOT_TEXT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_UTC_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", re.ASCII)
_LINE_END = frozenset("\r\n\0")
_SURROGATE = re.compile("[\ud800-\udfff]")


def safe_uri(url: str) -> str:
    """Return a URL as ASCII without space or control characters (RFC 3986, as ISO 28500:2017 5.14 asks).

    The scheme is written in lower case, white space around the URL dropped; what may not stand in a URI is
    percent-encoded as UTF-8, also in the host (RFC 3986 3.2.2). What a URI may hold is left as it is. "" stands for no
    URL, and for one longer than ``MAX_URI``.
    """
    if _PLAIN_URI.fullmatch(url):
        return url if len(url) <= MAX_URI else ""
    url = url.strip(BLANKS)
    if scheme := SCHEME.match(url):
        url = scheme[0].lower() + url[scheme.end() :]
    uri = quote(_STRAY_PERCENT.sub("%25", url), safe=_URI_CHARACTERS, errors="surrogatepass")
    return uri if len(uri) <= MAX_URI else ""


def one_line(value: str) -> str:
    """Return a value for one line of ``application/warc-fields``, control characters and surrogates percent-encoded.

    UTF-8 beyond ASCII is allowed there (ISO 28500:2017 clause 4, TEXT) and stays.
    """
    if value.isprintable():  # most are, and this is the quicker question
        return value
    return _NOT_TEXT.sub(lambda match: quote(match[0], errors="surrogatepass"), value)


def utf8(text: str) -> bytes:
    """Return text in UTF-8; lone surrogates, which UTF-8 cannot hold, become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def is_utc_date(value: str) -> bool:
    """Return whether a value is a WARC-Date to the second or finer (ISO 28500:2017 5.4): a real day, in UTC."""
    if not _UTC_DATE.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value[:19])
    except ValueError:
        return False
    return True


Fields = Mapping[str, str | int | float | None]
"""Named values for a warcinfo or metadata record, in the order in which they are written; None is left out."""
Head = list[tuple[str, str]]
"""The named fields of a record, all but those that :func:`record_bytes` adds. Values must fit on a line."""

FORMAT_FIELDS = {
    "format": "WARC File Format 1.1",
    "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
}
"""Fields of a warcinfo record on the format."""

RESPONSE_TYPE = "application/http; msgtype=response"
_WARC_FIELDS = "application/warc-fields"
_HTML, _TEXT = "text/html; charset=utf-8", "text/plain"
_HTTP_HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: {_HTML}\r\nContent-Length: %d\r\n\r\n".encode()
_VERSION = "WARC/1.1"
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_PAIRS = [first + second for first in _BASE32 for second in _BASE32]
_SHIFTS = range(150, -1, -10)
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
"""A UUID's digit 17 by that of its digest: the two upper bits are 10 (RFC 9562, 4.1)."""


@dataclass(frozen=True, slots=True)
class ContentRecord:
    """A record that the index lists: its bytes, and its fields for the index and the metadata record."""

    id: str
    """WARC-Record-ID, angle brackets included."""
    kind: str
    """WARC-Type."""
    url: str
    """WARC-Target-URI: the page's URL, or the record's own URN where it has none that fits."""
    date: str
    mime: str
    status: str | None
    """HTTP status code; None where the record holds no HTTP response."""
    digest: str
    """WARC-Payload-Digest, over the html or text, or the body that a server sent."""
    data: bytes
    """The whole record, uncompressed."""
    language: str | None = None
    """Language of a text, for the index."""


class RecordBuilder:
    """Builds the records of an archive. ``start_date`` dates warcinfo records and pages without a date of their own."""

    def __init__(self, crawl_id: UUID, start_date: str) -> None:
        self.crawl_id = crawl_id
        self._start_date = start_date
        self._warcinfo_ids: dict[str, str] = {}

    def warcinfo_id(self, filename: str) -> str:
        """Return the id of a file's warcinfo record, which its other records name."""
        if filename not in self._warcinfo_ids:
            self._warcinfo_ids[filename] = record_id(self.crawl_id, "warcinfo", filename)
        return self._warcinfo_ids[filename]

    def date(self, date: str | None) -> str:
        """Return a date, if it is one that WARC knows; else that of the start of the crawl."""
        return date if date is not None and is_utc_date(date) else self._start_date

    def warcinfo(self, filename: str, fields: Fields) -> bytes:
        """Return the record that begins the file ``filename`` (6.2)."""
        head = [
            ("WARC-Record-ID", self.warcinfo_id(filename)),
            ("WARC-Date", self._start_date),
            ("WARC-Filename", one_line(filename)),
        ]
        return record_bytes("warcinfo", head, _WARC_FIELDS, warc_fields(fields))

    def content(self, page: PageRecord, warcinfo_id: str) -> ContentRecord:
        """Return the record that holds the content of a page of a corpus."""
        url = safe_uri(page.url)
        if page.html is None:
            kind, payload, media_type = "conversion", utf8(page.text or ""), _TEXT
        else:
            kind, payload, media_type = "resource", page.html, _HTML
            if url.startswith(("http:", "https:")):
                kind = "response"
        identifier = record_id(self.crawl_id, kind, page.key)
        url = url or identifier[1:-1]
        date = self.date(page.date)
        head = record_head(identifier, date, url, warcinfo_id)
        payload_digest = digest(payload)
        mime, status, http_head = media_type.partition(";")[0], None, None
        if kind == "response":
            head.append((HEADERS_FIELD, RECONSTRUCTED))
            status, media_type, http_head = "200", RESPONSE_TYPE, _HTTP_HEAD % len(payload)
        data = record_bytes(kind, head, media_type, payload, payload_digest, http_head)
        return ContentRecord(identifier, kind, url, date, mime, status, payload_digest, data)

    def metadata(self, key: str, content: ContentRecord, warcinfo_id: str, fields: Fields) -> bytes:
        """Return the record that describes a content record."""
        link = "WARC-Refers-To" if content.kind == "conversion" else "WARC-Concurrent-To"
        head = record_head(record_id(self.crawl_id, "metadata", key), content.date, content.url, warcinfo_id)
        head.append((link, content.id))
        return record_bytes("metadata", head, _WARC_FIELDS, warc_fields(fields))

    def text(self, page: PageRecord, content: ContentRecord, warcinfo_id: str, text: str) -> ContentRecord:
        """Return the record that holds the text of a page whose content is in another."""
        kind, url, date, payload = "conversion", content.url, content.date, utf8(text)
        identifier = record_id(self.crawl_id, "text", page.key)
        head = [*record_head(identifier, date, url, warcinfo_id), ("WARC-Refers-To", content.id)]
        payload_digest = digest(payload)
        data = record_bytes(kind, head, _TEXT, payload, payload_digest)
        return ContentRecord(identifier, kind, url, date, _TEXT, None, payload_digest, data, page.language or "")


def record_head(identifier: str, date: str, url: str, warcinfo_id: str) -> Head:
    """Return the fields with which every record of a page begins, after its type."""
    return [
        ("WARC-Record-ID", identifier),
        ("WARC-Date", date),
        ("WARC-Target-URI", url),
        ("WARC-Warcinfo-ID", warcinfo_id),
    ]


def digest(*parts: bytes) -> str:
    """Return ``sha1:`` and Base32 (RFC 4648, 6), as WARC-Payload-Digest and WARC-Block-Digest have it (5.8)."""
    sha1 = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        sha1.update(part)
    number = int.from_bytes(sha1.digest(), "big")
    return "sha1:" + "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])  # base64 takes twice the time


def record_id(crawl_id: UUID, kind: str, key: str) -> str:
    """Return ``<urn:uuid:...>``: the name-based UUID (RFC 9562, 5.5) of a record of ``kind`` about ``key``."""
    name = f"{kind} {key}".encode("utf-8", "backslashreplace")
    hex_digits = hashlib.sha1(crawl_id.bytes + name, usedforsecurity=False).hexdigest()
    return (
        f"<urn:uuid:{hex_digits[:8]}-{hex_digits[8:12]}-5{hex_digits[13:16]}-"
        f"{_VARIANT[hex_digits[16]]}{hex_digits[17:20]}-{hex_digits[20:32]}>"
    )


def record_bytes(
    kind: str,
    head: Sequence[tuple[str, str]],
    content_type: str,
    payload: bytes,
    payload_digest: str | None = None,
    http_head: bytes | None = None,
) -> bytes:
    """Return a whole record as warcio writes it: type, the fields of ``head``, digests, media type, length, block.

    The block is the payload, after ``http_head`` where there is one. ``payload_digest`` is left out where there is no
    payload (5.9), and that of another record for a revisit. The head is warcio's; its WARCWriter, which copies the
    block twice, would take three times as long for the whole.
    """
    fields = [("WARC-Type", kind), *head]
    if payload_digest is not None:
        fields.append(("WARC-Payload-Digest", payload_digest))
    block_digest = digest(http_head, payload) if http_head is not None else payload_digest or digest(payload)
    fields += [
        ("WARC-Block-Digest", block_digest),
        ("Content-Type", content_type),
        ("Content-Length", str(len(http_head or b"") + len(payload))),
    ]
    head_bytes: bytes = StatusAndHeaders("", fields, protocol=_VERSION).to_bytes()
    ends = len(fields) + 2  # of the first line and of the empty one too
    if b"\0" in head_bytes or not head_bytes.count(b"\n") == head_bytes.count(b"\r") == ends:
        raise ArchiveError(f"a record's field holds a line end or NUL: {next(filter(_breaks, fields))!r:.300}")
    return b"".join((head_bytes, http_head or b"", payload, b"\r\n\r\n"))


def _breaks(field: tuple[str, str]) -> bool:
    """Return whether a field would end its line."""
    return not _LINE_END.isdisjoint("".join(field))


def warc_fields(fields: Fields) -> bytes:
    """Return the block of an ``application/warc-fields`` record; ``str`` of a float is its shortest exact form."""
    lines = [f"{name}: {one_line(str(value))}\r\n" for name, value in fields.items() if value is not None]
    return "".join(lines).encode()
