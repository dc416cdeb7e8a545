"""The log of a crawl: unanticipated errors are written in full to a file of the run, and as one line to the log.
LOG_FORMAT=json makes log lines JSON objects, tracebacks included."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from scrapy.settings import BaseSettings

from crawl4llm.base.terminal import harmless

JSON: Final = "json"
"""The value of Scrapy's LOG_FORMAT."""
_MOST: Final = 16 << 20
"""Most bytes of the file; later errors have only their line in the log."""
_LONGEST: Final = 64 << 10
"""Most characters of one error; its end is kept, which names the exception."""


@contextmanager
def error_log(path: Path) -> Iterator[None]:
    """Write errors that this process and its forks log with a traceback to a file, which is made for the first of them.

    A resumed crawl appends to its file. If the file cannot be written or is full, the log still has a line for each
    error.
    """
    handler = _ToFile(path)
    root = logging.getLogger()
    root.handlers.insert(0, handler)  # the others then find the line alone
    try:
        yield
    finally:
        root.removeHandler(handler)


class _ToFile(logging.Handler):
    """Moves tracebacks from log records to a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.ERROR)
        self._path = path
        self.setFormatter(logging.Formatter("%(asctime)s [%(name)s] %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record that has a traceback, and leave one line of it for the other handlers."""
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
        """Append an error at once, because several processes write. Return whether the file has it."""
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


def log_in_json(settings: BaseSettings) -> None:
    """Make log lines JSON objects, if LOG_FORMAT asks for it; to be called before Scrapy sets up the log."""
    if settings["LOG_FORMAT"] == JSON:
        settings.set("LOG_FORMAT", "%(message)s", priority="cmdline")
        logging.getLogger().handlers.insert(0, _ToJson(settings["LOG_LEVEL"]))


class _ToJson(logging.Handler):
    """Makes the message of a record a JSON object, with time, level, logger, message, and the traceback if there is
    one. Scrapy replaces its own handler repeatedly; this one precedes it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Change the record before the other handlers see it."""
        when = datetime.fromtimestamp(record.created, tz=timezone.utc).isoformat(timespec="milliseconds")
        message = record.getMessage()
        line: dict[str, Any] = {"time": when, "level": record.levelname, "logger": record.name, "message": message}
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if traceback := record.exc_text or getattr(record, "traceback", None):  # _ToFile has taken it out
            line["traceback"] = traceback
        record.msg, record.args, record.exc_info, record.exc_text = json.dumps(line), (), None, None
