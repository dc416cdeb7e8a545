"""Worker processes that rate pages in chunks, and lose only a page that kills or hangs them."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from crawl4llm.base.object_store import BUCKET_VIEWED
from crawl4llm.base.pages import PageRecord
from crawl4llm.base.pools import LOST, Pool, why_lost
from crawl4llm.scoring import rating as tasks
from crawl4llm.scoring.rating import Comparable, P, PageRater, R, RatedText, Raters, Rating, T, rate_all
from crawl4llm.scoring.score_cache import ScoreCache

_SMALLEST_CHUNK, _LARGEST_CHUNK, _CHUNKS_PER_WORKER = 16, 128, 4
_HEAVY = 48 << 20
"""Bytes of pages that fill a chunk, for any number of pages, because their texts come back together."""
_CHUNKS_AHEAD = 2
"""Chunks handed over for each process, so that the next one waits while one is in work."""
_SECONDS_PER_PAGE = 0.25
"""Seconds for each page of a chunk, in addition to the time limit; afterwards its pages are run one by one."""

PAGE_SECONDS: Final = 30.0
"""Most seconds to look up, extract and score a page; a page that takes longer fails as ``timeout``. Real pages take
milliseconds; the limit is for those that hang an extractor."""

W = TypeVar("W", bound="Weighed")
"""Type of a waiting page."""


class Weighed(Comparable, Protocol):
    """A page with its content."""

    @property
    def weight(self) -> int: ...


class PageWorkers(Raters[R]):
    """A pool that rates pages in ``processes`` worker processes (none: in this one), ``time_limit`` seconds a page.

    Processes are started by :meth:`start`, best before the reactor runs, so that forked workers share the loaded model.
    If a cache has influence scores, the first page without one starts them.
    """

    def __init__(
        self, rater: R, processes: int, time_limit: float = PAGE_SECONDS, scores: ScoreCache | None = None
    ) -> None:
        super().__init__(rater)
        self.scores = scores
        self.processes, self._time_limit = processes, time_limit
        self._pool: Pool[list[Any]] | None = None
        self._started = False

    def start(self) -> None:
        """Load the rater, start the processes and wait until one of them answers; not if the cache has scores, which
        may make all that unnecessary."""
        self._started = self.processes > 0
        if self.scores is not None and not self.scores.is_new:
            return
        super().start()
        if self._started:
            self._begun().submit(tasks.influence, []).result()

    def _begun(self) -> Pool[list[Any]]:
        """Return the pool; the first call loads what the rater needs."""
        if self._pool is None:
            super().start()
            forks = hasattr(os, "fork") and not BUCKET_VIEWED.is_set()
            self._pool = Pool(partial(rate_all, self.rater), self.processes, fork=forks)
        return self._pool

    def close(self) -> None:
        """Stop the processes at once."""
        self._started = False
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        if self.scores is not None:
            self.scores.close()

    async def run(self, task: Callable[[R, P], T], pages: Sequence[P]) -> list[T | Rating]:
        """Return a task's result for each page, in the order of ``pages``.

        The task is found in the workers by its module and name. A page that exceeds the time limit fails as
        ``timeout``; one that ends its process twice as ``killed``.
        """
        scores = self.scores if task is tasks.influence else None
        if scores is None:
            return await self._compute(task, pages)
        known = scores.find(cast(Sequence[str], pages))
        missing = [page for page, rating in zip(pages, known, strict=True) if rating is None]
        computed = await self._compute(task, missing)
        scores.add(cast(Sequence[str], missing), cast(list[Rating], computed))
        left = iter(computed)
        return [next(left) if rating is None else rating for rating in known]

    async def _compute(self, task: Callable[[R, P], T], pages: Sequence[P]) -> list[T | Rating]:
        if not self._started:
            return await super().run(task, pages)
        ordered = sorted(set(pages))  # by key is by file and offset, so that a worker reads forward
        share = -(-len(ordered) // (self.processes * _CHUNKS_PER_WORKER))
        size = min(max(share, _SMALLEST_CHUNK), _LARGEST_CHUNK)
        chunks = [ordered[start : start + size] for start in range(0, len(ordered), size)]
        turns = asyncio.Semaphore(self.processes * _CHUNKS_AHEAD)

        async def in_turn(chunk: Sequence[P]) -> list[T | Rating]:
            async with turns:
                return await self.run_chunk(task, chunk)

        answers = await asyncio.gather(*map(in_turn, chunks))
        rated = dict(zip(ordered, chain.from_iterable(answers), strict=True))
        return [rated[page] for page in pages]

    async def run_chunk(self, task: Callable[[R, P], T], pages: Sequence[P]) -> list[T | Rating]:
        if not self._started:
            return await super().run_chunk(task, pages)
        try:
            return await self._call(task, pages, self._time_limit + _SECONDS_PER_PAGE * len(pages))
        except (asyncio.TimeoutError, *LOST):
            return [await self._run_alone(task, page) for page in pages]

    async def _run_alone(self, task: Callable[[R, P], T], page: P) -> T | Rating:
        try:
            (rating,) = await self._call(task, [page], self._time_limit)
        except (asyncio.TimeoutError, *LOST) as error:
            return Rating(None, why_lost(error))
        return rating

    async def _call(self, task: Callable[[R, P], T], pages: Sequence[P], time_limit: float) -> list[T | Rating]:
        return await asyncio.wrap_future(self._begun().submit(task, pages, time_limit=time_limit))


def open_workers(rater: R, processes: int, scores: ScoreCache | None = None) -> Raters[R]:
    """Return the rater of pages for a number of processes; 0: this process."""
    return PageWorkers(rater, processes, scores=scores) if processes or scores is not None else Raters(rater)


async def rate_by_key(
    workers: Raters[PageRater], pages: Sequence[PageRecord], *, text: bool = False, signature: bool = False
) -> list[Rating | RatedText]:
    """Return the scores of pages that the workers look up in the corpus, and their classes; if wanted, their main text
    and signature."""
    task = tasks.influence_task(text=text, signature=signature, more=workers.rater.tells_more)
    return await workers.run(task, [page.key for page in pages])


class PageTasks(Generic[W, T]):
    """Runs a task on pages as they come, in worker processes; pages that wait for a process are sent together."""

    def __init__(self, workers: Raters[PageRater], task: Callable[[PageRater, W], T]) -> None:
        self._workers, self._task = workers, task
        self._waiting: deque[tuple[W, asyncio.Future[T | Rating]]] = deque()
        self._at_work: set[asyncio.Future[list[T | Rating]]] = set()

    def lag(self) -> int:
        """Return the number of waiting pages if the processes have enough work while others are fetched; otherwise
        0."""
        waiting = len(self._waiting)
        return waiting if waiting >= self._places * _SMALLEST_CHUNK else 0

    async def run(self, page: W) -> T | Rating:
        """Return the task's result for a page, or a Rating with the reason why it has none. Raises InputError if the
        task does."""
        result: asyncio.Future[T | Rating] = asyncio.get_running_loop().create_future()
        self._waiting.append((page, result))
        self._hand_over()
        return await result

    @property
    def _places(self) -> int:
        """Chunks that may be handed over at once."""
        return max(self._workers.processes * _CHUNKS_AHEAD, 1)

    def _hand_over(self) -> None:
        """Fill free places; the more pages wait, the larger and fewer are the chunks."""
        while self._waiting and (free := self._places - len(self._at_work)) > 0:
            size = min(-(-len(self._waiting) // free), _SMALLEST_CHUNK)
            pages, weight = [self._waiting.popleft()], 0
            while self._waiting and len(pages) < size and (weight := weight + pages[-1][0].weight) < _HEAVY:
                pages.append(self._waiting.popleft())
            answers = self._workers.run_chunk(self._task, [page for page, _ in pages])
            self._at_work.add(chunk := asyncio.ensure_future(answers))
            chunk.add_done_callback(partial(self._ended, [result for _, result in pages]))

    def _ended(self, results: Sequence[asyncio.Future[T | Rating]], chunk: asyncio.Future[list[T | Rating]]) -> None:
        self._at_work.discard(chunk)
        self._hand_over()
        for place, result in enumerate(results):
            if result.done():  # nobody waits any more
                continue
            if chunk.cancelled():
                result.cancel()
            elif error := chunk.exception():
                result.set_exception(error)
            else:
                result.set_result(chunk.result()[place])
