"""Foreign strings made fit for WARC headers: whatever a page is called, it cannot add, end or forge a header."""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import quote

MAX_URI = 16 * 1024
"""Longest URI in a header, in bytes; FastWARC reads heads of 32 KiB at most unless told otherwise."""

_URI_CHARACTERS = ":/?#[]@!$&'()*+,;=%"
_C0_AND_SPACE = "".join(map(chr, range(0x21)))
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN_URI = re.compile(r"[a-z][a-z0-9+.-]*:[A-Za-z0-9_.~:/?#\[\]@!$&'()*+,;=-]*")
"""A URI that is left as it is."""
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NOT_TEXT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_UTC_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", re.ASCII)


def safe_uri(url: str) -> str:
    """Return a URL as ASCII without space or control characters (RFC 3986, as ISO 28500:2017 5.14 asks).

    The scheme is written in lower case, white space around the URL dropped; what may not stand in a URI is
    percent-encoded as UTF-8, also in the host (RFC 3986 3.2.2). What a URI may hold is left as it is. "" stands for no
    URL, and for one longer than ``MAX_URI``.
    """
    if _PLAIN_URI.fullmatch(url):
        return url if len(url) <= MAX_URI else ""
    url = url.strip(_C0_AND_SPACE)
    if scheme := _SCHEME.match(url):
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
