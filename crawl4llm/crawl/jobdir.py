"""JOBDIR: the folder of a crawl that can be paused, killed and resumed, used by one process at a time.

It holds ``job.json`` (the identity of the crawl), ``store.mdb`` (its state at the last commit), ``lock``, and the files
of the visited set's filter. A live crawl has also ``robots.sqlite`` (copies of robots.txt) and ``owners.holds`` (owners
that it may not ask yet). ``control.json`` and seeds in ``inject/`` steer it; ``requests/`` is the log of its requests.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeGuard

from crawl4llm.base import received
from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import json_or_none
from crawl4llm.base.run_folder import SETTINGS, read_json, write_json
from crawl4llm.base.shapes import fits, is_uuid
from crawl4llm.base.terminal import harmless
from crawl4llm.base.version import __version__
from crawl4llm.crawl import answer_spool as answers, control
from crawl4llm.crawl.commits import read_state
from crawl4llm.frontier import holds, store

FORMAT = 5
"""Format of the whole folder; raised by each change that older or newer versions cannot read."""
JOB, LOCK, FILTER, ROBOTS = "job.json", "lock", "visited.bloom", "robots.sqlite"
_LONGEST_JOB, _DEEPEST = 1 << 20, 20
_LARGEST_NEW_STORE = 1 << 16
"""Most bytes of a new store; a store with commits may be smaller."""
_OURS = {JOB, f"{JOB}.open", LOCK, store.NAME, f"{store.NAME}-lock", f"{store.NAME}.compact", answers.NAME}
_OURS |= {holds.NAME, f"{holds.NAME}.open"}
"""Further files, besides those of the filter and of the copies of robots.txt, whose names begin with theirs."""
REQUESTS, _SEEDS = "requests", control.INJECT
_OF_THE_USER = {control.CONTROL, f"{control.CONTROL}.open", control.LOCK}
"""Files that may exist before the crawl, and stay if it is not begun; so may the folder _SEEDS."""
_BEFORE_BEGUN = {f"{JOB}.open", LOCK, store.NAME, f"{store.NAME}-lock"}
"""Files that may exist before ``job.json``."""
DIGESTS = {
    "corpus_digest": "CORPUS",
    "model_digest": "SCORER_MODEL",
    "seeds_digest": "seeds",
    "policy_settings": "policy",
    "known_urls": "what KNOWN_URLS has",
    "known_links": "what KNOWN_LINKS has",
    "known_texts": "what KNOWN_TEXTS has",
    "mixture": "what MIXTURE asks for",
    "parts": "what CRAWL_PARTS go by",
}
"""Digests that decide which pages are crawled, with the name of the input of each."""


class JobDir:
    """A JOBDIR, locked unless ``lock`` is false (for a look at a crawl that may be running)."""

    def __init__(self, path: Path, *, lock: bool = True, may_begin: bool = False) -> None:
        """Make the folder if it is missing. Without a lock nothing is made or changed, and there must be a crawl,
        unless it ``may_begin``.

        Raises InputError if it is in use, of another format, damaged, incomplete, or not a JOBDIR.
        """
        self.path = path
        self.store_path, self.answers_path = path / store.NAME, path / answers.NAME
        self.filter_path = path / FILTER
        """Files of the visited set's filter begin with this name."""
        self._lock: int | None = None
        try:
            if lock:
                path.mkdir(parents=True, exist_ok=True)
            names = [] if may_begin and not path.exists() else sorted(file.name for file in path.iterdir())
            self._refuse_others(names)  # before it leaves a lock among them
            if lock:
                self._lock = self._take_lock()
            self.job = self._read()
            if self.job is None:
                self._refuse_half(names)
                if lock:
                    self.clear()
                elif not may_begin:
                    raise self._not_ours("it holds no crawl", "the JOBDIR of a crawl")
        except OSError as error:
            self.close()
            raise InputError(f"JOBDIR {path} cannot be used: {error.strerror}") from None
        except InputError:
            self.close()
            raise

    def holder(self) -> str | None:
        """Return the process that uses it, as far as can be told without a lock; None if there is no such process."""
        with suppress(FileNotFoundError), (self.path / LOCK).open("rb") as lock:
            try:
                fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return _holder(lock.fileno())
        return None

    def check_id(self) -> None:
        """Raise InputError if the crawl's id is missing or malformed."""
        if self.job is None or not is_uuid(self.job["crawl_id"]):
            raise self._damaged("its crawl_id is none")

    def refuse_in_use(self) -> None:
        """Raise InputError if a process uses it."""
        if (holder := self.holder()) is not None:
            raise self._in_use(holder)

    def begin(self, job: Mapping[str, Any]) -> None:
        """Write job.json. The store must hold the start of the crawl; from now on a missing or empty store is an
        error."""
        self.job = {"format": FORMAT, "version": __version__, **job}
        write_json(self.path / JOB, self.job, fsync=True, private=True)

    def clear(self) -> None:
        """Remove the files of a process that ended before it began a crawl."""
        for path in self.path.iterdir():
            if path.name != LOCK and _is_ours(path.name):
                path.unlink()

    def close(self) -> None:
        """Unlock it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> int:
        """Take a lock that ends with the process, and that forked workers do not share (fcntl(2))."""
        lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _holder(lock)
            os.close(lock)
            raise self._in_use(holder) from None
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        return lock

    def _read(self) -> dict[str, Any] | None:
        path = self.path / JOB
        try:
            job = json_or_none(path.read_bytes()) if path.stat().st_size <= _LONGEST_JOB else None
        except FileNotFoundError:
            return None
        if not _is_job(job) or (job["format"] == FORMAT and not _is_whole(job)):
            raise self._damaged("it is no job description")
        if job["format"] != FORMAT:
            make = f"{command('crawl', 'influence', JOBDIR='DIR')} with an empty DIR"
            require_format(f"JOBDIR {self.path}", job["format"], FORMAT, make)
        return job

    def _refuse_others(self, names: Iterable[str]) -> None:
        """Raise InputError if the folder holds no crawl but something else, or if its files lie elsewhere."""
        others = [name for name in names if not _is_ours(name) and name not in {*_OF_THE_USER, _SEEDS, REQUESTS}]
        if others and JOB not in names:
            raise self._not_ours(f"it holds {others[0]}", "a new or empty folder")
        for path in (self.path / name for name in names if name in {_SEEDS, REQUESTS}):
            if path.is_symlink() or not path.is_dir():
                raise InputError(f"{path} is a link, or no folder; put the folder itself there, or remove it")
        for path in (self.path / name for name in names if _is_ours(name) or name in _OF_THE_USER):
            if path.is_symlink() or (path.exists() and not path.is_file()):
                raise InputError(f"{path} is a link, or no file; put the file itself there, or give another JOBDIR")

    def _refuse_half(self, names: Iterable[str]) -> None:
        """Raise InputError if job.json is missing, but there are files that are written after it."""
        try:
            found = f"{self.store_path} holds a crawl" if self._holds_a_crawl() else ""
        except store.StoreError:
            found = f"{self.store_path} is damaged"
        for name in names:
            if not found and name not in {*_BEFORE_BEGUN, *_OF_THE_USER, _SEEDS} and (self.path / name).stat().st_size:
                found = f"{self.path / name} belongs to a crawl"
        if found:
            raise InputError(
                f"{self.path / JOB} is missing, and {found}; restore the whole JOBDIR from a backup, or give another"
            )

    def _holds_a_crawl(self) -> bool:
        """Return whether the store, without a job.json, belongs to a crawl that had begun. Raises StoreError."""
        size = self.store_path.stat().st_size if self.store_path.exists() else 0
        if not 0 < size <= _LARGEST_NEW_STORE:
            return size > 0
        try:
            with closing(store.Store(self.store_path, readonly=True)) as found:
                return read_state(found).crawl is not None
        except store.NoTables:  # a process was killed while it made the store
            return False

    def _damaged(self, how: str) -> InputError:
        return InputError(f"{self.path / JOB} is damaged: {how}; restore it, or begin a new crawl")

    def _in_use(self, holder: str) -> InputError:
        advice = "wait for it, stop it, or use another JOBDIR"
        return InputError(f"JOBDIR {self.path} is in use by process {holder}; {advice}")

    def _not_ours(self, found: str, wanted: str) -> InputError:
        return InputError(f"JOBDIR {self.path} is not one of crawl4llm ({found}); give {wanted}")


def _is_job(job: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether this can be a job description, of any format."""
    values = [job]
    for _ in range(_DEEPEST):
        values = [inner for value in values for inner in _inner(value)]
    return not values and isinstance(job, dict) and type(job.get("format")) is int


def _is_whole(job: Mapping[str, Any]) -> bool:
    """Return whether a job description of this format has all its values, with the right types."""
    return fits([job], received.JOB) and job["digests"].keys() <= DIGESTS.keys()


def _inner(value: Any) -> Iterable[Any]:
    """Return the values in a JSON value."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _is_ours(name: str) -> bool:
    return name in _OURS or name.startswith((FILTER, ROBOTS))


def _holder(lock: int) -> str:
    """Return the process id in a lock file."""
    return os.read(lock, 20).decode("ascii", "replace").strip() or "unknown"


def find_output(jobdir: Path, job: Mapping[str, Any], given: str | None) -> Path:
    """Return the output directory of the crawl in a JOBDIR: that of its job description or, if it was moved, ``given``
    by OUTPUT_DIR. Raises InputError if the directory does not have the crawl's id."""
    output = Path(given or job["output"])
    if read_json(output / SETTINGS).get("crawl_id") == job["crawl_id"]:
        return output
    raise InputError(
        f"OUTPUT_DIR {harmless(str(output))} does not hold the crawl of JOBDIR {jobdir}, which was written to "
        f"{harmless(job['output'])} (no {SETTINGS} with its id is there); leave OUTPUT_DIR out, or, if you moved that, "
        "give its new place: -s OUTPUT_DIR=PATH"
    )
