"""A crawl in batch order whose documents lie in partitions, of which this worker has some.

All partitions go through an iteration in step. Each offers its best documents, and the plan of the batch follows from
all offers. Each crawls its documents of the batch and puts their results. When all have done so, each follows the links
to its own documents. No worker leads: the first object under a name stays, and a second worker would put the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any

from crawl4llm.cluster import objects
from crawl4llm.cluster.liveness import Liveness
from crawl4llm.cluster.objects import Iteration, Plan
from crawl4llm.cluster.partition import Partition, Stage
from crawl4llm.cluster.worker import POLL, Common, WorkerCrawl
from crawl4llm.crawl import FRONTIER_EMPTY, MAX_PAGES
from crawl4llm.frontier import Lease


class ClusterCrawl(WorkerCrawl[Partition]):
    """Takes the partitions of this worker from batch to batch."""

    folder = "i"

    def __init__(self, common: Common, liveness: Liveness) -> None:
        super().__init__(common, liveness)
        self._iterations: dict[int, Iteration] = {}
        """Those that this worker's partitions are in."""
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
            self._liveness.announce()
            await self._go_on()

    def statistics(self) -> dict[str, float | None]:
        return {**super().statistics(), "iterations": self.iteration, "influence/mean": self.counters.mean_influence}

    # -- from one batch to the next -------------------------------------------------------------------------------

    async def _go_on(self) -> None:
        """Work and wait for other workers, until there are documents to fetch, or nothing is left to do."""
        while not (self._leaving or self.finished or self.stopped or self.failure):
            await self._look_after_leases()
            self._iterations = {one.iteration: self._of_number(one.iteration) for one in self._own.values()}
            await asyncio.to_thread(self._look, list(self._iterations.values()))
            moved = await asyncio.gather(*map(self._step, list(self._own.values())), return_exceptions=True)
            for result in moved:
                if isinstance(result, BaseException):
                    raise result
            if any(moved):
                self._liveness.announce()
            if self._ready or any(one.crawl.can_advance for one in self._own.values()):
                return  # with documents to fetch, or known ones to merge
            if not any(moved):
                await self._liveness.wait(POLL)

    def _look(self, iterations: Iterable[Iteration]) -> None:
        """Read what partitions have put for iterations, and plan the batches: a thread."""
        for one in iterations:
            one.look()
            one.make_plan(partial(self._size_of, one.number))
            one.exchanges()
            one.found()

    def _of_number(self, number: int) -> Iteration:
        return self._iterations.get(number) or Iteration(self._storage, self.options.partitions, number)

    def _size_of(self, iteration: int, crawled: int) -> int:
        """Return how many documents a batch has, at most; the seeds are all of the first."""
        places = self.options.crawl_batch_size if iteration else self.seeds
        return min(places, self.options.crawl_max_pages - crawled)

    async def _step(self, partition: Partition) -> bool:
        """Take a partition through as many stages as can be; return whether it moved."""
        moved = False
        while self.finished is None and await self._move(partition, self._of_number(partition.iteration)):
            moved = True
        return moved

    async def _move(self, partition: Partition, of: Iteration) -> bool:
        """Take a partition to its next stage in an iteration, if the objects for it exist."""
        if partition.stage < Stage.TAKEN:
            if (plan := of.plan()) is not None:
                return await self._take(partition, of, plan)
            n = self._size_of(of.number, partition.pages_before)
            if partition.stage is Stage.BEGUN:
                await self._put(partition, objects.OFFER, partition.offer(n))
                return True
            if partition.stage is Stage.OFFERED and partition.number in of.short:
                await self._put(partition, objects.WHOLE, partition.offer_whole(n))
                return True
        elif partition.stage is Stage.EXCHANGED and (exchanges := of.exchanges()):
            pages = partition.pages_before + sum(one.pages for one in exchanges)
            if pages >= self.options.crawl_max_pages:
                self._note_end(MAX_PAGES, pages, of.number)
                return False
            await partition.follow_links(exchanges)
            if partition.is_counted:
                await self._put(partition, objects.FOUND, partition.found())
            else:
                await self._next_iteration(partition)
            return True
        elif partition.stage is Stage.FOUND and (found := of.found()):
            await partition.queue_found(found)
            await self._next_iteration(partition)
            return True
        return False

    async def _take(self, partition: Partition, of: Iteration, plan: Plan) -> bool:
        """Let a partition lease its documents of the batch."""
        if not plan.keys:
            self._note_end(FRONTIER_EMPTY, plan.crawled, partition.iteration)
            return False
        share = partition.take(plan)
        self._pages, self.iteration = max(self._pages, plan.crawled), max(self.iteration, partition.iteration)
        exchange = await asyncio.to_thread(of.exchange, partition.number)
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
