"""The places in which exchanges with owners wait for each other, and how a document ends that cannot be had now."""

from __future__ import annotations

import asyncio
import math
from typing import NamedTuple


class Later(Exception):
    """A document was not had now. Without a ``reason`` nothing was tried; else it counts as an attempt that failed,
    the last one if ``final``. ``wait``: seconds in which its owner is better not asked."""

    def __init__(self, message: str, reason: str | None = None, *, final: bool = False, wait: float = 0.0) -> None:
        super().__init__(message)
        self.reason, self.final, self.wait = reason, final, wait


class Place:
    """The place in which all exchanges with an owner wait for each other, while the owner is kept."""

    __slots__ = ("attempts", "ended", "leased", "score", "send_at", "turn", "users")

    def __init__(self, ended: float, *, leased: bool, score: float = 0.0, attempts: int = 0) -> None:
        self.ended = ended
        """Monotonic time at which the last exchange ended; of those before this lease, at the latest."""
        self.leased = leased
        """Whether it is kept for a lease."""
        self.score = score
        """Of the document on lease."""
        self.attempts = attempts
        """Times that it was leased, with this one; 0: it is kept for none."""
        self.users = 0
        """Exchanges that go on or wait."""
        self.turn = asyncio.Lock()
        self.send_at = -math.inf
        """Monotonic time from which the next request may be sent."""


class Exchange(NamedTuple):
    """An exchange that goes on."""

    owner: str
    url: str
    place: Place
    began: float
