"""Input files that a user or a dataset names: regular ones only, and bounded in memory.

What is wrong is an OSError whose ``strerror`` says so in words, so that callers report it as they report other files
that cannot be read.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast

from crawl4llm.base.compression import zstd
from crawl4llm.base.errors import MachineError
from crawl4llm.base.inflating import ZSTD_START

LARGEST_JSON: Final = 1 << 24
"""Bytes of a JSON file that is read at once; its objects can take thirty times that."""
LONGEST_LINE: Final = 1 << 20
"""Characters of a line of a text file."""
LONGEST_ROW: Final = 1 << 26
"""Characters of a line of JSON with a page: that has 10 MB at most, and escapes take up to six times that."""

_CHUNK: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_MAGIC_BYTES: Final = 4
_KINDS: Final = {stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def given_path(given: str | Path) -> Path:
    """Return the path that a user or a file names. ``~`` and ``~user`` stand for a home.

    If this machine does not know the user, the name stays as it is, as in shells; ``Path.expanduser`` raises then.
    """
    return Path(os.path.expanduser(given))  # noqa: PTH111 - as above


def open_regular(path: Path) -> tuple[int, int]:
    """Open a regular file for reading; returns its file descriptor and its size.

    Raises OSError for anything else: an open() that is not told otherwise waits at a FIFO for a writer, and a device
    may have no end. Raises MachineError where no more files can be opened.
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
    """Raise OSError, with its name, if the mode of a file is not that of a regular one."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))


def open_input(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises OSError for anything else."""
    return os.fdopen(open_regular(path)[0], "rb")


def read_input(path: Path, most: int) -> bytes:
    """Read all of a regular file. Raises OSError, of one with more than ``most`` bytes too."""
    data = bytearray()
    with open_input(path) as file:
        while part := file.read(_CHUNK):  # read(most) would take as much memory at once
            data += part
            if len(data) > most:
                raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return bytes(data)


def read_json(path: Path, most: int = LARGEST_JSON) -> Any:
    """Read a JSON file in UTF-8. Raises OSError as :func:`read_input` does, and ValueError where it is no JSON."""
    return parse_json(read_input(path, most))


def parse_json(data: str | bytes) -> Any:
    """Parse JSON, in UTF-8, that others wrote. Raises ValueError, also where it is nested too deeply to be read."""
    try:
        return json.loads(data if isinstance(data, str) else data.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def input_lines(
    path: Path,
    *,
    compressed: bool | None = None,
    errors: str = "strict",
    newline: str | None = None,
    longest: int = LONGEST_LINE,
) -> Iterator[str]:
    """Yield the lines of a regular file in UTF-8, as ``open`` does; None: compressed if it begins like a gzip or
    Zstandard file.

    Raises OSError, also for a line of more than ``longest`` characters; EOFError, zlib.error and ZstdError for damage;
    and UnicodeDecodeError, unless ``errors`` says otherwise.
    """
    with open_input(path) as file:
        start = file.read(_MAGIC_BYTES) if compressed is None else b""
        file.seek(0)
        content = cast(IO[bytes], file)
        if compressed or start.startswith(_GZIP):
            content = cast(IO[bytes], gzip.GzipFile(fileobj=file))
        elif ZSTD_START.match(start):
            content = cast(IO[bytes], zstd.ZstdFile(file))
        lines = TextIOWrapper(content, encoding="utf-8-sig", errors=errors, newline=newline)
        number = 0
        while line := lines.readline(longest + 1):
            number += 1
            if len(line) > longest:
                raise OSError(errno.EFBIG, f"line {number} has more than {longest:,} characters", str(path))
            yield line


class PreadFile:
    """A regular file opened for reading with ``pread``, which moves no file position that a fork or thread would share.

    It is closed when nobody refers to it any more: a cache may drop it while somebody still reads it.
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


def views() -> Path:
    """Return the folder of the views of storages; see :mod:`crawl4llm.base.object_store`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "crawl4llm", "storages")


def open_archive_file(path: Path) -> PreadFile:
    """Open a file for reading, or the object in whose place it stands. Raises OSError."""
    if not path.is_relative_to(views()):
        return PreadFile(path)
    from crawl4llm.base.object_store import open_object  # few need obstore

    return open_object(path)


_WANTED: Final = 4096
"""Open files that the limit is raised to; few systems refuse that many."""
_RESERVED: Final = 64
"""Open files that are left to everything else: sockets, pipes to worker processes, the archive."""
_SHARE: Final = 4
"""Caches of a process, each of which takes an equal part of what is left."""


def keep_open(most: int) -> int:
    """Return how many files a cache may keep open: ``most``, or fewer where the limit on open files leaves few.

    The soft limit, 256 on macOS, is raised first as far as the hard one allows.
    """
    return max(1, min(most, (raised_limit() - _open_now() - _RESERVED) // _SHARE))


def check_machine(error: BaseException) -> None:
    """Raise MachineError where an error says that no more files can be opened, by this process or by any."""
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        at = f"{error.filename}: " if error.filename else ""
        raise MachineError(
            f"{at}{os.strerror(error.errno)}; raise the limit (`ulimit -n`, here "
            f"{resource.getrlimit(resource.RLIMIT_NOFILE)[0]}), then go on"
        ) from None


def raised_limit() -> int:
    """Raise the soft limit on open files as far as is allowed and of use, 4096, and return it."""
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
