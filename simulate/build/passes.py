"""The passes of a build: pages are read once, then written as data files of one kind at a time, then their inlinks.

Everything of a page except its HTML is read in chunks, and a file keeps each chunk until the data files are written. So
a killed build loses little of the slow work, the extraction of text.

While the outlinks of a data file are written, its links are spilled to a SQLite file, with an index by target. The
inlinks of ``BLOCK`` consecutive records are looked up in all of these files in turn, which is the order of the linking
pages. So memory holds the links to a block, whatever the size of the corpus.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.errors import MissingRecord, PageError, as_input_error, reading
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.base.reasons import ERROR, NO_TEXT
from crawl4llm.base.urls import normalise_url
from crawl4llm.optouts import as_text, from_text, said_in_html
from crawl4llm.scoring import EXTRACTORS, extract_text
from simulate.build.plan import Build, Plan, PlannedFile, opened
from simulate.clueweb22 import files as writer
from simulate.clueweb22.opt_outs import opt_outs_line
from simulate.clueweb22.records import HTML, INLINK, NO_DATE, OUTLINK, TXT, format_id

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
    text, html = page.text, page.html
    try:
        if text is None and html is None:
            text = build.source.text(page.key)
        elif text is None and not build.options.always_extract:
            with suppress(MissingRecord):
                text = build.source.text(page.key)
        if text is None:
            assert html is not None
            text = extract_text(html, EXTRACTORS[build.options.extractor])
    except PageError as error:
        return "", error.reason
    except Exception:
        logger.exception("Cannot extract the text of %s", page.key)
        return "", ERROR
    return text, None if text.strip() else NO_TEXT


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
    with writer.whole(path) as file:
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


# -- links that are spilled --------------------------------------------------------------------------------------------

BLOCK: Final = 2_000
"""Consecutive records of a file whose inlinks are put together at a time."""
_TABLES: Final = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE pages(record INTEGER PRIMARY KEY, url TEXT);
CREATE TABLE links(target INTEGER, record INTEGER, anchor TEXT, boilerplate INTEGER);
"""
_INLINKS: Final = """
SELECT target, record, url, anchor, boilerplate FROM links CROSS JOIN pages USING (record)
WHERE target >= ? AND target < ? ORDER BY target, links.rowid
"""


def spilled_links(folder: Path, plan: Plan, file: PlannedFile) -> Iterator[list[Link]]:
    """Yield the spilled links to each record of a data file, in the order of the linking pages' ids and their own."""
    first = plan.place_of(format_id(file.file_id, 0))
    for start in range(first, first + file.records, BLOCK):
        found: list[list[Link]] = [[] for _ in range(min(BLOCK, first + file.records - start))]
        for source in plan.files:
            with closing(opened(folder / source.file_id)) as links:
                for target, record, url, anchor, boilerplate in links.execute(_INLINKS, (start, start + BLOCK)):
                    key = format_id(source.file_id, record)
                    found[target - start].append(Link(url, key, json.loads(anchor), bool(boilerplate)))
        yield from found


# -- data files ------------------------------------------------------------------------------------------------------

PAGE_KINDS: Final = (TXT, HTML, OUTLINK)
"""The kinds that are written from one page alone; ``inlink`` needs the outlinks of all pages."""

_NO_RECORD: Final = b""  # a member without content stands where a number has no record: readers of lines do not see it
_NO_HTML: Final = b"\r\n"
"""The same among WARC records: FastWARC takes a member without content for the end of the file."""


def counts_of(build: Build, kind: str, file: PlannedFile) -> Counter[str] | None:
    """Return the counts of a written file; None if it is not written, or incomplete."""
    with suppress(FileNotFoundError, ValueError):
        return Counter(json.loads(_marker(build, kind, file).read_bytes()))
    return None


def write_kind(build: Build, job: tuple[str, PlannedFile]) -> None:
    """Write a file of one kind and note that it is done."""
    kind, file = job
    counts: Counter[str] = Counter()
    records = {TXT: _txt, HTML: _html, OUTLINK: _outlink, INLINK: _inlink}[kind](build, file, counts)
    if kind != HTML or any(isinstance(entry, Page) and entry.has_html for entry in read_entries(build, file)):
        counts["records"] = writer.write_data_file(build.root, kind, file.file_id, records)
    _marker(build, kind, file).write_text(json.dumps(counts))


def opt_outs_path(build: Build, file: PlannedFile) -> Path:
    """Return the path of a file with lines of the tree's side file; there once the text is written."""
    return build.work / "opt_outs" / file.file_id


def _marker(build: Build, kind: str, file: PlannedFile) -> Path:
    return build.work / "done" / f"{file.file_id}.{kind}"


def _links_path(build: Build, file: PlannedFile) -> Path:
    return build.work / "links" / file.file_id


def _pages(build: Build, file: PlannedFile) -> Iterator[tuple[writer.DocumentHead, Entry]]:
    for record, entry in enumerate(read_entries(build, file)):
        url = entry.url if isinstance(entry, Page) else ""
        yield writer.DocumentHead(format_id(file.file_id, record), url), entry


def _txt(build: Build, file: PlannedFile, counts: Counter[str]) -> Iterator[bytes]:
    said = []
    for head, entry in _pages(build, file):
        if isinstance(entry, Page):
            counts["documents"] += 1
            if entry.opt_outs:
                counts["pages with opt-out signals"] += 1
                said.append(opt_outs_line(head.key, entry.opt_outs))
            if entry.remark:
                counts[f"without text: {entry.remark}"] += 1
            yield writer.txt_record(head, entry.text)
        else:
            if entry:
                counts[f"unreadable: {entry.reason}"] += 1
            yield _NO_RECORD
    opt_outs_path(build, file).write_bytes(b"".join(said))


def _html(build: Build, file: PlannedFile, counts: Counter[str]) -> Iterator[bytes]:
    for (head, entry), key in zip(_pages(build, file), build.plan.keys(file), strict=True):
        if not isinstance(entry, Page) or not entry.has_html:
            yield _NO_HTML
            continue
        assert key is not None
        try:
            html = build.source.html(key)
        except PageError as error:
            counts[f"without html: {error.reason}"] += 1
            yield _NO_HTML
        else:
            counts["pages with html"] += 1
            yield writer.html_record(head, html, entry.date or NO_DATE)


def _outlink(build: Build, file: PlannedFile, counts: Counter[str]) -> Iterator[bytes]:
    path = _links_path(build, file)
    path.unlink(missing_ok=True)
    failing = as_input_error(f"{path} cannot be written", errors=sqlite3.Error)
    with failing, closing(sqlite3.connect(path)) as spill:
        spill.executescript(_TABLES)
        for record, (head, entry) in enumerate(_pages(build, file)):
            spill.execute("INSERT INTO pages VALUES (?, ?)", (record, head.url))
            if not isinstance(entry, Page):
                yield _NO_RECORD
                continue
            held = [link for link in entry.links if link.key is not None]
            # Anchors in JSON, as SQLite takes no lone surrogates
            rows = [
                (build.plan.place_of(str(one.key)), record, json.dumps(one.anchor), one.boilerplate) for one in held
            ]
            spill.executemany("INSERT INTO links VALUES (?, ?, ?, ?)", rows)
            counts["links"] += len(entry.links)
            counts["links to pages of the tree"] += len(held)
            yield writer.link_record(OUTLINK, head, entry.links, slim=build.options.slim_links)
        spill.execute("CREATE INDEX by_target ON links(target)")
        spill.commit()


def _inlink(build: Build, file: PlannedFile, _: Counter[str]) -> Iterator[bytes]:
    path = _links_path(build, file)
    with closing(opened(path)) as spill:
        urls = [url for (url,) in spill.execute("SELECT url FROM pages ORDER BY record")]
    inlinks = spilled_links(path.parent, build.plan, file)
    for record, (url, links) in enumerate(zip(urls, inlinks, strict=True)):
        # Nobody is told of links to a page that the tree does not hold after all.
        head = writer.DocumentHead(format_id(file.file_id, record), url)
        yield writer.link_record(INLINK, head, links, slim=build.options.slim_links) if url else _NO_RECORD
