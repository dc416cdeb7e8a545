"""The folder of a new model: it appears whole, or not at all."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crawl4llm.errors import InputError


@contextmanager
def new_folder(to: Path) -> Iterator[Path]:
    """A folder beside ``to`` to write to, which takes its place when the block ends well, and is removed if not.

    What a training of the same folder has left that was killed is removed too. Raises InputError where ``to`` is there
    already, or cannot be written.
    """
    to = to.absolute()
    check_free(to)
    try:
        _remove_left_over(to)
        temporary = _temporary(to, os.getpid())
        temporary.mkdir(parents=True)
        try:
            yield temporary
            check_free(to)
            temporary.replace(to)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise InputError(f"{error.filename or to}: {error.strerror}") from None


def check_free(to: Path) -> None:
    """Raise InputError where something is at ``to``, but an empty folder."""
    if to.suffix in {".bin", ".ftz"}:
        raise InputError(f"--out {to}: is made as a folder, with model.bin in it; give the folder's name")
    if to.is_symlink() or (to.exists() and not (to.is_dir() and not any(to.iterdir()))):
        raise InputError(f"--out {to}: exists already; give another folder, or remove it")


def _temporary(to: Path, process: int | str) -> Path:
    return to.with_name(f".{to.name}.{process}.training")


def _remove_left_over(to: Path) -> None:
    for path in to.parent.glob(_temporary(Path(glob.escape(to.name)), "*").name):
        process = path.name.split(".")[-2]
        if process.isdecimal() and (int(process) == os.getpid() or not _runs(int(process))):
            shutil.rmtree(path, ignore_errors=True)


def _runs(process: int) -> bool:
    with suppress(PermissionError):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
    return True
