"""The folder of an index: one writer at a time, and files that are there whole or not at all."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import check_machine

logger = logging.getLogger(__name__)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only process that writes to the folder; wait for another one. Raises InputError where that cannot be."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("wb")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.warning("Waiting for another process that makes the index in %s", folder)
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        except KeyboardInterrupt:
            remove_temporary(folder)
            raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn failures to write into InputError."""
    try:
        yield
    except OSError as error:
        check_machine(error)
        raise InputError(f"{error.filename or path}: the index cannot be written ({error.strerror})") from error


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in place under its name only when all of it is on disk."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with writing(path):
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)


def remove_temporary(folder: Path) -> None:
    """Remove what killed writers have left."""
    for path in list(folder.rglob("*.tmp")):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
