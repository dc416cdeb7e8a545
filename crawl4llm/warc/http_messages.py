"""HTTP messages for records, from a capture: with a head of bounded size that fits the stored body.

Bodies are stored after transfer-decoding, and some after content-decoding. The head then keeps its original statements
under names that begin with ``X-Crawler-``, and has the true Content-Length, as in Common Crawl's archives. Values keep
their bytes, UTF-8 or not; only line ends and NUL, which no field can contain (RFC 9110, 5.5), become spaces. Messages
of HTTP/2 and later are written in the form of HTTP/1.1; WARC-Protocol names their protocol.

Archives are read by others, so credentials are left out: fields for a proxy (RFC 9110, 11.7.2) always, Cookie (RFC
6265) and Authorization (RFC 9110, 11.6.2) unless they are wanted. A response from the wire keeps all its fields. One
whose fields a handler had changed, and which were put together again, loses Set-Cookie.
"""

from __future__ import annotations

import re
from collections.abc import Set

from crawl4llm.base.pages import Capture, HeaderFields

MAX_HEAD = 31 * 1024
"""Most bytes of a head that are kept; FastWARC reads heads of 32 KiB at most by default."""
HEADERS_FIELD = "Crawl4LLM-HTTP-Headers"
"""Extension field of a record whose HTTP head is not the one received."""
RECONSTRUCTED, REORDERED, SHORTENED = "reconstructed", "order and case not kept", "shortened"
WITHHELD = "credentials left out"
"""Values of that field."""

_LONGEST_PART = 1 << 12
"""Most bytes of a method or reason phrase."""
_AFTER_HOST = re.compile(r"[^:]*:/*[^/?#]*([^#]*)")
_NO_FIELD_CONTENT = re.compile(rb"[\r\n\0]")
_NO_NAME = re.compile(rb"[^!-9;-~]")
_IMPORTANT = {b"content-type", b"content-encoding", b"transfer-encoding", b"content-length", b"location", b"host"}
"""Fields without which a message is not understood; they are kept before all others."""
_FOR_PROXIES, _CREDENTIALS, _SET_COOKIE = {b"proxy-authorization"}, {b"cookie", b"authorization"}, {b"set-cookie"}


def response_head(capture: Capture) -> tuple[bytes, str | None]:
    """Return status line and fields of a response with the empty line; and its notes for HEADERS_FIELD, if any."""
    reason = _clean(capture.reason.encode("latin-1", "replace")[:_LONGEST_PART])
    version = b"1.0" if capture.protocol == "http/1.0" else b"1.1"
    line = b"HTTP/%b %03d %b" % (version, capture.status, reason)
    received, withheld = _without(set() if capture.exact_headers else _SET_COOKIE, _fitting(capture))
    fields, shortened = _bounded(received, MAX_HEAD - len(line))
    said = [REORDERED] * (not capture.exact_headers) + [WITHHELD] * withheld + [SHORTENED] * shortened
    return _head(line, fields), ", ".join(said) or None


def request_head(capture: Capture, url: str, *, credentials: bool = False) -> tuple[bytes, str | None]:
    """Return the head of a request for the URL as written, with Cookie and Authorization if wanted; and its notes."""
    found = _AFTER_HOST.match(url)
    target = found[1] if found else ""
    if not target.startswith("/"):
        target = f"/{target}"
    method = _NO_NAME.sub(b"?", capture.method.encode("ascii", "replace")[:_LONGEST_PART])
    line = b"%b %b HTTP/1.1" % (method, target.encode())  # what is sent, whatever version the answer has
    sent, _ = _without(_FOR_PROXIES, capture.request_headers)
    sent, withheld = _without(set() if credentials else _CREDENTIALS, sent)
    fields, shortened = _bounded(sent, MAX_HEAD - len(line))
    return _head(line, fields), ", ".join([WITHHELD] * withheld + [SHORTENED] * shortened) or None


def _without(names: Set[bytes], fields: HeaderFields) -> tuple[HeaderFields, bool]:
    """Return the fields without those of some names; and whether there were any of those."""
    kept = [field for field in fields if field[0].strip().lower() not in names]
    return kept, len(kept) < len(fields)


def _fitting(capture: Capture) -> list[tuple[bytes, bytes]]:
    """Return the fields of a response, changed to fit the stored body."""
    renamed = {b"transfer-encoding"} | ({b"content-encoding"} if capture.body_is_decoded else set())
    length = b"%d" % len(capture.body)
    fields: list[tuple[bytes, bytes]] = []
    changed = said = False
    for name, value in capture.headers:
        lower = name.lower()
        if lower in renamed or (lower == b"content-length" and value.strip() != length and capture.method != "HEAD"):
            fields.append((b"X-Crawler-" + name, value))
            changed = True
        else:
            fields.append((name, value))
            said |= lower == b"content-length"
    if changed and not said:
        fields.append((b"Content-Length", length))
    return fields


def _bounded(fields: HeaderFields, room: int) -> tuple[HeaderFields, bool]:
    """Return the fields that fit into ``room`` bytes, important ones before others, in order; and whether some do not
    fit."""
    if sum(len(name) + len(value) + 4 for name, value in fields) <= room:
        return fields, False
    kept: set[int] = set()
    for number in sorted(range(len(fields)), key=lambda number: fields[number][0].lower() not in _IMPORTANT):
        size = sum(map(len, fields[number])) + 4
        if size <= room:
            kept.add(number)
            room -= size
    return [field for number, field in enumerate(fields) if number in kept], True


def _head(first_line: bytes, fields: HeaderFields) -> bytes:
    lines = [b"%b: %b" % (_NO_NAME.sub(b"?", name), _clean(value)) for name, value in fields if name]
    return b"\r\n".join([first_line, *lines, b"", b""])


def _clean(value: bytes) -> bytes:
    return _NO_FIELD_CONTENT.sub(b" ", value).strip()
