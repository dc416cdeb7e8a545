"""Seeds for a crawl that runs: the files in ``JOBDIR/inject/``."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.pages import Corpus
from crawl4llm.base.within import require_within
from crawl4llm.crawl.jobdir import INJECT
from crawl4llm.crawl.seeds import Seeds, read_seeds

_DONE: Final = "done"
_LARGEST: Final = 16 << 20
"""Bytes of a file; all of its seeds are in memory at once."""
_SETTLED: Final = 1.0
"""Seconds since the last change of a file, before which somebody may still write to it."""


class InjectFolder:
    """Files ``*.txt``, written like those of ``-a seeds=FILE``, but for what links lead to and hidden files."""

    def __init__(self, jobdir: Path) -> None:
        self._folder = jobdir / INJECT

    def make(self) -> None:
        """Make the folder, so that files can be put there. Raises InputError."""
        with as_input_error(f"{self._folder} cannot be made"):
            self._folder.mkdir(exist_ok=True)

    def waiting(self) -> list[tuple[Path, int]]:
        """Return the files that can be read, by name, each with its time of change in nanoseconds.

        Raises InputError.
        """
        found: list[tuple[Path, int]] = []
        # the folder may be missing, or a file that was just taken away
        with as_input_error(f"{self._folder} cannot be read"), suppress(FileNotFoundError):
            found = [
                (path, path.lstat().st_mtime_ns)
                for path in self._folder.iterdir()
                if path.suffix == ".txt" and path.name[0] != "." and path.is_file() and not path.is_symlink()
            ]
        now = time.time()
        return sorted((path, changed) for path, changed in found if abs(now - changed / 1e9) >= _SETTLED)

    def read(self, path: Path, corpus: Corpus) -> Seeds:
        """Read a file as a seeds file is read. Raises InputError, also where it is too long."""
        with as_input_error(f"{path} cannot be read"):
            size = path.stat().st_size
        if size > _LARGEST:
            raise InputError(f"{path} has more than {_LARGEST:,} bytes; divide its seeds among several files")
        return read_seeds(path, corpus)

    def finish(self, path: Path) -> None:
        """Move a file whose seeds are part of a commit to ``done/``. Raises InputError; then it is read once more,
        which changes nothing."""
        done = self._folder / _DONE
        number, to = 0, done / path.name
        with as_input_error(f"{path} cannot be moved to {to}"):
            done.mkdir(exist_ok=True)
            require_within(self._folder, done)
            while to.exists():
                number += 1
                to = done / f"{path.stem}.{number}{path.suffix}"
            path.rename(to)
