"""A crawl in batch order whose documents lie in partitions, of which this worker has some.

All partitions go through an iteration in step. Each offers its best documents, and the plan of the batch follows from
all offers. Each crawls its documents of the batch and puts their results. When all have done so, each follows the links
to its own documents. No worker leads: the first object under a name stays, and a second worker would put the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, TypeVar

from crawl4llm.cluster import objects, shapes
from crawl4llm.cluster.liveness import Liveness
from crawl4llm.cluster.partition import Partition, Stage
from crawl4llm.cluster.worker import POLL, Common, WorkerCrawl
from crawl4llm.crawl import FRONTIER_EMPTY, MAX_PAGES
from crawl4llm.frontier import Lease

T = TypeVar("T")
_KEPT: Final = 2
"""Iterations in memory: partitions of a worker may be at two of them."""
_AT_ONCE: Final = 8
"""Objects that are asked for at the same time."""


class ClusterCrawl(WorkerCrawl[Partition]):
    """Takes the partitions of this worker from batch to batch."""

    news, folder = "step", "i"

    def __init__(self, common: Common, liveness: Liveness) -> None:
        super().__init__(common, liveness)
        self._board = Board(common)
        self._ready: list[Lease] = []

    # -- as the scheduler sees it ---------------------------------------------------------------------------------

    def dequeue(self) -> list[Lease]:
        """Hand out the documents of the batch that are ready."""
        leases, self._ready = self._ready, []
        return leases

    def give_back(self, lease: Lease) -> None:
        """Do nothing: it stays in the batch."""

    def unanswered(self) -> list[Lease]:
        """Return the leases that were handed out and have no answer."""
        ready = set(map(id, self._ready))
        waiting = (lease for one in self._own.values() for lease in one.crawl.unanswered())
        return [lease for lease in waiting if id(lease) not in ready]

    @property
    def can_advance(self) -> bool:
        if self.finished is not None:
            return False
        return any(one.crawl.can_advance for one in self._own.values()) or (not self._ready and not self._of)

    @property
    def crawled(self) -> int:
        """Pages crawled by all workers before the present batch."""
        return self._pages

    async def advance(self, *, expand: bool = True) -> None:
        """Merge fetched documents; after all of this worker's documents of the batch, start the next ones. Raises
        InputError."""
        for partition in list(self._own.values()):
            if partition.crawl.can_advance:
                await partition.merge()
                if not partition.crawl.buffer:  # all its documents of the batch are merged
                    self._forget(partition)
                    await self._put_exchange(partition)
        self.counters.errors_in_row = max((p.crawl.counters.errors_in_row for p in self._own.values()), default=0)
        if not self._of:
            self._liveness.announce(self.news, self.iteration)
            await self._go_on()

    def statistics(self) -> dict[str, float | None]:
        return {**super().statistics(), "iterations": self.iteration, "influence/mean": self.counters.mean_influence}

    # -- from one batch to the next -------------------------------------------------------------------------------

    async def _go_on(self) -> None:
        """Work and wait for other workers, until there are documents to fetch, or nothing is left to do."""
        while not (self._leaving or self.finished or self.stopped or self.failure):
            await self._look_after_leases(floor=self.iteration + 1)
            self._board.look_again()
            moved = await asyncio.gather(*map(self._step, list(self._own.values())), return_exceptions=True)
            for result in moved:
                if isinstance(result, BaseException):
                    raise result
            if any(moved):
                self._liveness.announce(self.news, self.iteration)
            if self._ready or any(one.crawl.can_advance for one in self._own.values()):
                return  # with documents to fetch, or known ones to merge
            if not any(moved):
                await self._liveness.wait(self.news, POLL)

    async def _step(self, partition: Partition) -> bool:
        """Take a partition through as many stages as can be; return whether it moved."""
        moved = False
        while self.finished is None and await self._move(partition):
            moved = True
        return moved

    async def _move(self, partition: Partition) -> bool:
        """Take a partition to its next stage, if the objects for it exist."""
        iteration, board = partition.iteration, self._board
        if partition.stage in (Stage.BEGUN, Stage.OFFERED):
            plan = await board.plan(iteration)
            if isinstance(plan, objects.Plan):
                return await self._take(partition, plan)
            n = board.size_of(iteration, partition.pages_before)
            if partition.stage is Stage.BEGUN:
                await self._put(partition, objects.OFFER, partition.offer(n))
                return True
            if plan is not None and partition.number in plan and not partition.has_offered_whole:
                await self._put(partition, objects.WHOLE, partition.offer_whole(n))
                return True
            return False
        if partition.stage is Stage.EXCHANGED:
            exchanges = await board.exchanges(iteration)
            if exchanges is None:
                return False
            pages = partition.pages_before + sum(one.pages for one in exchanges)
            if pages >= self.options.crawl_max_pages:
                self._note_end(MAX_PAGES, pages, iteration)
                return False
            await partition.follow_links(exchanges)
            if partition.is_counted:
                await self._put(partition, objects.FOUND, partition.found())
            else:
                await self._next_iteration(partition)
            return True
        if partition.stage is Stage.FOUND and (found := await board.found(iteration)) is not None:
            await partition.queue_found(found)
            await self._next_iteration(partition)
            return True
        return False

    async def _take(self, partition: Partition, plan: objects.Plan) -> bool:
        """Let a partition lease its documents of the batch."""
        if not plan.keys:
            self._note_end(FRONTIER_EMPTY, plan.crawled, partition.iteration)
            return False
        share = partition.take(plan)
        self._pages, self.iteration = max(self._pages, plan.crawled), max(self.iteration, partition.iteration)
        exchange = await self._board.exchange(partition.iteration, partition.number)
        if exchange is not None:
            partition.settle(exchange)
        elif not share:
            await self._put_exchange(partition)
        else:
            self._of.update((id(lease.entry), (partition, lease)) for lease in share)
            self._ready += partition.crawl.unknown(share)
        return True

    async def _put_exchange(self, partition: Partition) -> None:
        self.counters.influence_sum += partition.crawl.counters.influence_sum
        self.counters.influence_pages += partition.crawl.counters.influence_pages
        data = await asyncio.to_thread(partition.exchange)
        name = objects.name(partition.iteration, objects.EXCHANGE, partition.number)
        if not await asyncio.to_thread(self._storage.put, name, data):
            stored = await asyncio.to_thread(self._storage.get, name)
            if stored != data:  # another worker was first, and one of its pages took too long, or did not here
                self._drop(partition.number)
                await self._open(partition.number)
                return
        partition.stage = Stage.EXCHANGED

    async def _next_iteration(self, partition: Partition) -> None:
        if (snapshot := partition.next_iteration()) is not None:
            name = objects.snapshot_name(partition.number, partition.iteration)
            await asyncio.to_thread(self._storage.put, name, snapshot)

    async def _put(self, partition: Partition, kind: str, content: Any) -> None:
        name = objects.name(partition.iteration, kind, partition.number)
        await asyncio.to_thread(self._storage.put_packed, name, content)

    async def _open(self, number: int) -> None:
        """Begin with a partition where its newest snapshot is, or with the seeds."""
        newest = max(self._storage.numbers(f"p/{number:04}"), default=None)
        data = None if newest is None else self._storage.get(objects.snapshot_name(number, newest)) or b""
        partition = Partition(number, self._common, newest or 0, data)
        self._own[number] = partition
        if data is None:
            await partition.queue_seeds()

    def _drop(self, number: int) -> None:
        super()._drop(number)
        self._ready = [lease for lease in self._ready if id(lease.entry) in self._of]


class Board:
    """Reads the objects of all partitions for an iteration, once for all of a worker's own; None if some of them are
    not there yet. Methods raise StorageError."""

    def __init__(self, common: Common) -> None:
        self._storage = common.storage
        self._options = common.options
        self._seeds = len(common.seeds)
        self._names: dict[int, frozenset[str]] = {}
        """Objects that were seen, by iteration."""
        self._short: dict[int, list[int]] = {}
        """Partitions that must offer more, by the last objects seen."""
        self._kept: dict[tuple[int, str], Any] = {}
        """Content that was read, by iteration and kind."""
        self._lock = asyncio.Lock()

    def look_again(self) -> None:
        """List the objects again at the next use."""
        self._names.clear()
        self._short.clear()

    async def plan(self, iteration: int) -> objects.Plan | list[int] | None:
        """Return the batch of an iteration, or the partitions that must offer more first."""
        async with self._lock:
            if (known := self._kept.get((iteration, objects.PLAN)) or self._short.get(iteration)) is not None:
                return known
            plan = await self._plan(iteration)
            if isinstance(plan, list):
                self._short[iteration] = plan
                return plan
            return self._keep(iteration, objects.PLAN, plan)

    async def exchanges(self, iteration: int) -> list[objects.Exchange] | None:
        """Return the results of a batch, by partition."""
        return await self._once(objects.EXCHANGE, iteration, self._exchange)

    async def found(self, iteration: int) -> list[list[list[int]]] | None:
        """Return the places of the new documents, by partition, if they are counted."""
        return await self._once(objects.FOUND, iteration, self._shaped(shapes.FOUND))

    async def exchange(self, iteration: int, partition: int) -> objects.Exchange | None:
        """Return the results of a partition's documents of a batch."""
        async with self._lock:
            known: list[objects.Exchange] | None = self._kept.get((iteration, objects.EXCHANGE))
            if known is not None:
                return known[partition]
            name = objects.name(iteration, objects.EXCHANGE, partition)
            found = await self._get([name] if name in await self._there(iteration) else [], self._exchange)
            return found[0] if found else None

    def size_of(self, iteration: int, crawled: int) -> int:
        """Return how many documents a batch has, at most; the seeds are all of the first."""
        places = self._options.crawl_batch_size if iteration else self._seeds
        return min(places, self._options.crawl_max_pages - crawled)

    async def _plan(self, iteration: int) -> objects.Plan | list[int] | None:
        name, there = objects.folder(iteration) + objects.PLAN, await self._there(iteration)
        if name in there:
            return objects.Plan(*(await self._get([name], self._shaped(shapes.PLAN)))[0])
        offers = await self._all(objects.OFFER, iteration, self._shaped(shapes.OFFER))
        if offers is None:
            return None
        names = (objects.name(iteration, objects.WHOLE, number) for number in range(self._options.partitions))
        more = {number: name for number, name in enumerate(names) if name in there}
        whole = dict(zip(more, await self._get(more.values(), self._shaped(shapes.WHOLE)), strict=True))
        plan = objects.make_plan(offers, whole, self.size_of(iteration, offers[0]["crawled"]))
        if isinstance(plan, objects.Plan):
            await asyncio.to_thread(self._storage.put_packed, name, list(plan))
        return plan

    async def _once(self, kind: str, iteration: int, read: Callable[[str, bytes], T]) -> list[T] | None:
        """Return the objects of a kind of all partitions, and keep them."""
        async with self._lock:
            if (iteration, kind) not in self._kept:
                self._keep(iteration, kind, await self._all(kind, iteration, read))
            return self._kept.get((iteration, kind))

    async def _all(self, kind: str, iteration: int, read: Callable[[str, bytes], T]) -> list[T] | None:
        names = [objects.name(iteration, kind, number) for number in range(self._options.partitions)]
        return await self._get(names, read) if set(names) <= await self._there(iteration) else None

    def _exchange(self, name: str, data: bytes) -> objects.Exchange:
        return objects.read_exchange(self._storage, name, data)

    def _shaped(self, shape: Any) -> Callable[[str, bytes], Any]:
        return lambda name, data: shapes.read(self._storage, name, data, shape)

    def _keep(self, iteration: int, kind: str, value: T) -> T:
        """Keep the objects read, if any, and forget much older ones."""
        if value is not None:
            self._kept[iteration, kind] = value
            self._kept = {key: found for key, found in self._kept.items() if key[0] > iteration - _KEPT}
        return value

    async def _there(self, iteration: int) -> frozenset[str]:
        if iteration not in self._names:
            folder = objects.folder(iteration)
            self._names[iteration] = frozenset(await asyncio.to_thread(list, self._storage.names(folder)))
        return self._names[iteration]

    async def _get(self, names: Collection[str], read: Callable[[str, bytes], T]) -> list[T]:
        found: dict[str, bytes | None] = {}

        def get(some: Iterable[str]) -> None:
            found.update((name, self._storage.get(name)) for name in some)

        rest = iter(names)  # each thread takes the next: to begin one costs more than to read a small object
        await asyncio.gather(*(asyncio.to_thread(get, rest) for _ in range(min(len(names), _AT_ONCE))))
        return [read(name, found[name] or b"") for name in names]
