"""The pool: processes that call one function again and again. A call that hangs or ends its process costs no other.

It is pebble's, with what that lacks: calls that it forgets fail, and a pool that is broken is replaced.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, TimeoutError as FutureTimeout
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pebble import ProcessExpired, ProcessPool
from pebble.common import Result, ResultStatus

from crawl4llm.base.files import check_machine
from crawl4llm.base.processes import end_with, sigint_blocked
from crawl4llm.base.reasons import KILLED, TIMEOUT
from crawl4llm.base.terminal import guard_log, interrupt_held_back
from crawl4llm.base.whole_files import runs

if TYPE_CHECKING:
    from multiprocessing.synchronize import RLock

T = TypeVar("T")
R = TypeVar("R")

LOST: Final = (FutureTimeout, ProcessExpired)
"""Errors of a call that was out of time, or whose process ended."""
ENDED: Final = (ProcessExpired, BrokenProcessPool)
"""Errors of a call whose process ended, or that was forgotten in a broken pool, whatever the cause."""
_ATTEMPTS: Final = 3
"""Runs of a call while pools break under it."""
_AHEAD: Final = 2
"""Calls handed over for each process, so that the next one waits while one is in work."""
_GRACE: Final = 10.0
"""Seconds without any answer, in addition to the longest time limit, after which a pool is given up."""

_work: Callable[..., Any]
"""The function of a pool's process; unset in other processes."""


def why_lost(error: BaseException) -> str:
    """Return the reason of an error in LOST: ``timeout`` or ``killed``."""
    return KILLED if isinstance(error, ProcessExpired) else TIMEOUT


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


class Pool(Generic[R]):
    """Processes that call ``work``; the first call starts them.

    ``fork``: they are copies of this one, which need not pickle ``work`` and share its memory; no other thread of this
    process may hold a lock then. Otherwise they are new ones.
    """

    def __init__(self, work: Callable[..., R], processes: int, *, fork: bool = False) -> None:
        self._work, self._processes, self._forks = work, processes, fork
        self._pool: ProcessPool | None = None
        self._limits: dict[Future[R], float | None] = {}
        """The time limits of calls without an answer."""
        self._last_answer = 0.0
        if not fork:
            resource_tracker.ensure_running()  # its start lets SIGINT through

    def __enter__(self) -> Pool[R]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, *arguments: Any, time_limit: float | None = None) -> Future[R]:
        """Hand a call over. ``time_limit``: seconds, from when a process takes it up.

        Raises BrokenProcessPool, and MachineError if no file can be opened.
        """
        try:
            with sigint_blocked():
                if self._pool is not None and not self._pool.active:  # pebble gives up a pool when an idle process ends
                    self._give_up()
                pool = self._pool = self._pool or self._begin()
                future: Future[R] = pool.schedule(_call, args=arguments, timeout=time_limit)
        except (OSError, BrokenProcessPool) as error:
            check_machine(error.__cause__ or error)
            raise
        except RuntimeError as error:  # it ended just now
            raise BrokenProcessPool from error
        self._limits[future] = time_limit
        self._last_answer = time.monotonic()
        future.add_done_callback(self._answered)
        return future

    def each(self, items: Iterable[T], *fixed: Any, time_limit: float | None = None) -> Iterator[tuple[T, Future[R]]]:
        """Call with each item, after ``fixed`` arguments; yield items with their futures, which are done, in any
        order. Ctrl-C may end it at any moment."""
        submit, broken = partial(self.submit, *fixed, time_limit=time_limit), list(items)
        for attempt in range(_ATTEMPTS):
            again, broken = broken, []
            for item, future in in_any_order(submit, again, _AHEAD * self._processes, self.tend):
                if attempt + 1 < _ATTEMPTS and isinstance(future.exception(), BrokenProcessPool):
                    broken.append(item)  # another call may have been the cause
                else:
                    yield item, future

    def tend(self) -> None:
        """Fail calls if no answer can come any more. Waiting code calls this once a second.

        When pebble gives up a pool, it forgets waiting calls. A process that is killed while it takes a call leaves a
        lock for which all others wait. Of one that ends at once, pebble may read only later which call it took.
        """
        longest = max((math.inf if limit is None else limit for limit in list(self._limits.values())), default=math.inf)
        is_silent = time.monotonic() - self._last_answer > longest + _GRACE
        if self._limits and (is_silent or self._pool is None or not self._pool.active):
            self._give_up()
        elif self._pool is not None:
            calls = self._pool._pool_manager.task_manager
            for call in list(calls.tasks.values()):
                if call.worker_id and not runs(call.worker_id):
                    calls.task_done(call.id, Result(ResultStatus.ERROR, ProcessExpired("ended at once")))

    def close(self) -> None:
        """End the processes at once."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()
            pool.join()

    def _begin(self) -> ProcessPool:
        return ProcessPool(
            max_workers=self._processes,
            initializer=_initialise,
            initargs=(self._work, os.getpid()),
            context=multiprocessing.get_context("fork") if self._forks else PoolSpawnContext(),
        )

    def _answered(self, future: Future[R]) -> None:
        self._limits.pop(future, None)
        self._last_answer = time.monotonic()

    def _give_up(self) -> None:
        self.close()
        for future in list(self._limits):
            if not future.done():
                future.set_exception(BrokenProcessPool())


def _initialise(work: Callable[..., Any], parent: int) -> None:
    global _work  # noqa: PLW0603 - the one way to hand a process pool's calls what they work with
    _work = work
    # A forked process inherits the reactor's signal handling: without this, its end would be reported to the parent as
    # the parent's own SIGTERM.
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with(parent)
    guard_log()  # a new process has its own


def _call(*arguments: Any) -> Any:
    return _work(*arguments)


def _nothing() -> None:
    """Do nothing while a call has no answer."""


def in_any_order(
    submit: Callable[[T], Future[R]], items: Iterable[T], most: int, tend: Callable[[], None] = _nothing
) -> Iterator[tuple[T, Future[R]]]:
    """Submit items, ``most`` at a time, and yield each with its future when that is done; call ``tend`` once a second
    meanwhile.

    Ctrl-C may end it at any moment, because it never waits with a lock that the threads of a pool need.
    (:func:`concurrent.futures.wait` can leave a lock taken if a signal comes before the block that releases it.)
    """
    running: dict[Future[R], T] = {}
    done: SimpleQueue[Future[R]] = SimpleQueue()
    waiting = iter(items)
    while True:
        while len(running) < most and (item := next(waiting, None)) is not None:
            with sigint_blocked(), interrupt_held_back():
                future = submit(item)
                running[future] = item
                future.add_done_callback(done.put)
        if not running:
            return
        try:
            future = done.get(timeout=1)
        except Empty:
            tend()
            continue
        yield running.pop(future), future
