"""Worker processes that end with the process that started them: when that is killed, and not before, by Ctrl-C."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Protocol, TypeVar

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError

_PR_SET_PDEATHSIG = 1
"""prctl(2): a signal to get when the parent dies; the only way for a process that is stuck in a C library."""


def end_with(parent: int) -> None:
    """From now on, end this process when ``parent``, which started it, is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


@contextmanager
def sigint_blocked() -> Iterator[None]:
    """Threads and processes started in here are not interrupted by Ctrl-C; this one is, afterwards."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def terminate(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool, whatever they are at: its shutdown() would wait until they are done."""
    for process in list(pool._processes.values()):
        process.terminate()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


_QUEUED_PER_PROCESS = 4
_KILLED = "an indexing process was killed; run `scrapy corpus index` with fewer --jobs"


class Job(Protocol):
    """A piece of work that can be pickled."""

    @property
    def size(self) -> int:
        """Its share of all work."""
        ...


J = TypeVar("J", bound=Job)
R = TypeVar("R")


def run_jobs(
    work: Callable[[J], R],
    jobs: Sequence[J],
    processes: int,
    unit: str,
    label: str = "indexing",
    killed: str = _KILLED,
    show: bool | None = None,
) -> Iterator[tuple[J, R]]:
    """Do ``work`` on each job, in any order; the bar, which bears the label, counts sizes in ``unit``.

    It is shown on a terminal, or as ``show`` says; elsewhere there is a line now and then. Raises what the work raises,
    and InputError, with the message ``killed``, where a process was killed.
    """
    total = sum(job.size for job in jobs)
    with Progress[J](None, label, total, unit=unit, unit_scale=True, bar=show) as bar:
        parallel = processes > 1 < len(jobs)
        done = _in_processes(work, jobs, processes, killed) if parallel else ((job, work(job)) for job in jobs)
        for job, result in done:
            bar.update(job.size)
            yield job, result


def _in_processes(work: Callable[[J], R], jobs: Sequence[J], processes: int, killed: str) -> Iterator[tuple[J, R]]:
    context = multiprocessing.get_context("spawn")  # the caller may have threads, which do not survive a fork
    pool = ProcessPoolExecutor(min(processes, len(jobs)), context, end_with, (os.getpid(),))
    running: dict[Future[R], J] = {}
    waiting = list(reversed(jobs))
    try:
        while waiting or running:
            while waiting and len(running) < _QUEUED_PER_PROCESS * processes:
                job = waiting.pop()
                with sigint_blocked():
                    running[pool.submit(work, job)] = job
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()
    except BrokenProcessPool:
        raise InputError(killed) from None
    finally:
        if running:  # nobody waits for these any more
            terminate(pool)
        pool.shutdown(cancel_futures=True)
