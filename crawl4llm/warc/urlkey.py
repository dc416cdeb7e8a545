"""The key of a URL in an index: host names reversed, and everything that seldom tells pages apart taken away.

The form is the Sort-friendly URI Reordering Transform (Heritrix manual, glossary, "SURT") without scheme and opening
bracket. Hosts, paths and escapes follow Google Safe Browsing ("URLs and Hashing", Canonicalization); on top come the
rules of the Wayback Machine: no ``www``, session ids or trailing slash, lower case, parameters sorted. The result is
that of the ``surt`` package, which cdxj-indexer and pywb use, so that their look-ups find our entries.
"""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from functools import lru_cache

_WHITE_SPACE = " \t\n\v\f\r"
_LINE_ENDS_AND_TABS = re.compile(r"[\t\n\r]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
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
    url = _LINE_ENDS_AND_TABS.sub("", url.strip(_WHITE_SPACE))
    if not _SCHEME.match(url):
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
    name, port = _name_and_port(authority, default_port)
    return _host(name), port


def _name_and_port(authority: str, default_port: int | None) -> tuple[str, str]:
    host = authority.rpartition("@")[2]
    if "[" in host:
        host, _, rest = host.partition("[")[2].partition("]")
        port = rest.partition(":")[2]
    else:
        host, _, port = host.partition(":")
    if not port:
        return host, ""
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError("not a port")
    return host, "" if int(port) in {0, default_port} else f":{int(port)}"


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
