"""Transactions over the files of a folder: all of them are changed, or none, whatever happens meanwhile.

New contents are written beside the old ones. When all are on the disk, a journal says what goes where; then they are
renamed, and the journal goes last. Killed before the journal is there, nothing has changed; killed after, the next
command that changes the folder finishes the renames.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from crawl4llm.base.errors import InputError
from crawl4llm.base.files import sync_path
from crawl4llm.base.input_files import read_json
from crawl4llm.base.run_folder import write_text
from crawl4llm.base.whole_files import replacing
from crawl4llm.base.within import fresh, within

JOURNAL = ".archive-changes.json"
_NEW = ".new"


class Changes:
    """New contents of files below a folder. To be used in a ``with`` statement; nothing changes before commit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._new: dict[Path, Path] = {}
        self._gone: list[Path] = []
        self._entered = ExitStack()

    def __enter__(self) -> Changes:
        """Lock the dataset; finish or remove the leftovers of a killed process. Raises InputError."""
        with ExitStack() as entered:
            entered.enter_context(exclusive(self._folder))
            complete(self._folder)
            with writing(self._folder):
                for path in self._folder.rglob(f".*{_NEW}"):
                    path.unlink()
            self._entered = entered.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for path in self._new.values():
            with suppress(OSError):
                path.unlink(missing_ok=True)
        self._entered.close()

    def stage(self, path: Path, like: Path | None = None) -> Path:
        """Return where to write the new content of ``path``; permissions are those of ``like``, by default ``path``."""
        self._new[path] = new = _beside(path)
        with writing(path), suppress(FileNotFoundError):
            os.close(os.open(fresh(new), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            shutil.copymode(like or path, new)
        return new

    def staged(self, path: Path) -> Path | None:
        """Return where the new content of a file lies; None if it was not staged."""
        return self._new.get(path)

    def leave(self, path: Path) -> None:
        """Keep a file that was staged as it is."""
        self._new.pop(path).unlink()

    def remove(self, path: Path) -> None:
        """Remove a file at commit."""
        self._gone.append(path)

    def commit(self) -> None:
        """Put everything in place. If that cannot be written, nothing has changed, and it raises InputError."""
        if not self._new and not self._gone:
            return
        for new in self._new.values():
            sync_path(new)
        for folder in {new.parent for new in self._new.values()}:
            sync_path(folder)
        journal = {
            "new": [[self._name(new), self._name(path)] for path, new in self._new.items()],
            "gone": [self._name(path) for path in self._gone],
        }
        write_text(self._folder / JOURNAL, json.dumps(journal), fsync=True)
        complete(self._folder)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def is_unfinished(folder: Path) -> bool:
    """Return whether a process was killed while it changed files of a folder."""
    return (folder / JOURNAL).exists()


def complete(folder: Path) -> None:
    """Put the files of a journal in place, if there is one. Raises InputError if that fails or must not be."""
    path = folder / JOURNAL
    try:
        renamed, gone = _read_journal(path)
    except FileNotFoundError:
        return
    with writing(folder):
        for target in renamed:
            with suppress(FileNotFoundError):  # it is in place already
                os.replace(_beside(target), target)  # noqa: PTH105 - as in appendfile, for the tests
        for target in gone:
            target.unlink(missing_ok=True)
        for parent in {target.parent for target in (*renamed, *gone)}:
            sync_path(parent)
        path.unlink()
    sync_path(folder)


def _read_journal(path: Path) -> tuple[list[Path], list[Path]]:
    """Return the files to replace and those to remove, all below the journal's folder.

    Raises InputError if the journal says anything that :class:`Changes` does not write: it may have come with the
    folder, from anywhere. Raises FileNotFoundError.
    """
    folder = path.parent
    try:
        journal = read_json(path)
        pairs = [(within(folder, new, path), within(folder, name, path)) for new, name in journal["new"]]
        gone = [within(folder, name, path) for name in journal["gone"]]
    except FileNotFoundError:
        raise
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error!r:.100}); remove it, then check the dataset") from None
    if any(new != _beside(target) for new, target in pairs):
        raise InputError(f"{path} is not of a purge or repair; remove it, then check the dataset")
    return [target for _, target in pairs], gone


def _beside(path: Path) -> Path:
    """Return where new contents of a file are written."""
    return path.with_name(f".{path.name}{_NEW}")


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Lock the files of a folder for changes. Raises InputError if another process changes them."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror}") from None
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{folder} is being changed by another process; wait until it has ended") from None
        yield
    finally:
        os.close(handle)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn failures to write into InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{error.filename or path} cannot be written: {error.strerror or error}") from None


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file for new content; it is put in place, on the disk, only when all went well."""
    with writing(path), replacing(path, _beside(path), fsync=True) as file:
        yield file
