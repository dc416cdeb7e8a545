"""Processes that end with their parent, and not at Ctrl-C; work that is done in a child process, for its outcome.

No process that this project starts has the working directory on its path, unless its parent has. That folder may be a
received one, and a ``bisect.py`` in it would run. Importing this module ensures this for all of multiprocessing.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from multiprocessing import util
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from multiprocessing.pool import ExceptionWithTraceback  # type: ignore[attr-defined]
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from crawl4llm.base.terminal import interrupt_held_back

T = TypeVar("T")
R = TypeVar("R")

_PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that is sent when the parent dies; only this ends a process that is stuck in a C library."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""mallopt(3)."""
_LARGE_BLOCK, _FREE_AT_END = 1 << 18, 1 << 20

_SAFE_PATH: Final = ["-P"] if sys.version_info >= (3, 11) else ["-I"]
"""Python 3.10 has no ``-P``. Its ``-I`` also ignores PYTHONPATH, but multiprocessing passes the parent's path on."""


def _interpreter_flags(given: Callable[[], list[str]] = util._args_from_interpreter_flags) -> list[str]:  # type: ignore[attr-defined]
    return [*given(), *_SAFE_PATH]


# Spawned processes and the resource tracker begin with `python -c`, which puts the working directory first on the path,
# and then import pickle, socket and others.
util._args_from_interpreter_flags = _interpreter_flags  # type: ignore[attr-defined]


def python_command(code: str, *arguments: str) -> list[str]:
    """Return the command of a Python process that runs ``code``, without the working directory on its path, and ends
    with this process."""
    code = f"from crawl4llm.base.processes import end_with; end_with({os.getpid()}); {code}"
    if sys.version_info >= (3, 11):
        return [sys.executable, "-P", "-c", code, *arguments]
    return [sys.executable, "-c", f"import sys; sys.path.pop(0); {code}", *arguments]


def end_with(parent: int) -> None:
    """Make this process end when its parent, ``parent``, is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def return_freed_memory() -> None:
    """Make the C library return freed memory to the system: blocks of 256 KiB and more, and the end of the heap from 1
    MiB on.

    glibc begins like this, but each thread raises both limits, up to 32 and 64 MiB, when it frees a larger block. Other
    C libraries are left as they are.
    """
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for name, value in ((_M_MMAP_THRESHOLD, _LARGE_BLOCK), (_M_TRIM_THRESHOLD, _FREE_AT_END), (_M_ARENA_MAX, 1)):
            mallopt(name, value)


@contextmanager
def sigint_blocked(*others: signal.Signals) -> Iterator[None]:
    """Keep threads and processes started in the block from being interrupted by Ctrl-C and ``others``; afterwards these
    interrupt this process."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *others})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def heed_own_signals(parent: int) -> None:
    """Begin a child process, which was started with SIGTERM blocked: SIGTERM ends it, Ctrl-C is the parent's to answer,
    and it ends with the parent.

    A forked process inherits the reactor's signal handling: without this, its end would be reported to the parent as
    the parent's own SIGTERM.
    """
    end_with(parent)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def interruptible(work: Callable[[], T]) -> T:
    """Return the result of ``work``, which Ctrl-C and SIGTERM can interrupt.

    For work that stays in C or Rust for seconds, in which Python runs no signal handler. A thread does the work; it
    ends with the process.
    """
    future: Future[T] = Future()

    def answer() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the caller's to handle
            future.set_exception(error)

    threading.Thread(target=answer, daemon=True).start()
    return future.result()


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Usage(NamedTuple):
    """CPU time and memory of a process."""

    memory: int
    """Memory in bytes: the proportional set size, which divides shared memory among its processes (proc(5))."""
    cpu: float
    """Seconds."""


def usage(process: int) -> Usage | None:
    """Return the usage of a process, by its id; None if it has ended, or the system does not tell."""
    proc = Path("/proc", str(process))
    try:
        pss = next(line for line in (proc / "smaps_rollup").read_text().splitlines() if line.startswith("Pss:"))
        ticks = (proc / "stat").read_text().rpartition(")")[2].split()[11:13]  # behind the name, which may hold any
    except (OSError, StopIteration):
        return None
    return Usage(int(pss.split()[1]) << 10, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"))


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


# -- work in child processes -------------------------------------------------------------------------------------------


class ChildEnded(Exception):
    """A child process ended before its work did; the message says how: ``SIGSEGV``, ``status 3``."""


def in_child(work: Callable[..., R], *arguments: Any, idle: Callable[[], None] | None = None) -> R:
    """Return what ``work`` returns in a forked process, for work that may crash or that heeds no signal.

    ``idle`` is called once a second meanwhile. Raises the exception of the work, and ChildEnded. An interrupt ends the
    process too.
    """
    ((_, outcome),) = in_children(lambda given: work(*given), [arguments], 1, idle)
    return outcome.result()


def in_children(
    work: Callable[[T], R], items: Iterable[T], processes: int, idle: Callable[[], None] | None = None
) -> Iterator[tuple[T, Future[R]]]:
    """Do the work on each item in a forked process of its own, ``processes`` at a time; yield items with their outcomes
    in any order.

    An item does not notice what another one has left behind or broken. An outcome has the exception of the work, or
    ChildEnded.
    """
    context = multiprocessing.get_context("fork")
    waiting = iter(items)
    running: dict[Connection, tuple[ForkProcess, T]] = {}
    try:
        while True:
            while len(running) < processes and (item := next(waiting, None)) is not None:
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(work, item, theirs, os.getpid()))
                # Python drops what is raised while it forks
                with sigint_blocked(signal.SIGTERM), interrupt_held_back():
                    process.start()
                    running[ours] = process, item
                theirs.close()
            if not running:
                return
            for told in wait(list(running), timeout=1 if idle else None):
                assert isinstance(told, Connection)
                process, item = running[told]
                outcome = _outcome(process, told)
                del running[told]
                yield item, outcome
            if idle:
                idle()
    finally:
        for process, _ in running.values():
            process.kill()
            process.join()


def _work(work: Callable[[T], R], item: T, tell: Connection, parent: int) -> None:
    heed_own_signals(parent)
    tell.send(attempt(work, item))


def attempt(work: Callable[..., R], *arguments: Any) -> tuple[R | None, ExceptionWithTraceback | None]:
    """Return what work returns or raises, to be sent to another process."""
    try:
        return work(*arguments), None
    except BaseException as error:  # noqa: BLE001 - whatever it is, the other process must hear of it
        return None, ExceptionWithTraceback(error, error.__traceback__)


def ended(process: BaseProcess) -> ChildEnded:
    """Wait for the end of a process; return the error that says how it ended."""
    process.join()
    code = process.exitcode or 0
    return ChildEnded(signal.Signals(-code).name if code < 0 else f"status {code}")


def _outcome(process: BaseProcess, told: Connection) -> Future[Any]:
    outcome: Future[Any] = Future()
    with told:
        try:
            result, error = told.recv()
        except (EOFError, OSError):
            result, error = None, ended(process)
    process.join()
    if error is None:
        outcome.set_result(result)
    else:
        outcome.set_exception(error)
    return outcome
