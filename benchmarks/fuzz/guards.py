"""The audit hook (PEP 578): refuses, and notes, what a reader of received data must not do.

A reader may read files, and may write below one folder. It must not write, rename or remove anything elsewhere, start a
process, open a socket, or import a module that is none of Python's own and of no package that was imported before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ON_PATHS: Final = {
    **dict.fromkeys(
        ("os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.utime", "shutil.rmtree"), (0,)
    ),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), (0, 1)),
}
"""Events of changes to files, and the places of the paths in their arguments."""
_NEVER: Final = {
    *("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.putenv"),
    *("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"),
    *("ctypes.dlopen", "pty.spawn", "signal.pthread_kill", "os.kill"),
}


class Refused(PermissionError):
    """A reader wanted to do what it must not."""


class Guard:
    """Watches this process while it is on. A process can have one only, for hooks stay until its end."""

    def __init__(self, folder: Path) -> None:
        self._inside = f"{folder.resolve()}{os.sep}"
        self._packages: frozenset[str] = frozenset()
        self.learn()
        self._is_on = False
        self._harmless: frozenset[str] = frozenset()
        self.seen: list[str] = []
        """What was refused."""
        sys.addaudithook(self._hear)

    def learn(self) -> None:
        """Take the packages that are imported now for those that may be."""
        self._packages = sys.stdlib_module_names | {name.partition(".")[0] for name in sys.modules}

    @contextmanager
    def on(self, harmless: frozenset[str] = frozenset()) -> Iterator[None]:
        """Refuse from now on, but for some events; what was refused before is forgotten."""
        self.seen.clear()
        self._harmless = harmless
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._is_on:
            return
        if event == "open":
            path, mode, flags = args
            wants = flags & _WRITING if isinstance(flags, int) else mode is not None and set(mode) & set("wax+")
            if wants and not isinstance(path, int):
                self._check(event, path)
        elif event == "import":
            if args[0].partition(".")[0] not in self._packages:
                self._refuse(f"import {args[0]!r:.100}")
        elif event in _ON_PATHS:
            for place in _ON_PATHS[event]:
                self._check(event, args[place])
        elif event in _NEVER and event not in self._harmless:
            self._refuse(f"{event} {args!r:.200}")

    def _check(self, event: str, path: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        self._is_on = False  # realpath is heard too
        try:
            outside = not os.path.realpath(os.fsdecode(path)).startswith(self._inside)
        finally:
            self._is_on = True
        if outside:
            self._refuse(f"{event} {path!r:.200}")

    def _refuse(self, what: str) -> None:
        self.seen.append(what)
        raise Refused(what)
