"""The processes of a build: a page that hangs or kills its process costs no more than its text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, TimeoutError as FutureTimeout
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from pebble import ProcessExpired, ProcessPool

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Corpus
from crawl4llm.base.processes import PoolSpawnContext, end_with, in_any_order, sigint_blocked
from crawl4llm.base.reasons import KILLED, TIMEOUT
from crawl4llm.base.terminal import guard_log
from simulate.build.chunks import PAGES_PER_CHUNK, BuildOptions, Chunk, ChunkStore, Entry, PageReader, Unreadable
from simulate.build.data_files import DataFiles
from simulate.build.plan import Plan, PlannedFile

_QUEUED_PER_PROCESS = 2
_SECONDS_PER_PAGE = 0.25
"""Extra time of a chunk on top of the limit for each of its pages; if that was not enough, they are read one by one."""

T = TypeVar("T")
R = TypeVar("R")


class Paths(NamedTuple):
    """The folders of a build."""

    root: Path  # of the tree
    work: Path  # of what is removed when the tree is complete

    @property
    def plan(self) -> Path:
        return self.work / "plan"


class _Worker:
    """Everything that a process works with."""

    def __init__(self, source: Corpus, paths: Paths, options: BuildOptions) -> None:
        self.plan = Plan(paths.plan)
        self.reader = PageReader(source, self.plan, options)
        self.chunks = ChunkStore(paths.work / "pages")
        self.files = DataFiles(paths.root, paths.work, self.plan, source, options)
        self._keys: tuple[str, list[str | None]] = ("", [])

    def keys(self, file: PlannedFile) -> list[str | None]:
        """Return the keys of a file, which successive chunks share."""
        if self._keys[0] != file.file_id:
            self._keys = file.file_id, self.plan.keys(file)
        return self._keys[1]


_worker: _Worker  # in a process of the pool only


class BuildPool:
    """Processes that read chunks and write data files, for a ``with`` block.

    If a process is killed and no page is to blame, the block ends with InputError.
    """

    def __init__(self, source: Corpus, paths: Paths, options: BuildOptions, processes: int) -> None:
        self._time_limit = options.time_limit
        self._most = processes * _QUEUED_PER_PROCESS
        self._chunks = ChunkStore(paths.work / "pages")
        self._pool = ProcessPool(
            max_workers=processes,
            initializer=_initialise,
            initargs=(os.getpid(), source, paths, options),
            context=PoolSpawnContext(),  # the caller may have threads, which do not survive a fork
        )

    def __enter__(self) -> BuildPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.stop()
        self._pool.join()
        if isinstance(error, ProcessExpired | BrokenProcessPool):
            raise InputError(
                "a process of the build was killed; if memory ran out, use fewer --jobs; "
                "what is finished stays, and the same command goes on from there"
            ) from error

    def read(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Read chunks, and yield each when it is in the store."""
        limit = self._time_limit + _SECONDS_PER_PAGE * PAGES_PER_CHUNK
        for chunk, done in in_any_order(partial(self._schedule, _read_chunk, limit), chunks, self._most):
            try:
                done.result()
            except (FutureTimeout, ProcessExpired):
                self._chunks.write(chunk, self._read_one_by_one(chunk))
            yield chunk

    def write(self, files: Iterable[tuple[str, PlannedFile]]) -> Iterator[tuple[str, PlannedFile]]:
        """Write data files, given as kind and file, and yield each when it is done."""
        for file, done in in_any_order(partial(self._schedule, _write_file, None), files, self._most):
            done.result()
            yield file

    def _read_one_by_one(self, chunk: Chunk) -> list[Entry]:
        places = [(chunk.file, record) for record in chunk.records]
        started = [self._schedule(_read_page, self._time_limit, (place, None)) for place in places]
        return [self._result(future, place) for future, place in zip(started, places, strict=True)]

    def _result(self, future: Future[Entry], place: tuple[PlannedFile, int]) -> Entry:
        try:
            return future.result()
        except (FutureTimeout, ProcessExpired) as error:
            reason = TIMEOUT if isinstance(error, FutureTimeout) else KILLED
        try:
            return self._schedule(_read_page, self._time_limit, (place, reason)).result()
        except (FutureTimeout, ProcessExpired):
            return Unreadable(reason)

    def _schedule(self, work: Callable[[T], R], limit: float | None, item: T) -> Future[R]:
        if not self._pool.active:  # pebble gives up a pool when a process ends that had nothing to do
            raise BrokenProcessPool
        with sigint_blocked():
            scheduled: Future[R] = self._pool.schedule(work, args=(item,), timeout=limit)
        return scheduled


# -- in the processes -------------------------------------------------------------------------------------------------


def _initialise(parent: int, *parts: Any) -> None:
    global _worker  # noqa: PLW0603 - the one way to hand a process pool's tasks what they work with
    end_with(parent)
    guard_log()  # a spawned process has its own
    _worker = _Worker(*parts)


def _read_chunk(chunk: Chunk) -> None:
    _worker.chunks.write(chunk, [_read_page(((chunk.file, record), None)) for record in chunk.records])


def _read_page(job: tuple[tuple[PlannedFile, int], str | None]) -> Entry:
    (file, record), without_text = job
    key = _worker.keys(file)[record]
    return None if key is None else _worker.reader.read(key, without_text)


def _write_file(job: tuple[str, PlannedFile]) -> None:
    _worker.files.write(*job)
