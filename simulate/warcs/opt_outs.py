"""Opt-outs in archive files: notes on them when a file is indexed, and the signals of documents from these notes.

Noted are the signals in the heads of pages, those in the metadata records of this project's archives, and where files
of sites lie: robots.txt and tdmrep.json. The HTML of pages is not read for the index; :class:`simulate.warcs.corpus`
reads its head when it reads the page.

In an archive of this project a file of a site counts for the pages that were fetched before it: those after it have
noted what it says. In archives of others it counts for all pages of the site.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from crawl4llm.base.errors import PageError
from crawl4llm.base.pages import HeaderFields
from crawl4llm.base.urls import normalise_url, site_of
from crawl4llm.optouts import (
    FIELDS,
    FILES,
    LARGEST_FILE,
    PATH,
    ROBOTS_TXT,
    TDMREP,
    OfPage,
    OfSite,
    as_text,
    from_text,
    is_known,
    of_site,
    product_token,
    said_in_head,
)
from crawl4llm.warc import SIGNALS, SITE, Fields, Frame, HttpHead, Record, StoredRecord, decoded, entity, field_name

_PATHS: Final = {"/robots.txt": ROBOTS_TXT, PATH: TDMREP}
"""The files of a site by their paths."""
SITE_FILES: Final = tuple(_PATHS)
_SIGNAL_FIELDS = re.compile(rb"\n(?:%b)[ \t]*:" % b"|".join(name.encode() for name in FIELDS))
_LOCATION, _RECORD_ID = field_name("Location"), field_name("WARC-Record-ID")
_CONCURRENT_TO: Final = field_name("WARC-Concurrent-To")
_OPT_OUT, _USER_AGENT = field_name("opt-out"), field_name("http-header-user-agent")
_SITE, _SIGNALS = field_name(SITE), field_name(SIGNALS)
_LARGEST_BLOCK: Final = 1 << 16
"""Bytes of a record of fields that are read."""
_ALWAYS: Final = "9999-12-31T23:59:59Z"
_DIGITS = re.compile(rb"\D+")

Read = Callable[[str, int, int], StoredRecord]
"""Reads the record at a place of a file. Raises PageError and OSError."""


def date_as_number(date: bytes) -> int:
    """Return a WARC-Date, or an ARC date, as a number of 14 digits; 0 if it is malformed."""
    digits = _DIGITS.sub(b"", date)[:14]
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
        self._ours = self._is_known = False
        self._crawler = ""
        self._files: dict[bytes, list[object]] = {}
        """Files of sites, by the ids of their records, until it is read which site each is of."""

    def warcinfo(self, frame: Frame, record: Record, *, ours: bool) -> None:
        """Take the record that begins a file."""
        self._ours, self._is_known, self._crawler = ours, True, ""
        if ours:
            block = _block(frame, record)
            self._is_known = is_known(block.text(_OPT_OUT))
            self._crawler = product_token(block.text(_USER_AGENT))

    def document(self, record: Record, http: HttpHead | None, key: str) -> None:
        """Take the head of a document."""
        self.unknown += not self._is_known if self._ours else http is None
        if http is not None and http.fields.has(_SIGNAL_FIELDS):
            fields: HeaderFields = http.fields.pairs()
            if said := said_in_head(fields, self._crawler):
                self._add(key, record.date or "", as_text(said))

    def file_of_site(self, frame: Frame, record: Record, purpose: str) -> None:
        """Take a record that may be a site's file: in an archive of ours by its ``purpose``, in others by its URL."""
        key, http = normalise_url(record.url), frame.http
        site = site_of(key)
        purpose = purpose or _PATHS.get(key.removeprefix(site), "")
        if http is None or purpose not in FILES or record.kind != "response":
            return
        while len(frame.opening.data) < min(record.size or 0, LARGEST_FILE) and frame.opening.grow():
            pass
        whole = StoredRecord(record, http, frame.opening.data, "")
        if read_site_file(whole, purpose, site, "", self._crawler) is not None:
            date = (record.date or "") if self._ours else _ALWAYS
            note: list[object] = [purpose, site, date, frame.offset, frame.length, self._crawler]
            if self._ours:
                self._files[record.fields.get(_RECORD_ID)] = note
            else:
                self._add(*note)

    def metadata(self, frame: Frame, record: Record) -> None:
        """Take a record of an archive of ours about another one."""
        block = _block(frame, record)
        if note := self._files.pop(record.fields.get(_CONCURRENT_TO), None):
            note[1] = block.text(_SITE) or note[1]
            self._add(*note)
        elif signals := as_text(from_text(block.text(_SIGNALS))):
            self._add(normalise_url(record.url), record.date or "", signals)

    def _add(self, *note: object) -> None:
        self.lines.append(json.dumps(note))


def heard_of(file: str, lines: Iterable[bytes], read: Read) -> Iterator[OfPage | OfSite]:
    """Yield the signals in the notes of a file; an unreadable record of a site's file has none."""
    for line in lines:
        note = json.loads(line)
        if len(note) == len(OfPage._fields):
            yield OfPage(*note)
            continue
        purpose, site, date, offset, length, crawler = note
        with suppress(PageError, OSError):
            found = read_site_file(read(file, offset, length), purpose, site, date, crawler)
            if found is not None:
                yield found


def read_site_file(stored: StoredRecord, purpose: str, site: str, date: str, crawler: str) -> OfSite | None:
    """Return the signals in an archived answer for a site's file; None without any, or if it is unreadable."""
    record, http, data, _ = stored
    if http is None:
        return None
    try:
        body = decoded(entity(data, record, http), http.fields, LARGEST_FILE)
    except (ValueError, PageError):
        return None
    return of_site(purpose, site, date, http.status, http.fields.text(_LOCATION), body, crawler)


def _block(frame: Frame, record: Record) -> Fields:
    """Return the fields in the block of a record."""
    while len(frame.opening.data) < min(record.size or 0, _LARGEST_BLOCK) and frame.opening.grow():
        pass
    return Fields(b"\n" + record.block(frame.opening.data))
