"""Turns and clocks: who sees to it that owners are asked one after the other, and by which time they wait.

Only in a crawl whose frontier goes by owners.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from crawl4llm.base.domains import owner_of
from crawl4llm.frontier import Lease, Owners, Patience
from crawl4llm.options import Options

may_try = object()
"""Scrapy signal: a document may be handed out to try the network, or as many as ever because it is there."""
_LONGEST_PATIENCE = 60.0
"""Seconds for which a crawl stands still in the hope of better documents, where owners wait no longer by themselves."""


class Turns(Protocol):
    """Whoever sees to it that owners are asked in turn. The lease of a document keeps its owner busy."""

    def begin(self, lease: Lease) -> None:
        """Take note of a lease that begins."""

    def end(self, lease: Lease, *, asked: bool = True) -> None:
        """Take note of its end, and release the owner, now or later; ``asked``: whether the document may have been
        asked for, rather than given back unasked."""


class AtOnce:
    """Releases owners at the end of each lease: delays are left to whoever downloads."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners

    def begin(self, lease: Lease) -> None:
        pass

    def end(self, lease: Lease, *, asked: bool = True) -> None:
        self._owners.release(owner_of_lease(lease), self._owners.now)


def owner_of_lease(lease: Lease) -> str:
    """Return the owner of a leased document; the empty name where it has none."""
    return owner_of(lease.entry.url or lease.entry.key)


class Clock(Protocol):
    """The time by which owners wait, in seconds: this machine's, or a virtual one. The web of a run has it."""

    delay: float
    """Seconds for which an owner waits after an exchange, where nothing asks for more."""
    most_leases: int | None
    """Leases that may be out at once; None: as many as the settings say."""

    def now(self) -> float:
        """Return the time."""

    def turns(self, owners: Owners) -> Turns:
        """Return who sees to turns until something else does."""

    def tick(self, owners: Owners) -> None:
        """Tell the owners the time at which a document is leased next; called when one may be leased."""

    def seconds_until(self, moment: float) -> float:
        """Return the real seconds until a time that the owners know."""

    def statistics(self) -> Mapping[str, float]:
        """Return figures of :mod:`crawl4llm.base.stats`."""

    def save(self) -> Any:
        """Return what another process needs to go on, as JSON takes it; None: nothing."""

    def load(self, state: Any, owners: Owners) -> None:
        """Go on, after a restart, from what :meth:`save` returned."""


class RealClock:
    """The monotonic clock of this machine."""

    most_leases: int | None = None

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay

    def now(self) -> float:
        return time.monotonic()

    def turns(self, owners: Owners) -> Turns:
        return AtOnce(owners)

    def tick(self, owners: Owners) -> None:
        owners.tick(time.monotonic())

    def seconds_until(self, moment: float) -> float:
        return max(moment - time.monotonic(), 0.0)

    def statistics(self) -> Mapping[str, float]:
        return {}

    def save(self) -> None:
        return None

    def load(self, state: Any, owners: Owners) -> None:
        """Let all owners wait: who was asked just before is not known any more."""
        owners.hold_all(time.monotonic() + self.delay)


def patience_of(options: Options, clock: Clock) -> Patience:
    """Return what CRAWL_PATIENCE means to a frontier of owners."""
    return Patience(options.crawl_patience, max(_LONGEST_PATIENCE, clock.delay))
