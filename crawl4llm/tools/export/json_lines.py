"""JSON in UTF-8, one value a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson


def dump_line(value: Any) -> bytes:
    """A value as one line with its line feed. Strings must not hold lone surrogates."""
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def load(line: bytes) -> Any:
    """The value of a line. Raises ValueError where it is not JSON."""
    return orjson.loads(line)


def load_all(lines: Sequence[bytes]) -> list[Any]:
    """The values of some lines at once. Raises ValueError where one of them is not JSON."""
    values: list[Any] = orjson.loads(b"[%b]" % b",".join(lines))
    if len(values) != len(lines):  # one holds a comma between two values
        raise ValueError("a line holds more than one value")
    return values
