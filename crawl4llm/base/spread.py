"""Rows spread over files by the first bits of their hashes, and sorted file by file, in bounded memory.

Hashes are evenly distributed, so each file has its share of all rows. Records of any size are spread the same way; only
their places are sorted in memory, 32 bytes each. Processes may add to the same folder at once: each writes files of its
own.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.bars import Progress
from crawl4llm.base.whole_files import writing

PLACE: Final = np.dtype([("hash", "<u8"), ("rank", "<u8"), ("offset", "<u8"), ("size", "<u4"), ("file", "<u4")])
"""The place of a spread record: number of the file among those of its part, and offset in it."""
BITS: Final = 8
"""Number of first bits that spread rows if their number is unknown."""
SORTED_AT_ONCE: Final = 1 << 21
"""Rows of a part, of a known number of rows."""
_RECORDS, _PLACES = ".records", ".places"

Rows: TypeAlias = NDArray[Any]
Contents: TypeAlias = Sequence[mmap.mmap | bytes]
"""The files of spread records."""


def spread_bits(count: int) -> int:
    """Return how many first bits spread a known number of rows."""
    return max((count // SORTED_AT_ONCE).bit_length(), 1)


class Spread:
    """Rows of one type: hashes, or structures with a field ``hash``."""

    def __init__(
        self,
        folder: Path,
        kind: np.dtype[Any],
        bits: int = BITS,
        *,
        show: bool = False,
        what: str = "known sets",
    ) -> None:
        """``show``: whether sorting shows a bar. ``what`` is written, for errors."""
        self._folder, self._kind, self._bits, self._show, self._what = folder, kind, bits, show, what
        with writing(folder, what):
            folder.mkdir(exist_ok=True)

    def add(self, rows: Rows) -> None:
        """Write rows. Raises InputError if that fails (disk full)."""
        parts = (hashes_of(rows) >> np.uint64(64 - self._bits)).astype(np.uint16)
        order = np.argsort(parts, kind="stable")
        rows, ends = rows[order], np.cumsum(np.bincount(parts, minlength=1 << self._bits)).tolist()
        with writing(self._folder, self._what):
            for part, (start, end) in enumerate(pairwise((0, *ends))):
                if start < end:
                    with (self._folder / f"{part}.{os.getpid()}").open("ab") as file:
                        file.write(rows[start:end].tobytes())

    def parts(self) -> Iterator[Rows]:
        """Yield the rows of each file, in the order of their first bits; it is removed. Shows progress."""
        for number in Progress(range(1 << self._bits), f"sorting {self._what}", unit=" parts", bar=self._show):
            if (part := self.part(number)) is not None:
                yield part

    def part(self, number: int) -> Rows | None:
        """Return the rows whose first bits are a number, if there are any; they are removed."""
        with writing(self._folder, self._what):
            paths = sorted(self._folder.glob(f"{number}.*"))
            read = [np.fromfile(path, self._kind) for path in paths]
            for path in paths:
                path.unlink()
        return np.concatenate(read) if read else None


def hashes_of(rows: Rows) -> NDArray[np.uint64]:
    """Return the hashes of rows."""
    hashes: NDArray[np.uint64] = rows["hash"] if rows.dtype.names else rows
    return hashes


class SpreadRecords:
    """Records, each with its hash and a rank."""

    def __init__(self, folder: Path, bits: int = BITS, *, show: bool = False, what: str = "known links") -> None:
        """Parameters are those of :class:`Spread`."""
        self._folder, self._bits, self._show, self._what = folder, bits, show, what
        with writing(folder, what):
            folder.mkdir(exist_ok=True)

    def add(self, records: Iterable[tuple[int, int, bytes]]) -> None:
        """Write records with their hashes and ranks. Raises InputError if that fails (disk full)."""
        of_parts: dict[int, list[tuple[int, int, bytes]]] = {}
        for one in records:
            of_parts.setdefault(one[0] >> (64 - self._bits), []).append(one)
        with writing(self._folder, self._what):
            for part, some in of_parts.items():
                path = self._folder / f"{part}.{os.getpid()}{_RECORDS}"
                with path.open("ab") as file, path.with_suffix(_PLACES).open("ab") as beside:
                    hashes, ranks, contents = zip(*some, strict=True)
                    rows = np.zeros(len(some), PLACE)
                    rows["hash"], rows["rank"], rows["size"] = hashes, ranks, [*map(len, contents)]
                    rows["offset"] = file.tell() + np.cumsum(rows["size"], dtype=np.uint64) - rows["size"]
                    file.write(b"".join(contents))
                    beside.write(rows.tobytes())

    def parts(self) -> Iterator[tuple[int, Rows, Contents]]:
        """Yield the number of each part, its places by hash and rank, and the content of its files; these are removed
        afterwards. Shows progress."""
        for part in Progress(range(1 << self._bits), f"sorting {self._what}", unit=" parts", bar=self._show):
            with writing(self._folder, self._what):
                paths = sorted(self._folder.glob(f"{part}.*{_RECORDS}"))
                read = [np.fromfile(path.with_suffix(_PLACES), PLACE) for path in paths]
                for number, some in enumerate(read):
                    some["file"] = number
                if read:
                    places = np.concatenate(read)
                    yield part, places[np.lexsort((places["rank"], places["hash"]))], [*map(_mapped, paths)]
                for path in paths:
                    path.unlink()
                    path.with_suffix(_PLACES).unlink()


def records_in(places: Rows, contents: Contents) -> Iterator[tuple[int, int, bytes]]:
    """Yield hash, rank and content of the records at some places."""
    names = ("hash", "rank", "offset", "size", "file")
    for entry, rank, offset, size, file in zip(*(places[name].tolist() for name in names), strict=True):
        yield entry, rank, contents[file][offset : offset + size]


def _mapped(path: Path) -> mmap.mmap | bytes:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
