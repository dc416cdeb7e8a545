"""The index: one CDXJ line a content record, in crawl order.

``SURT TIMESTAMP {json}`` with the fields, values and key order of cdxj-indexer (all values strings; no ``status`` for a
record without an HTTP response), and one field of our own at the end: ``id``, the document key. cdxj-indexer leaves out
conversion records unless told to list them (``--records conversion``), and then writes the same line. ``filename`` is a
file's final name, also while it still bears ``.open``. A redirect on the way to a page has a line with an empty ``id``.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import open_input
from crawl4llm.base.urls import LINE_BREAKS, SCHEME
from crawl4llm.base.within import is_within

INDEX_NAME, TEXT_INDEX_NAME = "index.cdxj", "text.cdxj"
"""Names of the index, and of that of the text files where these are written."""
REVISIT_MIME = "warc/revisit"
"""Media type in an index of a revisit record (cdxj-indexer)."""
PURPOSE, SITE, SIGNALS = "purpose", "site", "opt-out-signals"
ABOUT: Final = (PURPOSE, SITE, SIGNALS)
"""Fields of metadata records that the index has too: of exchanges that are no page's what they were for and of which
site, and what opts a page out of uses. So an export needs not read the metadata of each page."""
_MIME_END: Final = re.compile(r"[;\s]")
_LONGEST_MIME: Final = 200
_UNKNOWN_MIME: Final = "unk"
_BYTES: Final = re.compile(r"[0-9]{1,17}")
"""An offset or a length; no file system has files in which a longer number would fit."""
_FAULTS: Final = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of parsing something that is no line of an index."""


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
    """In the index of text files the page's language, empty where its source tells none; None elsewhere and in lines
    that `scrapy archive repair` made."""
    about: Mapping[str, str] | None = None
    """More of what the metadata record says: the fields of ABOUT that are there."""

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
    """Return the media type of an index as cdxj-indexer reads it: a Content-Type up to a semicolon or space."""
    return _MIME_END.split(content_type.strip(), maxsplit=1)[0][:_LONGEST_MIME] or _UNKNOWN_MIME


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
        """File, offset and length of the record. ValueError, LookupError or TypeError: one cannot be used."""
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
    """Yield the entries of documents in an index, in file order; with ``redirects`` those of redirects
    to them, and of exchanges that are no page's, too.

    ``end``: how many bytes of the file to read. Raises InputError that names the file and line that cannot be used.
    """
    position = 0
    try:
        with open_input(path) as lines:
            for number, line in enumerate(lines, 1):
                if end is not None and position >= end:
                    break
                position += len(line)
                entry = parse_entry(line.decode(), f"{path} line {number}")
                if entry.id or redirects:
                    yield entry
    except OSError as exc:
        raise InputError(f"cannot read the index {path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"cannot read the index {path}: it is not text ({exc})") from exc


def parse_entry(line: str, at: str) -> Entry:
    """Return the entry of a line of an index. Raises InputError, with ``at``, where it is none."""
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
    """Return the SURT form of a URL, such as ``org,example)/a?b=1``; the URL itself where it has none, as cdxj-indexer.

    Never asks the network. For http and https it differs from ``surt.surt`` on purpose in one thing: a numeric host
    that is no IPv4 address (``300.1.1.1``) has no key, where surt asks a name server. What surt does that its rules
    would not suggest is kept, for equal keys: a session id is cut out from the middle of a name too and the rest
    joined, an id at the end leaves an empty parameter, ``;jsessionid=`` in a path and ``..`` at the root stay, and of
    three dots in a host two do.
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
    """Return an IPv4 address as four decimal numbers; parts may be octal, the last one may stand for several bytes."""
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
    """Undo percent-escapes until none is left; from the end, so that one round does (``%2541`` is ``A``)."""
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
