"""JSON in UTF-8, one value a line, with orjson's faster coder where it is installed."""

from __future__ import annotations

import json
from typing import Any

_orjson: Any
try:
    import orjson as _orjson
except ImportError:  # orjson is in the optional extra "fast"
    _orjson = None


def dump_line(value: Any) -> bytes:
    """A value as one line with its line feed. Strings must not hold lone surrogates."""
    if _orjson is not None:
        line: bytes = _orjson.dumps(value, option=_orjson.OPT_APPEND_NEWLINE)
        return line
    return f"{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}\n".encode()


def load(line: bytes) -> Any:
    """The value of a line. Raises ValueError where it is not JSON."""
    return json.loads(line) if _orjson is None else _orjson.loads(line)
