"""Turns: who sees to it that owners are asked one after the other, in a crawl whose frontier goes by owners."""

from __future__ import annotations

from typing import Protocol

from crawl4llm.base.domains import owner_of
from crawl4llm.frontier import Lease, Owners


class Turns(Protocol):
    """Whoever sees to it that owners are asked in turn. The lease of a document keeps its owner busy."""

    def begin(self, lease: Lease) -> None:
        """Take note of a lease that begins."""

    def end(self, lease: Lease) -> None:
        """Take note of its end, and release the owner, now or later."""


class AtOnce:
    """Releases owners at the end of each lease: delays are left to whoever downloads."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners

    def begin(self, lease: Lease) -> None:
        pass

    def end(self, lease: Lease) -> None:
        self._owners.release(owner_of(lease.entry.url or lease.entry.key), self._owners.now)
