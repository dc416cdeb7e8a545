"""Names from data, kept inside their folder, because a received dataset or run may be hostile.

Such a name stands in a file (a journal, a manifest, an index), or it is a link in a folder that somebody else made
(CWE-22 "Path Traversal", CWE-59 "Link Following"). Paths that the user gives on the command line or in settings may lie
anywhere.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TypeGuard

from crawl4llm.base.errors import InputError

_NO_NAMES: Final = frozenset(("", ".", ".."))


def is_within(name: object) -> TypeGuard[str]:
    """Return whether the spelling of a name stays below a folder: ``a/b``, not ``/a``, ``../a`` or ``.``."""
    if not isinstance(name, str) or "\0" in name or not _NO_NAMES.isdisjoint(name.split("/")):
        return False
    try:
        os.fsencode(name)
    except UnicodeEncodeError:  # lone surrogates, of which no file name has any
        return False
    return True


def within(folder: Path, name: object, said_by: Path) -> Path:
    """Return the path of a name below a folder. Raises InputError, naming ``said_by``, if it leads out of the
    folder."""
    if not is_within(name) or _leads_out(os.path.realpath(folder), folder / name):
        raise InputError(f"{said_by} names {name!r:.200}, which is not in {folder}; get it again from its source")
    return folder / name


def require_within(folder: Path, *paths: Path) -> None:
    """Raise InputError if a link makes any of ``paths``, which are below a folder, lead out of it."""
    real = os.path.realpath(folder)
    for path in paths:
        if _leads_out(real, path):
            raise InputError(f"{path} leads out of {folder}, by a link; put there what it leads to, or remove it")


def require_all_within(folder: Path) -> None:
    """Raise InputError if any link below a folder leads out of it. For folders that only this project fills."""
    for parent, folders, files in os.walk(folder):
        paths = [Path(parent, name) for name in (*folders, *files)]
        require_within(folder, *filter(Path.is_symlink, paths))


def fresh(path: Path) -> Path:
    """Return a path at which nothing exists any more, so that writing there follows no link."""
    path.unlink(missing_ok=True)
    return path


def _leads_out(real_folder: str, path: Path) -> bool:
    return not Path(os.path.realpath(path)).is_relative_to(real_folder)
