"""Open files: how many of them a cache may keep, and what is said when this process may open no more.

That is no fault of the page, file or setting at which it happens, and so never counted as one.
"""

from __future__ import annotations

import errno
import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import Final

from crawl4llm.base.errors import MachineError

_WANTED: Final = 4096
"""Open files that the limit is raised to; few systems refuse that many."""
_RESERVED: Final = 64
"""Open files that are left to everything else: sockets, pipes to worker processes, the archive."""
_SHARE: Final = 4
"""A process has a few caches; each takes a part of what is left."""


def keep_open(most: int) -> int:
    """How many files a cache may keep open: ``most``, or fewer where the limit on open files leaves few.

    The soft limit, 256 on macOS, is raised first as far as the hard one allows.
    """
    return max(1, min(most, (_raised_limit() - _open_now() - _RESERVED) // _SHARE))


def check_machine(error: BaseException) -> None:
    """Raise MachineError where an error says that no more files can be opened, by this process or by any."""
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        at = f"{error.filename}: " if error.filename else ""
        raise MachineError(
            f"{at}{os.strerror(error.errno)}; raise the limit (`ulimit -n`, here "
            f"{resource.getrlimit(resource.RLIMIT_NOFILE)[0]}), then go on"
        ) from None


def _raised_limit() -> int:
    """The soft limit on open files, as high as it may be and is of use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _WANTED
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return soft


def _open_now() -> int:
    try:
        return sum(1 for _ in Path("/dev/fd").iterdir())
    except OSError:
        return 0
