"""A numbered series of WARC files, each filled to a size limit.

A file bears ``.open`` after its name until it is full, or the series closed, and the next flush has renamed it: what is
named without it changes no more, unless the series is opened again at a place within it. Where one file ends and the
next begins depends on the records alone, never on when the series is flushed, closed or opened again; unless files are
to be of bounded age: then a flush ends one that is too old.

A :class:`Position` names a place to go back to: that file is cut to its offset, files of higher serial are removed.
Whatever happens after a flush with ``fsync`` (the process killed, the power cut, also while going back) the series can
go back to the position of that flush. For data is synced before its file is renamed, and the names after that; going
back takes either name of a file, and may stop anywhere and begin again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from crawl4llm.base.files import AppendFile, ArchiveError, lost, remove, rename, sync_path
from crawl4llm.warc.names import FileNames

OPEN_SUFFIX = ".open"


class Position(NamedTuple):
    """The end of a series: everything before it has been handed to the operating system."""

    serial: int
    """Number of the file that the next record goes to."""
    offset: int
    """Its size in bytes; 0 where it does not exist yet."""


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
        self._directory = directory
        self._names = names
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._private = private
        self._first_record = first_record
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
    def any_full(self) -> bool:
        """Whether the next flush finishes a file."""
        return bool(self._full) or self._is_old()

    @property
    def position(self) -> Position:
        """Where the next record goes."""
        return Position(self._serial, self._file.size if self._file else 0)

    def fits(self, size: int) -> bool:
        """Whether ``size`` more bytes keep the present file within its limit, or it is new."""
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
            self._file = None
            self._name = None
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

    # -- going back -----------------------------------------------------------------------------------------------

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
        """The files of the series that are there, under either name, by serial."""
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
        """The file of a serial, under either name."""
        paths = sorted(found.get(serial, []))
        if not paths:
            raise lost(self._directory / self._names.pattern(serial), "is missing", "pages in it")
        if len(paths) > 1:
            raise ArchiveError(f"{paths[0]} and {paths[1].name} both exist; remove the one that is not of this crawl")
        return paths[0]


def _renamed(path: Path, name: str) -> Path:
    return path if path.name == name else rename(path, name)
