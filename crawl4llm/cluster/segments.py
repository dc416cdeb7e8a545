"""The archive of a partition, while it crawls: a WARC file and its index for each batch, put into the storage whole."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.files import ArchiveError
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.cluster import objects
from crawl4llm.cluster.storage import Storage
from crawl4llm.crawl.page_writer import open_archive
from crawl4llm.options import Options
from crawl4llm.warc import Archive, ArchiveInfo, ArchivePosition
from crawl4llm.warc.cdxj import INDEX_NAME

if TYPE_CHECKING:
    from crawl4llm.warc.page_records import Fields

_ANY_SIZE: Final = 1 << 62


class Segments:
    """Implements :class:`crawl4llm.warc.Archive` for one partition; each file begins with the first page of a batch.

    The metadata records lack the page's ``order`` in the crawl, which is not known before the merge.
    """

    keeps_text = False

    def __init__(self, folder: Path, options: Options, info: ArchiveInfo, partition: int) -> None:
        self._folder = folder
        self._options = replace(options, warc_max_bytes=_ANY_SIZE)
        self._info = info
        self._partition = partition
        self._archive: Archive | None = None
        self._facts: list[dict[str, Any]] = []

    def write(self, page: PageRecord, fields: Fields, text: str | None = None) -> None:
        self._facts.append({"date": page.date, "language": page.language, "opt_outs": page.opt_outs})
        if self._archive is None:
            prefix = f"{self._info.prefix}-{self._partition:04}-{fields['iteration']:08}"
            self._archive = open_archive(self._folder, self._options, replace(self._info, prefix=prefix))
        self._archive.write(page, {**fields, "order": None}, text)

    def facts(self) -> list[dict[str, Any]]:
        """Return what the merge needs to know of the pages written since the last call, besides their content."""
        facts, self._facts = self._facts, []
        return facts

    def put(self, storage: Storage, iteration: int) -> str | None:
        """Put the file and its index into the storage, and begin anew; return the file's name, None without pages.
        Raises InputError."""
        archive, self._archive = self._archive, None
        if archive is None:
            return None
        try:
            archive.close()
            if not self._options.warc_enabled:
                return None
            (file,) = self._folder.glob("*.warc*")
            data, index = file.read_bytes(), (self._folder / INDEX_NAME).read_bytes()
        except OSError as error:
            raise ArchiveError.of("read", self._folder, error) from error
        shutil.rmtree(self._folder)
        digest = hashlib.sha256(data).hexdigest()
        name = f"{objects.name(iteration, objects.PAGES, self._partition)}-{digest}"
        storage.put(f"{name}.cdxj", index)
        storage.put(name + "".join(file.suffixes[-2:]), data)
        return name + "".join(file.suffixes[-2:])

    def write_redirects(self, page: PageRecord, fields: Fields) -> None:
        """Refuse: in batch order no redirect ends a lease."""
        raise NotImplementedError

    def write_exchange(self, capture: Capture, purpose: str, fields: Fields) -> None:
        """Refuse: nothing is sent in a simulation."""
        raise NotImplementedError

    def flush(self, *, fsync: bool = False) -> None:
        """Do nothing: a file is whole when it is put."""

    def position(self) -> ArchivePosition:
        return ArchivePosition(0, 0, 0)

    def close(self, *, fsync: bool = False) -> None:
        """Forget what was not put."""
        self._archive = None
        shutil.rmtree(self._folder, ignore_errors=True)
