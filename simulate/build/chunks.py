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
from crawl4llm.base.pages import Corpus, Link, PageRecord
from crawl4llm.base.reasons import ERROR, NO_TEXT
from crawl4llm.base.urls import normalise_url
from crawl4llm.base.whole_files import replacing
from crawl4llm.optouts import as_text, from_text, said_in_html
from crawl4llm.scoring import EXTRACTORS, extract_text
from simulate.build.plan import Plan, PlannedFile

logger = logging.getLogger(__name__)

PAGES_PER_CHUNK: Final = 100

_UNFIT_FOR_A_URL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")  # what would end a WARC header, or cannot be encoded


class BuildOptions(NamedTuple):
    """The options of a build, which decide its output together with source and manifest."""

    extractor: str  # name of the extractor that takes text from the HTML
    always_extract: bool  # whether to do so although the source has a clean text
    default_date: str  # date of html records of pages whose date the source does not hold
    time_limit: float  # seconds that a page may take
    slim_links: bool = False  # whether of a link nothing is written but the id


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


class PageReader:
    """Reads pages from the source."""

    def __init__(self, source: Corpus, plan: Plan, options: BuildOptions) -> None:
        self._source, self._plan, self._options = source, plan, options

    def read(self, key: str, without_text: str | None = None) -> Page | Unreadable:
        """Return a page; ``without_text`` is the reason why no text is to be extracted."""
        try:
            with reading(key):
                page = self._source.page(key)
                links = self._links(page.outlinks or [])
                said = [*from_text(page.opt_outs), *said_in_html(page.html or b"", "")]
        except PageError as error:
            logger.debug("%s", error)
            return Unreadable(error.reason)
        text, remark = ("", without_text) if without_text else self._text(page)
        return Page(clean_url(page.url), page.date, page.html is not None, text, links, remark, as_text(said))

    def _text(self, page: PageRecord) -> tuple[str, str | None]:
        """Return the page's text, or the empty string and the reason for it."""
        try:
            text = self._stored_text(page)
            if text is None:
                assert page.html is not None
                text = extract_text(page.html, EXTRACTORS[self._options.extractor])
        except PageError as error:
            return "", error.reason
        except Exception:
            logger.exception("Cannot extract the text of %s", page.key)
            return "", ERROR
        return text, None if text.strip() else NO_TEXT

    def _stored_text(self, page: PageRecord) -> str | None:
        """Return the text that the source has, None if it is to be extracted. Raises PageError."""
        if page.text is not None:
            return page.text
        if page.html is not None and self._options.always_extract:
            return None
        try:
            return self._source.text(page.key)
        except MissingRecord:
            if page.html is None:
                raise
            return None

    def _links(self, links: list[Link]) -> list[Link]:
        new_id = self._plan.new_id
        return [link._replace(url=clean_url(link.url), key=link.key and new_id(link.key)) for link in links]


def clean_url(url: str) -> str:
    """Return a URL that any record can hold: normalised only where it has characters that none can."""
    return normalise_url(url) if _UNFIT_FOR_A_URL.search(url) else url


class ChunkStore:
    """The chunks that have been read, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def holds(self, chunk: Chunk) -> bool:
        return self._path(chunk).exists()

    def write(self, chunk: Chunk, entries: list[Entry]) -> None:
        """Keep a chunk; its file appears when it is whole."""
        path = self._path(chunk)
        with replacing(path, path.with_name(f".{path.name}.{os.getpid()}.tmp")) as file:
            # Keys and values in a list: the names of a thousand fields would be most of a small chunk.
            file.write(zlib.compress(json.dumps(entries, separators=(",", ":")).encode(), 1))

    def read(self, file: PlannedFile) -> Iterator[Entry]:
        """Yield the page of each record of a file, in order."""
        for chunk in chunks_of(file):
            yield from map(_entry, json.loads(zlib.decompress(self._path(chunk).read_bytes())))

    def drop(self, file: PlannedFile) -> None:
        """Remove the chunks of a file."""
        for chunk in chunks_of(file):
            self._path(chunk).unlink(missing_ok=True)

    def _path(self, chunk: Chunk) -> Path:
        return self._folder / f"{chunk.file.file_id}.{chunk.start // PAGES_PER_CHUNK:03d}"


def _entry(stored: list[Any] | None) -> Entry:
    if stored is None:
        return None
    if len(stored) == len(Unreadable._fields):
        return Unreadable(*stored)
    page = Page(*stored)
    return page._replace(links=[Link(*link) for link in page.links])
