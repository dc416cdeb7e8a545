"""How commands print and end: lines on standard output, one line for an error, an exit status that is true.

Bars go to the standard error output, and only where somebody looks on.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable

from crawl4llm.errors import InputError, PageError

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C ended, as shells have it."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters by which a page could give orders to a terminal; tab and line feed are not among them."""


def print_lines(lines: Iterable[str]) -> int:
    """Print lines as they come; the exit status tells how that ended."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for line in lines:
            print(line)  # noqa: T201 - this is what prints
        sys.stdout.flush()
    except (InputError, PageError) as error:
        complain(error)
        return 1
    except BrokenPipeError:
        # Whoever read has enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("crawl4llm: interrupted", file=sys.stderr)  # noqa: T201 - likewise
        return INTERRUPTED
    return 0


def can_ask() -> bool:
    """Whether somebody can be asked: both input and standard error output are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def confirm(what: str) -> None:
    """Ask whether that should be done. Raises InputError unless the answer is yes."""
    print(f"{what}; go on? [y/N] ", end="", file=sys.stderr, flush=True)  # noqa: T201 - likewise
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise InputError(f"not confirmed, and not done: {what}")


def complain(error: object) -> None:
    """Say in one line what was wrong."""
    print(f"crawl4llm: error: {error}", file=sys.stderr)  # noqa: T201 - likewise


def wants_bar(progress_bar: str) -> bool:
    """Whether PROGRESS_BAR means a bar here: ``on``, or ``auto`` on a terminal."""
    return progress_bar == "on" or (progress_bar == "auto" and sys.stderr.isatty())


def harmless(text: str) -> str:
    """Foreign text without the characters that steer a terminal."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
