"""Links on their way from the pages that have them to the pages that they lead to: an external sort in two steps.

While the outlinks of a data file are written, its links are spilled in runs: each run's links are put in order of their
targets, cut into slices for every ``BLOCK`` consecutive records of a data file, and the slices are compressed each on
its own. The inlinks of such a block are then its slices of all files, one after the other, which is the order of the
linking pages. So memory holds a run, or the links to a block, whatever the size of the corpus.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from struct import Struct
from typing import Final

from crawl4llm.base.input_files import PreadFile, keep_open
from crawl4llm.base.pages import Link
from simulate.build.plan import Plan, PlannedFile
from simulate.clueweb22.layout import language_of, split_id
from simulate.clueweb22.writer import DocumentHead, LinkEnd

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

    def add(self, page: DocumentHead, links: Sequence[Link]) -> None:
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
    """The links that were spilled of all data files, by what they lead to."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder = folder
        self._plan = plan
        self._opened = lru_cache(maxsize=keep_open(_OPEN_FILES))(PreadFile)

    def inlinks(self, file: PlannedFile) -> Iterator[list[LinkEnd]]:
        """The links to each record of a data file, in the order of the linking pages' ids and their own."""
        number = self._plan.file_number(file.file_id)
        for start in range(0, file.records, BLOCK):
            found: list[list[LinkEnd]] = [[] for _ in range(min(BLOCK, file.records - start))]
            for source in self._plan.files:
                for data in self._slices(source.file_id, number, start // BLOCK):
                    for record, url, anchor, boilerplate, key in json.loads(zlib.decompress(data)):
                        end = LinkEnd(url, anchor, bool(boilerplate), language_of(key), key)
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
