"""The Bloom filter before the fingerprints on disk, and its files.

It is a row of pybloom-live's filters, of which only the last one grows (Almeida et al. 2007). Each full filter has its
own file, written once; the growing one is in the file with the header, which identifies the full ones by checksums. So
filters that are read together were written together, even after an interrupted write.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pybloom_live import BloomFilter

from crawl4llm.base.compression import crc32
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import sync_path
from crawl4llm.base.input_files import parse_json
from crawl4llm.base.shapes import fits, whole
from crawl4llm.base.within import fresh
from crawl4llm.frontier.fingerprints import Mark

_FORMAT = 3
"""Format 1 had bits by SHA-256 of the fingerprints, format 2 twice as many bits for each."""
_FIRST_CAPACITY = 1_500_000
"""Smaller if that needs more memory than allowed, as for one of many partitions."""
_GROWTH = 8
"""Capacities of 1.5, 12 and 96 million in 2, 17 and 138 MB."""
_SLICES = 4
"""Bits that are set for each fingerprint, each of them a miss of the processor's caches."""
_ROOM = 2
"""Fingerprints of pybloom-live's capacity for each one added, so that so few bits suffice. A full filter answers
"maybe" for 0.74% of new keys, three of them for 2.2%."""
_BYTES_EACH = _ROOM * _SLICES / math.log(2) / 8
_MOST_CAPACITY = 1 << 30
"""Slices of larger filters would have more bits than quarters of fingerprints can number."""
_QUARTERS = struct.Struct("<4I")
_HEAD = struct.Struct(BloomFilter.FILE_FMT)
"""Error rate, slices, bits of a slice, capacity and count, in pybloom-live's format."""
_LONGEST_HEADER = 1 << 16
_SHAPE = {"format": {int}, "marks": [({int}, {str})], "full": [whole(0, (1 << 32) - 1)]}
"""Shape of the header; marks are written by ``x``."""
_MARKS = 4
_CRC_BYTES = 4
_CHUNK = 1 << 20


class FingerprintFilter:
    """A Bloom filter of fingerprints: it tells whether one is surely new."""

    def __init__(self, path: Path, *, most_bytes: int, fsync: bool) -> None:
        """Make an empty filter, to be kept at ``path`` and at the same path with numbers added. ``most_bytes``: memory
        that is enough by :func:`capacity_within`. ``fsync``: whether :meth:`save` waits for the disk."""
        self._path = path
        self._first_capacity = _first_capacity(most_bytes)
        self._fsync = fsync
        self._filters: list[BloomFilter] = []
        self.marks: list[Mark] = []
        """Marks of the sets that it held when it was saved, the latest last; it contains all of them."""
        self._full: list[int] = []
        """Checksums of the full filters' files."""
        self._room = 0
        """Fingerprints for which the growing filter has room."""

    def add(self, fingerprint: bytes) -> bool:
        """Add a fingerprint; return whether it may have been there before."""
        filters = self._filters
        if not self._room:
            if fingerprint in self:
                return True
            self._room = self._first_capacity * _GROWTH ** len(filters)
            filters.append(BloomFilter(_ROOM * self._room, 0.5**_SLICES))
        growing = filters[-1]
        bits, (first, second, third, fourth) = growing.bitarray, _places(growing, fingerprint)
        if bits[first] and bits[second] and bits[third] and bits[fourth]:
            return True
        if len(filters) > 1 and any(_has(full, fingerprint) for full in filters[:-1]):
            return True
        bits[first] = bits[second] = bits[third] = bits[fourth] = 1
        growing.count += 1
        self._room -= 1
        return False

    def __contains__(self, fingerprint: bytes) -> bool:
        return any(_has(one, fingerprint) for one in self._filters)

    def __len__(self) -> int:
        """Return the number of fingerprints added, without those that may have been there before."""
        return sum(one.count for one in self._filters)

    @property
    def growing_bytes(self) -> int:
        """Bytes that :meth:`save` writes each time."""
        return len(self._filters[-1].bitarray) // 8 if self._filters else 0

    # -- files ----------------------------------------------------------------------------------------------------

    def save(self, mark: Mark) -> None:
        """Write the filter, which must contain the set of that mark. Raises InputError if that fails."""
        filters = self._filters
        for number in range(len(self._full), len(filters) - 1):
            self._full.append(self._write(self._numbered(number), b"", filters[number]))
        marks = [*self.marks, mark][-_MARKS:]
        header = {"format": _FORMAT, "marks": [(size, f"{xor:x}") for size, xor in marks], "full": self._full}
        self._write(self._path, json.dumps(header).encode() + b"\n", filters[-1])
        self.marks = marks
        if self._fsync:
            sync_path(self._path.parent)

    @classmethod
    def load(cls, path: Path, *, most_bytes: int, fsync: bool) -> FingerprintFilter:
        """Return the saved filter. Raises OSError or ValueError if it is missing, damaged, or made for another size of
        memory."""
        loaded = cls(path, most_bytes=most_bytes, fsync=fsync)
        with path.open("rb") as file:
            _check_sum(file)
            header = parse_json(file.readline(_LONGEST_HEADER))
            if not fits([header], _SHAPE):
                raise ValueError("its header is none")
            if header["format"] != _FORMAT:
                raise ValueError(f"format {header['format']}, not {_FORMAT}")
            growing = _read(file)
        for number, crc in enumerate(header["full"]):
            with loaded._numbered(number).open("rb") as file:
                if _check_sum(file) != crc:
                    raise ValueError(f"full filter {number} is another one's")
                loaded._filters.append(_read(file))
        loaded._filters.append(growing)
        loaded._room = max(growing.capacity // _ROOM - growing.count, 0)
        if loaded._filters[0].capacity != _ROOM * loaded._first_capacity:
            raise ValueError("it was made for another memory")
        loaded._full = header["full"]
        loaded.marks = [Mark(size, int(xor, 16)) for size, xor in header["marks"]]
        return loaded

    @staticmethod
    def remove(path: Path) -> None:
        """Remove its files, if they exist."""
        for file in [path, *path.parent.glob(f"{path.name}.*")]:
            file.unlink(missing_ok=True)

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _write(self, path: Path, header: bytes, one: BloomFilter) -> int:
        """Write a file unless it is unchanged; return its checksum."""
        temporary = path.with_name(f"{path.name}.new")
        try:
            with fresh(temporary).open("w+b") as file:
                file.write(header)
                one.tofile(file)
                crc = _sum(file, file.tell())
                file.write(crc.to_bytes(_CRC_BYTES, "little"))
            if self._fsync:
                sync_path(temporary)
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise InputError(f"cannot write {path}: {error.strerror}") from error
        return crc


def capacity_within(most_bytes: int) -> int:
    """Return how many fingerprints a filter of at most ``most_bytes`` holds."""
    return max((capacity for capacity, _ in _sizes(most_bytes)), default=0)


def bytes_within(most_bytes: int, fingerprints: int) -> int:
    """Return the bytes of a filter that holds ``fingerprints`` fingerprints; 0 if it would be given up."""
    return next((size for capacity, size in _sizes(most_bytes) if capacity >= fingerprints), 0)


def _first_capacity(most_bytes: int) -> int:
    """Return the capacity of the first filter of the row; 0 if not even one fingerprint fits."""
    return min(_FIRST_CAPACITY, int(most_bytes / _BYTES_EACH))


def _sizes(most_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield the total capacity and bytes of the first filter, the first two, and so on, as long as they fit."""
    held = size = 0
    capacity = _first_capacity(most_bytes)
    while 0 < capacity <= _MOST_CAPACITY and (size := size + math.ceil(capacity * _BYTES_EACH)) <= most_bytes:
        held += capacity
        yield held, size
        capacity *= _GROWTH


def _sum(file: BinaryIO, size: int) -> int:
    """Return the checksum of the first ``size`` bytes of a file, whose position is then behind them."""
    file.seek(0)
    crc = 0
    while size > 0 and (chunk := file.read(min(_CHUNK, size))):
        crc = crc32(chunk, crc)
        size -= len(chunk)
    return crc


def _check_sum(file: BinaryIO) -> int:
    """Check a whole file and return its checksum; its position is then at the beginning."""
    size = file.seek(0, 2) - _CRC_BYTES
    crc = _sum(file, size)
    if size < 0 or crc.to_bytes(_CRC_BYTES, "little") != file.read():
        raise ValueError("its checksum is wrong")
    file.seek(0)
    return crc


def _read(file: BinaryIO) -> BloomFilter:
    """Return the filter in a file, from the current position to the checksum."""
    start = file.tell()
    size = file.seek(0, 2) - _CRC_BYTES - start
    file.seek(start)
    head = file.read(_HEAD.size)
    if size < _HEAD.size or len(head) < _HEAD.size:
        raise ValueError("it is cut short")
    _, slices, bits, *_ = _HEAD.unpack(head)
    if slices != _SLICES or not bits:  # pybloom-live would make as many hashes as it says
        raise ValueError("it is no filter of this project")
    file.seek(start)
    return BloomFilter.fromfile(file, size)


def _has(one: BloomFilter, fingerprint: bytes) -> bool:
    """Return whether the bits of a fingerprint are set."""
    bits, (first, second, third, fourth) = one.bitarray, _places(one, fingerprint)
    return bool(bits[first] and bits[second] and bits[third] and bits[fourth])


def _places(one: BloomFilter, fingerprint: bytes) -> tuple[int, int, int, int]:
    """Return the bits of a fingerprint: one in each slice, by its quarters, which are practically random."""
    size = one.bits_per_slice
    first, second, third, fourth = _QUARTERS.unpack(fingerprint)
    return first % size, size + second % size, 2 * size + third % size, 3 * size + fourth % size
