"""Liveness of a single worker, without a server."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from crawl4llm.cluster.liveness import Announcements, WorkerFacts, new_worker


class Alone:
    """See :class:`crawl4llm.cluster.liveness.Liveness`: one worker that may have all partitions and never loses one."""

    def __init__(self, partitions: int) -> None:
        self.worker = new_worker()
        self._epochs = dict.fromkeys(range(partitions), 0)
        self._held: set[int] = set()
        self._facts: Mapping[str, str] = {}
        self._figures: Mapping[str, float] = {}
        self._requested: str | None = None
        self._announced = Announcements()

    def join(self, facts: Mapping[str, str]) -> None:
        """Note what the worker says of itself."""
        self._facts = dict(facts)

    def claim(self, want: int | None = None, *, floor: int = 0) -> dict[int, int]:
        """Take free partitions."""
        taken = [partition for partition in self._epochs if partition not in self._held][:want]
        self._epochs |= {partition: max(self._epochs[partition], floor) + 1 for partition in taken}
        self._held.update(taken)
        return {partition: self._epochs[partition] for partition in taken}

    def held(self) -> frozenset[int]:
        """Return all that was claimed and not given up."""
        return frozenset(self._held)

    def renew(self) -> frozenset[int]:
        """Return nothing: no partition is ever lost."""
        return frozenset()

    def give_up(self, partitions: Collection[int]) -> None:
        """Release partitions."""
        self._held.difference_update(partitions)

    def surplus(self) -> int:
        """Return 0: there is nobody to have more."""
        return 0

    def announce(self, what: str, number: int) -> None:
        """Tell this worker itself."""
        self._announced.add(what, number)

    async def wait(self, what: str, timeout: float) -> frozenset[int]:
        """Wait until something of that name is announced, or ``timeout`` seconds."""
        return await self._announced.wait(what, timeout)

    def figures(self, figures: Mapping[str, float]) -> None:
        """Note figures."""
        self._figures = dict(figures)

    def workers(self) -> list[WorkerFacts]:
        """Return this worker."""
        return [WorkerFacts(self.worker, 0.0, tuple(sorted(self._held)), self._facts, self._figures)]

    def request(self, action: str, worker: str | None = None) -> None:
        """Note a request."""
        self._requested = action

    def requested(self) -> str | None:
        """Return DRAIN or STOP if one was requested."""
        return self._requested

    async def leave(self) -> None:
        """Release all partitions."""
        self._held.clear()
