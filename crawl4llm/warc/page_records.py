"""The WARC records of corpus pages (ISO 28500:2017, version 1.1), with heads by warcio; and their index lines.

:mod:`crawl4llm.warc.exchanges` has those of pages from the network.

A page with html becomes a ``response`` (6.3). A corpus keeps no HTTP headers, so the record's HTTP head is
reconstructed, and the extension field ``Crawl4LLM-HTTP-Headers: reconstructed`` says so. A URL that is neither http nor
https has no HTTP head to reconstruct, so its page becomes a ``resource`` (6.4).

A page with text only becomes a ``conversion`` (6.8) as in Common Crawl's WET files, ``Content-Type: text/plain`` in
UTF-8. A page with neither becomes one with an empty block, so that each page has exactly one content record. WET's
``WARC-Identified-Content-Language`` is left out, because it holds ISO 639-3 codes from a language detector, and a
corpus's own tag (``zh_chs``) is not one.

A ``metadata`` record (6.6) describes the content record. It names a response, revisit or resource in
``WARC-Concurrent-To``, as part of the same capture event (5.7, table A.1). It names a conversion, for which 5.7 forbids
that, in ``WARC-Refers-To`` (5.11, table A.5). Digests are SHA-1 in Base32; a metadata record has no payload (5.9), so
it has a block digest only.

Nothing here depends on a clock or on random numbers. Record ids come from the crawl id and the document key. Dates come
from the page or, if it has none, from the start of the crawl.

The index has one CDXJ line for each content record, ``SURT TIMESTAMP {json}``, with the fields, values and key order of
cdxj-indexer. All values are strings; a record without an HTTP response has no ``status``. One field of this project
follows at the end: ``id``, the document key. cdxj-indexer leaves out conversion records unless told to list them
(``--records conversion``), and then writes the same line. ``filename`` is a file's final name, even while it still has
``.open``. A redirect on the way to a page has a line with an empty ``id``.
"""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from urllib.parse import quote
from uuid import UUID

from warcio.statusandheaders import StatusAndHeaders

from crawl4llm.base.files import ArchiveError
from crawl4llm.base.pages import PageRecord
from crawl4llm.base.urls import BLANKS, LINE_BREAKS, SCHEME
from crawl4llm.warc.http_messages import HEADERS_FIELD, RECONSTRUCTED

MAX_URI = 16 * 1024
"""Longest URI in a header, in bytes; FastWARC reads heads of 32 KiB at most by default."""

_URI_CHARACTERS = ":/?#[]@!$&'()*+,;=%"
_PLAIN_URI = re.compile(r"[a-z][a-z0-9+.-]*:[A-Za-z0-9_.~:/?#\[\]@!$&'()*+,;=-]*")
"""A URI that is left unchanged."""
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NOT_TEXT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_UTC_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", re.ASCII)
_LINE_END = frozenset("\r\n\0")
_SURROGATE = re.compile("[\ud800-\udfff]")


def safe_uri(url: str) -> str:
    """Return a URL as ASCII without space or control characters (RFC 3986, as ISO 28500:2017 5.14 requires).

    The scheme becomes lower case, and white space around the URL is dropped. Characters that a URI may not contain are
    percent-encoded as UTF-8, also in the host (RFC 3986 3.2.2); all others are left. An empty result stands for no URL,
    or for one longer than ``MAX_URI``.
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

    UTF-8 beyond ASCII is allowed there (ISO 28500:2017 clause 4, TEXT) and kept.
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


Values = Mapping[str, str | int | float | None]
"""Named values for a warcinfo or metadata record, in the order in which they are written; None is left out."""
Head = list[tuple[str, str]]
"""The named fields of a record, except those that :func:`record_bytes` adds. Values must fit on a line."""

FORMAT_FIELDS = {
    "format": "WARC File Format 1.1",
    "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
}
"""Values of a warcinfo record about the format."""

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
    """A record in the index: its bytes, and its fields for the index and the metadata record."""

    id: str
    """WARC-Record-ID, angle brackets included."""
    kind: str
    """WARC-Type."""
    url: str
    """WARC-Target-URI: the page's URL, or the record's own URN if the page has no URL that fits."""
    date: str
    mime: str
    status: str | None
    """HTTP status code; None if the record holds no HTTP response."""
    digest: str
    """WARC-Payload-Digest, over the html or text, or the body from a server."""
    data: bytes
    """The whole record, uncompressed."""
    language: str | None = None
    """Language of a text, for the index."""


class RecordBuilder:
    """Builds the records of an archive. ``start_date`` is the date of warcinfo records and of pages without a date."""

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
        """Return a date, if it is valid in WARC; otherwise that of the start of the crawl."""
        return date if date is not None and is_utc_date(date) else self._start_date

    def warcinfo(self, filename: str, fields: Values) -> bytes:
        """Return the record that begins the file ``filename`` (6.2)."""
        head = [
            ("WARC-Record-ID", self.warcinfo_id(filename)),
            ("WARC-Date", self._start_date),
            ("WARC-Filename", one_line(filename)),
        ]
        return record_bytes("warcinfo", head, _WARC_FIELDS, warc_fields(fields))

    def content(self, page: PageRecord, warcinfo_id: str) -> ContentRecord:
        """Return the record with the content of a corpus page."""
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

    def metadata(self, key: str, content: ContentRecord, warcinfo_id: str, fields: Values) -> bytes:
        """Return the record that describes a content record."""
        link = "WARC-Refers-To" if content.kind == "conversion" else "WARC-Concurrent-To"
        head = record_head(record_id(self.crawl_id, "metadata", key), content.date, content.url, warcinfo_id)
        head.append((link, content.id))
        return record_bytes("metadata", head, _WARC_FIELDS, warc_fields(fields))

    def text(self, page: PageRecord, content: ContentRecord, warcinfo_id: str, text: str) -> ContentRecord:
        """Return the record with the text of a page whose content is in another."""
        kind, url, date, payload = "conversion", content.url, content.date, utf8(text)
        identifier = record_id(self.crawl_id, "text", page.key)
        head = [*record_head(identifier, date, url, warcinfo_id), ("WARC-Refers-To", content.id)]
        payload_digest = digest(payload)
        data = record_bytes(kind, head, _TEXT, payload, payload_digest)
        return ContentRecord(identifier, kind, url, date, _TEXT, None, payload_digest, data, page.language or "")


def record_head(identifier: str, date: str, url: str, warcinfo_id: str) -> Head:
    """Return the first fields of every record of a page, after its type."""
    return [
        ("WARC-Record-ID", identifier),
        ("WARC-Date", date),
        ("WARC-Target-URI", url),
        ("WARC-Warcinfo-ID", warcinfo_id),
    ]


def digest(*parts: bytes) -> str:
    """Return ``sha1:`` and Base32 (RFC 4648, 6), for WARC-Payload-Digest and WARC-Block-Digest (5.8)."""
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

    The block is the payload, after ``http_head`` if there is one. ``payload_digest`` is left out without a payload
    (5.9), and is that of another record for a revisit. The head is warcio's. Its WARCWriter would take three times as
    long for the whole record, because it copies the block twice.
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


def warc_fields(fields: Values) -> bytes:
    """Return the block of an ``application/warc-fields`` record; ``str`` of a float is its shortest exact form."""
    lines = [f"{name}: {one_line(str(value))}\r\n" for name, value in fields.items() if value is not None]
    return "".join(lines).encode()


# -- the line of the index --------------------------------------------------------------------------------------------

_MIME_END = re.compile(r"[;\s]")
_LONGEST_MIME = 200
_UNKNOWN_MIME = "unk"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the index: place and content of a document's content record."""

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
    """In the index of text files the page's language, empty if its source gives none; None elsewhere."""
    about: Mapping[str, str] | None = None
    """Fields of the metadata record that the index repeats: those of ABOUT."""

    def line(self) -> bytes:
        """Return the line of the index, with its line feed."""
        status = "" if self.status is None else f'"status": {quoted(self.status)}, '
        language = "" if self.language is None else f', "language": {quoted(self.language)}'
        about = "".join(f", {quoted(name)}: {quoted(value)}" for name, value in (self.about or {}).items())
        fields = (
            f'{{"url": {quoted(self.url)}, "mime": {quoted(self.mime)}, {status}"digest": {quoted(self.digest)}, '
            f'"length": "{self.length}", "offset": "{self.offset}", "filename": {quoted(self.filename)}, '
            f'"id": {quoted(self.id)}{language}{about}}}'
        )
        return f"{urlkey(self.url)} {self.timestamp} {fields}\n".encode("ascii")


def index_mime(content_type: str) -> str:
    """Return the media type for an index, like cdxj-indexer: a Content-Type up to a semicolon or space."""
    return _MIME_END.split(content_type.strip(), maxsplit=1)[0][:_LONGEST_MIME] or _UNKNOWN_MIME


def timestamp(date: str) -> str:
    """Return a WARC-Date (``2022-08-01T12:00:00.123Z``) as CDXJ's 14 digits, cut to the second."""
    return f"{date[:4]}{date[5:7]}{date[8:10]}{date[11:13]}{date[14:16]}{date[17:19]}"


_WHITE_SPACE = " \t\n\v\f\r"
_WEB_SCHEME = re.compile(r"^(?:https?://(?=https?://))*(https?:)/*")  # pasted twice, or with slashes missing
_DEFAULT_PORTS = {"http": 80, "https": 443}

_PLAIN = re.compile(r"[!-$&-~]*")
_TO_ESCAPE = re.compile(r"[^!-~]|[#%]")
_HEX = {digit: int(chr(digit), 16) for digit in b"0123456789ABCDEFabcdef"}

# What surt takes for an IPv4 address: one number, or two to four of which the first is not like 08; and a line feed.
_NUMBERS = re.compile(r"(?:[0-9]+|(?:0[0-7]*|[1-9][0-9]*)(?:\.[0-9]+){1,3})(?:%0a)?")
_WWW = re.compile(r"^www[0-9]*\.")

_COOKIELESS = [  # ASP.NET sessions: /(S(id))/page.aspx and the older /(id)/page.aspx
    re.compile(r"^(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)"),
    re.compile(r"^(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)"),
]
_SESSION_PARAMETERS = [
    re.compile(r"^(.*)jsessionid=[0-9a-z]{32}(?:&|$)"),
    re.compile(r"^(.*)phpsessid=[0-9a-z]{32}(?:&|$)"),
    re.compile(r"^(.*)sid=[0-9a-z]{32}(?:&|$)"),
    re.compile(r"^(.*)aspsessionid[a-z]{8}=[a-z]{24}(?:&|$)"),
    # ColdFusion; the look-ahead keeps the time linear.
    re.compile(r"^((?:.*&)?(?=[^&]+&cftoken=)[^&]*)cfid=[^&]+&cftoken=[^&]+(?:&|$)"),
]


def urlkey(url: str) -> str:
    """Return the SURT form of a URL, such as ``org,example)/a?b=1``; like cdxj-indexer the URL itself if it has none.

    Never asks the network. For http and https it differs on purpose from ``surt.surt`` in one point. A numeric host
    that is not an IPv4 address (``300.1.1.1``) has no key, while surt asks a name server. Unexpected results of surt
    are kept, for equal keys. A session id is cut even from the middle of a name, and the rest is joined. An id at the
    end leaves an empty parameter. ``;jsessionid=`` in a path and ``..`` at the root stay, and of three dots in a host
    two stay.
    """
    try:
        return _surt(url)
    except ValueError:  # a port that is none, a numeric host that is no address, a lone surrogate
        return url


def _surt(url: str) -> str:
    url = LINE_BREAKS.sub("", url.strip(_WHITE_SPACE))
    if not SCHEME.match(url):
        url = "http://" + url.lstrip("/")
    scheme, authority, path, query = _split(_WEB_SCHEME.sub(r"\1//", url))
    host, port = _host_and_port(authority, _DEFAULT_PORTS.get(scheme.lower()))
    path, query = _path(path, resolve=bool(host)), _query(query)
    start = ",".join(host.split(".")[::-1]) + port + ")" if host else scheme + ":"
    return start + (path or ("/" if host or query else "")) + ("?" + query if query else "")


def _split(url: str) -> tuple[str, str, str, str]:
    """Return scheme, authority, path and query (RFC 3986, section 3)."""
    rest, _, query = url.partition("#")[0].partition("?")
    scheme, _, rest = rest.partition(":")
    if not rest.startswith("//"):
        return scheme, "", rest, query
    authority, slash, path = rest[2:].partition("/")
    return scheme, authority, slash + path, query


@lru_cache(maxsize=4096)
def _host_and_port(authority: str, default_port: int | None) -> tuple[str, str]:
    """Return the host without brackets, and ``:port`` unless it is the default one; user and password are dropped."""
    host = authority.rpartition("@")[2]
    if "[" in host:
        host, _, rest = host.partition("[")[2].partition("]")
        port = rest.partition(":")[2]
    else:
        host, _, port = host.partition(":")
    if port and not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError("not a port")
    return _host(host), "" if int(port or 0) in {0, default_port} else f":{int(port)}"


def _host(name: str) -> str:
    if not _PLAIN.fullmatch(name):
        raw = _unescape(name.encode())
        if not raw.isascii():
            with suppress(UnicodeError):  # no domain name: stays as it is, escaped
                raw = raw.decode("utf-8", "ignore").encode("idna")
        name = _escape(raw)
    host = name.strip(".").replace("..", ".").lower()
    if _NUMBERS.fullmatch(host):
        return _address(host)
    return _WWW.sub("", host)


def _address(numbers: str) -> str:
    """Return an IPv4 address as four decimal numbers; parts may be octal, and the last one may stand for several
    bytes."""
    if numbers.isdigit():
        return socket.inet_ntoa((int(numbers) % 2**32).to_bytes(4, "big"))
    try:
        return socket.inet_ntoa(socket.inet_aton(numbers))
    except OSError:
        raise ValueError("a numeric host that is no address") from None


def _path(path: str, *, resolve: bool) -> str:
    path = _canonical(path)
    if resolve and ("/." in path or "//" in path):
        path = _without_dots(path)
    if ".aspx" in path:
        for session in _COOKIELESS:
            path = session.sub(r"\1\2", path)
    return path.removesuffix("/") if len(path) > 1 else path


def _without_dots(path: str) -> str:
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == ".." and kept:
            kept.pop()
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join(filter(None, kept))


def _query(query: str) -> str:
    query = _canonical(query)
    if "id" in query:
        for session in _SESSION_PARAMETERS:
            query = session.sub(r"\1", query)
    if "&" not in query:
        return query
    return "&".join(sorted(query.split("&"), key=lambda parameter: parameter.partition("=")))


def _canonical(text: str) -> str:
    return (text if _PLAIN.fullmatch(text) else _escape(_unescape(text.encode()))).lower()


def _unescape(data: bytes) -> bytes:
    """Undo percent-escapes until none is left; from the end, so that one pass is enough (``%2541`` is ``A``)."""
    tail = bytearray()  # back to front
    for byte in reversed(data):
        tail.append(byte)
        while tail[-1] == 0x25 and len(tail) > 2 and tail[-2] in _HEX and tail[-3] in _HEX:
            _, high, low = tail.pop(), tail.pop(), tail.pop()
            tail.append(16 * _HEX[high] + _HEX[low])  # may begin another escape
    tail.reverse()
    return bytes(tail)


def _escape(data: bytes) -> str:
    return _TO_ESCAPE.sub(lambda match: f"%{ord(match[0]):02X}", data.decode("latin-1"))
