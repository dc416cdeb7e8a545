"""Fields that ClueWeb12 adds to records (lemurproject.org/clueweb12/specs.php, "File Format")."""

from __future__ import annotations

import re
from typing import Final

DOCUMENTS, LENGTH, TYPE, TREC_ID = (
    b"WARC-Number-of-Documents",
    b"WARC-File-Length",
    b"WARC-Data-Type",
    b"WARC-TREC-ID",
)
DATA_TYPE: Final = b"web crawl"
"""What ClueWeb12 calls the documents of its directories ``wb``."""


def with_field(record: bytes, name: bytes, value: bytes) -> bytes:
    """A record with a field in its head, instead of the one of that name if there is one; the block stays."""
    head, end, block = record.partition(b"\r\n\r\n")
    line = b"%b: %b" % (name, value)
    changed, count = re.subn(rb"(?im)^%b:[^\r\n]*" % re.escape(name), lambda _: line, head, count=1)
    return (changed if count else head + b"\r\n" + line) + end + block


def field_length(name: bytes, value: bytes) -> int:
    """Bytes that a new field takes."""
    return len(name) + len(value) + len(b": \r\n")


def with_counts(warcinfo: bytes, documents: int, others: int) -> bytes:
    """A warcinfo record with ClueWeb12's three fields; ``others``: bytes, decompressed, of the file's other records.

    The length of the file counts the digits in which it is written.
    """
    warcinfo = with_field(warcinfo, DOCUMENTS, b"%d" % documents)
    warcinfo = with_field(warcinfo, TYPE, DATA_TYPE)
    length = 0
    while True:
        stated = with_field(warcinfo, LENGTH, b"%d" % length)
        if length == len(stated) + others:
            return stated
        length = len(stated) + others
