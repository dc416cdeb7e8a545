"""Numbers by name from a file that a setting names, such as ranks of hosts: 16 bytes of memory each."""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from array import array
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import input_lines


def value_lines(setting: str, path: Path) -> Iterator[str]:
    """Yield the lines of a file, each with its end. Raises InputError, naming setting and file, if it cannot be read
    or is damaged."""
    try:
        yield from input_lines(path, newline="\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{setting} {path} is damaged: {error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{setting} {path} is no text in UTF-8") from None
    except OSError as error:
        raise InputError(f"{setting} {path} cannot be read: {error.strerror}") from None


def finite(text: str) -> float:
    """Return a number. Raises ValueError, also for NaN and infinity."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not finite")
    return value


class Values:
    """Numbers by name, of which the first counts; 64 bits of a hash stand for the name."""

    def __init__(self, values: Iterable[tuple[str, float]]) -> None:
        names, numbers = bytearray(), array("d")
        for name, value in values:
            names += _hashed(name)
            numbers.append(value)
        hashes = np.frombuffer(bytes(names), dtype="<u8")
        order = np.argsort(hashes, kind="stable")
        self._names, self._values = hashes[order], np.array(numbers)[order]

    def __len__(self) -> int:
        return len(self._names)

    def of(self, name: str) -> float | None:
        """Return the number of a name; None if it is not known."""
        wanted = np.uint64(int.from_bytes(_hashed(name), "little"))
        place = int(np.searchsorted(self._names, wanted))
        if place < len(self._names) and self._names[place] == wanted:
            return float(self._values[place])
        return None

    def digest(self, kind: str) -> str:
        """Return the SHA-256, in hex, of all names and numbers, and of what ``kind`` they are."""
        return hashlib.sha256(kind.encode() + self._names.tobytes() + self._values.tobytes()).hexdigest()


def _hashed(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
