"""Segments: what a partition writes between two steps, a WARC file with its index and log lines."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.crawl_log import CrawlLine, FailureLine, LogPosition
from crawl4llm.base.errors import as_input_error
from crawl4llm.base.files import ArchiveError
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.cluster.storage import Storage
from crawl4llm.crawl import open_archive
from crawl4llm.options import Options
from crawl4llm.warc import INDEX_NAME, Archive, ArchiveInfo, ArchivePosition, Values

_ANY_SIZE: Final = 1 << 62


class Lines:
    """Keeps the lines of both logs until they are asked for."""

    def __init__(self) -> None:
        self.pages: list[CrawlLine] = []
        self.failures: list[FailureLine] = []

    def write(self, pages: Sequence[CrawlLine], failures: Sequence[FailureLine]) -> None:
        self.pages += pages
        self.failures += failures

    def take(self) -> tuple[list[CrawlLine], list[FailureLine]]:
        taken = self.pages, self.failures
        self.pages, self.failures = [], []
        return taken

    def flush(self, *, fsync: bool = False) -> None:
        """Do nothing: lines are put with the commit that they belong to."""

    def position(self) -> LogPosition:
        return LogPosition(0, 0)


class Segment(NamedTuple):
    """A WARC file with its index."""

    suffix: str
    data: bytes
    listing: bytes
    """The index."""

    def put(self, storage: Storage, base: str) -> str:
        """Put it into a storage, under a name that begins with ``base``, and return the file's. Raises StorageError."""
        name = f"{base}-{hashlib.sha256(self.data).hexdigest()}"
        storage.put(f"{name}.cdxj", self.listing)
        storage.put_as_is(f"{name}{self.suffix}", self.data)
        return f"{name}{self.suffix}"


class Segments:
    """Implements :class:`crawl4llm.warc.Archive` for one partition; each file begins with the first page of a step.

    The metadata records lack the page's ``order`` in the crawl, which is not known before the merge.
    """

    keeps_text = False

    def __init__(self, folder: Path, options: Options, info: ArchiveInfo, partition: int) -> None:
        self._folder = folder
        self._options = replace(options, warc_max_bytes=_ANY_SIZE)
        self._info = info
        self._partition = partition
        self._archive: Archive | None = None
        self.number = 0
        """Of the step: a batch, or a commit."""
        self._facts: list[dict[str, Any]] = []

    def write(self, page: PageRecord, fields: Values, text: str | None = None) -> None:
        self._facts.append({"date": page.date, "language": page.language, "opt_outs": page.opt_outs})
        self._opened().write(page, {**fields, "order": None}, text)

    def facts(self) -> list[dict[str, Any]]:
        """Return the facts of the pages written since the last call that the merge needs, besides their content."""
        facts, self._facts = self._facts, []
        return facts

    def take(self) -> Segment | None:
        """Return the archived pages and start a new segment; None if there are no pages. Raises InputError."""
        archive, self._archive = self._archive, None
        if archive is None:
            return None
        with as_input_error(f"cannot read {self._folder}", ArchiveError):
            archive.close()
            files = list(self._folder.glob("*.warc*"))
            if not files:  # archiving is off, or no URL fits into a record
                return None
            data, index = files[0].read_bytes(), (self._folder / INDEX_NAME).read_bytes()
        shutil.rmtree(self._folder)
        return Segment("".join(files[0].suffixes[-2:]), data, index)

    def write_redirects(self, page: PageRecord, fields: Values) -> None:
        self._opened().write_redirects(page, fields)

    def write_exchange(self, capture: Capture, purpose: str, fields: Values) -> None:
        self._opened().write_exchange(capture, purpose, fields)

    def _opened(self) -> Archive:
        """Return the file's writer; begin one if needed."""
        if self._archive is None:
            prefix = f"{self._info.prefix}-{self._partition:04}-{self.number:08}"
            self._archive = open_archive(self._folder, self._options, replace(self._info, prefix=prefix))
        return self._archive

    def flush(self, *, fsync: bool = False) -> None:
        """Do nothing: a file is whole when it is put."""

    def position(self) -> ArchivePosition:
        return ArchivePosition(0, 0, 0)

    def close(self, *, fsync: bool = False) -> None:
        """Forget segments that were not put."""
        self._archive = None
        shutil.rmtree(self._folder, ignore_errors=True)
