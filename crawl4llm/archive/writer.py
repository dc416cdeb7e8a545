"""What the crawl hands its pages to: each becomes a content record, a metadata record and a line of the index."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol
from uuid import UUID

from crawl4llm.archive.appendfile import AppendFile, ArchiveError, sync_path
from crawl4llm.archive.cdxj import Entry, timestamp
from crawl4llm.archive.compress import compress
from crawl4llm.archive.files import Position, WarcFiles
from crawl4llm.archive.records import FORMAT_FIELDS, ContentRecord, Fields, RecordBuilder
from simulate.corpus import PageRecord

INDEX_NAME = "index.cdxj"


class ArchivePosition(NamedTuple):
    """How far the archive has been written: a place to commit, and to cut back to."""

    serial: int
    """Number of the WARC file that the next page goes to."""
    offset: int
    """Its size in bytes; 0 where it does not exist yet."""
    index_offset: int
    """Size of the index in bytes."""


@dataclass(frozen=True, slots=True)
class ArchiveInfo:
    """What an archive says of the crawl it comes from; equal for equal crawls."""

    crawl_id: UUID
    """Namespace of all record ids."""
    prefix: str
    """First part of the WARC files' names."""
    start_date: str
    """``2022-08-01T12:00:00Z``: date of the warcinfo records and of pages that carry none."""
    fields: Fields
    """What the warcinfo records say: software, operator, robots, policy ... (ISO 28500:2017 6.2).

    The crawl id (``isPartOf``) and the format are added.
    """


class Archive(Protocol):
    """Where crawled pages go, in crawl order."""

    def write(self, page: PageRecord, fields: Fields) -> None:
        """Keep a page, and ``fields`` about it; ArchiveError, and nothing kept of it, where that fails."""
        ...

    def flush(self, *, fsync: bool = False) -> None:
        """Finish the files that are full; with ``fsync``, return once everything before the position is on the disk.

        ArchiveError where that fails; such an archive must not be committed again, but opened at its last commit.
        """
        ...

    def position(self) -> ArchivePosition:
        """The end of all pages written so far; the operating system has every byte before it. Closing keeps it."""
        ...

    def close(self, *, fsync: bool = False) -> None:
        """Finish all files, ``fsync`` as in :meth:`flush`; the archive is not used afterwards."""
        ...


class ArchiveWriter:
    """Writes ``directory/PREFIX-00000.warc.gz`` ... and ``directory/index.cdxj``.

    A page's records stand side by side in one file of at most ``max_bytes``; a page larger than that has a file to
    itself. A page is in the archive wholly, with its line in the index, or not at all.
    """

    def __init__(self, directory: Path, info: ArchiveInfo, max_bytes: int, at: ArchivePosition | None = None) -> None:
        """Create the directory where needed, or, with ``at``, go on with the archive in it as it was at that position.

        Raises ArchiveError: without ``at`` where the directory holds an archive already, with it where less than that
        is left of one. Equal ``info`` and ``max_bytes`` make the archive of a crawl that never stopped.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ArchiveError.of("create", directory, exc) from exc
        self._directory = directory
        self._info = info
        self._records = RecordBuilder(info.crawl_id, info.start_date)
        self._index = AppendFile(directory / INDEX_NAME, None if at is None else at.index_offset)
        files_at = None if at is None else Position(at.serial, at.offset)
        self._files = WarcFiles(directory, info.prefix, max_bytes, self._warcinfo, files_at)
        self._warcinfo_id = self._records.warcinfo_id(self._files.name)

    def write(self, page: PageRecord, fields: Fields) -> None:
        """See :meth:`Archive.write`."""
        content, members = self._members(page, fields)
        if not self._files.fits(sum(map(len, members))):
            self._files.rotate()
            self._warcinfo_id = self._records.warcinfo_id(self._files.name)
            content, members = self._members(page, fields)  # anew: records name the warcinfo record of their file
        offset = self._files.append(b"".join(members))
        entry = Entry(
            url=content.url,
            timestamp=timestamp(content.date),
            mime=content.mime,
            status=content.status,
            digest=content.digest,
            length=len(members[0]),
            offset=offset,
            filename=self._files.name,
            id=page.key,
        )
        try:
            self._index.append(entry.line())
        except ArchiveError:
            self._files.cut(offset)
            raise

    def flush(self, *, fsync: bool = False) -> None:
        """See :meth:`Archive.flush`."""
        self._files.flush(fsync=fsync)
        if fsync:
            self._sync_index()

    def position(self) -> ArchivePosition:
        """See :meth:`Archive.position`."""
        return ArchivePosition(*self._files.position, self._index.size)

    def close(self, *, fsync: bool = False) -> None:
        """See :meth:`Archive.close`."""
        self._files.close(fsync=fsync)
        if fsync:
            self._sync_index()
        self._index.close()

    def _sync_index(self) -> None:
        self._index.sync()
        sync_path(self._directory.parent)  # where the directory's own name may be new

    def _members(self, page: PageRecord, fields: Fields) -> tuple[ContentRecord, list[bytes]]:
        """A page's content record, and its records as gzip members, that one first."""
        content = self._records.content(page, self._warcinfo_id)
        metadata = self._records.metadata(page.key, content, self._warcinfo_id, fields)
        return content, [compress(content.data), compress(metadata)]

    def _warcinfo(self, filename: str) -> bytes:
        fields = {**self._info.fields, "isPartOf": self._info.crawl_id.urn, **FORMAT_FIELDS}
        return compress(self._records.warcinfo(filename, fields))


class NullArchive:
    """Keeps nothing: archiving switched off."""

    def write(self, page: PageRecord, fields: Fields) -> None:
        """Drop the page."""

    def flush(self, *, fsync: bool = False) -> None:
        """Nothing to flush."""

    def position(self) -> ArchivePosition:
        """Always the beginning."""
        return ArchivePosition(0, 0, 0)

    def close(self, *, fsync: bool = False) -> None:
        """Nothing to close."""
