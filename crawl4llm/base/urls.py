"""URLs as identities: the document key of a URL, and the form by which a tolerant look-up finds it.

The parser of the URL Standard (https://url.spec.whatwg.org/, 4.4) reads a text, so that it leads to the same host and
path as in browsers. RFC 3986 then normalises the parsed URL, so that two spellings of one URI are one document:

- scheme and host in lower case (6.2.2.1), a host with other letters in its ASCII form (UTS 46, non-transitional), an
  address in its usual form;
- percent-encoding in upper case and only if it is needed (6.2.2.1, 6.2.2.2): for characters that no URI may hold, such
  as blanks and other alphabets, as UTF-8 (2.5, and RFC 3987, 3.1), in a query by the page's charset;
- no dot segments (6.2.2.3), no default or empty port, ``/`` for an empty path (6.2.3);
- no fragment, which is never sent to a server (3.5).

The order and content of the query are not changed, because they may matter to the server. A text that the parser
refuses is not a link. It has a key by RFC 3986 alone, under which archives may hold it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Final
from urllib.parse import quote, urlsplit

import webencodings
from ada_url import join_url

_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}
BLANKS: Final = "".join(map(chr, range(0x21)))
"""White space and controls, which may surround a URL."""
_UNRESERVED: Final = "A-Za-z0-9._~-"
_IN_HOST: Final = "!$&'()*+,;="
_IN_ADDRESS: Final = _IN_HOST + ":[]"
_IN_PATH: Final = "/:@!$&'()*+,;="
_IN_QUERY: Final = _IN_PATH + "?"
_NAME: Final = "(?:[a-z0-9.-]*\\.)?[a-z][a-z0-9-]*"
"""A host that needs no change. One that ends in a number may be an address (URL Standard, 3.5)."""
_ORIGIN: Final = rf"https?://{_NAME}(?::(?!(?:80|443)/)(?:[1-9][0-9]{{0,3}}|[1-5][0-9]{{4}}|6[0-4][0-9]{{3}}))?"
_PATH: Final = rf"[{_IN_PATH}{_UNRESERVED}]*"
_QUERY: Final = rf"(?:\?[{_IN_QUERY}{_UNRESERVED}]*)?"
_NORMAL = re.compile(rf"({_ORIGIN})(/{_PATH})({_QUERY})(?:#.*)?", re.DOTALL)
"""URLs that are their own key except for dot segments and a fragment, as most are. URLs with a port that may be the
default are left out."""
NORMAL_REFERENCE: Final = re.compile(rf"({_ORIGIN}(?=/))?((?!//|[?#]|[^/?]*:|\Z){_PATH}{_QUERY})(?:#.*)?", re.DOTALL)
"""References (RFC 3986, 4.2) that become such a URL unchanged: an optional origin, and a path with its query."""
_WEB_URL = re.compile(r"(https?)://([^/?]*)([^?]*)(\?.*)?", re.IGNORECASE | re.DOTALL)
_WEB_SCHEME = re.compile(r"https?:", re.IGNORECASE)
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
LINE_BREAKS = re.compile(r"[\t\n\r]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_PORT = re.compile(r":([0-9]*)\Z")
_PORT_OF_ADDRESS = re.compile(r"(?<=\]):([0-9]*)\Z")
_UNRESERVED_CHARACTER = re.compile(rf"[{_UNRESERVED}]")
_INDEX_PAGES: Final = ("/", "/index.html", "/index.htm")
_LONGEST_NAME: Final = 1000
"""Most characters of a host that is converted to ASCII by RFC 3490, in time quadratic in their number."""
_NO_URL: Final = "about:blank"
"""A base to which nothing is relative."""


def normalise_url(url: str) -> str:
    """Return the document key of a URL (see above). Any text has a key, free of blanks; the key of a key is itself.

    Bytes that are not UTF-8 may come as surrogate escapes. URLs of other schemes than http and https lose only their
    fragment.
    """
    if (parsed := parse_url(url)) is not None:
        return parsed
    key = _key_by_rfc_3986(url)
    return parse_url(key) or key


def parse_url(reference: str, base: str | None = None, charset: str = "utf-8") -> str | None:
    """Return the document key of a URL, or of a reference relative to ``base``, a document key. None if the parser of
    the URL Standard refuses it, or its scheme is not http or https.

    A query is encoded in ``charset``, a label of the page's (URL Standard, 4.4, query state); all else as UTF-8.
    """
    if base is None and (normal := _NORMAL.fullmatch(reference)):
        origin, path, query = normal.groups()
        return f"{origin}{_remove_dot_segments(path) or '/'}{query}"
    reference = LINE_BREAKS.sub("", reference.strip(BLANKS)).partition("#")[0]
    if not _WEB_SCHEME.match(reference) and (base is None or SCHEME.match(reference)):
        return None
    # A query has no part in what the parser decides, which would encode some of what RFC 3986 lets stand.
    rest, mark, query = reference.partition("?")
    try:
        parts = _WEB_URL.fullmatch(join_url(base or _NO_URL, _without_surrogates(rest) + mark))
    except ValueError:
        return None
    if parts is None:
        return None
    scheme, authority, path, query_of_base = parts.groups()
    query = f"?{_in_charset(query, charset)}" if mark else query_of_base or ""
    return f"{scheme}://{_authority(authority, scheme)}{_encode(path, _IN_PATH)}{_encode(query, _IN_QUERY)}"


def _key_by_rfc_3986(url: str) -> str:
    """Return the key of a text that the URL Standard's parser refuses, by RFC 3986 and 3490 alone."""
    url = LINE_BREAKS.sub("", url.strip(BLANKS)).partition("#")[0]
    parts = _WEB_URL.fullmatch(url)
    if parts is None:
        other = _other_url(url)
        return _key_by_rfc_3986(other) if _WEB_URL.match(other) else other
    scheme, authority, path, query = parts.groups()
    scheme = scheme.lower()
    path = _remove_dot_segments(_encode(path, _IN_PATH)) or "/"
    return f"{scheme}://{_authority(authority, scheme)}{path}{_encode(query or '', _IN_QUERY)}"


@lru_cache(maxsize=1024)
def site_of(url: str) -> str:
    """Return the scheme and authority of a URL, without a user or a default port: ``http://example.org:8080``."""
    scheme, _, rest = normalise_url(url).partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"


def lookup_form(key: str) -> str:
    """Return the form that two document keys share if they probably name one page of the live web.

    It ignores http or https, a slash at the end of the path, ``index.html`` or ``index.htm``, and an empty query.
    """
    rest = key[key.index("//") + 2 :] if key.startswith(("http://", "https://")) else key
    path, _, query = rest.partition("?")
    if path.endswith(_INDEX_PAGES):
        path = path[: path.rindex("/")]
    return f"{path}?{query}" if query else path


def _other_url(url: str) -> str:
    url = _encode(url, _IN_QUERY + "[]")
    scheme = SCHEME.match(url)
    prefix = scheme.group().lower() if scheme else ""
    return prefix + url[len(prefix) :]


def _authority(authority: str, scheme: str) -> str:
    userinfo, at, host = authority.rpartition("@")
    port = (_PORT_OF_ADDRESS if host.startswith("[") else _PORT).search(host)
    if port:
        host = host[: port.start()]
    if not host.isascii() and len(host) <= _LONGEST_NAME:
        with suppress(UnicodeError):  # it is no domain name then, but still another one than others
            host = host.encode("idna").decode()
    host = _encode(host, _IN_ADDRESS if host.startswith("[") else _IN_HOST).lower()
    host = _ESCAPE.sub(lambda escape: escape[0].upper(), host)
    suffix = f":{port[1]}" if port and port[1] not in {"", _DEFAULT_PORTS[scheme]} else ""
    return f"{_encode(userinfo, _IN_ADDRESS)}{at}{host}{suffix}"


def _without_surrogates(text: str) -> str:
    """Return a text that is UTF-8: surrogate escapes are percent-encoded, other lone surrogates replaced (Infra
    Standard, 4.6, scalar value string)."""
    return text if text.isascii() else _SURROGATE.sub(_percent_encoded, text)


def _percent_encoded(surrogate: re.Match[str]) -> str:
    byte = ord(surrogate[0]) - 0xDC00
    return f"%{byte:02X}" if 0x80 <= byte <= 0xFF else "\ufffd"


def _in_charset(query: str, charset: str) -> str:
    """Return a query with its characters as percent-encoded bytes of a charset (URL Standard, 1.3)."""
    if query.isascii():
        return query
    query = _without_surrogates(query)
    encoding = webencodings.lookup(charset)
    if encoding is None or encoding.name.startswith(_TO_UTF_8):
        return query
    return _NOT_ASCII.sub(partial(_encoded, encoding.codec_info.encode), query)


def _encoded(encode: Callable[[str, str], tuple[bytes, int]], text: re.Match[str]) -> str:
    return "".join(map(_IN_QUERIES.__getitem__, encode(text[0], _LACKING)[0]))


def _references(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of characters that a charset lacks: their references in HTML, percent-encoded."""
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    return "".join(f"%26%23{ord(character)}%3B" for character in lacking), error.end


_LACKING: Final = "crawl4llm.references"
codecs.register_error(_LACKING, _references)
_TO_UTF_8: Final = ("utf", "replacement", "x-user-defined")
"""Charsets in which no query is encoded (Encoding Standard, 4.3); x-user-defined has codes for no character of text."""
_NOT_ASCII = re.compile("[^\\0-\x7f]+")
_IN_QUERIES: Final = [quote(bytes([byte]), safe=f"{_IN_QUERY}%") for byte in range(256)]


def _encode(part: str, allowed: str) -> str:
    """Percent-encode characters that are not ``allowed``, and no others; a stray ``%`` becomes ``%25``."""
    if "%" in part:
        part = _ESCAPE.sub(_normal_escape, part)
    try:
        data = part.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a surrogate pair: no character, and no byte either
        data = part.encode("utf-8", "replace")
    return quote(data, safe=allowed + "%")


def _normal_escape(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return "%25"
    character = chr(int(escape[1], 16))
    return character if _UNRESERVED_CHARACTER.fullmatch(character) else escape[0].upper()


def _remove_dot_segments(path: str) -> str:
    """Remove ``.`` and ``..`` from a path (RFC 3986, 5.2.4)."""
    if "/." not in path:
        return path
    segments: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            del segments[-1:]
        elif segment != ".":
            segments.append(segment)
    if path.endswith(("/.", "/..")):
        segments.append("")
    return "/" + "/".join(segments)


_NO_NAME = re.compile(r"[\0-\x20/\\?#@:\[\]]")
PLAIN_HOST: Final = re.compile(rf"https?://({_NAME})(?::[0-9]*)?[/?#]")
"""Hosts that need no parsing; most URLs have one, and this finds it in a tenth of the time."""


def host_of(url: str) -> str:
    """Return the host of a URL as in its document key, without brackets and port; empty if it has none."""
    if plain := PLAIN_HOST.match(url):
        return plain[1]
    try:
        return urlsplit(normalise_url(url)).hostname or ""
    except ValueError:  # such as a bracket without its pair
        return ""


def host_named(name: str) -> str:
    """Return a host given alone in the form of URLs, without a dot at its end; empty if it is invalid."""
    return "" if _NO_NAME.search(name) else host_of(f"http://{name}/").removesuffix(".")


class BaseUrl:
    """The URL that references are relative to. If the parser refuses it, only absolute references can be resolved."""

    def __init__(self, url: str, charset: str = "utf-8") -> None:
        """``charset``: of the page; queries are encoded in it, as in :func:`parse_url`."""
        self._charset = charset
        self._url = parse_url(url)
        without_query = (self._url or "").partition("?")[0]
        self._folder = without_query[: without_query.rfind("/") + 1]
        self._origin = "/".join(without_query.split("/", 3)[:3])

    def resolve(self, reference: str) -> str | None:
        """Return the document key of the target of a reference (URL Standard, 4.4); None if it is not on the web."""
        if reference.startswith("#"):
            return self._url
        if (normal := NORMAL_REFERENCE.fullmatch(reference)) and (self._url or normal[1]):
            origin, rest = normal.groups()
            url = (origin or (self._origin if rest.startswith("/") else self._folder)) + rest
            return normalise_url(url) if "/." in url else url
        return parse_url(reference, self._url, self._charset)


def redirect_target(url: str, location: bytes) -> str | None:
    """Return the document key of the target of a redirect from ``url``, by its Location (RFC 9110, 10.2.2); None if it
    is not on the web."""
    return BaseUrl(url).resolve(location.decode("utf-8", "surrogateescape")) if location else None
