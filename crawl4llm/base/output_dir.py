"""The output directory of a new crawl: claimed before anything is written, released if the start fails.

A worker of a cluster crawl may return to a directory that it has left. It empties its scratch folder there and writes
its settings again. The directory's ``settings.json`` names the crawl in the storage.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from crawl4llm.base import crawl_log, series
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.run_folder import SEEDS, SETTINGS, STATS, WARC, read_json

RUNS: Final = Path("crawls")
BLOCKED, BLOCKLISTS, BLOCKLIST_FILES = "blocked.json", "blocklists.json", "blocklists"
SCRATCH, TENSORBOARD = "scratch", "tensorboard"
STORED_CRAWL: Final = "storage_crawl"
"""In the settings.json of a worker: the id of the crawl in the storage."""
_OF_A_CRAWL: Final = crawl_log.NAME, SETTINGS, WARC
WRITTEN: Final = (
    *_OF_A_CRAWL,
    *(crawl_log.FAILURES, SEEDS, STATS, series.NAME, BLOCKED, BLOCKLISTS, BLOCKLIST_FILES, SCRATCH, TENSORBOARD),
)
"""Everything that crawls write into their directory, except errors.log, to which they append."""
_LOCK: Final = "lock"


def claim_output_dir(path: str | None, *, worker: bool = False) -> Path:
    """Make the directory of a new crawl, by default the next number below ``crawls/``. Raises InputError.

    A ``worker`` of a cluster crawl may also take a directory that a worker has left.
    """
    with as_input_error(f"OUTPUT_DIR {path or RUNS} cannot be made"):
        if path is None:
            return _next_numbered(RUNS)
        output = Path(path)
        check_output_dir(output, worker=worker)
        output.mkdir(parents=True, exist_ok=True)
        if not os.access(output, os.W_OK | os.X_OK):
            raise InputError(f"OUTPUT_DIR {output} cannot be written: Permission denied")
    return output


def check_output_dir(output: Path, *, worker: bool = False, named_by: str = "OUTPUT_DIR") -> None:
    """Raise InputError if a directory, which ``named_by`` names, holds a crawl, or anything else that a crawl would
    write over."""
    taken = [name for name in WRITTEN if os.path.lexists(output / name)]
    if worker and (taken == [SCRATCH] or _is_of_worker(output, taken)):
        return
    if taken == [SETTINGS] and read_json(output / SETTINGS).keys() == {"crawl_id"}:
        return  # of a process that was killed before it had begun
    if taken and taken[0] in _OF_A_CRAWL:
        raise InputError(
            f"{named_by} {output} holds another crawl ({taken[0]}); give another directory, or remove that crawl"
        )
    if taken:
        raise InputError(f"{named_by} {output} holds {taken[0]}, which a crawl would write; give another directory")


def check_worker_of(output: Path, stored_crawl: str) -> None:
    """Raise InputError if a worker of another crawl has left the directory."""
    if read_json(output / SETTINGS).get(STORED_CRAWL, stored_crawl) != stored_crawl:
        raise InputError(f"OUTPUT_DIR {output} is that of a worker of another crawl; give another directory")


def _is_of_worker(output: Path, taken: list[str]) -> bool:
    crawls = [name for name in taken if name in _OF_A_CRAWL]
    return crawls == [SETTINGS] and STORED_CRAWL in read_json(output / SETTINGS)


def _next_numbered(parent: Path) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    number = max((int(p.name) for p in parent.iterdir() if p.name.isdecimal()), default=0)
    while True:
        number += 1
        output = parent / f"{number:04d}"
        with suppress(FileExistsError):  # another crawl that starts just now took the number
            output.mkdir()
            return output


class ClaimedOutputDir:
    """The output directory, claimed by :func:`claim_output_dir`; released if the block raises.

    Releasing it removes all that the block wrote, and the directories made for it; errors.log stays. A worker locks and
    empties its scratch folder. (This is not a generator, because a generator that is forgotten raises in its block.)
    """

    def __init__(self, path: str | None, *, worker: bool = False) -> None:
        """Claim it. Raises InputError."""
        given = None if path is None else Path(path)
        made = [] if given is None else [one for one in (given, *given.parents) if not os.path.lexists(one)]
        self.output = claim_output_dir(path, worker=worker)
        self._made = [self.output] if given is None else made
        self._there = {name for name in WRITTEN if os.path.lexists(self.output / name)}
        self._lock = _lock_scratch(self.output) if worker else None

    def __enter__(self) -> Path:
        return self.output

    def __exit__(self, kind: type[BaseException] | None, *_raised: object) -> None:
        if kind is not None:
            _remove_written(self.output, but=self._there)
            for folder in self._made:
                with suppress(OSError):  # there is something else in it
                    folder.rmdir()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def give_back(output: Path) -> None:
    """Remove the files of a crawl that ended before it had logged a page or a failure."""
    _remove_written(output)
    with suppress(OSError):  # it holds errors.log, or something of the user's
        output.rmdir()


def _remove_written(output: Path, but: Collection[str] = ()) -> None:
    for name in WRITTEN:
        if name not in but:
            _remove(output / name)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _lock_scratch(output: Path) -> int:
    """Lock a worker's scratch folder against other processes, and empty it. Raises InputError."""
    scratch, lock = output / SCRATCH, None
    try:
        scratch.mkdir(exist_ok=True)
        lock = os.open(scratch / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # forked processes have no part in it
        left = [path for path in scratch.iterdir() if path.name != _LOCK]
    except OSError as error:
        if lock is not None:
            os.close(lock)
        if isinstance(error, BlockingIOError):
            raise InputError(f"OUTPUT_DIR {output} is in use by another worker; give each worker its own") from None
        raise InputError(f"OUTPUT_DIR {output}: {scratch} cannot be used: {error.strerror}") from None
    for path in left:
        _remove(path)
    return lock
