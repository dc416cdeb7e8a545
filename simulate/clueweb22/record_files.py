"""Records of ClueWeb22 files by number: two ``pread`` calls a look-up, on handles that are kept open."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path

from crawl4llm.base.errors import CorruptRecord, TooLarge
from crawl4llm.base.input_files import PreadFile, keep_open
from simulate.clueweb22.layout import OFFSET_WIDTH, data_path, format_id, offset_path

MAX_OPEN = 256
"""Data files kept open at most, each with its offset file."""


class RecordFiles:
    """The compressed records of a ClueWeb22 tree, by kind, file and number."""

    def __init__(self, root: Path, max_open: int = MAX_OPEN) -> None:
        # Not a method: with a reference back to this object, files would stay open until the garbage is collected.
        self._opened = lru_cache(maxsize=-(-keep_open(2 * max_open) // 2))(partial(_open, root))

    def read(self, kind: str, file_id: str, record: int, most: int | None = None) -> bytes | None:
        """A record as it lies in the file; None where file or record does not exist.

        Raises CorruptRecord where the offsets make no sense or point past the end of the data, and TooLarge where it
        has more than ``most`` bytes.
        """
        try:
            data, offsets = self._opened(kind, file_id)
        except FileNotFoundError:
            return None
        lines = offsets.read(2 * OFFSET_WIDTH, record * OFFSET_WIDTH)
        if len(lines) <= OFFSET_WIDTH:
            return None
        try:
            start, end = int(lines[:OFFSET_WIDTH]), int(lines[OFFSET_WIDTH:])
        except ValueError:
            start, end = -1, -1
        if not 0 <= start <= end <= data.size:
            raise CorruptRecord(f"{offsets.path}: broken offsets of {format_id(file_id, record)}")
        if most is not None and end - start > most:
            raise TooLarge(f"{data.path}: record {format_id(file_id, record)}: larger than DOWNLOAD_MAXSIZE")
        return data.read(end - start, start)

    def count(self, kind: str, file_id: str) -> int:
        """How many records a file has; 0 where there is no such file."""
        try:
            return max(0, self._opened(kind, file_id)[1].size // OFFSET_WIDTH - 1)
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        """Close every file that is not being read; the next look-up opens its file again."""
        self._opened.cache_clear()


def _open(root: Path, kind: str, file_id: str) -> tuple[PreadFile, PreadFile]:
    return PreadFile(data_path(root, kind, file_id)), PreadFile(offset_path(root, kind, file_id))
