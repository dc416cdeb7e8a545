"""A disk whose power is cut: what was not synced may be lost, in several ways.

Everything that waits for the disk or changes names goes through ``os.fsync``, ``os.rename``, ``os.replace``,
``os.unlink`` and ``os.ftruncate``. A :class:`Disk` stands before these calls, and at the one it is told to, the power
fails. :meth:`Disk.survivors` are the files that a machine that starts again may then find.
"""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CALLS = ("fsync", "rename", "replace", "unlink", "ftruncate")
SURVIVALS = [(names, data) for names in ("synced", "latest") for data in ("synced", "torn", "latest")]
"""Which names, and which bytes, a power cut leaves."""


class PowerCutError(Exception):
    """The power fails."""


class Disk:
    """The files under ``root``; what is there at first is on the disk. They are used in :meth:`powered`, and then only.

    After ``calls`` of the calls the next raises PowerCutError, and so do all that follow.
    """

    def __init__(self, root: Path, calls: int) -> None:
        self.calls = calls
        self.places: list[tuple[str, ...]] = []
        """What each call was, and the lines of this project that it was made in."""
        self._root = root
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        for path in (root, *root.rglob("*")):
            self._note(os.open(path, os.O_RDONLY))

    @contextmanager
    def powered(self) -> Iterator[None]:
        """While this lasts, the calls go through this disk."""
        try:
            with pytest.MonkeyPatch.context() as patch:
                for name in CALLS:
                    patch.setattr(os, name, self._guarded(name))
                yield
        finally:
            die(self._root)

    def step(self, name: str) -> None:
        """A call: the power may fail at it."""
        self.places.append((name, *_lines()))
        self.calls -= 1
        if self.calls < 0:
            raise PowerCutError

    def sync(self, path: Path) -> None:
        """What a file holds now is on the disk."""
        self._note(os.open(path, os.O_RDONLY))

    def _guarded(self, name: str) -> Any:
        call = getattr(os, name)

        def guarded(*args: Any, **more: Any) -> None:
            if more:  # of a temporary folder that is collected meanwhile, and no call of ours
                call(*args, **more)
                return
            self.step(name)
            if name == "fsync":
                self._note(os.open(f"/proc/self/fd/{args[0]}", os.O_RDONLY))
            else:
                call(*args)

        return guarded

    def _note(self, fd: int) -> None:
        """Take down what an open file or directory holds, as on the disk from now on.

        It stays open: so no other file gets its inode number.
        """
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            names = self._names[status.st_ino] = {}
            with os.scandir(fd) as entries:
                for entry in entries:
                    names[entry.name] = entry.inode()
                    if entry.is_dir():
                        self._names.setdefault(entry.inode(), {})
        else:
            self._bytes[status.st_ino] = os.pread(fd, status.st_size, 0)

    def survivors(self, names: str, data: str) -> dict[str, bytes]:
        """What is left: files by their path below the root.

        ``names`` is "synced" or "latest"; ``data`` likewise, or "torn": the last half of what was not synced is zeros.
        """
        latest = {path.stat().st_ino: path for path in self._root.rglob("*") if path.is_file()}

        def content(inode: int) -> bytes:
            synced = self._bytes.get(inode, b"")
            if data == "synced" or inode not in latest:
                return synced
            now = latest[inode].read_bytes()
            torn = len(now) - max(0, len(now) - len(synced)) // 2
            return now[:torn].ljust(len(now), b"\0") if data == "torn" else now

        def files(directory: int) -> Iterator[tuple[str, int]]:
            for name, inode in self._names.get(directory, {}).items():
                if inode in self._names:
                    yield from ((f"{name}/{path}", held) for path, held in files(inode))
                else:
                    yield name, inode

        if names == "synced":
            found = dict(files(self._root.stat().st_ino))
        else:
            found = {str(path.relative_to(self._root)): inode for inode, path in latest.items()}
        return {path: content(inode) for path, inode in found.items()}


def _lines() -> list[str]:
    """The lines of this project that are under way, the three innermost ones."""
    stack = traceback.walk_stack(sys._getframe())
    own = (f"{frame.f_globals['__name__']}:{line}" for frame, line in stack if _is_own(frame.f_globals))
    return list(itertools.islice(own, 3))


def _is_own(names: dict[str, Any]) -> bool:
    return str(names.get("__name__")).startswith("crawl4llm.")


def first_and_last(places: Sequence[tuple[str, ...]]) -> list[int]:
    """The numbers of the first and the last call of each place."""
    first = {place: number for number, place in reversed(list(enumerate(places)))}
    last = {place: number for number, place in enumerate(places)}
    return sorted({*first.values(), *last.values()})


def die(root: Path) -> None:
    """Close all files under a directory, as the end of a process does."""
    for fd in Path("/proc/self/fd").iterdir():
        if fd.is_symlink() and fd.readlink().is_relative_to(root):
            os.close(int(fd.name))


def files_under(root: Path) -> dict[str, bytes]:
    """All files under a directory, by their path below it."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def put_files(root: Path, files: dict[str, bytes]) -> None:
    """Make a directory hold these files and nothing else."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
