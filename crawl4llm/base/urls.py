"""URLs as identities: the document key of a URL, and the form under which a forgiving look-up files it.

The key is the URL normalised by RFC 3986, so that two spellings of one URI are one document:

- scheme and host in lower case (6.2.2.1), a host with other letters in its ASCII form (RFC 3490);
- percent-encoding in upper case and only where it is needed (6.2.2.1, 6.2.2.2); what no URI may hold (blanks, other
  alphabets, brackets in a path) is encoded as UTF-8 (2.5, and RFC 3987, 3.1);
- no dot segments (6.2.2.3), no default or empty port, ``/`` for an empty path (6.2.3);
- no fragment, which is never sent to a server (3.5).

The order and content of the query stay as they are: they may matter to the server.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlsplit

_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}
BLANKS: Final = "".join(map(chr, range(0x21)))
"""White space and controls, which a URL may have around it."""
_UNRESERVED: Final = "A-Za-z0-9._~-"
_IN_HOST: Final = "!$&'()*+,;="
_IN_ADDRESS: Final = _IN_HOST + ":[]"
_IN_PATH: Final = "/:@!$&'()*+,;="
_IN_QUERY: Final = _IN_PATH + "?"
_ORIGIN: Final = r"https?://[a-z0-9.-]+(?::(?!(?:80|443)/)[0-9]+)?"
_PATH: Final = rf"[{_IN_PATH}{_UNRESERVED}]*"
_QUERY: Final = rf"(?:\?[{_IN_QUERY}{_UNRESERVED}]*)?"
_NORMAL = re.compile(rf"({_ORIGIN})(/{_PATH})({_QUERY})(?:#.*)?", re.DOTALL)
"""URLs that are their own key but for dot segments and a fragment, as most are. A port that may be the default is none
of them."""
NORMAL_REFERENCE: Final = re.compile(rf"({_ORIGIN}(?=/))?((?!//|[?#]|[^/?]*:|\Z){_PATH}{_QUERY})(?:#.*)?", re.DOTALL)
"""References (RFC 3986, 4.2) that become such a URL as they stand: an origin, if there is one, and a path with its
query."""
_WEB_URL = re.compile(r"(https?)://([^/?]*)([^?]*)(\?.*)?", re.IGNORECASE | re.DOTALL)
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
LINE_BREAKS = re.compile(r"[\t\n\r]")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_PORT = re.compile(r":([0-9]*)\Z")
_PORT_OF_ADDRESS = re.compile(r"(?<=\]):([0-9]*)\Z")
_UNRESERVED_CHARACTER = re.compile(rf"[{_UNRESERVED}]")
_INDEX_PAGES: Final = ("/", "/index.html", "/index.htm")


def normalise_url(url: str) -> str:
    """Return the document key of a URL (see above). Any text gives a key, free of blanks; a key gives itself.

    Bytes that are not UTF-8 may come as surrogate escapes. URLs of other schemes than http and https keep all but their
    fragment.
    """
    if normal := _NORMAL.fullmatch(url):
        origin, path, query = normal.groups()
        return f"{origin}{_remove_dot_segments(path) or '/'}{query}"
    url = LINE_BREAKS.sub("", url.strip(BLANKS)).partition("#")[0]
    parts = _WEB_URL.fullmatch(url)
    if parts is None:
        return _other_url(url)
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
    """Return the form that two document keys share if the live web takes them for one page's.

    Forgiven are http for https, a slash at the end of the path, ``index.html`` or ``index.htm`` for the folder, and an
    empty query.
    """
    rest = key[key.index("//") + 2 :] if key.startswith(("http://", "https://")) else key
    path, _, query = rest.partition("?")
    if path.endswith(_INDEX_PAGES):
        path = path[: path.rindex("/")]
    return f"{path}?{query}" if query else path


def _other_url(url: str) -> str:
    scheme = SCHEME.match(url)
    prefix = scheme.group().lower() if scheme else ""
    return prefix + _encode(url[len(prefix) :], _IN_QUERY + "[]")


def _authority(authority: str, scheme: str) -> str:
    userinfo, at, host = authority.rpartition("@")
    port = (_PORT_OF_ADDRESS if host.startswith("[") else _PORT).search(host)
    if port:
        host = host[: port.start()]
    if not host.isascii():
        with suppress(UnicodeError):  # it is no domain name then, but still another one than others
            host = host.encode("idna").decode()
    host = _encode(host, _IN_ADDRESS if host.startswith("[") else _IN_HOST).lower()
    host = _ESCAPE.sub(lambda escape: escape[0].upper(), host)
    suffix = f":{port[1]}" if port and port[1] not in {"", _DEFAULT_PORTS[scheme]} else ""
    return f"{_encode(userinfo, _IN_ADDRESS)}{at}{host}{suffix}"


def _encode(part: str, allowed: str) -> str:
    """Percent-encode what is not ``allowed``, and nothing that need not be; a stray ``%`` becomes ``%25``."""
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


PLAIN_HOST: Final = re.compile(r"https?://([a-z0-9.-]*[a-z0-9-])(?::[0-9]*)?[/?#]")
"""Hosts that need no parsing; most URLs have one, and finding it so takes a tenth of the time."""


def host_of(url: str) -> str:
    """Return the host of a URL in lower case, without its port; empty where it has none."""
    if plain := PLAIN_HOST.match(url):
        return plain[1]
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # such as a bracket without its pair
        return ""
