"""The places in which exchanges with owners wait for each other, and how a document ends that cannot be had now."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from crawl4llm.frontier import Lease

PATIENT: Final = "crawl4llm_patient"
"""In the meta of requests that a page may wait for which has come: they may wait for as long as any Crawl-delay is."""


class Later(Exception):
    """A document was not had now. Without a ``reason`` nothing was tried; else it counts as an attempt that failed,
    the last one if ``final``. ``wait``: seconds in which its owner is better not asked."""

    def __init__(self, message: str, reason: str | None = None, *, final: bool = False, wait: float = 0.0) -> None:
        super().__init__(message)
        self.reason, self.final, self.wait = reason, final, wait


class Place:
    """The place in which all exchanges with an owner wait for each other, while the owner is kept."""

    __slots__ = ("ended", "lease", "send_at", "turn", "users")

    def __init__(self, ended: float) -> None:
        self.ended = ended
        """Monotonic time at which the last exchange ended; of those before this lease, at the latest."""
        self.lease: Lease | None = None
        """What it is kept for; None: an exchange that belongs to no lease of its owner's documents."""
        self.users = 0
        """Exchanges that go on or wait."""
        self.turn = asyncio.Lock()
        self.send_at = -math.inf
        """Monotonic time from which the next request may be sent."""

    @property
    def attempts(self) -> int:
        """Times that the document on lease was leased, with this one; 0 where there is none."""
        return 0 if self.lease is None else self.lease.entry.attempts


class Exchange(NamedTuple):
    """An exchange that goes on."""

    owner: str
    url: str
    place: Place
    began: float
    """Monotonic time."""
