"""Worker processes that end with the process that started them: when that is killed, and not before, by Ctrl-C."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

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
