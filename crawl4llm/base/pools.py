"""The pool: processes that call one function again and again. A call that hangs or ends its process costs no other.

Each process has a pipe of its own, so that a killed one holds no lock, and its end is always the end of one known call.
Pools that share a queue, such as pebble's, then wait, give up all calls, or blame another one.
"""

from __future__ import annotations

import atexit
import math
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, TimeoutError as FutureTimeout
from contextlib import contextmanager
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pickle import PicklingError
from queue import SimpleQueue
from typing import Any, Final, Generic, NamedTuple, TypeVar

from crawl4llm.base.errors import MachineError
from crawl4llm.base.files import check_machine
from crawl4llm.base.processes import ChildEnded, attempt, ended, heed_own_signals, sigint_blocked
from crawl4llm.base.reasons import KILLED, TIMEOUT
from crawl4llm.base.terminal import guard_log, interrupt_held_back

T = TypeVar("T")
R = TypeVar("R")

LOST: Final = (FutureTimeout, ChildEnded)
"""Errors of a call that was out of time, or whose process ended."""
_AHEAD: Final = 2
"""Calls submitted for each process, so that the next one waits while one is in work."""
_LOOK_SECONDS: Final = 1.0
"""Seconds after which processes are looked at: their pipes tell nothing while a stranger's fork holds them open."""


def why_lost(error: BaseException) -> str:
    """Return the reason of an error in LOST: ``timeout`` or ``killed``."""
    return KILLED if isinstance(error, ChildEnded) else TIMEOUT


@contextmanager
def _opening() -> Iterator[None]:
    """Raise MachineError if no file can be opened in the block."""
    try:
        yield
    except OSError as error:
        check_machine(error)
        raise


class _Call(NamedTuple):
    answer: Future[Any]
    arguments: tuple[Any, ...]
    limit: float
    """Seconds."""


class _Worker:
    """A process of a pool, with the call that it is at."""

    def __init__(self, context: Any, work: Callable[..., Any]) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(work, theirs, os.getpid()))
        with theirs:
            self.process.start()
        self.is_ready = False
        """True once it has started, which is not part of a call's time."""
        self.call: _Call | None = None
        self.until = math.inf

    def begin(self, call: _Call) -> None:
        """Hand a call over. Raises OSError if the process has ended."""
        self.pipe.send(call.arguments)
        self.call, self.until = call, time.monotonic() + call.limit

    def finish(self) -> bool:
        """Answer the call if there is an answer, or the process has ended; return whether it lives on."""
        try:
            is_alive = self.process.is_alive()  # before the pipe is looked at, as it may answer and end in between
            if not self.pipe.poll():
                return is_alive or self.end()
            told = self.pipe.recv()
        except (EOFError, OSError):
            return self.end()
        except Exception as unreadable:  # noqa: BLE001 - what the work returned, or raised
            told = None, unreadable
        call, self.call, self.until, self.is_ready = self.call, None, math.inf, True
        if call is not None:
            _answer(call, *told)
        return True

    def end(self, error: BaseException | None = None) -> bool:
        """End the process, and its call with an error; by default that says how it has ended. Returns False."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        if self.call is not None:
            _answer(self.call, None, error or ended(self.process))
        return False


class Pool(Generic[R]):
    """Processes that call ``work``; the first call starts them.

    ``fork``: they are copies of this one, which need not pickle ``work`` and share its memory; no other thread of this
    process may hold a lock then. Otherwise they are new ones.
    """

    def __init__(self, work: Callable[..., R], processes: int, *, fork: bool = False) -> None:
        self._context = multiprocessing.get_context("fork" if fork else "spawn")
        self._work = work
        self._processes = processes
        self._workers: list[_Worker] = []
        self._waiting: deque[_Call] = deque()
        self._thread: threading.Thread | None = None
        self._closed = False
        with _opening():
            self._woken, self._wake = self._context.Pipe(duplex=False)
            if not fork:
                resource_tracker.ensure_running()  # its start lets SIGINT through

    def __enter__(self) -> Pool[R]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, *arguments: Any, time_limit: float | None = None) -> Future[R]:
        """Hand a call over. ``time_limit``: seconds, from when a process takes it up.

        Raises MachineError if no file can be opened. The answer raises the errors of the work, and those in LOST.
        """
        if self._thread is None:
            self._begin()
        answer: Future[R] = Future()
        self._waiting.append(_Call(answer, arguments, math.inf if time_limit is None else time_limit))
        self._wake.send_bytes(b"!")
        return answer

    def each(self, items: Iterable[T], *fixed: Any, time_limit: float | None = None) -> Iterator[tuple[T, Future[R]]]:
        """Call with each item, after ``fixed`` arguments; yield items with their futures, which are done, in any
        order. Ctrl-C may end it at any moment."""
        return in_any_order(partial(self.submit, *fixed, time_limit=time_limit), items, _AHEAD * self._processes)

    def close(self) -> None:
        """End the processes at once."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        if self._thread is not None:
            self._wake.send_bytes(b"!")
            self._thread.join()
        for worker in self._workers:
            worker.call = None
            worker.end()
        self._wake.close()
        self._woken.close()

    def _begin(self) -> None:
        atexit.register(self.close)  # multiprocessing would wait for the processes
        try:
            while len(self._workers) < self._processes:
                self._add_worker()
        except BaseException:
            self.close()
            raise
        self._thread = threading.Thread(target=self._manage, daemon=True)
        with sigint_blocked():
            self._thread.start()

    def _add_worker(self) -> None:
        # An interrupt waits until close() knows the worker: at its end, Python would wait for one that nobody ends.
        with _opening(), sigint_blocked(signal.SIGTERM):
            self._workers.append(_Worker(self._context, self._work))

    # -- in the pool's thread -----------------------------------------------------------------------------------------

    def _manage(self) -> None:
        while not self._closed:
            self._hand_out()
            left = min((worker.until for worker in self._workers), default=math.inf) - time.monotonic()
            pipes: list[Connection] = [worker.pipe for worker in self._workers]
            wait([self._woken, *pipes], min(max(left, 0), _LOOK_SECONDS))
            while self._woken.poll():
                self._woken.recv_bytes()
            lost = [worker for worker in self._workers if not worker.finish()]
            self._workers = [worker for worker in self._workers if worker not in lost]
            for worker in lost:
                if not worker.is_ready and self._waiting:  # or it would be replaced without end
                    _answer(self._waiting.popleft(), None, ended(worker.process))
            now = time.monotonic()
            self._workers = [one for one in self._workers if now < one.until or one.end(FutureTimeout())]

    def _hand_out(self) -> None:
        """Give waiting calls to idle processes; ended ones are replaced when there is a call."""
        idle = [worker for worker in self._workers if worker.is_ready and worker.call is None]
        while self._waiting and idle:
            call = self._waiting.popleft()
            try:
                idle[-1].begin(call)
            except OSError:  # the process has ended
                self._waiting.appendleft(call)
            except Exception as error:  # noqa: BLE001 - whatever cannot be pickled
                _answer(call, None, error)
                continue
            idle.pop()
        while self._waiting and len(self._workers) < self._processes:
            try:
                self._add_worker()
            except (OSError, MachineError) as error:
                _answer(self._waiting.popleft(), None, error)


def _answer(call: _Call, result: object, error: BaseException | None) -> None:
    if not call.answer.set_running_or_notify_cancel():
        return
    if error is None:
        call.answer.set_result(result)
    else:
        call.answer.set_exception(error)


def _serve(work: Callable[..., Any], pipe: Connection, parent: int) -> None:
    """Answer calls, in a process of the pool."""
    heed_own_signals(parent)
    guard_log()  # a new process has its own
    pipe.send((None, None))  # it is ready
    while True:
        try:
            arguments = pipe.recv()
        except EOFError:
            return
        told = attempt(work, *arguments)
        try:
            pipe.send(told)
        except (AttributeError, TypeError, ValueError, PicklingError) as error:
            pipe.send((None, error))


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
