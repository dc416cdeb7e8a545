"""JOBDIR: the folder of a crawl that can be paused, killed and resumed, used by one process at a time.

It holds ``job.json`` (what crawl this is), ``store.mdb`` (its state at the last commit), the files of the visited set's
filter, and ``lock``.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from crawl4llm import __version__
from crawl4llm.errors import InputError
from crawl4llm.job import store
from crawl4llm.job.commits import read_state
from crawl4llm.output import write_json
from crawl4llm.within import require_all_within

FORMAT = 1
"""Of everything in the folder; raised by each change that older or newer versions cannot read."""
JOB, LOCK, FILTER = "job.json", "lock", "visited.bloom"
_JOB_KEYS = {"format", "crawl_id", "output", "digests", "settings"}
_OURS = {JOB, f"{JOB}.open", LOCK, store.NAME, f"{store.NAME}-lock", f"{store.NAME}.compact"}
"""Besides the files of the filter."""


class JobDir:
    """A JOBDIR, locked unless ``lock`` is false (for a look at a crawl that may be running)."""

    def __init__(self, path: Path, *, lock: bool = True) -> None:
        """Make the folder where there is none. Raises InputError: it is in use, of another format, or another thing."""
        self.path = path
        self._lock: int | None = None
        require_all_within(path)
        try:
            if lock:
                path.mkdir(parents=True, exist_ok=True)
                self._refuse_others()  # before it leaves a lock among them
                self._lock = self._take_lock()
            self.job = self._read()
            if self.job is None:
                self._remove_remains(lock=lock)
        except OSError as error:
            self.close()
            raise InputError(f"JOBDIR {path} cannot be used: {error.strerror}") from None
        except InputError:
            self.close()
            raise

    @property
    def store_path(self) -> Path:
        """The store's file."""
        return self.path / store.NAME

    @property
    def filter_path(self) -> Path:
        """The file of the visited set's filter; others begin with its name."""
        return self.path / FILTER

    def holder(self) -> str | None:
        """Which process uses it, as far as one that has no lock on it can tell; None: none does."""
        try:
            lock = os.open(self.path / LOCK, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _holder(lock)
        finally:
            os.close(lock)
        return None

    def begin(self, job: Mapping[str, Any]) -> None:
        """Say what crawl this is. The store must hold its beginning: from now on a missing or empty one is an error."""
        self.job = {"format": FORMAT, "version": __version__, **job}
        write_json(self.path / JOB, self.job, fsync=True)

    def close(self) -> None:
        """Let others use it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> int:
        """A lock that ends with the process, and is not shared with forked workers (fcntl(2))."""
        lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _holder(lock)
            os.close(lock)
            raise InputError(
                f"JOBDIR {self.path} is in use by process {holder}; wait for it, stop it, or use another JOBDIR"
            ) from None
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        return lock

    def _read(self) -> dict[str, Any] | None:
        path = self.path / JOB
        try:
            job = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            job = None
        if not isinstance(job, dict) or (job.get("format") == FORMAT and not job.keys() >= _JOB_KEYS):
            raise InputError(f"{path} is damaged: it is no job description; restore it, or begin the crawl anew")
        if job.get("format") != FORMAT:
            raise InputError(
                f"JOBDIR {self.path} has format {job.get('format')}, of crawl4llm {job.get('version')}, and this "
                f"version ({__version__}) reads format {FORMAT}; finish that crawl with that version, or begin it anew"
            )
        return job

    def _refuse_others(self) -> None:
        """Raise InputError where there is no crawl, but something else."""
        others = [path.name for path in sorted(self.path.iterdir()) if not _is_ours(path.name)]
        if others and not (self.path / JOB).exists():
            raise self._not_ours(f"it holds {others[0]}", "a new or empty folder")

    def _remove_remains(self, *, lock: bool) -> None:
        """Clear what a process left that was killed before it had begun."""
        if not lock:
            others = [path.name for path in sorted(self.path.iterdir()) if not _is_ours(path.name)]
            raise self._not_ours(f"it holds {others[0] if others else 'no crawl'}", "the JOBDIR of a crawl")
        if self._holds_a_crawl():
            raise InputError(
                f"{self.path / JOB} is missing, and {self.store_path} holds a crawl; restore it from a backup, or give "
                "another JOBDIR"
            )
        for path in self.path.iterdir():
            if path.name != LOCK and _is_ours(path.name):
                path.unlink()

    def _holds_a_crawl(self) -> bool:
        """Whether the store, for which there is no job.json, is that of a crawl that had begun."""
        if not self.store_path.exists():
            return False
        try:
            with closing(store.Store(self.store_path, readonly=True)) as found:
                found.check_size()
                return read_state(found).crawl is not None
        except store.StoreError:  # it was killed while it made the store
            return False

    def _not_ours(self, found: str, wanted: str) -> InputError:
        return InputError(f"JOBDIR {self.path} is not one of crawl4llm ({found}); give {wanted}")


def _is_ours(name: str) -> bool:
    return name in _OURS or name.startswith(FILTER)


def _holder(lock: int) -> str:
    """The process id that is written in a lock file."""
    return os.read(lock, 20).decode("ascii", "replace").strip() or "unknown"
