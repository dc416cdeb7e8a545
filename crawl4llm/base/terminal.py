"""Output and end of commands: lines on standard output, one line for an error, a correct exit status.

Bars go to standard error, and only on a terminal. Lines, errors and log lines may contain text of a page, a file or
somebody else's run; here characters that would control a terminal are removed.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from crawl4llm.base.command_lines import docs
from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.tables import Part, json_lines, text_lines

_signalled = threading.Event()
_held_back: Final[list[bool]] = []
"""An item for each open block in which no KeyboardInterrupt may be raised."""

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C or SIGTERM ended; shells use it for Ctrl-C."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]")
"""Characters by which a page could control a terminal or change the order of its text: C0 and C1 controls (ECMA-48)
except tab and line feed, bidirectional controls (UAX #9, 2), other line ends, and deprecated format characters."""


def add_json_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--json``, which commands pass to :func:`print_lines`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines and tables")


def add_tasks_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--tasks``, the number of tasks that EXECUTOR runs."""
    told = f"divide the work into N tasks, which run where EXECUTOR says ({docs('offline-jobs')})"
    parser.add_argument("--tasks", type=positive_integer, metavar="N", help=told)


def print_lines(parts: Iterable[Part], *, as_json: bool = False, goes_on: bool = False) -> int:
    """Print the lines of all parts as they come, made harmless, or one JSON object of them; return the exit status.

    From now on Ctrl-C and SIGTERM raise KeyboardInterrupt in the code that makes the lines, which ends in a line. With
    ``goes_on`` that line says that the same command continues the work.
    """
    guard_log()
    raise_when_interrupted()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for line in json_lines(parts) if as_json else text_lines(parts):
            _print(harmless(line))
        _print("", end="", flush=True)
    except (InputError, PageError) as error:
        complain(error)
        return 1
    except _NobodyReads:
        return 1
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, Exception) and not _signalled.is_set():  # numpy.fromfile() makes a TypeError of Ctrl-C
            raise
        say_interrupted("; the same command goes on" if goes_on else "")
        return INTERRUPTED
    return 0


class _NobodyReads(Exception):
    """The reader of standard output has enough."""


def _print(text: str, **options: Any) -> None:
    """Print a line.

    Raises InputError if standard output cannot take it, as on a full disk, and _NobodyReads if its reader has gone.
    """
    try:
        print(text, **options)  # noqa: T201 - this is what prints
    except OSError as error:
        # Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise _NobodyReads from None
        raise InputError(f"standard output cannot be written: {error.strerror}") from None


def open_standard_streams() -> None:
    """Open those of standard input, output and error that are closed, as for some daemons, on ``os.devnull``.

    Otherwise a file of the crawl would get the number of one, and with it what libraries print.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: that of the stream
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode))


def can_ask() -> bool:
    """Return whether questions are possible: both input and standard error are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def confirm(what: str) -> None:
    """Ask whether ``what`` should be done. Raises InputError unless the answer is yes."""
    print(f"{harmless(what)}; go on? [y/N] ", end="", file=sys.stderr, flush=True)  # noqa: T201 - likewise
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise InputError(f"not confirmed, and not done: {what}")


def say_interrupted(more: str = "") -> None:
    """Say in one line that the user ended the command, and ``more``; the exit status will be INTERRUPTED."""
    # Where Ctrl-C interrupted an exec() of a text, as dataclasses have at import, CPython would end `python -m` by that
    # signal, though the exception was caught (run_eval_code_obj() notes it); another exec() makes it forget.
    exec("")  # noqa: S102
    print(f"crawl4llm: interrupted{more}", file=sys.stderr)  # noqa: T201 - likewise


def end_when_interrupted() -> None:
    """Let Ctrl-C and SIGTERM end this process at once, with a line and status 130; for work without clean-up."""
    _set_handlers(_end)


def interrupts_as_ever() -> None:
    """Undo :func:`end_when_interrupted`."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) is _end:
            signal.signal(number, handler)


def raise_when_interrupted() -> None:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt, and a second one end the process at once."""
    _set_handlers(_raise)


def _set_handlers(handler: Callable[[int, FrameType | None], None]) -> None:
    """Set the handler of both signals, unless one is ignored, as under nohup, or has another handler."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler, _end, _raise}:
            signal.signal(number, handler)


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt if a signal has come, because Python drops what a handler raises during a fork."""
    if _signalled.is_set():
        raise KeyboardInterrupt


@contextmanager
def interrupt_held_back() -> Iterator[None]:
    """Delay KeyboardInterrupt to the end of the block, in which locks are taken that other threads wait for."""
    _held_back.append(True)
    try:
        yield
    finally:
        _held_back.pop()
    raise_if_interrupted()


def _raise(_number: int, _frame: FrameType | None) -> None:
    _signalled.set()
    end_when_interrupted()
    if not _held_back:
        raise KeyboardInterrupt


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"crawl4llm: interrupted\n")  # the interrupted code may be at writing: no print() here
    os._exit(INTERRUPTED)


def complain(error: object) -> None:
    """Print an error in one line."""
    line = " ".join(harmless(str(error)).split("\n"))
    print(f"crawl4llm: error: {line}", file=sys.stderr)  # noqa: T201 - likewise


def wants_bar(progress_bar: str) -> bool:
    """Return whether PROGRESS_BAR means a bar here: ``on``, or ``auto`` on a terminal."""
    return progress_bar == "on" or (progress_bar == "auto" and sys.stderr.isatty())


def harmless(text: str) -> str:
    """Return foreign text without the characters that control a terminal."""
    return text if text.isascii() and text.isprintable() else _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


class _HarmlessRecord(logging.LogRecord):
    """A log record whose message and traceback are made harmless, for any handler."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info and self.exc_info[0] is not None:
            self.exc_text = harmless(logging.Formatter().formatException(self.exc_info))

    def getMessage(self) -> str:  # noqa: N802 - logging's name
        return harmless(super().getMessage())


def guard_log() -> None:
    """Make all later log lines of this process, and of its forks, harmless."""
    logging.setLogRecordFactory(_HarmlessRecord)


_MARKS: Final = re.compile(r"[\\`*_{}\[\]<>()#!|~$&:@]|(?<=www)\.")
_LONGEST: Final = 200


def cell(text: object) -> str:
    """Return a value for a table's cell: on one line, at most 200 characters, without markup.

    A backslash makes ASCII punctuation plain text (CommonMark 0.31, 2.4), and breaks what GitHub would take for an
    address.
    """
    encodable = str(text).encode(errors="backslashreplace").decode()  # a name of a file may be no UTF-8
    line = " ".join(harmless(encodable).split())
    line = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
    return _MARKS.sub(r"\\\g<0>", line) or "-"


def positive_integer(text: str) -> int:
    """Parse a command-line argument that counts something."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def add_question_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options of a purge other than the domain."""
    parser.add_argument(
        "--whole-suffix", action="store_true", help="purge a public suffix, such as com or github.io, too"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask, on a terminal, before anything is removed")
