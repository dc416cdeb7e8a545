"""Processes: workers that end with their parent, not at Ctrl-C, and jobs over many files in several processes.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker, util
from multiprocessing.context import SpawnContext
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.base.terminal import interrupt_held_back

if TYPE_CHECKING:
    from multiprocessing.synchronize import RLock

T = TypeVar("T")
J = TypeVar("J", bound="Job")
R = TypeVar("R")

_PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that is sent when the parent dies; only this ends a process that is stuck in a C library."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""mallopt(3)."""
_LARGE_BLOCK, _FREE_AT_END = 1 << 18, 1 << 20
_QUEUED_PER_PROCESS = 4
KILLED_INDEXING = "an indexing process was killed; if memory ran out, use fewer --jobs"

_SAFE_PATH: Final = ["-P"] if sys.version_info >= (3, 11) else ["-I"]
"""Python 3.10 has no ``-P``. Its ``-I`` also ignores PYTHONPATH, but multiprocessing passes the parent's path on."""


def _interpreter_flags(given: Callable[[], list[str]] = util._args_from_interpreter_flags) -> list[str]:  # type: ignore[attr-defined]
    return [*given(), *_SAFE_PATH]


# Spawned processes and the resource tracker begin with `python -c`, which puts the working directory first on the path,
# and then import pickle, socket and others.
util._args_from_interpreter_flags = _interpreter_flags  # type: ignore[attr-defined]


def python_command(code: str, *arguments: str) -> list[str]:
    """Return the command of a Python process that runs ``code`` without the working directory on its path."""
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


class PoolSpawnContext(SpawnContext):
    """The context of a pebble pool with new processes instead of copies of this one.

    Pebble releases a pool's locks before it ends the processes; a process that is only starting then would print a
    traceback. So the locks are kept until the pool is gone.
    """

    def __init__(self) -> None:
        super().__init__()
        self._locks: list[RLock] = []

    def RLock(self) -> RLock:  # noqa: N802 - that is what it is called
        self._locks.append(lock := super().RLock())
        return lock


@contextmanager
def sigint_blocked() -> Iterator[None]:
    """Keep threads and processes started in the block from being interrupted by Ctrl-C; afterwards it interrupts this
    one."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


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


def terminate(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool at once; its shutdown() would wait for their work."""
    for process in list(pool._processes.values()):
        process.terminate()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def in_any_order(submit: Callable[[T], Future[R]], items: Iterable[T], most: int) -> Iterator[tuple[T, Future[R]]]:
    """Submit items, ``most`` at a time, and yield each with its future when that is done.

    Ctrl-C may end it at any moment, because it never waits with a lock that the threads of a pool need.
    (:func:`concurrent.futures.wait` can leave a lock taken if a signal comes before the block that releases it.)
    """
    running: dict[Future[R], T] = {}
    done: SimpleQueue[Future[R]] = SimpleQueue()
    for item in items:
        with sigint_blocked(), interrupt_held_back():
            future = submit(item)
            running[future] = item
            future.add_done_callback(done.put)
        if len(running) >= most:
            future = done.get()
            yield running.pop(future), future
    while running:
        future = done.get()
        yield running.pop(future), future


class Job(Protocol):
    """Work that can be pickled."""

    @property
    def size(self) -> int:
        """The job's share of all work, in the unit of the bar."""


def run_jobs(
    work: Callable[[J], R],
    jobs: Sequence[J],
    processes: int,
    unit: str,
    label: str = "indexing",
    killed: str = KILLED_INDEXING,
    show: bool | None = None,
    *,
    apart: bool = False,
) -> Iterator[tuple[J, R]]:
    """Do ``work`` on each job, in any order; the bar, which bears the label, counts sizes in ``unit``.

    The bar is shown on a terminal, or as ``show`` says; otherwise a line is printed every 30 seconds. Errors of the
    work are raised. A killed process raises InputError with the message ``killed``; with ``apart`` each job has its own
    process, and the other jobs are done first.
    """
    total = sum(job.size for job in jobs)
    with Progress[J](None, label, total, unit=unit, unit_scale=True, bar=show) as bar:
        parallel = processes > 1 < len(jobs)
        run = _apart if apart else _in_processes
        done = run(work, jobs, processes, killed) if parallel else ((job, work(job)) for job in jobs)
        for job, result in done:
            bar.update(job.size)
            yield job, result


def _in_processes(work: Callable[[J], R], jobs: Sequence[J], processes: int, killed: str) -> Iterator[tuple[J, R]]:
    context = multiprocessing.get_context("spawn")  # the caller may have threads, which do not survive a fork
    pool = ProcessPoolExecutor(min(processes, len(jobs)), context, end_with, (os.getpid(),))
    try:
        for job, future in in_any_order(lambda job: pool.submit(work, job), jobs, _QUEUED_PER_PROCESS * processes):
            yield job, future.result()
    except BrokenProcessPool:
        raise InputError(killed) from None
    except BaseException:
        terminate(pool)  # nobody waits for what is left
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _apart(work: Callable[[J], R], jobs: Sequence[J], processes: int, killed: str) -> Iterator[tuple[J, R]]:
    context = multiprocessing.get_context("spawn")
    resource_tracker.ensure_running()  # whose start lets SIGINT through, that of a pool in sigint_blocked() would
    pools: dict[Future[R], ProcessPoolExecutor] = {}

    def submit(job: J) -> Future[R]:
        pool = ProcessPoolExecutor(1, context, end_with, (os.getpid(),))
        future = pool.submit(work, job)
        pools[future] = pool
        return future

    broken = False
    try:
        for job, future in in_any_order(submit, jobs, processes):
            pools.pop(future).shutdown()
            if isinstance(future.exception(), BrokenProcessPool):
                broken = True
            else:
                yield job, future.result()
    finally:
        for pool in pools.values():
            terminate(pool)
        for pool in pools.values():
            pool.shutdown()  # Python 3.11's own end of its threads is not safe while they end
    if broken:
        raise InputError(killed)
