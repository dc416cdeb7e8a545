"""Input files that a user or a dataset names: regular files only, read in bounded memory.

Errors are OSErrors with a readable ``strerror``, so that callers report them like those of other files.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast

import orjson

from crawl4llm.base.compression import ZSTD_START, zstd
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.files import open_regular

LARGEST_JSON: Final = 1 << 24
"""Most bytes of a JSON file that is read at once; its objects can take thirty times that."""
_DEEPEST: Final = 100
"""Levels of objects and lists in a JSON file, at most."""
LONGEST_LINE: Final = 1 << 20
"""Most characters of a line of a text file."""
LONGEST_ROW: Final = 1 << 26
"""Most characters of a line of JSON with a page: a page has at most 10 MB, and escapes take up to six times that."""

_CHUNK: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_MAGIC_BYTES: Final = 4


def given_path(given: str | Path) -> Path:
    """Return the path that a user or a file names. ``~`` and ``~user`` stand for a home.

    An unknown user's name is left as it is, as in shells; ``Path.expanduser`` would raise.
    """
    return Path(os.path.expanduser(given))  # noqa: PTH111 - as above


def open_input(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises OSError for anything else."""
    return os.fdopen(open_regular(path)[0], "rb")


def read_input(path: Path, most: int) -> bytes:
    """Read a whole regular file. Raises OSError, also for a file of more than ``most`` bytes."""
    data = bytearray()
    with open_input(path) as file:
        while part := file.read(_CHUNK):  # read(most) would take as much memory at once
            data += part
            if len(data) > most:
                raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return bytes(data)


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a regular file, in hex. Raises InputError."""
    digest = hashlib.sha256()
    with as_input_error(f"{path} cannot be read"), open_input(path) as file:
        while part := file.read(_CHUNK):
            digest.update(part)
    return digest.hexdigest()


def read_json(path: Path, most: int = LARGEST_JSON) -> Any:
    """Read a JSON file in UTF-8. Raises OSError like :func:`read_input`, and ValueError if it is not JSON, or nested so
    deeply that what walks through it would fail."""
    content = parse_json(read_input(path, most))
    parts = [content]
    for _ in range(_DEEPEST):
        objects = (part.values() if isinstance(part, dict) else part for part in parts if isinstance(part, dict | list))
        if not (parts := list(chain.from_iterable(objects))):
            return content
    raise ValueError("it is nested too deeply")


def parse_json(data: str | bytes) -> Any:
    """Parse JSON in UTF-8 from others. Raises ValueError, also if it is nested too deeply."""
    try:
        return json.loads(data if isinstance(data, str) else data.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def json_or_none(data: str | bytes) -> Any:
    """Parse JSON from others; None for text that is not JSON, as for ``null``."""
    try:
        return parse_json(data)
    except ValueError:
        return None


def to_json(value: Any) -> bytes:
    """Return as JSON a value that a crawl writes for itself and reads again.

    Equal values in equal order give equal bytes. Numbers must be finite, because orjson writes null for others; it
    takes a third of the standard library's time.
    """
    try:
        return bytes(orjson.dumps(value))
    except TypeError:  # of lone surrogates, which keys can have, for one
        return json.dumps(value, separators=(",", ":")).encode()


def from_json(data: bytes) -> Any:
    """Return the value of which :func:`to_json` made the data. Raises ValueError."""
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
    """Yield the lines of a regular file in UTF-8, as ``open`` does. ``compressed`` None: as its magic number says.

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


def named_lines(name: str, path: Path) -> Iterator[str]:
    """Yield the lines of a file that a setting or option names, each with its end. Raises InputError, which names both,
    if the file cannot be read or is damaged."""
    try:
        yield from input_lines(path, newline="\n")
    except (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
        raise InputError(f"{name} {path} is damaged: {error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{name} {path} is no text in UTF-8") from None
    except OSError as error:
        raise InputError(f"{name} {path} cannot be read: {error.strerror}") from None
