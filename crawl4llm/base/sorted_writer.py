"""The writer of sorted files (:mod:`crawl4llm.base.sorted_file`): column by column, each in one pass and in order."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

from crawl4llm.base.sorted_file import (
    FORMAT,
    HEAD,
    KEPT,
    MAGIC,
    SIZES,
    Head,
    Kind,
    entry_size,
    records_of,
    start_bits,
    starts_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_AT_ONCE: Final = 1 << 16
_BYTES_AT_ONCE: Final = 1 << 20

WrittenRows: TypeAlias = Iterable[tuple[int, bytes, tuple[int, ...]]]
"""Hashes in sorted order, each with its record and further values."""


class SortedWriter:
    """Writes a file."""

    def __init__(self, file: BinaryIO) -> None:
        """Write to a new file, which the caller closes."""
        self._file = file
        self._digest = hashlib.sha256()
        self._columns: dict[str, tuple[int, int, str]] = {}
        self._size = HEAD
        file.write(bytes(HEAD))

    def column(self, name: str, code: str, pieces: Iterable[bytes]) -> None:
        """Write a column of entries of a type. Raises OSError."""
        start = self._size
        for piece in pieces:
            self._write(piece)
        self._columns[name] = (start, (self._size - start) // entry_size(code), code)
        self._write(bytes(-self._size % 8))

    def table(self, name: str, code: str, count: int, pieces: Iterable[Sequence[NDArray[Any]]]) -> None:
        """Write the table of ``count`` entries: arrays of their hashes, in sorted order, and of each of their values.
        Raises OSError."""
        import numpy as np  # not for files without a table

        bits, each = start_bits(count), SIZES[code[0]]
        left_out, mask = np.uint64(64 - bits - KEPT if each == 4 else 0), np.uint64((1 << 8 * each) - 1)
        under = np.zeros((1 << bits) + 1, "<u8")

        def entries() -> Iterator[bytes]:
            for hashes, *values in pieces:
                if not len(hashes):
                    continue
                firsts = (hashes >> np.uint64(64 - bits)).astype(np.int64)
                numbers = np.bincount(firsts - firsts[0])
                under[firsts[0] + 1 : firsts[0] + 1 + len(numbers)] += numbers.astype(np.uint64)
                found = [hashes >> left_out & mask, *(one.astype(np.uint64) for one in values)]
                yield np.stack(found, axis=1).astype(f"<u{each}").tobytes()

        self.column(name, code, entries())
        self.column(starts_of(name), "Q", [np.cumsum(under).astype("<u8").tobytes()])

    def records(self, name: str, rows: WrittenRows, scratch: Path, code: str = "QQ") -> int:
        """Write records and their table, in which the places of the records stand beside the hashes, and the values
        after them. Return their number. ``scratch``: path of a file for the time of it. Raises OSError."""
        with scratch.open("x+b") as entries:
            self.column(records_of(name), "B", _records(rows, entries))
            count = entries.tell() // entry_size(code)
            self.table(name, code, count, _read_back(entries, len(code)))
        scratch.unlink()
        return count

    def finish(self, kind: Kind, scheme: str, count: int) -> None:
        """Write the head, which completes the file. Raises OSError."""
        head = Head(kind.name, scheme, count, self._columns, self._size, self._digest.hexdigest())
        said = json.dumps({"format": FORMAT, **head._asdict()}, sort_keys=True).encode()
        data = b"%b%b\n%b\n" % (MAGIC, said, hashlib.sha256(said).hexdigest().encode())
        self._file.seek(0)
        self._file.write(data.ljust(HEAD))

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self._size += len(data)


def _records(rows: WrittenRows, to: BinaryIO) -> Iterator[bytes]:
    """Yield the records, many at once, and write the entries of their table."""
    entries, records, place = array("Q"), bytearray(), 0
    for entry, record, values in rows:
        entries.extend((entry, place, *values))
        records += record
        place += len(record)
        if len(entries) > _AT_ONCE or len(records) > _BYTES_AT_ONCE:
            entries.tofile(to)
            yield bytes(records)
            del entries[:], records[:]
    entries.tofile(to)
    yield bytes(records)


def _read_back(entries: BinaryIO, width: int) -> Iterator[Sequence[NDArray[Any]]]:
    import numpy as np  # as above

    entries.seek(0)
    while len(numbers := np.fromfile(entries, np.uint64, width * _AT_ONCE)):
        yield list(numbers.reshape(-1, width).T)
