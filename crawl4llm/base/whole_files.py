"""Files and folders that are put in place only when they are complete."""

from __future__ import annotations

import fcntl
import glob
import gzip
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.files import check_machine, sync_path
from crawl4llm.base.within import fresh

logger = logging.getLogger(__name__)


@contextmanager
def replacing(
    path: Path, temporary: Path | None = None, *, fsync: bool = False, mode: int = 0o666
) -> Iterator[BinaryIO]:
    """Yield a new file that replaces ``path`` if the block ends well, and is removed otherwise.

    ``temporary`` is its path until then, by default beside ``path``. With ``fsync`` the file survives a power cut.
    Raises OSError.
    """
    temporary = temporary or path.with_name(f"{path.name}.open")
    try:
        with open(fresh(temporary), "xb", opener=partial(os.open, mode=mode)) as file:
            yield file
            if fsync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()
    if fsync:
        sync_path(path.parent)


@contextmanager
def whole_folder(to: Path) -> Iterator[Path]:
    """Yield a new folder beside ``to``, which takes the place of ``to`` if the block ends well.

    Otherwise it is removed, together with folders that killed processes left for the same place. ``to`` is an absolute
    path; nothing or an empty folder may be there. Raises OSError.
    """
    _remove_left_over(to)
    temporary = _temporary(to, os.getpid())
    temporary.mkdir(parents=True)
    try:
        yield temporary
        temporary.replace(to)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _temporary(to: Path, process: int | str) -> Path:
    return to.with_name(f".{to.name}.{process}.tmp")


def _remove_left_over(to: Path) -> None:
    for path in to.parent.glob(_temporary(Path(glob.escape(to.name)), "*").name):
        process = path.name.split(".")[-2]
        if process.isdecimal() and (int(process) == os.getpid() or not _runs(int(process))):
            shutil.rmtree(path, ignore_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # there is one, of another user
        return True
    return True


def check_free(to: Path, named_by: str = "--out") -> None:
    """Raise InputError if anything but an empty folder is at ``to``, which ``named_by`` names."""
    with as_input_error(f"{named_by} {to} cannot be read"):
        taken = to.is_symlink() or (to.exists() and not (to.is_dir() and not any(to.iterdir())))
    if taken:
        raise InputError(f"{named_by} {to}: exists already; give another folder, or remove it")


def check_new_file(path: Path, named_by: str = "--out") -> None:
    """Raise InputError, before any work is done, if ``path`` exists or no file can be written there."""
    refuse_to_overwrite(path, named_by)
    if not path.parent.is_dir():
        raise InputError(f"{named_by} {path} cannot be written: {path.parent} is no folder")
    temporary = path.with_name(f"{path.name}.{os.getpid()}.open")
    with as_input_error(f"{named_by} {path} cannot be written"):
        temporary.touch(exist_ok=False)
        temporary.unlink()


def refuse_to_overwrite(path: Path, named_by: str = "--out") -> None:
    """Raise InputError if ``path`` exists."""
    if os.path.lexists(path):
        raise InputError(f"{named_by} {path}: exists already; give another name, or remove it")


@contextmanager
def locked(folder: Path, what: str = "the index") -> Iterator[None]:
    """Lock the folder for this process alone, waiting for others that make ``what`` there. Raises InputError if it
    cannot be written."""
    with writing(folder, what):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("wb")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.warning("Waiting for another process that makes %s in %s", what, folder)
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        except KeyboardInterrupt:
            remove_temporary(folder)
            raise


@contextmanager
def writing(path: Path, what: str = "the index") -> Iterator[None]:
    """Turn failures to write into InputError."""
    try:
        yield
    except OSError as error:
        check_machine(error)
        raise InputError(f"{error.filename or path}: {what} cannot be written ({error.strerror})") from error


def write_new(out: Path, text: str, what: str) -> None:
    """Write a new file, compressed if it ends in ``.gz``. Raises InputError, naming ``what`` is written."""
    data = text.encode("utf-8", "surrogatepass")
    with writing(out, what), replacing(out) as file:
        file.write(gzip.compress(data, mtime=0) if out.suffix == ".gz" else data)
        refuse_to_overwrite(out)  # the work took its time


def write_whole(path: Path, data: bytes, what: str = "the index") -> None:
    """Put a file in place once all of it is on disk. Raises InputError, naming ``what`` it is a file of."""
    with writing(path, what), replacing(path, path.with_name(f"{path.name}.{os.getpid()}.tmp"), fsync=True) as file:
        file.write(data)


def remove_temporary(folder: Path) -> None:
    """Remove temporary files of killed writers."""
    for path in list(folder.rglob("*.tmp")):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
