"""Records of network exchanges: ``response`` or ``revisit``, and the ``request`` that led to it.

WARC-IP-Address (ISO 28500:2017, 5.10) and WARC-Protocol (IIPC, warc-specifications issue 42) are in both; the request
names its response in WARC-Concurrent-To (5.7), which counts for both directions. The payload digest is over the entity
as the server sent it or, if that is unknown, as it was decoded. WARC-Truncated (5.13) gives the reason why a body is
incomplete.

For a payload that the archive already holds, a ``revisit`` of the profile identical-payload-digest (6.7.2) is written.
It has only the HTTP head, with WARC-Truncated as the profile requires, and the original's id, URL and date.

A capture whose URL does not fit into a head is left out; a page's own is then stored like a corpus page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from crawl4llm.base.errors import PageError
from crawl4llm.base.files import ArchiveError
from crawl4llm.base.pages import Capture
from crawl4llm.warc import page_records as pages
from crawl4llm.warc.cdxj import REVISIT_MIME
from crawl4llm.warc.http_messages import HEADERS_FIELD, request_head, response_head
from crawl4llm.warc.reader import read_stored
from crawl4llm.warc.records import DATE, TARGET_URI, field_name

PURPOSE_FIELD = "Crawl4LLM-Purpose"
"""Extension field of a response that belongs to no page: its purpose, such as ``robots.txt``."""
REVISIT_PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"

_REQUEST_TYPE = "application/http; msgtype=request"
_PROTOCOL = re.compile(r"[a-z0-9./-]{1,20}")


class Original(NamedTuple):
    """The record that holds a payload of a revisit."""

    id: str
    url: str
    date: str


FindOriginal = Callable[[str], Original | None]
"""Returns the record in the archive with the payload of a digest, if there is one."""


def exchange(
    records: pages.RecordBuilder,
    capture: Capture,
    key: str,
    warcinfo_id: str,
    *,
    hop: int,
    find: FindOriginal,
    credentials: bool = False,
    purpose: str | None = None,
) -> tuple[pages.ContentRecord, bytes]:
    """Return the records of a capture with a fitting URL: of the response, and of the request that it answers.

    ``hop`` captures lead from it to the page of ``key``; ids and dates come from a RecordBuilder; ``credentials`` as in
    request_head. ``purpose``: of an exchange that belongs to no page.
    """
    payload_digest = pages.digest(capture.body)
    original = find(payload_digest) if capture.body and not hop and not capture.truncated else None
    if original and len(original.url) + len(capture.url) > pages.MAX_URI:
        original = None  # the head would be too long for some readers
    kind = "revisit" if original else "response"
    identifier = pages.record_id(records.crawl_id, _name(kind, hop), key)
    url = pages.safe_uri(capture.url)
    date = records.date(capture.date)
    network = _network(capture.ip_address, capture.protocol)
    http_head, said = response_head(capture)
    head = [*pages.record_head(identifier, date, url, warcinfo_id), *network, *_said(said)]
    if purpose:
        head.append((PURPOSE_FIELD, purpose))
    if original:
        head += [
            ("WARC-Profile", REVISIT_PROFILE),
            ("WARC-Refers-To", original.id),
            ("WARC-Refers-To-Target-URI", original.url),
            ("WARC-Refers-To-Date", original.date),
            ("WARC-Truncated", "length"),
        ]
    elif capture.truncated:
        head.append(("WARC-Truncated", capture.truncated))
    data = pages.record_bytes(
        kind, head, pages.RESPONSE_TYPE, b"" if original else capture.body, payload_digest, http_head
    )
    mime = REVISIT_MIME if original else _media_type(capture)
    response = pages.ContentRecord(identifier, kind, url, date, mime, str(capture.status), payload_digest, data)

    http_head, said = request_head(capture, url, credentials=credentials)
    request_id = pages.record_id(records.crawl_id, _name("request", hop), key)
    head = [*pages.record_head(request_id, date, url, warcinfo_id), *network]
    head += [("WARC-Concurrent-To", identifier), *_said(said)]
    body = capture.request_body
    return response, pages.record_bytes("request", head, _REQUEST_TYPE, body, pages.digest(body), http_head)


def has_uri(capture: Capture) -> bool:
    """Return whether a capture's URL can stand in a record of HTTP messages: http or https, and not too long."""
    return pages.safe_uri(capture.url).startswith(("http:", "https:"))


def _name(kind: str, hop: int) -> str:
    """Return the part of a name that distinguishes a record from others of its kind and document."""
    return f"{kind}-{hop}" if hop else kind


@lru_cache(maxsize=1024)
def _network(address: str | None, protocol: str | None) -> pages.Head:
    fields: pages.Head = []
    with suppress(ValueError):  # no address
        fields.append(("WARC-IP-Address", str(ip_address(address or ""))))
    if protocol and _PROTOCOL.fullmatch(protocol):
        fields.append(("WARC-Protocol", protocol))
    return fields


def _said(of_headers: str | None) -> pages.Head:
    return [(HEADERS_FIELD, of_headers)] if of_headers else []


def _media_type(capture: Capture) -> str:
    """Return the media type for the index, from the first Content-Type."""
    for name, value in capture.headers:
        if name.lower() == b"content-type":
            return pages.index_mime(value.replace(b"\0", b" ").decode("utf-8", "replace"))  # as the head has it
    return pages.index_mime("")


_RECORD_ID = field_name("WARC-Record-ID")
_LONGEST = (1 << 40) - 1


class StoredPayloads:
    """The last ``size`` payloads of responses, by digest: first in, first out.

    Its content is a function of the index alone, so a reopened archive continues like one that never stopped. Each
    takes about 250 bytes of memory.
    """

    def __init__(self, directory: Path, size: int, entries: Iterable[pages.Entry] = ()) -> None:
        self._directory, self._size = directory, size
        self._places: dict[str, int] = {}
        """By digest: number of the file, offset and length in one integer, the smallest object in Python."""
        self._files: list[str] = []
        for entry in entries:
            self.add(entry)

    def add(self, entry: pages.Entry) -> None:
        """Add a written record; records other than the response of a page are skipped."""
        if not self._size or not entry.id or entry.status is None or entry.mime == REVISIT_MIME:
            return
        if max(entry.offset, entry.length) > _LONGEST:  # damaged, or in a file of more than a terabyte
            return
        if entry.digest not in self._places:
            if entry.filename not in self._files[-1:]:
                self._files.append(entry.filename)
            self._places[entry.digest] = (len(self._files) - 1) << 80 | entry.offset << 40 | entry.length
            if len(self._places) > self._size:
                del self._places[next(iter(self._places))]

    def find(self, payload_digest: str) -> Original | None:
        """Return the response that holds the payload; None if none is known, or it can no longer be read."""
        place = self._places.get(payload_digest)
        if place is None:
            return None
        file, offset, length = place >> 80, place >> 40 & _LONGEST, place & _LONGEST
        try:
            fields = read_stored(self._directory, self._files[file], offset, length).record.fields
        except (PageError, ArchiveError):
            return None
        return Original(fields.text(_RECORD_ID), fields.text(TARGET_URI), fields.text(DATE))
