"""The first pass of a build: reads everything of a page except its HTML from the source, once.

Pages are read in chunks, and a file keeps each chunk until the data files are written. So a killed build loses little
of the slow work, the extraction of text.
"""

from __future__ import annotations

import json
import logging
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.errors import MissingRecord, PageError, reading
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.base.reasons import ERROR, NO_TEXT
from crawl4llm.base.urls import normalise_url
from crawl4llm.base.whole_files import replacing
from crawl4llm.optouts import as_text, from_text, said_in_html
from crawl4llm.scoring import EXTRACTORS, extract_text
from simulate.build.plan import Build, PlannedFile

logger = logging.getLogger(__name__)

PAGES_PER_CHUNK: Final = 100

_UNFIT_FOR_A_URL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")  # what would end a WARC header, or cannot be encoded


class Page(NamedTuple):
    """A page as it goes into the records of all kinds but ``html``."""

    url: str
    date: str | None
    has_html: bool
    text: str
    links: list[Link]  # the keys of their targets are ids of the tree that is built, None for what it does not hold
    remark: str | None  # why the page has no text, if it has none
    opt_outs: str  # what was said of its uses, as crawl4llm.optouts.said.as_text has it


class Unreadable(NamedTuple):
    """Stands for a page that the source cannot give."""

    reason: str


Entry = Page | Unreadable | None
"""The page with a record's number, or None."""


class Chunk(NamedTuple):
    """Consecutive records of a data file to be."""

    file: PlannedFile
    start: int

    @property
    def records(self) -> range:
        return range(self.start, min(self.start + PAGES_PER_CHUNK, self.file.records))


def chunks_of(file: PlannedFile) -> list[Chunk]:
    """Return all chunks of a data file, in order."""
    return [Chunk(file, start) for start in range(0, file.records, PAGES_PER_CHUNK)]


# -- reading ----------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A page that is to be read."""

    file: PlannedFile
    record: int
    without_text: str | None = None
    """The reason why no text is to be extracted."""


def read_chunk(build: Build, chunk: Chunk) -> None:
    """Read the pages of a chunk and keep them."""
    write_chunk(build, chunk, [read_page(build, Place(chunk.file, record)) for record in chunk.records])


def read_page(build: Build, place: Place) -> Entry:
    key = build.plan.keys(place.file)[place.record]
    if key is None:
        return None
    try:
        with reading(key):
            page = build.source.page(key)
            links = [_link(build, link) for link in page.outlinks or []]
            said = [*from_text(page.opt_outs), *said_in_html(page.html or b"", "")]
    except PageError as error:
        logger.debug("%s", error)
        return Unreadable(error.reason)
    text, remark = ("", place.without_text) if place.without_text else _text(build, page)
    return Page(clean_url(page.url), page.date, page.html is not None, text, links, remark, as_text(said))


def _text(build: Build, page: PageRecord) -> tuple[str, str | None]:
    """Return the page's text, or the empty string and the reason for it."""
    try:
        text = _stored_text(build, page)
        if text is None:
            assert page.html is not None
            text = extract_text(page.html, EXTRACTORS[build.options.extractor])
    except PageError as error:
        return "", error.reason
    except Exception:
        logger.exception("Cannot extract the text of %s", page.key)
        return "", ERROR
    return text, None if text.strip() else NO_TEXT


def _stored_text(build: Build, page: PageRecord) -> str | None:
    """Return the text that the source has, None if it is to be extracted. Raises PageError."""
    if page.text is not None:
        return page.text
    if page.html is not None and build.options.always_extract:
        return None
    try:
        return build.source.text(page.key)
    except MissingRecord:
        if page.html is None:
            raise
        return None


def _link(build: Build, link: Link) -> Link:
    return link._replace(url=clean_url(link.url), key=link.key and build.plan.new_id(link.key))


def clean_url(url: str) -> str:
    """Return a URL that any record can hold: normalised only where it has characters that none can."""
    return normalise_url(url) if _UNFIT_FOR_A_URL.search(url) else url


# -- chunks that have been read ---------------------------------------------------------------------------------------


def chunk_path(build: Build, chunk: Chunk) -> Path:
    """Return the path of the file that keeps a chunk; it appears when it is whole."""
    return build.work / "pages" / f"{chunk.file.file_id}.{chunk.start // PAGES_PER_CHUNK:03d}"


def write_chunk(build: Build, chunk: Chunk, entries: list[Entry]) -> None:
    path = chunk_path(build, chunk)
    with replacing(path, path.with_name(f".{path.name}.{os.getpid()}.tmp")) as file:
        # Keys and values in a list: the names of a thousand fields would be most of a small chunk.
        file.write(zlib.compress(json.dumps(entries, separators=(",", ":")).encode(), 1))


def read_entries(build: Build, file: PlannedFile) -> Iterator[Entry]:
    """Yield the page of each record of a file, in order, from its chunks."""
    for chunk in chunks_of(file):
        yield from map(_entry, json.loads(zlib.decompress(chunk_path(build, chunk).read_bytes())))


def _entry(stored: list[Any] | None) -> Entry:
    if stored is None:
        return None
    if len(stored) == len(Unreadable._fields):
        return Unreadable(*stored)
    page = Page(*stored)
    return page._replace(links=[Link(*link) for link in page.links])
