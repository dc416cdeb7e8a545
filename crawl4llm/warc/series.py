"""A numbered series of WARC files, each filled to a size limit, with an index: what is added is in both or neither.

A file bears ``.open`` after its name until it is full, or the series closed, and the next flush has renamed it: what is
named without it changes no more, unless the series is opened again at a place within it. Where one file ends and the
next begins depends on the records alone, never on when the series is flushed, closed or opened again; unless files are
to be of bounded age: then a flush ends one that is too old.

A position names a place to go back to: its file is cut to its offset, files of higher serial are removed. Whatever
happens after a flush with ``fsync`` (the process killed, the power cut, also while going back) the series can go back
to the position of that flush. For data is synced before its file is renamed, and the names after that; going back takes
either name of a file, and may stop anywhere and begin again.
"""

from __future__ import annotations

import re
import socket
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from crawl4llm.base.files import AppendFile, ArchiveError, lost, remove, rename, sync_path
from crawl4llm.warc.cdxj import Entry, timestamp
from crawl4llm.warc.page_records import ContentRecord

OPEN_SUFFIX = ".open"
_TIMESTAMP = "%Y%m%d%H%M%S"


class Position(NamedTuple):
    """The end of a series: everything before it has been handed to the operating system."""

    serial: int
    """Number of the file that the next record goes to."""
    offset: int
    """Its size in bytes; 0 where it does not exist yet."""


class FileNames:
    """``PREFIX-00000.warc.gz`` and so on; with ``host``, for live crawls, ``PREFIX-TIMESTAMP-00000-HOST.warc.gz``.

    The latter form is that of ISO 28500:2017, annex C.1; its time is that of the file's beginning, in UTC. The former
    has no clock, so that equal crawls make equal files.
    """

    def __init__(self, prefix: str, suffix: str, host: str | None = None) -> None:
        self.prefix, self.suffix, self.host = prefix, suffix, host
        start, end = re.escape(prefix), re.escape(suffix)
        form = rf"{start}-(\d{{5,}}){end}" if host is None else rf"{start}-(\d{{14}})-(\d{{5,}})-[\w.-]+{end}"
        self._form = re.compile(form, re.ASCII)

    def new(self, serial: int) -> str:
        """Return the name of a file that begins now."""
        if self.host is None:
            return f"{self.prefix}-{serial:05d}{self.suffix}"
        return f"{self.prefix}-{datetime.now(timezone.utc):{_TIMESTAMP}}-{serial:05d}-{self.host}{self.suffix}"

    def pattern(self, serial: int) -> str:
        """Return what the name of a file looks like, whenever and wherever it began."""
        return self.new(serial) if self.host is None else f"{self.prefix}-*-{serial:05d}-*{self.suffix}"

    def serial(self, name: str) -> int | None:
        """Return the number of the file of this name; None where that is not of the series. Any host will do."""
        found = self._form.fullmatch(name)
        digits = found.groups()[-1] if found else ""
        return int(digits) if digits and digits == f"{int(digits):05d}" else None

    def age(self, name: str) -> float:
        """Return the seconds since a file began; 0 where its name does not tell."""
        found = self._form.fullmatch(name) if self.host is not None else None
        if found is None:
            return 0.0
        began = datetime.strptime(found[1], _TIMESTAMP).replace(tzinfo=timezone.utc)
        return (datetime.now(timezone.utc) - began).total_seconds()


def host_name() -> str:
    """Return this machine's name, as file names can hold it: 64 characters, which is what Linux allows, at most."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:64] or "localhost"


class WarcFiles:
    """Appends compressed records to the series of files in a directory.

    ``first_record`` makes the compressed record that begins the file of a given name. ``max_bytes`` bounds a file,
    except that one whose first addition is larger by itself holds that and nothing more; ``max_age``, unless it is 0,
    the seconds after which a flush ends one, as far as the names tell. ``private``: only their owner may read them.
    """

    def __init__(
        self,
        directory: Path,
        names: FileNames,
        max_bytes: int,
        first_record: Callable[[str], bytes],
        at: Position | None = None,
        max_age: float = 0,
        private: bool = False,
    ) -> None:
        """Begin a series, or go on at a position of one, and drop what is behind.

        Raises ArchiveError, and drops nothing, where files before that position are missing or short.
        """
        self._directory, self._names, self._first_record = directory, names, first_record
        self._max_bytes, self._max_age, self._private = max_bytes, max_age, private
        self._serial = 0
        self._name: str | None = None
        self._file: AppendFile | None = None
        self._begin = 0
        self._full: list[AppendFile] = []
        self._unsynced: list[Path] = []  # finished files whose bytes may not be on the disk
        if at is not None:
            self._reopen(at)

    @property
    def name(self) -> str:
        """Final name of the file that the next record goes to."""
        if self._name is None:
            self._name = self._names.new(self._serial)
        return self._name

    @property
    def position(self) -> Position:
        """Position of the next record."""
        return Position(self._serial, self._file.size if self._file else 0)

    def fits(self, size: int) -> bool:
        """Return whether ``size`` more bytes keep the present file within its limit, or it is new."""
        if self._file is None or self._file.size == self._begin:
            return True
        return self._file.size + size <= self._max_bytes

    def append(self, data: bytes) -> int:
        """Add compressed records that belong together to the present file; returns the offset of the first.

        Raises ArchiveError, and leaves the file as it was, where they cannot be written whole.
        """
        if self._file is None:
            self._file = self._open()
        return self._file.append(data)

    def cut(self, offset: int) -> None:
        """Take back what the present file holds from ``offset`` on."""
        if self._file is not None:
            self._file.cut(offset)

    def rotate(self) -> None:
        """Call the present file full: the next record begins another, the next flush renames this one."""
        if self._file is not None:
            self._full.append(self._file)
            self._file, self._name = None, None
            self._serial += 1

    def flush(self, *, fsync: bool = False) -> None:
        """Rename the files that are full; with ``fsync``, return once all before the position is on the disk."""
        if self._is_old():
            self.rotate()
        if self._file is not None:
            self._file.check()
            if fsync:
                self._file.sync()
        while self._full:
            self._finish(self._full[0], fsync=fsync)
        if fsync:
            while self._unsynced:
                sync_path(self._unsynced[-1])
                self._unsynced.pop()
            sync_path(self._directory)

    def close(self, *, fsync: bool = False) -> None:
        """Finish all files, ``fsync`` as in :meth:`flush`. The position stays: the last file may have room for more."""
        if self._file is not None:
            self._full.append(self._file)
        self.flush(fsync=fsync)

    def _is_old(self) -> bool:
        return bool(self._max_age and self._file and self._names.age(self.name) >= self._max_age)

    def _open(self) -> AppendFile:
        final = self._directory / self.name
        if final.exists():
            raise ArchiveError(f"{final} exists already; archive into a new directory")
        file = AppendFile(final.with_name(final.name + OPEN_SUFFIX), private=self._private)
        try:
            file.append(self._first_record(self.name))
        except ArchiveError:
            file.close()
            remove(file.path)
            raise
        self._begin = file.size
        return file

    def _finish(self, file: AppendFile, *, fsync: bool) -> None:
        """Rename and release the first of the full files, which stays among them where that fails."""
        file.check()
        if fsync:
            file.sync()
        path = rename(file.path, file.path.stem)
        if not fsync:
            self._unsynced.append(path)
        del self._full[0]
        file.close()

    def _reopen(self, at: Position) -> None:
        """Make the series what it was at a position."""
        found = self._found()
        before = [self._committed(serial, found) for serial in range(at.serial)]
        self._serial = at.serial
        if at.offset:
            path = self._committed(at.serial, found)
            del found[at.serial]
            self._name = path.name.removesuffix(OPEN_SUFFIX)
            self._file = AppendFile(_renamed(path, self.name + OPEN_SUFFIX), at.offset)
            self._begin = len(self._first_record(self.name))
        self._unsynced = [_renamed(path, path.name.removesuffix(OPEN_SUFFIX)) for path in before]
        for serial, paths in found.items():
            if serial >= at.serial:
                for path in paths:
                    remove(path)

    def _found(self) -> dict[int, list[Path]]:
        """Return the files of the series that are there, under either name, by serial."""
        found = defaultdict(list)
        try:
            for path in self._directory.iterdir():
                serial = self._names.serial(path.name.removesuffix(OPEN_SUFFIX))
                if serial is not None:
                    found[serial].append(path)
        except OSError as exc:
            raise ArchiveError.of("read", self._directory, exc) from exc
        return found

    def _committed(self, serial: int, found: dict[int, list[Path]]) -> Path:
        """Return the file of a serial, under either name."""
        paths = sorted(found.get(serial, []))
        if not paths:
            raise lost(self._directory / self._names.pattern(serial), "is missing", "pages in it")
        if len(paths) > 1:
            raise ArchiveError(f"{paths[0]} and {paths[1].name} both exist; remove the one that is not of this series")
        return paths[0]


def _renamed(path: Path, name: str) -> Path:
    return path if path.name == name else rename(path, name)


class SeriesPosition(NamedTuple):
    """The end of a series and its index."""

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
    """The record, for its line of the index; None where it has none."""
    key: str = ""
    """Document key; empty for a redirect, and an exchange that is no page's."""
    about: Mapping[str, str] | None = None
    """More of what the index says of it."""


class Addition(NamedTuple):
    """The last addition; :meth:`IndexedFiles.take_back` undoes it."""

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
        """Add records, made by ``build`` for a file's name, to one file. ArchiveError, and none added, on failure."""
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
    for data, content, key, about in members:
        if content is not None:
            url, mime, status, digest = content.url, content.mime, content.status, content.digest
            place = len(data), offset, filename
            entries.append(
                Entry(url, timestamp(content.date), mime, status, digest, *place, key, content.language, about)
            )
        offset += len(data)
    return entries
