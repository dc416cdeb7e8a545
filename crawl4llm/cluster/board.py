"""What all partitions have put into the storage of an iteration, read once by a worker for all of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, TypeVar

from crawl4llm.cluster import objects, shapes
from crawl4llm.cluster.objects import Exchange, Plan, make_plan, read_exchange
from crawl4llm.cluster.storage import Storage
from crawl4llm.options import Options

T = TypeVar("T")
_KEPT: Final = 2
"""Iterations in memory: partitions of a worker may be at two of them."""
_AT_ONCE: Final = 8
"""Objects that are asked for at the same time."""


class Board:
    """Reads what is needed of all partitions; None where some of it is not there yet. Methods raise StorageError."""

    def __init__(self, storage: Storage, options: Options, seeds: int) -> None:
        self._storage = storage
        self._options = options
        self._seeds = seeds
        self._names: dict[int, frozenset[str]] = {}
        """Objects that were seen, by iteration."""
        self._short: dict[int, list[int]] = {}
        """Partitions that must offer more, by what was seen last."""
        self._kept: dict[tuple[int, str], Any] = {}
        """What was read, by iteration and kind."""
        self._lock = asyncio.Lock()

    def look_again(self) -> None:
        """List again what there is, when it is asked for next."""
        self._names.clear()
        self._short.clear()

    async def plan(self, iteration: int) -> Plan | list[int] | None:
        """Return the batch of an iteration, or the partitions that must offer more first."""
        async with self._lock:
            if (known := self._kept.get((iteration, objects.PLAN)) or self._short.get(iteration)) is not None:
                return known
            plan = await self._plan(iteration)
            if isinstance(plan, list):
                self._short[iteration] = plan
                return plan
            return self._keep(iteration, objects.PLAN, plan)

    async def exchanges(self, iteration: int) -> list[Exchange] | None:
        """Return what came of a batch, by partition."""
        return await self._once(objects.EXCHANGE, iteration, self._exchange)

    async def found(self, iteration: int) -> list[list[list[int]]] | None:
        """Return the places of the new documents, by partition, where they are counted."""
        return await self._once(objects.FOUND, iteration, self._shaped(shapes.FOUND))

    async def exchange(self, iteration: int, partition: int) -> Exchange | None:
        """Return what came of a partition's documents of a batch."""
        async with self._lock:
            known: list[Exchange] | None = self._kept.get((iteration, objects.EXCHANGE))
            if known is not None:
                return known[partition]
            name = objects.name(iteration, objects.EXCHANGE, partition)
            found = await self._get([name] if name in await self._there(iteration) else [], self._exchange)
            return found[0] if found else None

    def size_of(self, iteration: int, crawled: int) -> int:
        """Return how many documents a batch has, at most; the seeds are all of the first."""
        places = self._options.crawl_batch_size if iteration else self._seeds
        return min(places, self._options.crawl_max_pages - crawled)

    async def _plan(self, iteration: int) -> Plan | list[int] | None:
        name, there = objects.folder(iteration) + objects.PLAN, await self._there(iteration)
        if name in there:
            return Plan(*(await self._get([name], self._shaped(shapes.PLAN)))[0])
        offers = await self._all(objects.OFFER, iteration, self._shaped(shapes.OFFER))
        if offers is None:
            return None
        more = {number: objects.name(iteration, objects.WHOLE, number) for number in range(self._options.partitions)}
        more = {number: name for number, name in more.items() if name in there}
        whole = dict(zip(more, await self._get(more.values(), self._shaped(shapes.WHOLE)), strict=True))
        plan = make_plan(offers, whole, self.size_of(iteration, offers[0]["crawled"]))
        if isinstance(plan, Plan):
            await asyncio.to_thread(self._storage.put_packed, name, list(plan))
        return plan

    async def _once(self, kind: str, iteration: int, read: Callable[[str, bytes], T]) -> list[T] | None:
        """Return what all partitions have put of a kind, and keep it."""
        async with self._lock:
            if (iteration, kind) not in self._kept:
                self._keep(iteration, kind, await self._all(kind, iteration, read))
            return self._kept.get((iteration, kind))

    async def _all(self, kind: str, iteration: int, read: Callable[[str, bytes], T]) -> list[T] | None:
        names = [objects.name(iteration, kind, number) for number in range(self._options.partitions)]
        return await self._get(names, read) if set(names) <= await self._there(iteration) else None

    def _exchange(self, name: str, data: bytes) -> Exchange:
        return read_exchange(self._storage, name, data, self._options.partitions)

    def _shaped(self, shape: Any) -> Callable[[str, bytes], Any]:
        return lambda name, data: shapes.read(self._storage, name, data, shape)

    def _keep(self, iteration: int, kind: str, value: T) -> T:
        """Keep what was read, if anything, and forget what came long before."""
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
