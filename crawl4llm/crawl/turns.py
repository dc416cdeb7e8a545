"""Turns and clocks: the schedule by which owners are asked one request at a time, and the time by which they wait.

Used only with a frontier of owners.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from crawl4llm.base.domains import owner_of
from crawl4llm.frontier import Lease, Owners, Patience
from crawl4llm.options import Options

may_try = object()
"""Scrapy signal: a document may be handed out to try the network, or without limit because the network is back."""
_LONGEST_PATIENCE = 60.0
"""Most seconds that a crawl pauses for better documents when no owner has to wait any more."""


class Turns(Protocol):
    """The schedule of owners, one request at a time. The lease of a document keeps its owner busy."""

    def begin(self, lease: Lease) -> None:
        """Note the begin of a lease."""

    def end(self, lease: Lease, *, asked: bool = True) -> None:
        """Note the end of a lease, and release the owner, now or later; ``asked``: whether the document may have been
        requested, rather than given back unrequested."""


class AtOnce:
    """Releases owners at the end of each lease; the downloader keeps the delays."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners

    def begin(self, lease: Lease) -> None:
        pass

    def end(self, lease: Lease, *, asked: bool = True) -> None:
        self._owners.release(owner_of_lease(lease), self._owners.now)


def owner_of_lease(lease: Lease) -> str:
    """Return the owner of a leased document; empty if it has none."""
    return owner_of(lease.entry.url or lease.entry.key)


class Clock(Protocol):
    """The time by which owners wait, in seconds: this machine's, or a virtual one. It belongs to the web of a run."""

    delay: float
    """Seconds that an owner waits after an exchange, unless more are asked for."""
    most_leases: int | None
    """Most leases at once; None: as the settings say."""

    def now(self) -> float:
        """Return the time."""

    def turns(self, owners: Owners) -> Turns:
        """Return the schedule that is used unless another is set."""

    def tick(self, owners: Owners) -> None:
        """Tell the owners the time at which the next document is leased; called when one may be leased."""

    def seconds_until(self, moment: float) -> float:
        """Return the real seconds until a time of this clock."""

    def statistics(self) -> Mapping[str, float]:
        """Return figures of :mod:`crawl4llm.base.stats`."""

    def save(self) -> Any:
        """Return the state that another process needs to continue, in JSON values; None: nothing."""

    def load(self, state: Any, owners: Owners) -> None:
        """Restore the state that :meth:`save` returned, after a restart."""


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
        """Make all owners wait, because the last requests are no longer known."""
        owners.hold_all(time.monotonic() + self.delay)


def patience_of(options: Options, clock: Clock) -> Patience:
    """Return CRAWL_PATIENCE in the form that a frontier of owners needs."""
    return Patience(options.crawl_patience, max(_LONGEST_PATIENCE, clock.delay))
