"""What all partitions have put into the storage of an iteration, read once by a worker for all of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Any, Final, TypeVar

from crawl4llm.cluster import objects, shapes
from crawl4llm.cluster.objects import Exchange, Plan, make_plan, read_exchange
from crawl4llm.cluster.storage import Storage, pack
from crawl4llm.options import Options

_KEPT: Final = 2
"""Iterations in memory: partitions of a worker may be at two of them."""
_AT_ONCE: Final = 8
"""Objects that are asked for at the same time."""


T = TypeVar("T")


class Board:
    """Reads what is needed of all partitions; None where some of it is not there yet. Methods raise StorageError."""

    def __init__(self, storage: Storage, options: Options, seeds: int) -> None:
        self._storage = storage
        self._partitions = options.partitions
        self._options = options
        self._seeds = seeds
        self._names: dict[int, frozenset[str]] = {}
        """Objects that were seen, by iteration."""
        self._plans: dict[int, Plan] = {}
        self._short: dict[int, list[int]] = {}
        """Partitions that must offer more, by what was seen last."""
        self._all_exchanges: dict[int, list[Exchange]] = {}
        self._all_found: dict[int, list[list[list[int]]]] = {}
        self._lock = asyncio.Lock()

    def look_again(self) -> None:
        """List again what there is, when it is asked for next."""
        self._names.clear()
        self._short.clear()

    async def plan(self, iteration: int) -> Plan | list[int] | None:
        """Return the batch of an iteration, or the partitions that must offer more first."""
        async with self._lock:
            if (known := self._plans.get(iteration) or self._short.get(iteration)) is not None:
                return known
            plan = await self._plan(iteration)
            if isinstance(plan, Plan):
                return _kept(self._plans, iteration, plan)
            if plan is not None:
                self._short[iteration] = plan
            return plan

    async def exchanges(self, iteration: int) -> list[Exchange] | None:
        """Return what came of a batch, by partition."""
        async with self._lock:
            if (known := self._all_exchanges.get(iteration)) is not None:
                return known
            names = self._names_of(objects.EXCHANGE, iteration)
            if not set(names) <= await self._there(iteration):
                return None
            read = zip(names, await self._get(names), strict=True)
            found = [read_exchange(self._storage, name, data, self._partitions) for name, data in read]
            return _kept(self._all_exchanges, iteration, found)

    async def found(self, iteration: int) -> list[list[list[int]]] | None:
        """Return the places of the new documents, by partition, where they are counted."""
        async with self._lock:
            if (known := self._all_found.get(iteration)) is not None:
                return known
            found = await self._all(objects.FOUND, iteration, shapes.FOUND)
            return None if found is None else _kept(self._all_found, iteration, found)

    async def exchange(self, iteration: int, partition: int) -> Exchange | None:
        """Return what came of a partition's documents of a batch."""
        async with self._lock:
            if (known := self._all_exchanges.get(iteration)) is not None:
                return known[partition]
            name = objects.name(iteration, objects.EXCHANGE, partition)
            if name not in await self._there(iteration):
                return None
            (data,) = await self._get([name])
            return read_exchange(self._storage, name, data, self._partitions)

    def size_of(self, iteration: int, crawled: int) -> int:
        """Return how many documents a batch has, at most; the seeds are all of the first."""
        places = self._options.crawl_batch_size if iteration else self._seeds
        return min(places, self._options.crawl_max_pages - crawled)

    async def _plan(self, iteration: int) -> Plan | list[int] | None:
        name = objects.folder(iteration) + objects.PLAN
        if name in await self._there(iteration):
            (data,) = await self._get([name])
            return Plan(*shapes.read(self._storage, name, data, shapes.PLAN))
        offers = await self._all(objects.OFFER, iteration, shapes.OFFER)
        if offers is None:
            return None
        there = await self._there(iteration)
        more = {number: objects.name(iteration, objects.WHOLE, number) for number in range(self._partitions)}
        more = {number: name for number, name in more.items() if name in there}
        read = self._unpacked(more.values(), await self._get(more.values()), shapes.WHOLE)
        whole = dict(zip(more, read, strict=True))
        plan = make_plan(offers, whole, self.size_of(iteration, offers[0]["crawled"]))
        if isinstance(plan, Plan):
            await asyncio.to_thread(self._storage.put, name, pack(list(plan)))
        return plan

    async def _all(self, kind: str, iteration: int, shape: Any) -> list[Any] | None:
        names = self._names_of(kind, iteration)
        if not set(names) <= await self._there(iteration):
            return None
        return self._unpacked(names, await self._get(names), shape)

    def _names_of(self, kind: str, iteration: int) -> list[str]:
        return [objects.name(iteration, kind, number) for number in range(self._partitions)]

    def _unpacked(self, names: Iterable[str], data: Iterable[bytes], shape: Any) -> list[Any]:
        return [shapes.read(self._storage, name, one, shape) for name, one in zip(names, data, strict=True)]

    async def _there(self, iteration: int) -> frozenset[str]:
        if iteration not in self._names:
            folder = objects.folder(iteration)
            self._names[iteration] = frozenset(await asyncio.to_thread(list, self._storage.names(folder)))
        return self._names[iteration]

    async def _get(self, names: Collection[str]) -> list[bytes]:
        found: dict[str, bytes | None] = {}

        def get(some: Iterable[str]) -> None:
            found.update((name, self._storage.get(name)) for name in some)

        rest = iter(names)  # each thread takes the next: to begin one costs more than to read a small object
        await asyncio.gather(*(asyncio.to_thread(get, rest) for _ in range(min(len(names), _AT_ONCE))))
        return [found[name] or b"" for name in names]


def _kept(read: dict[int, T], iteration: int, value: T) -> T:
    """Keep what was read of an iteration, and forget the oldest."""
    read[iteration] = value
    while len(read) > _KEPT:
        del read[next(iter(read))]
    return value
