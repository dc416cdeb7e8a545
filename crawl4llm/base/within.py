"""Names that come out of data, kept inside their folder: a dataset or run that one received may be hostile.

Such a name stands in a file (a journal, a manifest, an index), or it is a link in a folder that somebody else made
(CWE-22 "Path Traversal", CWE-59 "Link Following"). What the user names on the command line or in settings may lie
anywhere.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TypeGuard

from crawl4llm.base.errors import InputError

_NO_NAMES: Final = frozenset(("", ".", ".."))


def is_within(name: object) -> TypeGuard[str]:
    """Return whether a name, by its spelling, is below a folder: ``a/b``, not ``/a``, ``../a`` or ``.``."""
    if not isinstance(name, str) or "\0" in name or not _NO_NAMES.isdisjoint(name.split("/")):
        return False
    try:
        os.fsencode(name)
    except UnicodeEncodeError:  # lone surrogates, of which no file name has any
        return False
    return True


def within(folder: Path, name: object, said_by: Path) -> Path:
    """Return the path of a name below a folder. Raises InputError, naming ``said_by``, where it leads out of it."""
    if not is_within(name) or _leads_out(os.path.realpath(folder), folder / name):
        raise InputError(f"{said_by} names {name!r:.200}, which is not in {folder}; get it anew from its source")
    return folder / name


def require_within(folder: Path, *paths: Path) -> None:
    """Raise InputError where a link makes one of some paths below a folder lead out of it."""
    real = os.path.realpath(folder)
    for path in paths:
        if _leads_out(real, path):
            raise InputError(f"{path} leads out of {folder}, by a link; put there what it leads to, or remove it")


def require_all_within(folder: Path) -> None:
    """Raise InputError where any link below a folder leads out of it. For folders that this project alone fills."""
    for parent, folders, files in os.walk(folder):
        paths = [Path(parent, name) for name in (*folders, *files)]
        require_within(folder, *filter(Path.is_symlink, paths))


def fresh(path: Path) -> Path:
    """Return a path at which nothing is any more: what is written there does not go where a link leads."""
    path.unlink(missing_ok=True)
    return path


def _leads_out(real_folder: str, path: Path) -> bool:
    return not Path(os.path.realpath(path)).is_relative_to(real_folder)
