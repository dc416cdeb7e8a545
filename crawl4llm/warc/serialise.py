"""WARC records as bytes (ISO 28500:2017, clause 4), byte for byte as warcio's WARCWriter writes them.

warcio is what the tests compare with; it takes several times as long for records as small as most of a crawl are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from uuid import UUID

from crawl4llm.warc.header_values import one_line

VERSION = "WARC/1.1"
WARC_FIELDS = "application/warc-fields"

Fields = Mapping[str, str | int | float | None]
"""Named values for a warcinfo or metadata record, in the order in which they are written; None is left out."""

_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_PAIRS = [first + second for first in _BASE32 for second in _BASE32]
_SHIFTS = range(150, -1, -10)
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
"""A UUID's digit 17 by that of its digest: the two upper bits are 10 (RFC 9562, 4.1)."""


def digest(data: bytes) -> str:
    """``sha1:`` and Base32 (RFC 4648, 6), as WARC-Payload-Digest and WARC-Block-Digest have it (5.8)."""
    number = int.from_bytes(hashlib.sha1(data, usedforsecurity=False).digest(), "big")
    return "sha1:" + "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])  # base64 takes twice the time


def record_id(crawl_id: UUID, kind: str, key: str) -> str:
    """``<urn:uuid:...>``: the name-based UUID (RFC 9562, 5.5) of a record of ``kind`` about ``key`` in a crawl."""
    name = f"{kind} {key}".encode("utf-8", "backslashreplace")
    hex_digits = hashlib.sha1(crawl_id.bytes + name, usedforsecurity=False).hexdigest()
    return (
        f"<urn:uuid:{hex_digits[:8]}-{hex_digits[8:12]}-5{hex_digits[13:16]}-"
        f"{_VARIANT[hex_digits[16]]}{hex_digits[17:20]}-{hex_digits[20:32]}>"
    )


def serialise(head: str, content_type: str, block: bytes, payload_digest: str | None = None) -> bytes:
    """A whole record: the fields of ``head`` (``Name: value`` lines that end with CRLF), digests, type, length, block.

    ``payload_digest`` is left out where there is no payload (5.9). Values in ``head`` must fit on a line.
    """
    payload = f"WARC-Payload-Digest: {payload_digest}\r\n" if payload_digest else ""
    # Where the whole block is payload the digest is the same.
    block_digest = (
        payload_digest if payload_digest and not content_type.startswith("application/http") else digest(block)
    )
    whole = (
        f"{VERSION}\r\n{head}{payload}WARC-Block-Digest: {block_digest}\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return b"%b%b\r\n\r\n" % (whole.encode(), block)


def warc_fields(fields: Fields) -> bytes:
    """The block of an ``application/warc-fields`` record; ``str`` of a float is its shortest exact form."""
    lines = [f"{name}: {one_line(str(value))}\r\n" for name, value in fields.items() if value is not None]
    return "".join(lines).encode()
