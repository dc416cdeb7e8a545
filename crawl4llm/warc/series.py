"""A series of WARC files with its index: what is added is in both, or in neither."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from crawl4llm.base.files import AppendFile, ArchiveError
from crawl4llm.warc.cdxj import Entry, timestamp
from crawl4llm.warc.files import Position, WarcFiles
from crawl4llm.warc.written_records import ContentRecord


class SeriesPosition(NamedTuple):
    """How far a series has been written."""

    serial: int
    """Number of the WARC file that the next page goes to."""
    offset: int
    """Its size in bytes; 0 where it does not exist yet."""
    index_offset: int
    """Size of the index in bytes."""


class Member(NamedTuple):
    """A compressed record."""

    data: bytes
    content: ContentRecord | None = None
    """What the index is to say of it; None where it has no line there."""
    key: str = ""
    """Document key; empty for a redirect."""


class Addition(NamedTuple):
    """What was added last; :meth:`IndexedFiles.take_back` undoes it."""

    members: Sequence[Member]
    entries: list[Entry]
    offset: int
    index_offset: int


class IndexedFiles:
    """A series and its index, begun or opened again at a position. Raises ArchiveError."""

    def __init__(
        self, index: Path, open_files: Callable[[Position | None], WarcFiles], at: SeriesPosition | None
    ) -> None:
        self._index = AppendFile(index, None if at is None else at.index_offset)
        self.files = open_files(None if at is None else Position(at.serial, at.offset))

    @property
    def position(self) -> SeriesPosition:
        """The end of all that was added."""
        return SeriesPosition(*self.files.position, self._index.size)

    def add(self, build: Callable[[str], Sequence[Member]]) -> Addition:
        """Add the records that ``build`` makes for the file of a name, all to one file.

        Raises ArchiveError, and has added nothing, where that fails.
        """
        members = build(self.files.name)
        size = sum([len(member.data) for member in members])
        if not self.files.fits(size):
            self.files.rotate()
            members = build(self.files.name)  # anew: records name the warcinfo record of their file
        offset = self.files.append(b"".join([member.data for member in members]))
        entries = _entries(members, offset, self.files.name)
        try:
            index_offset = self._index.append(b"".join([entry.line() for entry in entries]))
        except ArchiveError:
            self.files.cut(offset)
            raise
        return Addition(members, entries, offset, index_offset)

    def take_back(self, addition: Addition) -> None:
        """Undo the last addition."""
        self._index.cut(addition.index_offset)
        self.files.cut(addition.offset)

    def flush(self, *, fsync: bool = False) -> None:
        """Finish the files that are full; with ``fsync``, return once all before the position is on the disk.

        Raises ArchiveError, also where somebody else has changed the files that are written.
        """
        self.files.flush(fsync=fsync)
        self._index.check()
        if fsync:
            self._index.sync()

    def close(self, *, fsync: bool = False) -> None:
        """Finish all files, ``fsync`` as in :meth:`flush`."""
        self.files.close(fsync=fsync)
        if fsync:
            self._index.sync()
        self._index.close()


def _entries(members: Sequence[Member], offset: int, filename: str) -> list[Entry]:
    entries = []
    for data, content, key in members:
        if content is not None:
            entries.append(
                Entry(
                    url=content.url,
                    timestamp=timestamp(content.date),
                    mime=content.mime,
                    status=content.status,
                    digest=content.digest,
                    length=len(data),
                    offset=offset,
                    filename=filename,
                    id=key,
                    language=content.language,
                )
            )
        offset += len(data)
    return entries
