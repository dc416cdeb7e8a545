"""Files: reading at offsets, appending and cutting back, renaming and removing; the limit on open files.

Only :meth:`AppendFile.sync`, :func:`sync_path` and ``fsync=True`` wait for the disk. Until then a power cut may undo a
cut, a renaming or a removal.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from crawl4llm.base.errors import InputError, MachineError, as_input_error


class ArchiveError(InputError):
    """A file of the archive cannot be written or read: disk full, no permission, a file in the way.

    A page that could not be written leaves no trace; the pages before it are whole and readable.
    """

    @classmethod
    def of(cls, action: str, path: Path, error: OSError) -> ArchiveError:
        """Return the one-line error for a failed system call."""
        return cls(f"cannot {action} {path}: {error.strerror}")


@contextmanager
def archiving(action: str, path: Path) -> Iterator[None]:
    """Turn an OSError into an ArchiveError; ``action``, such as ``close``, says what cannot be done."""
    try:
        yield
    except OSError as error:
        raise ArchiveError.of(action, path, error) from error


class AppendFile:
    """A file to which only whole pieces are added.

    Writes are not buffered: ``size`` counts bytes that the operating system has. After :meth:`sync` has returned they
    survive a power cut too.
    """

    def __init__(self, path: Path, at: int | None = None, *, private: bool = False) -> None:
        """Create the file; with ``at``, open it at that size in bytes and drop the rest.

        Raises ArchiveError if that fails: without ``at`` if the file exists, with ``at`` if it is missing or shorter. A
        missing file is accepted if ``at`` is 0. ``private``: only its owner may read a file that is created.
        """
        self.path = path
        self.size = 0
        self._sync_error: OSError | None = None
        if at is None:
            self._fd = _create(path, 0o600 if private else 0o666)
        else:
            self._fd = _reopen(path, at)
            self.cut(at)
        with suppress(OSError):  # a file system without locks: whoever looks cannot tell that the file is in use
            fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def append(self, piece: bytes) -> int:
        """Write a piece at the end and return its offset. If that fails, nothing is written and ArchiveError is
        raised."""
        offset = self.size
        rest = memoryview(piece)
        try:
            while rest:  # a full disk first shortens a write and fails the next
                rest = rest[os.write(self._fd, rest) :]
        except OSError as exc:
            self.cut(offset)
            raise ArchiveError.of("write", self.path, exc) from exc
        self.size = offset + len(piece)
        return offset

    def cut(self, size: int) -> None:
        """Drop everything from offset ``size`` on."""
        with archiving("cut back", self.path):
            os.ftruncate(self._fd, size)
        self.size = size

    def check(self) -> None:
        """Raise ArchiveError if somebody else has removed, replaced or cut the file since it was opened."""
        try:
            own, found = os.fstat(self._fd), self.path.stat()
        except FileNotFoundError:
            raise self._changed("was removed") from None
        except OSError as exc:
            raise ArchiveError.of("look at", self.path, exc) from exc
        if (own.st_dev, own.st_ino) != (found.st_dev, found.st_ino):
            raise self._changed("was replaced")
        if own.st_size < self.size:
            raise self._changed(f"was cut to {own.st_size:,} of {self.size:,} bytes")

    def sync(self) -> None:
        """Wait until everything written is on the disk.

        After one failure it always fails, because the system may have discarded the bytes that it could not write and
        reports that only once (fsync(2), "EIO"). The file can be opened again at a size that was synced.
        """
        try:
            if self._sync_error is not None:
                raise self._sync_error
            os.fsync(self._fd)
        except OSError as exc:
            self._sync_error = exc
            raise ArchiveError.of("sync", self.path, exc) from exc

    def close(self) -> None:
        """Release the file handle, once; the file cannot be used afterwards."""
        handle, self._fd = self._fd, -1
        if handle < 0:
            return
        with archiving("close", self.path):
            os.close(handle)

    def _changed(self, how: str) -> ArchiveError:
        return ArchiveError(f"{self.path} {how} while it was written; restore it, or begin a new crawl")


def is_written(path: Path) -> bool:
    """Return whether a process holds the file open as :class:`AppendFile` does."""
    handle = None
    with as_input_error(f"{path} cannot be read"), suppress(FileNotFoundError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if handle is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks cannot tell
        return False
    finally:
        os.close(handle)
    return False


def sync_path(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk."""
    with archiving("sync", path):
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def rename(path: Path, name: str) -> Path:
    """Rename a file within its directory and return its new path. Raises ArchiveError."""
    renamed = path.with_name(name)
    with archiving("rename", path):
        os.rename(path, renamed)  # noqa: PTH104 - tests inject faults here; Path.rename of Python 3.10 hides the call
    return renamed


def remove(path: Path) -> None:
    """Remove a file. Raises ArchiveError."""
    with archiving("remove", path):
        os.unlink(path)  # noqa: PTH108 - as in `rename`


def _create(path: Path, mode: int) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, mode)
    except FileExistsError as exc:
        raise ArchiveError(f"{path} exists already; archive into a new directory") from exc
    except OSError as exc:
        raise ArchiveError.of("create", path, exc) from exc


def _reopen(path: Path, at: int) -> int:
    """Open a file that holds at least ``at`` bytes."""
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK  # no waiting for who reads a FIFO
        fd = os.open(path, flags | (0 if at else os.O_CREAT), 0o666)
    except FileNotFoundError as exc:
        if not at:
            raise ArchiveError.of("create", path, exc) from exc
        raise lost(path, "is missing", f"{at:,} bytes of it") from exc
    except OSError as exc:
        if path.is_symlink():
            raise ArchiveError(
                f"{path} is a link, which may lead out of this crawl; put the file itself there"
            ) from exc
        raise ArchiveError.of("open", path, exc) from exc
    status = os.fstat(fd)
    is_file = stat.S_ISREG(status.st_mode)
    if is_file and status.st_size >= at:
        return fd
    os.close(fd)
    if not is_file:
        raise ArchiveError(f"{path} is no file; restore it from a backup or begin a new crawl")
    raise lost(path, f"holds {status.st_size:,} bytes", f"{at:,}")


def lost(path: Path, found: str, committed: str) -> ArchiveError:
    """Return the one-line error for a file that holds less than was committed."""
    return ArchiveError(
        f"{path} {found}, but {committed} were committed; restore it from a backup or begin a new crawl"
    )


# -- reading ----------------------------------------------------------------------------------------------------------

_KINDS: Final = {stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def open_regular(path: Path) -> tuple[int, int]:
    """Open a regular file for reading; returns its file descriptor and its size.

    Raises OSError for anything else: a plain open() of a FIFO waits for a writer, and a device may have no end. Raises
    MachineError if no more files can be opened.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        check_machine(error)
        raise
    status = os.fstat(fd)
    try:
        check_regular(status.st_mode, path)
    except OSError:
        os.close(fd)
        raise
    return fd, status.st_size


def check_regular(mode: int, path: Path) -> None:
    """Raise OSError, with its name, unless the mode is that of a regular file."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))


class PreadFile:
    """A regular file read with ``pread``, which moves no file position shared with forks or threads.

    It is closed when nothing refers to it any more, so a cache may drop it while it is still read.
    """

    __slots__ = ("_fd", "path", "size")

    def __init__(self, path: Path) -> None:
        self._fd = -1
        self._fd, self.size = open_regular(path)
        self.path = path

    def read(self, size: int, position: int) -> bytes:
        """Return up to ``size`` bytes from ``position``; fewer at the end of the file."""
        return os.pread(self._fd, size, position)

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


_WANTED: Final = 4096
"""Open files to which the limit is raised; few systems refuse that many."""
_RESERVED: Final = 64
"""Open files reserved for everything else: sockets, pipes to worker processes, the archive."""
_SHARE: Final = 4
"""Caches of a process, which share the remaining files equally."""


def keep_open(most: int) -> int:
    """Return how many files a cache may keep open: ``most``, or fewer if the limit on open files is low.

    The soft limit, 256 on macOS, is first raised as far as the hard limit allows.
    """
    return max(1, min(most, (raised_limit() - _open_now() - _RESERVED) // _SHARE))


def check_machine(error: BaseException) -> None:
    """Raise MachineError if an error says that this process, or the system, cannot open more files."""
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        at = f"{error.filename}: " if error.filename else ""
        raise MachineError(
            f"{at}{os.strerror(error.errno)}; raise the limit (`ulimit -n`, here "
            f"{resource.getrlimit(resource.RLIMIT_NOFILE)[0]}), then go on"
        ) from None


def raised_limit() -> int:
    """Raise the soft limit on open files up to 4096, as far as is allowed, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _WANTED
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return soft


def _open_now() -> int:
    try:
        return sum(1 for _ in Path("/dev/fd").iterdir())
    except OSError:
        return 0
