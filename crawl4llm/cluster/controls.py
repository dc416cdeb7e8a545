"""Orders of the operator to all workers of a live crawl while it runs: which domains are blocked.

``control/00000003`` is the third order, which replaces those before it; it says ``blocked`` as control.json does. Each
worker looks for the next one every second. It sends nothing if it could not look for a lease.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Final

from crawl4llm.base.errors import InputError
from crawl4llm.cluster.liveness import boottime
from crawl4llm.cluster.shapes import read
from crawl4llm.cluster.storage import Storage, StorageError
from crawl4llm.crawl import Control, checked_control

FOLDER: Final = "control"
_LOOK: Final = 1.0
"""Seconds between two looks."""
_SHAPE: Final = {"time": {str}, "blocked": [{str}]}

logger = logging.getLogger(__name__)


class Controls:
    """The orders in a storage. Methods raise StorageError; each look is one request to the storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.number = max(storage.numbers(FOLDER), default=1) - 1
        """The number of the newest order that was read, of which there may be none; 0 before the first."""
        self.control = Control()

    def look(self) -> bool:
        """Read the orders since the last look; return whether there were any."""
        before = self.number
        while (data := self._storage.get(name := f"{FOLDER}/{self.number + 1:08}")) is not None:
            content = read(self._storage, name, data, _SHAPE)
            try:
                self.control = checked_control(f"STORAGE {self._storage.url}: {name}", {"blocked": content["blocked"]})
            except InputError as error:
                raise StorageError(str(error)) from None
            self.number += 1
        return self.number != before

    def set_blocked(self, domain: str, *, blocked: bool) -> bool:
        """Block a domain, or block it no longer; return whether that is new. Several may do so at once."""
        while True:
            self.look()
            names = {*self.control.blocked, domain} if blocked else {*self.control.blocked} - {domain}
            if names == set(self.control.blocked):
                return False
            said = {"time": datetime.now(timezone.utc).isoformat(timespec="seconds"), "blocked": sorted(names)}
            if self._storage.put_packed(f"{FOLDER}/{self.number + 1:08}", said):
                self.look()
                return True


class Heeding:
    """Lets a worker heed the orders, by a task of its own, as its other work may take long."""

    def __init__(self, controls: Controls, lease: float, heed: Callable[[Sequence[str]], None]) -> None:
        """``heed`` is called with the domains that are blocked, whenever they are others."""
        self._controls, self._lease, self._heed = controls, lease, heed
        self._heard_at = float("-inf")
        self._failed = False
        """True if the last look failed."""

    @property
    def blocked(self) -> Sequence[str]:
        """The domains that are blocked."""
        return self._controls.control.blocked

    @property
    def hears(self) -> bool:
        """True if the last look began less than a lease ago, so that each order older than a lease is heeded.

        The clock goes on while this process stands still.
        """
        return boottime() < self._heard_at + self._lease

    async def look(self) -> None:
        """Look once, and heed new orders. Raises StorageError."""
        began = boottime()
        if await asyncio.to_thread(self._controls.look):
            blocked = self._controls.control.blocked
            logger.info("control %d: %d domains are blocked", self._controls.number, len(blocked))
            self._heed(blocked)
        self._heard_at = began

    async def run(self, drop: Callable[[float], None]) -> None:
        """Look again and again. ``drop`` is called with a time until which it may drop documents of blocked domains."""
        while True:
            await asyncio.sleep(min(_LOOK, self._lease / 4))
            try:
                await self.look()
                self._failed = False
            except StorageError as error:  # whoever puts a commit next ends with it; meanwhile nothing is sent for long
                if not self._failed:
                    logger.warning("%s; no request is sent until it answers", error)
                self._failed = True
            drop(time.monotonic() + 0.1)
