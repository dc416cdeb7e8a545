"""The WARC records of a crawl: ISO 28500:2017, version 1.1. Here those that are made from what a corpus holds.

A page with html becomes a ``response`` (6.3). A corpus keeps no HTTP headers: the record's HTTP head is
reconstructed, and the extension field ``Crawl4LLM-HTTP-Headers: reconstructed`` says so. Where the URL is neither
http nor https there is no HTTP head to reconstruct, and the page becomes a ``resource`` (6.4). A page with text only
becomes a ``conversion`` (6.8) as in Common Crawl's WET files, ``Content-Type: text/plain`` in UTF-8; a page with
neither, one with an empty block, so that each crawled page has exactly one content record. WET's
``WARC-Identified-Content-Language`` is left out: it holds ISO 639-3 codes that a language detector found, and a
corpus's own tag (``zh_chs``) is not one. Pages that came over the network: :mod:`crawl4llm.warc.exchanges`.

A ``metadata`` record (6.6) describes the content record. It names a response, revisit or resource in
``WARC-Concurrent-To``, as part of the same capture event (5.7, table A.1), and a conversion, where 5.7 forbids that, in
``WARC-Refers-To`` (5.11, table A.5). Digests are SHA-1 in Base32; a metadata record has a block digest only, for it has
no payload (5.9).

Nothing here reads a clock or draws a number: record ids come from the crawl id and the document key, dates from the
page or, where it has none, from the start of the crawl.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from crawl4llm.base.pages import PageRecord
from crawl4llm.warc.header_values import is_utc_date, one_line, safe_uri, utf8
from crawl4llm.warc.http_messages import HEADERS_FIELD, RECONSTRUCTED
from crawl4llm.warc.serialise import WARC_FIELDS, Fields, digest, record_id, serialise, warc_fields

FORMAT_FIELDS = {
    "format": "WARC File Format 1.1",
    "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
}
"""What a warcinfo record says of the format."""

RESPONSE_TYPE = "application/http; msgtype=response"
_HTML, _TEXT = "text/html; charset=utf-8", "text/plain"
_RECONSTRUCTED = f"{HEADERS_FIELD}: {RECONSTRUCTED}\r\n"


@dataclass(frozen=True, slots=True)
class ContentRecord:
    """A record that the index tells of: its bytes, and what the index and the metadata record say of it."""

    id: str
    """WARC-Record-ID, angle brackets included."""
    kind: str
    """WARC-Type."""
    url: str
    """WARC-Target-URI: the page's URL, or the record's own URN where it has none that fits."""
    date: str
    mime: str
    status: str | None
    """HTTP status code; None where the record holds no HTTP response."""
    digest: str
    """WARC-Payload-Digest, over the html or text, or the body that a server sent."""
    data: bytes
    """The whole record, uncompressed."""
    language: str | None = None
    """Of a text: what the index says of its language."""


class RecordBuilder:
    """Builds the records of one crawl. ``start_date`` dates warcinfo records and pages without a date of their own."""

    def __init__(self, crawl_id: UUID, start_date: str) -> None:
        self.crawl_id = crawl_id
        self._start_date = start_date
        self._warcinfo_ids: dict[str, str] = {}

    def warcinfo_id(self, filename: str) -> str:
        """The id of a file's warcinfo record, which its other records name."""
        if filename not in self._warcinfo_ids:
            self._warcinfo_ids[filename] = record_id(self.crawl_id, "warcinfo", filename)
        return self._warcinfo_ids[filename]

    def date(self, date: str | None) -> str:
        """A date, if it is one that WARC knows; else that of the start of the crawl."""
        return date if date is not None and is_utc_date(date) else self._start_date

    def warcinfo(self, filename: str, fields: Fields) -> bytes:
        """The record that begins the file ``filename`` (6.2)."""
        head = (
            f"WARC-Type: warcinfo\r\nWARC-Record-ID: {self.warcinfo_id(filename)}\r\n"
            f"WARC-Date: {self._start_date}\r\nWARC-Filename: {one_line(filename)}\r\n"
        )
        return serialise(head, WARC_FIELDS, warc_fields(fields))

    def content(self, page: PageRecord, warcinfo_id: str) -> ContentRecord:
        """The record that holds the content of a page of a corpus."""
        url = safe_uri(page.url)
        if page.html is None:
            kind, payload, media_type = "conversion", utf8(page.text or ""), _TEXT
        else:
            kind, payload, media_type = "resource", page.html, _HTML
            if url.startswith(("http:", "https:")):
                kind = "response"
        identifier = record_id(self.crawl_id, kind, page.key)
        url = url or identifier[1:-1]
        date = self.date(page.date)
        head = record_head(kind, identifier, date, url, warcinfo_id)
        payload_digest = digest(payload)
        if kind == "response":
            http_head = f"HTTP/1.1 200 OK\r\nContent-Type: {_HTML}\r\nContent-Length: {len(payload)}\r\n\r\n"
            data = serialise(head + _RECONSTRUCTED, RESPONSE_TYPE, http_head.encode() + payload, payload_digest)
        else:
            data = serialise(head, media_type, payload, payload_digest)
        status = "200" if kind == "response" else None
        mime = media_type.partition(";")[0]
        return ContentRecord(identifier, kind, url, date, mime, status, payload_digest, data)

    def metadata(self, key: str, content: ContentRecord, warcinfo_id: str, fields: Fields) -> bytes:
        """The record that describes a content record."""
        link = "WARC-Refers-To" if content.kind == "conversion" else "WARC-Concurrent-To"
        identifier = record_id(self.crawl_id, "metadata", key)
        head = record_head("metadata", identifier, content.date, content.url, warcinfo_id)
        return serialise(f"{head}{link}: {content.id}\r\n", WARC_FIELDS, warc_fields(fields))

    def text(self, page: PageRecord, content: ContentRecord, warcinfo_id: str, text: str) -> ContentRecord:
        """The record that holds the text of a page whose content is in another."""
        identifier = record_id(self.crawl_id, "text", page.key)
        head = record_head("conversion", identifier, content.date, content.url, warcinfo_id)
        payload = utf8(text)
        payload_digest = digest(payload)
        data = serialise(f"{head}WARC-Refers-To: {content.id}\r\n", _TEXT, payload, payload_digest)
        return ContentRecord(
            identifier,
            "conversion",
            content.url,
            content.date,
            _TEXT,
            None,
            payload_digest,
            data,
            page.language or "",
        )


def record_head(kind: str, identifier: str, date: str, url: str, warcinfo_id: str) -> str:
    """The fields with which every record of a page begins."""
    return (
        f"WARC-Type: {kind}\r\nWARC-Record-ID: {identifier}\r\nWARC-Date: {date}\r\n"
        f"WARC-Target-URI: {url}\r\nWARC-Warcinfo-ID: {warcinfo_id}\r\n"
    )
