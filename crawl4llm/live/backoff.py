"""Back-off: how long an owner is left alone after an error, and after how many its documents are given up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from crawl4llm.base.reasons import DNS, ROBOTS_UNKNOWN
from crawl4llm.base.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawl4llm.crawl.algorithm import Crawl
    from crawl4llm.frontier import Owners
    from crawl4llm.live.robots import RobotsUnknown


class Wait(NamedTuple):
    """What an error costs."""

    seconds: float
    """In which the owner is not asked."""
    final: bool
    """Whether the document is given up."""


class Backoff:
    """Errors in a row, by whose they are; ``waits`` are RETRY_WAITS.

    Broken connections are the owner's: after the last wait all its documents end. A host without an address, and a site
    whose robots.txt cannot be had, say nothing of other hosts of the owner, so their documents alone end, each when its
    turn comes, and nothing is asked for any of them. Until then the whole owner waits, since its best document may be
    one of these. Counts of owners and hosts are the frontier's, those of sites are kept with their robots.txt; both
    outlive the process where there is a JOBDIR. What is written raises InputError where it cannot be.
    """

    def __init__(self, crawl: Crawl, owners: Owners, waits: Sequence[float]) -> None:
        self._crawl, self._owners, self._waits = crawl, owners, waits

    def is_given_up(self, url: str) -> bool:
        """Return whether the host of a URL was looked up in vain so often that it is not any more."""
        return self._owners.failures(_host(url)) >= len(self._waits)

    def answered(self, owner: str, url: str) -> None:
        """Note that a document was answered, by whatever status."""
        for name in (owner, _host(url)):
            if self._owners.failures(name):
                self._owners.hold(name, -math.inf, failures=0)

    def failed(self, owner: str, url: str, reason: str, now: float) -> Wait:
        """Note that an exchange with an owner failed for a reason that its other documents would have too."""
        name, tries = (_host(url), len(self._waits)) if reason == DNS else (owner, len(self._waits) + 1)
        failures = self._owners.failures(name) + 1
        final = failures >= tries
        if failures == tries:
            self._give_up(reason)
        wait = 0.0 if final and reason == DNS else self._waits[min(failures, len(self._waits)) - 1]
        if name != owner:
            self._owners.hold(name, -math.inf, failures=failures)
        self._hold(owner, now, wait, failures if name == owner else None)
        if final and name == owner:
            self._crawl.end_owner(owner, reason)
        return Wait(wait, final)

    def robots_unknown(self, owner: str, error: RobotsUnknown, now: float) -> Wait:
        """Note that a site's robots.txt cannot be had."""
        if error.failures > len(self._waits):
            if error.is_new and error.failures == len(self._waits) + 1:
                self._give_up(ROBOTS_UNKNOWN)
            return Wait(0.0, final=True)
        self._hold(owner, now, error.wait)
        return Wait(error.wait, final=False)

    def _hold(self, owner: str, now: float, seconds: float, failures: int | None = None) -> None:
        self._owners.tick(now)
        self._owners.hold(owner, now + seconds if seconds else -math.inf, failures=failures)

    def _give_up(self, reason: str) -> None:
        self._crawl.counters.counts[f"given_up/{reason}"] += 1


def _host(url: str) -> str:
    """Return the name under which a host's failures are kept: with the dot at the end no owner has it."""
    return f"{host_of(url).rstrip('.')}."
