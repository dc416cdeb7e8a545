"""The files of the request log: ``JOBDIR/requests/YYYY-MM-DD.jsonl``, one for each day in UTC, readable by their owner
only.

A line is one write, so a killed process loses none that was written; a power cut may cut the last one short. Files of
past days are compressed, to the same name and ``.gz``.
"""

from __future__ import annotations

import gzip
import logging
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from threading import Thread
from typing import IO, Final, Protocol, cast

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.files import AppendFile
from crawl4llm.base.input_files import open_input
from crawl4llm.base.whole_files import replacing
from crawl4llm.base.within import require_within
from crawl4llm.crawl.jobdir import REQUESTS

_NAME: Final = re.compile(r"(\d{4}-\d\d-\d\d)\.jsonl(?:\.gz)?", re.ASCII)
_DAY_SECONDS: Final = 86_400
_LONGEST_LINE: Final = 1 << 16
"""Most bytes of a line; a longer one was not written by this project."""
_BLOCK: Final = 1 << 20

logger = logging.getLogger(__name__)


class RequestLines(Protocol):
    """Writes the lines of a request log."""

    def append(self, line: bytes, at: float) -> None:
        """Append a line, which ends with a line feed, of a request that was sent ``at`` seconds since 1970. On
        InputError nothing is written."""

    def close(self) -> None:
        """Close open files."""


class RequestFiles:
    """The log of a crawl, open for appending by one process of it."""

    def __init__(self, jobdir: Path) -> None:
        """Make the folder if it is missing. Raises InputError."""
        self._folder = jobdir / REQUESTS
        self._day = -1
        self._file: AppendFile | None = None
        with as_input_error(f"{self._folder} cannot be made"):
            self._folder.mkdir(mode=0o700, exist_ok=True)

    def append(self, line: bytes, at: float) -> None:
        """Append a line, which ends with a line feed, to the day of ``at``, in seconds since 1970. On InputError
        nothing is written."""
        day = int(at // _DAY_SECONDS)
        if self._file is None or day > self._day:  # a clock that was set back does not open a day again
            self._file = self._begin(day)
        self._file.append(line)

    def close(self) -> None:
        """Close the file of the day."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self, day: int) -> AppendFile:
        """Open the file of a day, and compress those of other days in a thread, which the end of the crawl breaks
        off."""
        self.close()
        self._day = day
        name = datetime.fromtimestamp(day * _DAY_SECONDS, tz=timezone.utc).strftime("%Y-%m-%d.jsonl")
        path = self._folder / name
        require_within(self._folder, path)
        size = path.stat().st_size if path.exists() else None
        log = AppendFile(path, size, private=True)
        if size:
            with open_input(path) as file:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    log.append(b"\n")
        over = sorted(other for other in self._folder.glob("*.jsonl") if other.name != name and _day_of(other))
        Thread(target=_compress_all, args=(over,), name="request-log", daemon=True).start()
        return log


def days(jobdir: Path) -> list[str]:
    """Return the days that have a log, such as ``2026-05-31``, in order. Raises InputError."""
    folder = jobdir / REQUESTS
    with as_input_error(f"{folder} cannot be read"):
        return sorted({day for path in folder.iterdir() if (day := _day_of(path))})


def lines(jobdir: Path, day: str) -> Iterator[bytes]:
    """Yield the lines of a day, which may be today; an incomplete last line is left out.

    Raises InputError if a file cannot be read or is damaged.
    """
    plain = jobdir / REQUESTS / f"{day}.jsonl"
    packed = plain.with_name(f"{plain.name}.gz")
    require_within(plain.parent, plain, packed)
    try:
        with suppress(FileNotFoundError), open_input(plain) as file:
            if packed.exists() and not _holds(packed, file):
                with _unpacked(packed) as unpacked:
                    yield from _whole_lines(unpacked)
            yield from _whole_lines(file)
            return
        with _unpacked(packed) as unpacked:
            yield from _whole_lines(unpacked)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{packed} is damaged: {error}; restore it, or remove it to go without that day") from None
    except OSError as error:
        raise InputError(f"{error.filename or plain} cannot be read: {error.strerror}") from None


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    part_of_line = False
    while line := file.readline(_LONGEST_LINE):
        ends = line.endswith(b"\n")
        if ends and not part_of_line:
            yield line
        part_of_line = not ends


def _day_of(path: Path) -> str | None:
    name = _NAME.fullmatch(path.name)
    return name[1] if name and not path.is_symlink() else None


def _compress_all(paths: list[Path]) -> None:
    for path in paths:
        try:
            _compress(path)
        except (OSError, EOFError, zlib.error) as error:  # it stays as it is, and is tried again tomorrow
            logger.warning("%s cannot be compressed: %s", path, error)


def _compress(path: Path) -> None:
    """Replace a file by a compressed one; if the process is killed, one of them is there, or both."""
    packed = path.with_name(f"{path.name}.gz")
    with open_input(path) as plain:
        if not (packed.exists() and _holds(packed, plain)):
            with replacing(packed, fsync=True, mode=0o600) as to:
                if packed.exists():  # of a day that was gone on with, as a clock was wrong: a file of several members
                    with open_input(packed) as before:
                        shutil.copyfileobj(before, to, _BLOCK)
                with gzip.GzipFile("", "wb", 6, to, mtime=0) as member:
                    shutil.copyfileobj(plain, member, _BLOCK)
    path.unlink()


def _holds(packed: Path, plain: IO[bytes]) -> bool:
    """Return whether the compressed file ends with the content of the plain one, because a process was killed before it
    removed the latter. The plain file is left at its beginning."""
    size = os.fstat(plain.fileno()).st_size
    with _unpacked(packed) as unpacked:
        whole = sum(map(len, iter(partial(unpacked.read, _BLOCK), b"")))
        if whole < size:
            return False
        unpacked.seek(whole - size)
        same = all(unpacked.read(len(block)) == block for block in iter(partial(plain.read, _BLOCK), b""))
    plain.seek(0)
    return same


@contextmanager
def _unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a compressed file for reading."""
    with open_input(path) as file, gzip.GzipFile(fileobj=file) as unpacked:
        yield cast(IO[bytes], unpacked)
