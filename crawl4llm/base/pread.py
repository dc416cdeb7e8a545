"""Read-only files that are read by position, safe across forks and threads."""

from __future__ import annotations

import os
from pathlib import Path

from crawl4llm.base.input_files import open_regular


class PreadFile:
    """A regular file opened for reading with ``pread``, which moves no file position that a fork or thread would share.

    It is closed when nobody refers to it any more: a cache may drop it while somebody still reads it.
    """

    __slots__ = ("_fd", "path", "size")

    def __init__(self, path: Path) -> None:
        self._fd = -1
        self._fd, self.size = open_regular(path)
        self.path = path

    def read(self, size: int, position: int) -> bytes:
        """Up to ``size`` bytes from ``position``; fewer at the end of the file."""
        return os.pread(self._fd, size, position)

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
