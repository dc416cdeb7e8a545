"""The second and third pass of a build: the data files, one of one kind at a time.

An external sort turns outlinks into inlinks. While the outlinks of a data file are written, its links are spilled in
runs. Each run is sorted by target and cut into slices, one for every ``BLOCK`` consecutive records of a data file; each
slice is compressed on its own. The inlinks of such a block are its slices of all files in turn, which is the order of
the linking pages. So memory holds a run, or the links to a block, whatever the size of the corpus.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from struct import Struct
from typing import Final

from crawl4llm.base.errors import PageError
from crawl4llm.base.files import PreadFile, keep_open
from crawl4llm.base.pages import Corpus, Link
from simulate.build.chunks import BuildOptions, ChunkStore, Page, Unreadable
from simulate.build.plan import Plan, PlannedFile
from simulate.clueweb22 import tree_writer as writer
from simulate.clueweb22.opt_outs import opt_outs_line
from simulate.clueweb22.records import HTML, INLINK, OUTLINK, TXT, format_id, language_of, split_id

BLOCK: Final = 500
"""Consecutive records of a file whose inlinks are put together at a time."""

_LINKS_PER_RUN: Final = 100_000
_ENTRY = Struct(">IIQI")
"""Number of the data file, of the block in it, and where the slice lies in the spilled file: offset and length."""
_OPEN_FILES: Final = 128


class LinkSpill:
    """Takes the links of one data file's pages, in the order of the pages."""

    def __init__(self, folder: Path, plan: Plan, file_id: str) -> None:
        self._plan = plan
        self._path = folder / file_id
        self._data = self._path.with_suffix(".links").open("wb")
        self._slices: defaultdict[tuple[int, int], list[tuple[int, str, str, int, str]]] = defaultdict(list)
        self._links = 0
        self._entries: list[tuple[int, int, int, int]] = []

    def add(self, page: writer.DocumentHead, links: Sequence[Link]) -> None:
        """Take the links of a page; those to pages of the tree are kept."""
        for link in links:
            place = split_id(link.key) if link.key else None
            if place is not None:
                number, record = self._plan.file_number(place[0]), place[1]
                line = (record, page.url, link.anchor, int(link.boilerplate), page.key)
                self._slices[number, record // BLOCK].append(line)
                self._links += 1
        if self._links >= _LINKS_PER_RUN:
            self._write_run()

    def finish(self) -> None:
        """Put the spilled links in place for :class:`SpilledLinks`."""
        self._write_run()
        self._data.close()
        # Runs of one block stay in their order: their offsets ascend.
        self._path.with_suffix(".index").write_bytes(b"".join(_ENTRY.pack(*entry) for entry in sorted(self._entries)))

    def _write_run(self) -> None:
        for (number, block), lines in sorted(self._slices.items()):
            data = zlib.compress(json.dumps(lines, separators=(",", ":")).encode(), 1)
            self._entries.append((number, block, self._data.tell(), len(data)))
            self._data.write(data)
        self._slices.clear()
        self._links = 0


class SpilledLinks:
    """The spilled links of all data files, by target."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder = folder
        self._plan = plan
        self._opened = lru_cache(maxsize=keep_open(_OPEN_FILES))(PreadFile)

    def inlinks(self, file: PlannedFile) -> Iterator[list[writer.LinkEnd]]:
        """Yield the links to each record of a data file, in the order of the linking pages' ids and their own."""
        number = self._plan.file_number(file.file_id)
        for start in range(0, file.records, BLOCK):
            found: list[list[writer.LinkEnd]] = [[] for _ in range(min(BLOCK, file.records - start))]
            for source in self._plan.files:
                for data in self._slices(source.file_id, number, start // BLOCK):
                    for record, url, anchor, boilerplate, key in json.loads(zlib.decompress(data)):
                        end = writer.LinkEnd(url, anchor, bool(boilerplate), language_of(key), key)
                        found[record - start].append(end)
            yield from found

    def _slices(self, source: str, number: int, block: int) -> Iterator[bytes]:
        index = self._opened(self._folder / f"{source}.index")
        entries = range(index.size // _ENTRY.size)

        def entry(at: int) -> tuple[int, int, int, int]:
            target, part, offset, length = _ENTRY.unpack(index.read(_ENTRY.size, at * _ENTRY.size))
            return target, part, offset, length

        for at in entries[bisect_left(entries, (number, block, 0, 0), key=entry) :]:
            *target, offset, length = entry(at)
            if target != [number, block]:
                return
            yield self._opened(self._folder / f"{source}.links").read(length, offset)


PAGE_KINDS: Final = (TXT, HTML, OUTLINK)
"""The kinds that are written from one page alone; ``inlink`` needs the outlinks of all pages."""

_NO_RECORD: Final = b""  # a member without content stands where a number has no record: readers of lines do not see it
_NO_HTML: Final = b"\r\n"
"""The same among WARC records: FastWARC takes a member without content for the end of the file."""


class DataFiles:
    """Writes the data files of a tree from the results of the first pass."""

    def __init__(self, root: Path, work: Path, plan: Plan, source: Corpus, options: BuildOptions) -> None:
        self._root, self._plan, self._source, self._options = root, plan, source, options
        self._chunks = ChunkStore(work / "pages")
        self._done, self._links, self._opt_outs = work / "done", work / "links", work / "opt_outs"
        for folder in (self._done, self._links, self._opt_outs):
            folder.mkdir(exist_ok=True)

    def counts(self, kind: str, file: PlannedFile) -> Counter[str] | None:
        """Return the counts of a written file; None if it is not written, or incomplete."""
        try:
            return Counter(json.loads(self._marker(kind, file).read_bytes()))
        except (FileNotFoundError, ValueError):
            return None

    def write(self, kind: str, file: PlannedFile) -> None:
        """Write a file of one kind and note that it is done."""
        counts: Counter[str] = Counter()
        records = {TXT: self._txt, HTML: self._html, OUTLINK: self._outlink, INLINK: self._inlink}[kind](file, counts)
        if kind != HTML or self._has_html(file):
            counts["records"] = writer.write_data_file(self._root, kind, file.file_id, records)
        self._marker(kind, file).write_text(json.dumps(counts))

    def _marker(self, kind: str, file: PlannedFile) -> Path:
        return self._done / f"{file.file_id}.{kind}"

    def _pages(self, file: PlannedFile) -> Iterator[tuple[writer.DocumentHead, Page | Unreadable | None]]:
        for record, entry in enumerate(self._chunks.read(file)):
            key = format_id(file.file_id, record)
            yield writer.DocumentHead(key, entry.url if isinstance(entry, Page) else "", language_of(key)), entry

    def _has_html(self, file: PlannedFile) -> bool:
        return any(isinstance(entry, Page) and entry.has_html for entry in self._chunks.read(file))

    @property
    def opt_outs(self) -> list[Path]:
        """Files with the lines of the tree's side file, in order; there once all texts are written."""
        return [self._opt_outs / file.file_id for file in self._plan.files]

    def _txt(self, file: PlannedFile, counts: Counter[str]) -> Iterator[bytes]:
        said = []
        for head, entry in self._pages(file):
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
        (self._opt_outs / file.file_id).write_bytes(b"".join(said))

    def _html(self, file: PlannedFile, counts: Counter[str]) -> Iterator[bytes]:
        keys = self._plan.keys(file)
        for (head, entry), key in zip(self._pages(file), keys, strict=True):
            if not isinstance(entry, Page) or not entry.has_html:
                yield _NO_HTML
                continue
            assert key is not None
            try:
                html = self._source.html(key)
            except PageError as error:
                counts[f"without html: {error.reason}"] += 1
                yield _NO_HTML
            else:
                counts["pages with html"] += 1
                yield writer.html_record(head, html, entry.date or self._options.default_date)

    def _outlink(self, file: PlannedFile, counts: Counter[str]) -> Iterator[bytes]:
        spill = LinkSpill(self._links, self._plan, file.file_id)
        urls = []
        for head, entry in self._pages(file):
            urls.append(head.url)
            if not isinstance(entry, Page):
                yield _NO_RECORD
                continue
            spill.add(head, entry.links)
            counts["links"] += len(entry.links)
            counts["links to pages of the tree"] += sum(link.key is not None for link in entry.links)
            yield writer.outlink_record(head, [_target(link) for link in entry.links], slim=self._options.slim_links)
        spill.finish()
        self._urls_path(file).write_bytes(zlib.compress(json.dumps(urls).encode(), 1))

    def _inlink(self, file: PlannedFile, _: Counter[str]) -> Iterator[bytes]:
        urls = json.loads(zlib.decompress(self._urls_path(file).read_bytes()))
        inlinks = SpilledLinks(self._links, self._plan).inlinks(file)
        for record, (url, links) in enumerate(zip(urls, inlinks, strict=True)):
            key = format_id(file.file_id, record)
            # Nobody is told of links to a page that the tree does not hold after all.
            head = writer.DocumentHead(key, url, language_of(key))
            yield writer.inlink_record(head, links, slim=self._options.slim_links) if url else _NO_RECORD

    def _urls_path(self, file: PlannedFile) -> Path:
        return self._links / f"{file.file_id}.urls"


def _target(link: Link) -> writer.LinkEnd:
    return writer.LinkEnd(link.url, link.anchor, link.boilerplate, language_of(link.key) if link.key else "", link.key)
