"""The scan of one archive file: its documents, its records that lead to other records, notes of opt-outs, and counts of
the rest.

A document is a record of an HTML media type: a ``response`` (ISO 28500:2017, 6.3) with status 200 or without an HTTP
head (as in ClueWeb22), or a ``resource`` (6.4). A ``conversion`` (6.8) to plain text is a document too, with its text
alone. Aliases are redirects (RFC 9110, 15.4), revisits of another URL's page (ISO 28500:2017, 6.7) and, if wanted,
canonical links (RFC 6596). In an archive of this project a revisit is a crawled page, and so a document.

Noted are the signals in the heads of pages, those in the metadata records of this project's archives, and where files
of sites lie: robots.txt and tdmrep.json. The HTML of pages is not read for the index; :class:`simulate.warcs.corpus`
reads its head when it reads the page. In an archive of this project a file of a site counts for the pages that were
fetched before it: those after it have noted what it says. In archives of others it counts for all pages of the site.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from html import unescape
from pathlib import Path
from typing import Final, NamedTuple

from crawl4llm import optouts
from crawl4llm.base.errors import PageError
from crawl4llm.base.urls import BaseUrl, lookup_form, normalise_url, site_of
from crawl4llm.warc import (
    CONTENT_TYPE,
    DATE,
    PAYLOAD_DIGEST,
    PURPOSE_FIELD,
    SIGNALS,
    SITE,
    TARGET_URI,
    Fields,
    Frame,
    HttpHead,
    Opening,
    Record,
    StoredRecord,
    decoded,
    entity,
    field_name,
    is_html,
    media_type,
    scan,
)
from simulate.warcs.index import HTML, REVISITED, TEXT, PartColumns

DAMAGED, NO_LENGTH, NO_URL, NOT_HTML, UNTYPED = "damaged", "no_length", "no_url", "not_html", "untyped"
"""Why a record is left out, other than for its kind or its HTTP status (``http_404``)."""
PAGE, PLAIN_TEXT, REDIRECT, CANONICAL = "html", "text", "redirect", "canonical"
REVISIT, REVISIT_BY_DIGEST = "revisit", "revisit_by_digest"
OF_NO_PAGE = "of_no_page"
"""Counts of records, and of links in them, that are not left out."""

_RECORD_ID, TREC_ID = field_name("WARC-Record-ID"), field_name("WARC-TREC-ID")
_REFERS_TO, REFERS_TO_URI = field_name("WARC-Refers-To"), field_name("WARC-Refers-To-Target-URI")
_IDENTIFIED_TYPE: Final = field_name("WARC-Identified-Payload-Type")
_PURPOSE: Final = field_name(PURPOSE_FIELD)
_BOMB: Final = b"bomb"
"""The purpose of a record with the whole answer to a request for a document, which failed for its body."""
_SOFTWARE = re.compile(rb"^software: *crawl4llm/", re.IGNORECASE | re.MULTILINE)
"""In the warcinfo record of a file: it is of this project (ISO 28500:2017, 6.2)."""
_REDIRECTS: Final = {301, 302, 303, 307, 308}
_CANONICAL_LINK = re.compile(
    rb"""<link\b(?=[^>]*\brel\s*=\s*["']?canonical\b)[^>]*\bhref\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE
)
_CANONICAL_WITHIN: Final = 16_384
"""Bytes of a record in which its canonical link is looked for, unless the page's body begins before."""
_PATHS: Final = {"/robots.txt": optouts.ROBOTS_TXT, optouts.PATH: optouts.TDMREP}
"""The files of a site by their paths."""
_PATH_ENDS: Final = tuple(_PATHS)
_SIGNAL_FIELDS = re.compile(rb"\n(?:%b)[ \t]*:" % b"|".join(name.encode() for name in optouts.FIELDS))
_LOCATION: Final = field_name("Location")
_CONCURRENT_TO: Final = field_name("WARC-Concurrent-To")
_OPT_OUT, _USER_AGENT = field_name("opt-out"), field_name("http-header-user-agent")
_SITE, _SIGNALS = field_name(SITE), field_name(SIGNALS)
_LARGEST_BLOCK: Final = 1 << 16
"""Bytes of a record of fields that are read."""
_ALWAYS: Final = "9999-12-31T23:59:59Z"
_NO_DIGITS: Final = bytes(sorted({*range(256)} - {*b"0123456789"}))

Read = Callable[[str, int, int], StoredRecord]
"""Reads the record at a place of a file. Raises PageError and OSError."""


class Source(NamedTuple):
    """A file to index."""

    path: Path
    points: Path
    """File for its entry points, if it is compressed as a whole."""


def scan_part(
    main: Source, wet: Source | None = None, wat: Source | None = None, *, canonical_links: bool
) -> PartColumns:
    """Index an archive file with the WET and WAT files beside it. Raises UnreadableFile and OSError."""
    collector = _Collector(canonical_links, beside=bool(wet or wat))
    scan(*main, collector.collect)
    for source, prefix in ((wet, "text"), (wat, "links")):
        if source is not None:
            scan(*source, partial(collector.collect_beside, prefix=prefix))
    return collector.part


class _Collector:
    """A collector of the records of one part."""

    def __init__(self, canonical_links: bool, *, beside: bool) -> None:
        self._canonical_links = canonical_links
        self._beside = beside
        self.collect(())

    def collect(self, frames: Iterable[Frame]) -> None:
        """Take the records of the archive file; earlier collections are dropped."""
        self.part = PartColumns()
        self._by_name: dict[bytes, int] = {}
        self._notes = Notes()
        for frame in frames:
            self.part.counts[self._take(frame)] += 1
        self.part.columns["opt_outs"].frombytes("".join(f"{line}\n" for line in self._notes.lines).encode())
        self.part.opt_outs_unknown = self._notes.unknown

    def collect_beside(self, frames: Iterable[Frame], prefix: str) -> None:
        """Note where in a WET or WAT file there is a record of one of the documents, by the id to which it refers.

        Records that refer to none are taken by their URL.
        """
        places = {what: array("Q", bytes(8 * len(self.part))) for what in ("offsets", "lengths")}
        for frame in frames:
            if frame.record is None:
                continue
            get = frame.record.fields.get
            number = self._by_name.get(get(_REFERS_TO) or get(TARGET_URI))
            if number is not None:
                places["offsets"][number], places["lengths"][number] = frame.offset, frame.length
        self.part.columns.update({f"{prefix}_{what}": column for what, column in places.items()})

    def _take(self, frame: Frame) -> str:
        """Take a record, and return the name under which it is counted."""
        record, http = frame.record, frame.http
        if record is None:
            return DAMAGED
        purpose = record.fields.get(_PURPOSE)  # robots.txt and the like, in an archive of ours
        if purpose == _BOMB:
            purpose = b""  # a page, which a replay asks for too
        url = record.url
        self._notes.record(frame, record, url, purpose)
        if purpose or record.kind not in {"response", "resource", "conversion", "revisit"}:
            return OF_NO_PAGE if purpose else record.kind or UNTYPED
        if record.length is None:
            return NO_LENGTH
        if not url:
            return NO_URL
        key = normalise_url(url)
        if http and http.status in _REDIRECTS:
            location = http.fields.get(_LOCATION).decode("utf-8", "surrogateescape")
            self._add_alias(key, BaseUrl(url).resolve(location) if location else None)
            return REDIRECT
        if record.kind == "revisit" and not self._notes.ours:
            return self._add_revisit(key, record)
        if http and http.status != 200:
            return f"http_{http.status}"
        kind = media_type(http.fields.listed(CONTENT_TYPE)) if http else b""
        if record.kind == "revisit":
            return self._add_document(frame, record, REVISITED, key) if not kind or is_html(kind, b"") else NOT_HTML
        kind = kind or media_type(record.fields.listed(CONTENT_TYPE))
        if record.kind == "conversion":
            return self._add_document(frame, record, TEXT, key) if kind == b"text/plain" else NOT_HTML
        body_at = http.body_at if http else record.block_at
        if not is_html(kind or record.fields.get(_IDENTIFIED_TYPE), frame.opening.data, body_at):
            return NOT_HTML
        if self._canonical_links:
            self._add_canonical_link(key, frame.opening, body_at)
        return self._add_document(frame, record, HTML, key)

    def _add_document(self, frame: Frame, record: Record, kind: int, key: str) -> str:
        get = record.fields.get
        if self._beside:
            for name in (get(_REFERS_TO if kind == TEXT else _RECORD_ID), get(TARGET_URI)):
                if name:
                    self._by_name.setdefault(name, len(self.part))
        place = frame.offset, frame.length
        digest = b"" if kind == REVISITED else get(PAYLOAD_DIGEST)
        self.part.add_document(place, kind, key, digest=digest, name=get(TREC_ID), date=date_as_number(get(DATE)))
        self._notes.document(record, frame.http, key)
        return {HTML: PAGE, TEXT: PLAIN_TEXT, REVISITED: REVISIT}[kind]

    def _add_revisit(self, key: str, record: Record) -> str:
        """Add an alias to the page that the record names or, if it names none, to the page with the same payload."""
        original = record.fields.get(REFERS_TO_URI).strip(b"<>").decode("utf-8", "surrogateescape")
        if original:
            self._add_alias(key, normalise_url(original))
            return REVISIT
        self._add_alias(key, record.fields.text(PAYLOAD_DIGEST))
        return REVISIT_BY_DIGEST

    def _add_canonical_link(self, key: str, opening: Opening, body_at: int) -> None:
        while len(opening.data) < _CANONICAL_WITHIN and b"<body" not in opening.data and opening.grow():
            pass
        if b"canonical" not in opening.data:
            return
        link = _CANONICAL_LINK.search(opening.data, body_at)
        canonical = BaseUrl(key).resolve(unescape(link[1].decode("utf-8", "replace"))) if link else None
        if canonical and self._add_alias(canonical, key):
            self.part.counts[CANONICAL] += 1

    def _add_alias(self, key: str, target: str | None) -> bool:
        """Add an alias, unless look-ups forgive the difference; in archives of ours any, as a crawl asked for it."""
        if not target or target == key or (not self._notes.ours and lookup_form(target) == lookup_form(key)):
            return False
        self.part.add_alias(key, target)
        return True


# -- opt-outs ----------------------------------------------------------------------------------------------------------


def date_as_number(date: bytes) -> int:
    """Return a WARC-Date, or an ARC date, as a number of 14 digits; 0 if it is malformed."""
    digits = date.translate(None, _NO_DIGITS)[:14]
    return int(digits) if len(digits) == 14 else 0


def date_of(number: int) -> str:
    """Return the date of such a number; empty for 0."""
    at = str(number)
    return f"{at[:4]}-{at[4:6]}-{at[6:8]}T{at[8:10]}:{at[10:12]}:{at[12:14]}Z" if number else ""


class Notes:
    """Takes notes of opt-outs while a file is scanned."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        """JSON: ``[URL, date, signals]`` of a page, ``[purpose, site, date, offset, length, crawler]`` of a file."""
        self.unknown = 0
        """Documents without recorded signals of their heads or sites."""
        self.ours = False
        """True if the file is an archive of this project."""
        self._is_known = False
        self._crawler = ""
        self._files: dict[bytes, list[object]] = {}
        """Files of sites, by the ids of their records, until it is read which site each is of."""

    def record(self, frame: Frame, record: Record, url: str, purpose: bytes) -> None:
        """Take the facts in a record about the file that it begins, or about opt-outs without being a document."""
        if record.kind == "warcinfo":
            self._warcinfo(frame, record)
        elif self.ours and record.kind == "metadata":
            self._metadata(frame, record, url)
        elif purpose if self.ours else url.endswith(_PATH_ENDS):
            self._file_of_site(frame, record, url, purpose.decode("utf-8", "replace"))

    def _warcinfo(self, frame: Frame, record: Record) -> None:
        """Take the record that begins a file."""
        self.ours = _SOFTWARE.search(frame.opening.data, record.block_at) is not None
        self._is_known, self._crawler = True, ""
        if self.ours:
            block = _block(frame, record)
            self._is_known = optouts.is_known(block.text(_OPT_OUT))
            self._crawler = optouts.product_token(block.text(_USER_AGENT))

    def document(self, record: Record, http: HttpHead | None, key: str) -> None:
        """Take the head of a document."""
        self.unknown += not self._is_known if self.ours else http is None
        if http is None or not http.fields.has(_SIGNAL_FIELDS):
            return
        if said := optouts.said_in_head(http.fields.pairs(), self._crawler):
            self._add(key, record.date or "", optouts.as_text(said))

    def _file_of_site(self, frame: Frame, record: Record, url: str, purpose: str) -> None:
        """Take a record that may be a site's file: in an archive of ours by its ``purpose``, in others by its URL."""
        key, http = normalise_url(url), frame.http
        site = site_of(key)
        purpose = purpose or _PATHS.get(key.removeprefix(site), "")
        if http is None or purpose not in optouts.FILES or record.kind != "response":
            return
        while len(frame.opening.data) < min(record.size or 0, optouts.LARGEST_FILE) and frame.opening.grow():
            pass
        whole = StoredRecord(record, http, frame.opening.data, "")
        if read_site_file(whole, purpose, site, "", self._crawler) is not None:
            date = (record.date or "") if self.ours else _ALWAYS
            note: list[object] = [purpose, site, date, frame.offset, frame.length, self._crawler]
            if self.ours:
                self._files[record.fields.get(_RECORD_ID)] = note
            else:
                self._add(*note)

    def _metadata(self, frame: Frame, record: Record, url: str) -> None:
        """Take a record of an archive of ours about another one."""
        block = _block(frame, record)
        if note := self._files.pop(record.fields.get(_CONCURRENT_TO), None):
            note[1] = block.text(_SITE) or note[1]
            self._add(*note)
        elif signals := optouts.as_text(optouts.from_text(block.text(_SIGNALS))):
            self._add(normalise_url(url), record.date or "", signals)

    def _add(self, *note: object) -> None:
        self.lines.append(json.dumps(note))


def heard_of(file: str, lines: Iterable[bytes], read: Read) -> Iterator[optouts.OfPage | optouts.OfSite]:
    """Yield the signals in the notes of a file; an unreadable record of a site's file has none."""
    for line in lines:
        note = json.loads(line)
        if len(note) == len(optouts.OfPage._fields):
            yield optouts.OfPage(*note)
            continue
        purpose, site, date, offset, length, crawler = note
        with suppress(PageError, OSError):
            found = read_site_file(read(file, offset, length), purpose, site, date, crawler)
            if found is not None:
                yield found


def read_site_file(stored: StoredRecord, purpose: str, site: str, date: str, crawler: str) -> optouts.OfSite | None:
    """Return the signals in an archived answer for a site's file; None without any, or if it is unreadable."""
    record, http, data, _ = stored
    if http is None:
        return None
    try:
        body = decoded(entity(data, record, http), http.fields, optouts.LARGEST_FILE)
    except (ValueError, PageError):
        return None
    return optouts.of_site(purpose, site, date, http.status, http.fields.text(_LOCATION), body, crawler)


def _block(frame: Frame, record: Record) -> Fields:
    """Return the fields in the block of a record."""
    while len(frame.opening.data) < min(record.size or 0, _LARGEST_BLOCK) and frame.opening.grow():
        pass
    return Fields(b"\n" + record.block(frame.opening.data))
