"""The files of known URLs and texts, sorted on disk, in bounded memory.

Records are spread over files by the first bits of their fingerprints, which are evenly distributed. Each file is then
sorted in memory, in two or three copies of a 256th of all records. At 10^9 records that is 0.1 GB for URLs, and 1 GB
for texts. On disk the spread records take 8 bytes per URL, and 88 bytes per text (128 while its bands are sorted).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.bars import Progress
from crawl4llm.base.files import sync_path
from crawl4llm.base.known_sets import SetWriter
from crawl4llm.base.whole_files import writing
from crawl4llm.parts import BITS, DIGESTS, RECORD, TEXT_SCHEME, TEXTS, URL_SCHEME, URLS, band_name
from crawl4llm.scoring import BANDS

URL: Final = np.dtype("<u8")
TEXT: Final = np.dtype([("digest", "<u8"), ("bits", "<u8", 2), ("bands", "<u4", BANDS)])
"""A RECORD, as numpy reads it."""
AT_ONCE: Final = 1 << 18
"""Records that are handed on at once."""
_BITS: Final = 8
"""Number of first bits that spread records if their number is unknown."""
_SORTED_AT_ONCE: Final = 1 << 22
_WHAT: Final = "known sets"

Records: TypeAlias = NDArray[Any]
assert TEXT.itemsize == RECORD.size


class Spread:
    """Records of one type, spread over files of a folder by the first bits of their keys. Processes may add to the same
    ones at once: each writes files of its own."""

    def __init__(self, folder: Path, kind: np.dtype[Any], bits: int = _BITS, *, show: bool = False) -> None:
        """``show``: whether progress is shown as a bar, not as lines."""
        self._folder, self._kind, self._bits, self._show = folder, kind, bits, show
        with writing(folder, _WHAT):
            folder.mkdir(exist_ok=True)

    def add(self, records: Records) -> None:
        """Write records. Raises InputError if that fails (disk full)."""
        parts = (_keys(records) >> np.uint64(64 - self._bits)).astype(np.uint16)
        order = np.argsort(parts, kind="stable")
        records, ends = records[order], np.cumsum(np.bincount(parts, minlength=1 << self._bits)).tolist()
        with writing(self._folder, _WHAT):
            for part, (start, end) in enumerate(pairwise((0, *ends))):
                if start < end:
                    with (self._folder / f"{part}.{os.getpid()}").open("ab") as file:
                        file.write(records[start:end].tobytes())

    def parts(self) -> Iterator[Records]:
        """Yield the records of each file, in the order of their keys' first bits; it is removed. Shows progress."""
        for number in Progress(range(1 << self._bits), f"sorting {self._folder.name}", unit=" parts", bar=self._show):
            if (part := self.part(number)) is not None:
                yield part

    def part(self, number: int) -> Records | None:
        """Return the records whose first bits are a number, if there are any; they are removed."""
        with writing(self._folder, _WHAT):
            paths = sorted(self._folder.glob(f"{number}.*"))
            read = [np.fromfile(path, self._kind) for path in paths]
            for path in paths:
                path.unlink()
        return np.concatenate(read) if read else None


def write_urls(spread: Spread, scratch: Path, to: Path) -> int:
    """Write the file of known URLs; return how many there are. Raises InputError."""
    path = scratch / "sorted"
    count = _sort(spread, path)
    with writing(to, _WHAT):
        with to.open("xb") as file:
            writer = SetWriter(file)
            writer.fingerprints(URLS, count, read_records(path, URL))
            writer.finish(URLS, URL_SCHEME, count)
        sync_path(to)
        path.unlink()
    return count


def write_texts(spread: Spread, scratch: Path, to: Path, *, near: bool) -> int:
    """Write the file of known texts; return how many there are. Raises InputError."""
    path = scratch / "sorted"
    count = _sort(spread, path)
    with writing(to, _WHAT):
        with to.open("xb") as file:
            writer = SetWriter(file)
            writer.fingerprints(DIGESTS, count, (records["digest"] for records in read_records(path, TEXT)))
            if near:
                writer.column(BITS, "Q", (records["bits"] for records in read_records(path, TEXT)))
                for band, entries in enumerate(_spread_bands(path, scratch, count)):
                    writer.numbered(band_name(band), count, map(np.sort, entries.parts()))
            writer.finish(TEXTS, TEXT_SCHEME, count)
        sync_path(to)
        path.unlink()
    return count


def _sort(spread: Spread, to: Path) -> int:
    """Write records to one file, in the order of their keys, each key once; return how many there are."""
    count = 0
    with writing(to, _WHAT), to.open("xb") as file:
        for records in spread.parts():
            _, first = np.unique(_keys(records), return_index=True)
            file.write(records[first].tobytes())
            count += len(first)
    return count


def _spread_bands(path: Path, scratch: Path, count: int) -> list[Spread]:
    """Return for each band the checksums with the numbers of their texts, as entries of a table."""
    bits = max((count // _SORTED_AT_ONCE).bit_length(), 1)
    bands = [Spread(scratch / f"band{band}", URL, bits) for band in range(BANDS)]
    start = 0
    for records in read_records(path, TEXT):
        numbers = np.arange(start, start + len(records), dtype=np.uint64)
        start += len(records)
        for band, entries in enumerate(bands):
            entries.add(records["bands"][:, band].astype(np.uint64) << np.uint64(32) | numbers)
    return bands


def read_records(path: Path, kind: np.dtype[Any]) -> Iterator[Records]:
    """Yield the records of a file, some at once."""
    with path.open("rb") as file:
        while len(records := np.fromfile(file, kind, AT_ONCE)):
            yield records


def _keys(records: Records) -> NDArray[np.uint64]:
    keys: NDArray[np.uint64] = records["digest"] if records.dtype.names else records
    return keys
