"""Liveness: which worker has which partition, and hints between workers.

It keeps no state of the crawl, and safety does not depend on it. The storage decides which work counts, so two workers
at one partition cost time but no page. Leases only keep workers from doing the same work.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
import uuid
from collections.abc import Collection, Mapping
from contextlib import suppress
from threading import Lock
from typing import Final, NamedTuple

DRAIN: Final = "drain"
"""The request to a worker that it hands its partitions over and ends."""
STOP: Final = "stop"
"""The request to all workers that they end."""
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class WorkerFacts(NamedTuple):
    """The known facts of a worker."""

    id: str
    silent: float
    """Seconds since its last heartbeat."""
    partitions: tuple[int, ...]
    figures: Mapping[str, float]
    """Its last figures."""


class Liveness:
    """Leases of partitions, announcements and requests. May be used from any thread.

    Here those of a single worker, without a server: it may have all partitions, never loses one, and nobody asks it for
    anything.
    :class:`crawl4llm.cluster.valkey.ValkeyLiveness` has those of several. A server that cannot be reached is said once
    and asked again with back-off. Meanwhile calls return as if nothing had been heard (no partition claimed, no worker
    known). InputError is raised by constructors alone.
    """

    def __init__(self, partitions: int) -> None:
        self.worker = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        """The unique id of this worker, which names its machine, e.g. ``node7-4711-3f2a9c``."""
        self._partitions = partitions
        self._epochs = dict.fromkeys(range(partitions), 0)
        self._mine: set[int] = set()
        self._figures: Mapping[str, float] = {}
        self._requested: str | None = None
        self._is_new = False
        """True if something was announced and not yet waited for. Any thread may set it."""
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._hearing = Lock()

    def join(self) -> None:
        """Join as a worker, with heartbeats from now on."""

    def claim(self, *, floor: int = 0) -> dict[int, int]:
        """Claim free partitions, up to this worker's fair share (P / live workers), and return the epoch of each.

        Epochs ascend with each claim of a partition, even after a wipe of the server, and are above ``floor``.
        ``floor`` 0: the storage shows no work yet, so on a server that does not know the crawl no other worker needs to
        be waited for.
        """
        free = self._epochs.keys() - self._mine
        self._epochs |= {partition: max(self._epochs[partition], floor) + 1 for partition in free}
        self._mine |= free
        return {partition: self._epochs[partition] for partition in sorted(free)}

    def held(self) -> frozenset[int]:
        """Return the partitions that may be worked on now: those with less than half a lease since the last heartbeat.
        The clock runs on while this process is stopped or the machine sleeps."""
        return frozenset(self._mine)

    def renew(self) -> frozenset[int]:
        """Return the partitions that were lost since the last call: others have taken them, or may have."""
        return frozenset()

    def give_up(self, partitions: Collection[int]) -> None:
        """Release partitions, which others may then take at once."""
        self._mine.difference_update(partitions)

    def surplus(self) -> int:
        """Return how many partitions to give up, because workers have joined."""
        return 0

    def announce(self) -> None:
        """Tell all workers that there are new objects in the storage: a hint that may be lost."""
        with self._hearing:
            self._is_new = True
            waiting, self._waiting = self._waiting, {}
        for heard, loop in waiting.items():
            loop.call_soon_threadsafe(heard.set)

    async def wait(self, timeout: float) -> bool:
        """Wait until new objects are announced, or ``timeout`` seconds; return whether any were since the last call.
        Needs an asyncio event loop."""
        heard = asyncio.Event()
        with self._hearing:
            if self._is_new:
                heard.set()
            self._waiting[heard] = asyncio.get_running_loop()
        try:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(heard.wait(), timeout)
        finally:
            with self._hearing:
                self._waiting.pop(heard, None)
                is_new, self._is_new = self._is_new, False
        return is_new

    def figures(self, figures: Mapping[str, float]) -> None:
        """Record figures for the next heartbeat."""
        self._figures = figures

    def requested(self) -> str | None:
        """Return DRAIN or STOP if this worker was asked to; as of the last heartbeat."""
        return self._requested

    async def leave(self) -> None:
        """Release all partitions, and be no longer counted."""
        self._mine.clear()


def boottime() -> float:
    """Return seconds of a clock that nobody sets, and that goes on while the machine sleeps (where the system has
    one)."""
    return time.clock_gettime(_CLOCK)
