"""FastText model files, checked and read without loading them.

fastText trusts the sizes in its files: a file that is cut short makes it run for minutes, fail to allocate, or crash
the interpreter. So this module first follows the layout (fastText's ``FastText::loadModel``, file version 12) to the
end.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import open_input

_MAGIC, _VERSION = 793712314, 12
_SUPERVISED, _LOSSES = 3, range(1, 5)
_ENTRIES_AT_ONCE, _WEIGHTS_AT_ONCE = 5000, 1 << 18
_ENTRY = rb"[^\0]*\0.{9}"


@dataclass(frozen=True)
class ModelFile:
    """A complete model file."""

    path: Path
    labels: tuple[str, ...]
    digest: str
    """SHA-256 of the file, in hex."""
    finite: bool = True
    """True if all its weights are finite; with NaN or infinity among them, texts get no score."""


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.position, self.finite = 0, True

    def take(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from("<" + layout, self._data, self.position)
        self.position += struct.calcsize("<" + layout)
        return found

    def skip(self, size: int) -> None:
        self.position += size
        if size < 0 or self.position > len(self._data):
            raise EOFError

    def skip_weights(self, count: int) -> None:
        """Skip 32-bit floats, and note whether all are finite."""
        start = self.position
        self.skip(count * 4)
        for at in range(start, self.position, _WEIGHTS_AT_ONCE * 4):
            piece = self._data[at : min(at + _WEIGHTS_AT_ONCE * 4, self.position)]
            top = piece[3::4]  # sign and most of the exponent, which is all ones in NaN and infinity (IEEE 754)
            if b"\x7f" in top or b"\xff" in top:
                self.finite = self.finite and all(map(math.isfinite, struct.unpack(f"<{len(top)}f", piece)))

    def skip_entries(self, count: int) -> None:
        """Skip dictionary entries: a string, a count (int64) and a type (int8) each."""
        while count > 0:
            some = min(count, _ENTRIES_AT_ONCE)
            match = re.compile(b"(?:%s){%d}" % (_ENTRY, some), re.DOTALL).match(self._data, self.position)
            if match is None:
                raise EOFError
            self.position = match.end()
            count -= some

    def word(self) -> str:
        end = self._data.find(b"\0", self.position)
        if end < 0:
            raise EOFError
        word = self._data[self.position : end].decode("utf-8", errors="replace")
        self.position = end
        self.skip(10)
        return word

    def skip_matrix(self, quantised: bool) -> tuple[int, int]:
        """Skip a matrix; returns its rows and columns."""
        if not quantised:
            rows, columns = self.take("qq")
            self.skip_weights(rows * columns)
            return rows, columns
        normed, rows, columns, codes = self.take("?qqi")
        self.skip(codes)
        self._skip_quantizer()
        if normed:
            self.skip(rows)
            self._skip_quantizer()
        return rows, columns

    def _skip_quantizer(self) -> None:
        dimension, _subquantizers, _size, _last = self.take("iiii")
        self.skip_weights(dimension * 256)


def inspect_model(path: Path, setting: str = "SCORER_MODEL") -> ModelFile:
    """Read labels and digest of a fastText classifier, which ``setting`` names. Raises InputError if it is another
    file, incomplete or unreadable."""
    try:
        file = path.stat()
        return _inspected(path, setting, (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns))
    except OSError as error:
        raise InputError(f"{setting} {path} cannot be read: {error.strerror}") from None
    except (EOFError, struct.error):
        raise InputError(f"{setting} {path} is damaged or cut short; fetch or train it again") from None


@lru_cache(maxsize=4)
def _inspected(path: Path, setting: str, _stamp: tuple[int, ...]) -> ModelFile:
    """Do so; a file that did not change since is not read again, as it may have gigabytes."""
    with open_input(path) as file:
        if os.fstat(file.fileno()).st_size < 8:
            raise InputError(f"{setting} {path} is not a fastText model; give the path of a .bin or .ftz file")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            labels, finite = _labels_and_finite(data, f"{setting} {path}")
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return ModelFile(path, labels, digest.hexdigest(), finite)


def _labels_and_finite(data: mmap.mmap, named: str) -> tuple[tuple[str, ...], bool]:
    reader = _Reader(data)
    magic, version = reader.take("ii")
    if magic != _MAGIC:
        raise InputError(f"{named} is not a fastText model; give the path of a .bin or .ftz file")
    if version != _VERSION:
        raise InputError(f"{named} has fastText file version {version}; only {_VERSION} can be read")
    dimension, *_, loss, kind, buckets, _minn, _maxn, _rate = reader.take("12i")
    reader.skip(8)
    if loss not in _LOSSES:
        raise EOFError
    if kind != _SUPERVISED:
        raise InputError(f"{named} is no classifier, but holds word vectors; give a supervised model")
    entries, words, label_count, _tokens, pruned = reader.take("iiiqq")
    if min(entries, words, label_count) < 0 or entries != words + label_count:
        raise EOFError
    reader.skip_entries(words)
    labels = tuple(reader.word() for _ in range(label_count))
    reader.skip(max(pruned, 0) * 8)
    (quantised,) = reader.take("?")
    rows, columns = reader.skip_matrix(bool(quantised))
    if columns != dimension or (pruned < 0 and rows != words + buckets):
        raise EOFError
    (output_quantised,) = reader.take("?")
    reader.skip_matrix(bool(quantised and output_quantised))
    if reader.position != len(data):
        raise InputError(f"{named} is longer than it says; fetch or train it again")
    return labels, reader.finite
