"""Writes a crawl in continuous order from its journals as one run folder.

Commits are taken by turn and then by partition, so that the order depends on nothing but the storage. A turn is above
those of all commits that its worker knew of, so that it follows the time in which they were made.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, Any

from crawl4llm.base.object_store import flat_name
from crawl4llm.base.run_folder import WARC
from crawl4llm.cluster import FINGERPRINT, CheckedCommit, CommitsSoundness, History, index_name, journal
from crawl4llm.crawl import CrawlLog
from crawl4llm.warc import FileNames, cdxj


class Merge:
    """Writes a crawl as one run folder."""

    def __init__(self, history: History, folder: Path, *, index_only: bool, flat: bool) -> None:
        self._history, self._folder, self._index_only, self._flat = history, folder, index_only, flat
        self.pages = self._visited = 0
        self._own_visited, self._own_fetched = Counter[int](), Counter[int]()
        self._orders: dict[int, array[int]] = defaultdict(lambda: array("Q"))
        """By partition, the order in the crawl of each of its pages."""
        self._file: IO[bytes] | None = None
        self._names = FileNames(history.crawl["archive"]["prefix"], "")

    def run(self) -> dict[str, Any]:
        """Write logs and archive; return the figures."""
        (self._folder / WARC).mkdir()
        serial, most = -1, self._history.crawl["facts"]["settings"]["WARC_MAX_BYTES"]
        index_file, sound = self._folder / WARC / cdxj.INDEX_NAME, CommitsSoundness(self._history)
        with closing(CrawlLog(self._folder)) as log, index_file.open("wb") as index, ExitStack() as self._files:
            for one in sound.commits():
                name = one.commit.head.pages
                with self._history.storage.reading(journal.name(one.partition, journal.LOG, one.commit.number)):
                    log.write(self._lines(one), one.failures)
                if name is None:
                    continue
                data = b"" if self._index_only else self._history.pages.get(name)
                if not self._index_only and (self._file is None or self._file.tell() + len(data) > most):
                    serial += 1
                    self._begin_file(serial, name)
                with self._history.storage.reading(index_name(name)):
                    self._put(index, name, one.listed, data)
        return sound.figures.all(self._visited)

    def _lines(self, checked: CheckedCommit) -> list[Any]:
        partition, lines = checked.partition, checked.lines
        for line in lines:
            self._own_fetched[partition] = line["fetched"]
            others = self._visited - self._own_visited[partition]
            line |= {"order": self.pages, "visited": others + line["visited"], "fetched": self._own_fetched.total()}
            if (like := line.get("near_duplicate_of")) is not None:
                if like >= len(self._orders[partition]):
                    name = journal.name(partition, journal.LOG, checked.commit.number)
                    raise self._history.storage.damaged(name, f"a page is like page {like}, which is not before it")
                line["near_duplicate_of"] = self._orders[partition][like]
            if "near_duplicate_of" in line:
                self._orders[partition].append(self.pages)
            self.pages += 1
        new = len(checked.commit.fingerprints) // FINGERPRINT
        self._own_visited[partition] += new
        self._visited += new
        return lines

    def _begin_file(self, serial: int, name: str) -> None:
        self._files.close()
        path = self._folder / WARC / f"{self._names.new(serial)}{''.join(Path(name).suffixes[-2:])}"
        self._file = self._files.enter_context(path.open("wb"))

    def _put(self, index: IO[bytes], name: str, lines: list[cdxj.IndexLine], data: bytes) -> None:
        """Put a segment into the present file, and its lines into the index."""
        pages = self._history.pages
        if self._file is not None:
            filename, start = Path(self._file.name).name, self._file.tell()
            self._file.write(data)
        else:
            filename, start = pages.place(name)
            filename = flat_name(filename) if self._flat else filename
        for line in lines:
            _, offset, length = line.place
            index.write(line.at(filename, start + offset, length))
