"""Folders that appear whole, or not at all."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crawl4llm.base.errors import InputError


@contextmanager
def whole_folder(to: Path) -> Iterator[Path]:
    """A new folder beside ``to``, to write to; it takes the place of ``to`` when the block ends well.

    Else it is removed; so is what processes have left that were killed while they made the same folder. ``to`` is an
    absolute path, where nothing is or an empty folder. Raises OSError.
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


def check_free(to: Path) -> None:
    """Raise InputError where something is at ``to``, which ``--out`` names, but an empty folder."""
    try:
        taken = to.is_symlink() or (to.exists() and not (to.is_dir() and not any(to.iterdir())))
    except OSError as error:
        raise InputError(f"--out {to} cannot be read: {error.strerror}") from None
    if taken:
        raise InputError(f"--out {to}: exists already; give another folder, or remove it")
