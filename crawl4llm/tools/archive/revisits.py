"""A revisit record whose original is taken away becomes what the original was.

Its page is another's, who did not opt out where the original's owner did.

The payload is stored with the HTTP head that the revisit kept (ISO 28500:2017, 6.7.2), or the original's where it kept
none; the record's id stays, so that what refers to it still does.
"""

from __future__ import annotations

import re
from typing import Final

from crawl4llm.tools.archive.facts import CONTENT, Facts
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.warc.cdxj import Entry, timestamp
from crawl4llm.warc.page_records import record_bytes
from crawl4llm.warc.reader import WarcReader, parse_stored
from crawl4llm.warc.records import CONTENT_TYPE, DATE

_LEFT_OUT: Final = re.compile(
    rb"(?im)^(?:WARC-Profile|WARC-Refers-To(?:-Target-URI|-Date)?|WARC-Truncated|WARC-Block-Digest|WARC-Payload-Digest|"
    rb"Content-Type|Content-Length|WARC-Type):[^\n]*\n"
)


_CONTENT: Final = f"({', '.join(map(repr, CONTENT))})"


def find_refilled(facts: Facts) -> None:
    """The table ``refilled``: revisits that are ``kept`` and whose original is not, but is there still."""
    facts.execute(
        f"""CREATE TEMP TABLE refilled AS
        SELECT r.file AS file, r.offset AS offset, o.file AS o_file, o.offset AS o_offset, o.length AS o_length
        FROM kept k JOIN records r ON r.file = k.file AND r.offset = k.offset AND r.kind = 'revisit'
        JOIN records o ON o.rid = r.refers AND o.kind IN {_CONTENT} AND o.kind != 'revisit'
        WHERE NOT EXISTS (SELECT 1 FROM kept l WHERE l.file = o.file AND l.offset = o.offset)"""
    )
    facts.execute("CREATE INDEX refilled_by_place ON refilled(file, offset)")


class Refill:
    """Gives the records that take the place of revisits; see :func:`filled`."""

    def __init__(self, dataset: Dataset, facts: Facts) -> None:
        self._paths = dataset.warc_files()
        self._facts = facts

    def __call__(self, reader: WarcReader, file: int, offset: int) -> tuple[bytes, bytes] | None:
        """The record instead of that at an offset of a file, and its line; None where that one stays."""
        row = self._facts.first(
            """SELECT f.name, o_offset, o_length, r.length, r.digest, d.doc FROM refilled t
            JOIN records r ON r.file = t.file AND r.offset = t.offset JOIN files f ON f.file = t.o_file
            LEFT JOIN documents d ON d.file = r.file AND d.offset = r.offset WHERE t.file = ? AND t.offset = ?""",
            file,
            offset,
        )
        if row is None:
            return None
        name, original_at, original_length, length, digest, document = row
        original = WarcReader(self._paths[name]).read(original_at, original_length)
        return filled(reader.read(offset, length), original, digest, document or "")


def filled(revisit: bytes, original: bytes, digest: str, document: str) -> tuple[bytes, bytes]:
    """The record that takes a revisit's place, and its line in the index, for which the place is still to be set.

    ``digest`` is that of the payload. Raises CorruptRecord.
    """
    record, http = parse_stored(revisit, "the revisit")[:2]
    source, source_http = parse_stored(original, "the original")[:2]
    content_type = source.fields.text(CONTENT_TYPE)
    payload = original[source_http.body_at if source_http else source.block_at : source.size]
    http_head = None
    if source_http is not None:
        http_head = revisit[record.block_at : http.body_at] if http else original[source.block_at : source_http.body_at]
    kept = _LEFT_OUT.sub(b"", revisit[revisit.index(b"\n") + 1 : record.block_at]).strip().decode("utf-8", "replace")
    fields = [(name, value.strip()) for name, _, value in (line.partition(":") for line in kept.split("\n"))]
    data = record_bytes(source.kind, fields, content_type, payload, digest, http_head)
    answered = http or source_http
    media_type = answered.fields.text(CONTENT_TYPE) if answered else content_type
    line = Entry(
        url=record.url,
        timestamp=timestamp(record.fields.text(DATE)),
        mime=media_type.partition(";")[0].strip() or "unk",
        status=str(answered.status) if answered else None,
        digest=digest,
        length=1,
        offset=0,
        filename="unset",
        id=document,
    ).line()
    return data, line
