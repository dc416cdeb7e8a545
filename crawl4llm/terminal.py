"""How commands print and end: lines on standard output, one line for an error, an exit status that is true.

Bars go to the standard error output, and only where somebody looks on.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable
from types import FrameType

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
        say_interrupted()
        return INTERRUPTED
    return 0


def say_interrupted() -> None:
    """Say in one line that the user ended the command."""
    print("crawl4llm: interrupted", file=sys.stderr)  # noqa: T201 - likewise


def end_when_interrupted() -> None:
    """From now on Ctrl-C and SIGTERM end this process at once, with one line and status 130; as long as nothing that
    was begun needs an end of its own."""
    _set_handlers(_end)


def raise_when_interrupted() -> None:
    """From now on Ctrl-C and SIGTERM raise KeyboardInterrupt; a second one ends the process at once."""
    _set_handlers(_raise)


def _set_handlers(handler: Callable[[int, FrameType | None], None]) -> None:
    """Not where a signal is ignored, as under nohup, or where somebody else waits for it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler, _end, _raise}:
            signal.signal(number, handler)


def _raise(_number: int, _frame: FrameType | None) -> None:
    end_when_interrupted()
    raise KeyboardInterrupt


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"crawl4llm: interrupted\n")  # the interrupted code may be at writing: no print() here
    os._exit(INTERRUPTED)


def complain(error: object) -> None:
    """Say in one line what was wrong."""
    print(f"crawl4llm: error: {error}", file=sys.stderr)  # noqa: T201 - likewise


def wants_bar(progress_bar: str) -> bool:
    """Whether PROGRESS_BAR means a bar here: ``on``, or ``auto`` on a terminal."""
    return progress_bar == "on" or (progress_bar == "auto" and sys.stderr.isatty())


def harmless(text: str) -> str:
    """Foreign text without the characters that steer a terminal."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
