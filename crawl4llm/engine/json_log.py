"""Structured logs: each line of the log is a JSON object, tracebacks included (LOG_FORMAT=json)."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

JSON: Final = "json"
"""The value of Scrapy's LOG_FORMAT."""


def log_in_json(settings: BaseSettings) -> None:
    """Let the log be such lines, if LOG_FORMAT asks for it; to be called before Scrapy sets up the log."""
    if settings["LOG_FORMAT"] == JSON:
        settings.set("LOG_FORMAT", "%(message)s", priority="cmdline")
        logging.getLogger().handlers.insert(0, _ToJson(settings["LOG_LEVEL"]))


class _ToJson(logging.Handler):
    """Makes the message of a record a JSON object, with time, level, logger, message, and the traceback if there is
    one. Scrapy puts a new handler in place of its own again and again; this one stands before it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Change the record that the other handlers find."""
        when = datetime.fromtimestamp(record.created, tz=timezone.utc).isoformat(timespec="milliseconds")
        message = record.getMessage()
        line: dict[str, Any] = {"time": when, "level": record.levelname, "logger": record.name, "message": message}
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if traceback := record.exc_text or getattr(record, "traceback", None):  # error_log has taken it out
            line["traceback"] = traceback
        record.msg, record.args, record.exc_info, record.exc_text = json.dumps(line), (), None, None
