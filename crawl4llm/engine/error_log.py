"""The error log: unanticipated errors in full, in a file of the run; the log has one line of each."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from crawl4llm.base.terminal import harmless

_MOST: Final = 16 << 20
"""Bytes of the file; of later errors there is only their line in the log."""
_LONGEST: Final = 64 << 10
"""Characters of one error; its end is kept, which says what was raised."""


@contextmanager
def error_log(path: Path) -> Iterator[None]:
    """Write what this process, and those it forks, log with a traceback to a file, which is made for the first of it.

    A file that is there, of a crawl that goes on, is appended to. Where it cannot be written or is full, the log has
    a line of each error all the same.
    """
    handler = _ToFile(path)
    root = logging.getLogger()
    root.handlers.insert(0, handler)  # the others then find the line alone
    try:
        yield
    finally:
        root.removeHandler(handler)


class _ToFile(logging.Handler):
    """Takes tracebacks out of log records, and writes them to a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.ERROR)
        self._path = path
        self.setFormatter(logging.Formatter("%(asctime)s [%(name)s] %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record that has a traceback, and leave one line of it to the other handlers."""
        if not record.exc_info or record.exc_info[1] is None:
            return
        error = record.exc_info[1]
        full = harmless(self.format(record))
        place = f"in full in {self._path.name}" if self._write(full) else f"{self._path.name} takes no more"
        said = f"{record.getMessage()}: {type(error).__name__}: {error}"
        record.msg, record.args = " ".join(f"{said} ({place})".split()), ()
        record.__dict__["traceback"] = record.exc_text  # for structured logs
        record.exc_info = record.exc_text = None

    def _write(self, full: str) -> bool:
        """Append an error at once: several processes write. Returns whether the file has it."""
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            try:
                if os.fstat(file).st_size >= _MOST:
                    return False
                os.write(file, f"{full[-_LONGEST:]}\n\n".encode(errors="backslashreplace"))
            finally:
                os.close(file)
        except OSError:
            return False
        return True
