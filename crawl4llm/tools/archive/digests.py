"""Digests of a record: WARC-Block-Digest and WARC-Payload-Digest (ISO 28500:2017, 5.8 and 5.9), read in pieces."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from crawl4llm.base.errors import CorruptRecord
from crawl4llm.warc.records import Frame, field_name

BLOCK_DIGEST: Final = field_name("WARC-Block-Digest")
PAYLOAD_DIGEST: Final = field_name("WARC-Payload-Digest")
_WITH_PAYLOAD: Final = frozenset({"response", "resource", "conversion"})
"""Records that hold a payload of which we know where it begins; a revisit's digest is of another record's."""
_END: Final = b"\r\n\r\n"


class _Digest:
    """The digest of the bytes from a place on, and what it should be."""

    def __init__(self, name: str, stated: bytes, start: int) -> None:
        self.name = name
        algorithm, _, self._value = stated.decode("ascii", "replace").partition(":")
        self._start = start
        self._hash: Any = None
        with suppress(ValueError):  # no algorithm, or one that this machine does not have
            self._hash = hashlib.new(algorithm.lower(), usedforsecurity=False)
        if self._hash is not None and not self._hash.digest_size:  # SHAKE: any length, and the field tells none
            self._hash = None
        self.known = self._hash is not None

    def update(self, piece: bytes, at: int, end: int) -> None:
        """Take the bytes of a piece at ``at`` that lie before ``end``."""
        if self._hash is not None:
            first = max(0, self._start - at)
            last = end - at
            self._hash.update(piece if first == 0 and last >= len(piece) else memoryview(piece)[first : max(0, last)])

    def agrees(self) -> bool:
        """In Base32, or in hexadecimal digits as some writers have it."""
        return self._value.upper() in {
            base64.b32encode(self._hash.digest()).decode(),
            self._hash.hexdigest().upper(),
        }


def faults(frame: Frame, pieces: Iterable[bytes]) -> list[str]:
    """What is wrong with a whole record. Raises CorruptRecord where it cannot be read to its end."""
    record = frame.record
    assert record is not None
    if record.size is None:
        for _ in pieces:
            pass
        return ["has no Content-Length, or one that is no number"]
    digests = []
    found = []
    places = [("block", BLOCK_DIGEST, record.block_at)]
    if record.kind in _WITH_PAYLOAD:
        places.append(("payload", PAYLOAD_DIGEST, frame.http.body_at if frame.http else record.block_at))
    for name, field, start in places:
        stated = record.fields.get(field)
        digest = _Digest(name, stated, start)
        if not stated:
            found.append(f"has no {name} digest")
        elif not digest.known:
            found.append(f"has a {name} digest of an unknown kind")
        else:
            digests.append(digest)
    read, rest = _read(pieces, digests, record.size)
    if read < record.size:
        raise CorruptRecord(f"Content-Length is {record.length:,}, but the block has {read - record.block_at:,} bytes")
    if rest != _END:
        found.append("is not followed by two line ends only: its Content-Length is wrong")
    return found + [
        f"has another {digest.name} than its {digest.name} digest says" for digest in digests if not digest.agrees()
    ]


def _read(pieces: Iterable[bytes], digests: list[_Digest], size: int) -> tuple[int, bytes]:
    """Feed digests with the bytes before ``size``; returns how many bytes there are, and the first ones behind."""
    read, rest = 0, b""
    for piece in pieces:
        for digest in digests:
            digest.update(piece, read, size)
        if read + len(piece) > size and len(rest) <= len(_END):
            rest += piece[max(0, size - read) :][: len(_END) + 1]
        read += len(piece)
    return read, rest
