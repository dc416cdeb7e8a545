"""Input files that a user or a dataset names: regular ones only, and bounded in memory.

What is wrong is an OSError whose ``strerror`` says so in words, so that callers report it as they report other files
that cannot be read.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast

import orjson

from crawl4llm.base.compression import ZSTD_START, zstd
from crawl4llm.base.files import open_regular

LARGEST_JSON: Final = 1 << 24
"""Bytes of a JSON file that is read at once; its objects can take thirty times that."""
LONGEST_LINE: Final = 1 << 20
"""Characters of a line of a text file."""
LONGEST_ROW: Final = 1 << 26
"""Characters of a line of JSON with a page: that has 10 MB at most, and escapes take up to six times that."""

_CHUNK: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_MAGIC_BYTES: Final = 4


def given_path(given: str | Path) -> Path:
    """Return the path that a user or a file names. ``~`` and ``~user`` stand for a home.

    If this machine does not know the user, the name stays as it is, as in shells; ``Path.expanduser`` raises then.
    """
    return Path(os.path.expanduser(given))  # noqa: PTH111 - as above


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


def json_or_none(data: str | bytes) -> Any:
    """Parse JSON that others wrote. Text that is not JSON gives None, as ``null`` does."""
    try:
        return parse_json(data)
    except ValueError:
        return None


def to_json(value: Any) -> bytes:
    """Return a value, which a crawl writes for itself and reads again, as JSON.

    Equal values, in equal order, give equal bytes. Numbers must be finite: orjson writes null for others, in a third of
    the standard library's time.
    """
    try:
        return bytes(orjson.dumps(value))
    except TypeError:  # of lone surrogates, which keys can have, for one
        return json.dumps(value, separators=(",", ":")).encode()


def from_json(data: bytes) -> Any:
    """Return the value that :func:`to_json` was given. Raises ValueError."""
    try:
        return orjson.loads(data)
    except ValueError:
        return parse_json(data)


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
