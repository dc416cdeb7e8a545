"""Back-off: how long an owner is left alone after an error, and after how many documents are given up.

Tries are requests to sites that never answered, which hold up no other site of their owners.
:mod:`crawl4llm.crawl.sited_frontier` says when they are tried, and what each try costs its owner.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from scrapy import Request
from scrapy.settings import BaseSettings

from crawl4llm.base.domains import owner_of
from crawl4llm.base.reasons import DNS, ROBOTS_UNKNOWN
from crawl4llm.base.urls import host_of, site_of
from crawl4llm.crawl import Driven, SitedFrontier
from crawl4llm.frontier import Owners
from crawl4llm.live.places import LONGEST_TRY, TRY, Exchange, Place
from crawl4llm.live.recent import Recent
from crawl4llm.live.robots import RobotsUnknown

_LONG_SILENCE: Final = 86_400.0
"""Seconds after which a site that did answer is given up like one that never did."""
_LONGEST_SLOWED: Final = 60.0
"""Seconds up to which the delay of an owner is doubled."""
_ANSWERS_TO_HALVE: Final = 50
"""Answers after which it is halved again."""
_TOO_FAST: Final = {429, 503}
_MOST_NAMES: Final = 65_536
"""Owners and sites of which this process remembers more than their counts."""

_SHORTEST_TURN: Final = 1.0
"""Seconds; the turns that a try took are of this length at least."""


class Tries:
    """Tells the crawl's :class:`SitedFrontier` the outcome of requests. Without one no request is a try."""

    def __init__(self, crawl: Driven, owners: Owners) -> None:
        self._crawl, self._owners = crawl, owners

    def of(self, url: str) -> SitedFrontier | None:
        """Return the frontier that knows the site of a URL, if that has not answered."""
        sites = self._crawl.sites_of(url)
        return sites if sites is not None and sites.is_unanswered(url) else None

    def begin(self, request: Request) -> None:
        """Mark a request that is a try; one that a redirect led to has the meta of the one before."""
        request.meta.pop(TRY, None)
        if self.of(request.url) is not None:
            request.meta[TRY] = LONGEST_TRY

    def answered(self, exchange: Exchange) -> None:
        """Record the end of an answered exchange."""
        if (sites := self._crawl.sites_of(exchange.url)) is not None:
            sites.answered(exchange.url)
            sites.took_turn(exchange.owner)

    def failed(self, exchange: Exchange, request: Request, delay: float) -> None:
        """Record the end of a try without an answer; a turn of its owner takes at least ``delay``."""
        if (sites := self.of(exchange.url)) is not None:
            of_look_up = LONGEST_TRY - request.meta.get(TRY, LONGEST_TRY)
            seconds = time.monotonic() - exchange.began + of_look_up + delay
            sites.failed(exchange.url, max(round(seconds / max(delay, _SHORTEST_TURN)), 1))

    def forgive(self, url: str) -> None:
        """Record that the failure was not the fault of the URL's site."""
        if (sites := self.of(url)) is not None:
            sites.forgive(owner_of(url))

    def leave_alone(self, url: str, seconds: float, failures: int | None = None) -> bool:
        """Let a site that has not answered wait, but not the rest of its owner. ``failures``: those so far. Returns
        False if the site has answered."""
        if (sites := self.of(url)) is None:
            return False
        now = time.monotonic()
        self._owners.tick(now)
        self._owners.hold(site_of(url), now + seconds if seconds else -math.inf, failures=failures)
        sites.leave_alone(url, now + seconds)
        return True

    def give_up(self, url: str) -> None:
        """End the documents of a site that has not answered, each when its turn comes."""
        if (sites := self.of(url)) is not None:
            sites.give_up(url)


class Wait(NamedTuple):
    """The consequence of an error."""

    seconds: float
    """Time without requests to the owner."""
    final: bool
    """True if the document is given up."""


class Backoff:
    """Errors in a row, counted for the site, host or owner that is to blame; ``waits`` are RETRY_WAITS.

    Broken connections are blamed on the site, a scheme with an authority: anybody can link to a port of an owner at
    which nobody listens. A site that never answered waits alone; for a site that did, the whole owner waits.

    A site, a host without an address, or a site with an unknown robots.txt is given up in the end. Its documents end,
    each when its turn comes, without a request. Other documents of the owner go on.

    Statuses of an overloaded server are blamed on the owner. They never make the crawl give up anything.

    The frontier keeps the counts of owners, sites and hosts, and forgets them after a day. Failures of a robots.txt are
    kept with the robots.txt. With a JOBDIR both outlive the process; a method that cannot write them raises InputError.
    """

    def __init__(self, crawl: Driven, owners: Owners, waits: Sequence[float], tries: Tries) -> None:
        self._crawl, self._owners, self._waits, self._tries = crawl, owners, waits, tries
        self._answered: Recent[float] = Recent(_MOST_NAMES)
        """Monotonic times of the last answers to this process, by owner and by site; the latest last."""
        self._given_up: Recent[str] = Recent(_MOST_NAMES)
        """Reasons by site. A site that an earlier process gave up is tried once more."""
        self._good: Recent[int] = Recent(_MOST_NAMES)
        """Answers since the last change of the delay, by slowed-down owners."""

    def given_up(self, url: str) -> str | None:
        """Return why the document of a URL is not asked for any more; None if it may be."""
        if self._owners.failures(_host(url)) >= len(self._waits):
            return DNS
        reason = self._given_up.get(site := site_of(url))
        return reason if reason and self._owners.failures(site) > len(self._waits) else None

    def answered(self, owner: str, url: str, now: float) -> None:
        """Note an answer of a site, by whatever status, for robots.txt too."""
        for name in (owner, site := site_of(url)):
            self._answered.note(name, now)
        self._given_up.forget(site)
        for name in (site, _host(url)):
            self.set_back(name)

    def failed(self, place: Place, owner: str, url: str, reason: str, now: float, robots_age: float) -> Wait:
        """Note that an exchange in an owner's place failed for a reason that other documents of the site would have
        too. ``robots_age``: seconds since its robots.txt came, infinite if it never did."""
        alone = self._tries.of(url) is not None
        if reason == DNS:
            name, tries = _host(url), len(self._waits)
            failures, heard_of, silence = self._owners.failures(name) + 1, False, math.inf
        else:
            name, tries = site_of(url), len(self._waits) + 1
            silence = min(robots_age, now - self._answered.get(name, -math.inf))
            heard_of = silence < math.inf or owner in self._answered
            # Where an owner answers at all, what one document fails with time and again may be its own.
            failures = self._count(name, again=heard_of and not alone and place.attempts > 1)
        final = failures >= tries and not silence < _LONG_SILENCE
        if final and reason != DNS and name not in self._given_up:
            self._give_up(reason)
            self._given_up.note(name, reason)
        elif failures == tries and reason == DNS:
            self._give_up(reason)
        wait = 0.0 if final else self._wait(failures)
        of_site = alone and not final and reason != DNS
        if not of_site:
            self._owners.hold(name, -math.inf, failures=failures)
        if not alone:
            self._hold(owner, now, wait)
        elif final:
            self._tries.give_up(url)
        else:
            self._tries.leave_alone(url, wait, failures if of_site else None)
        return Wait(0.0 if alone else wait, final)

    def slowed(self, owner: str, delay: float) -> float:
        """Return the delay of an owner: as given, or doubled as often as its servers had too much to do."""
        doubled = delay * 2.0 ** self._owners.slowed(owner)
        return max(min(doubled, _LONGEST_SLOWED), delay)

    def heard(self, owner: str, status: int, delay: float, asked_for: float) -> None:
        """Note the status of an answer, by which the delay of its owner may change; ``asked_for``: the seconds that the
        server wants to be left alone, 0 if it does not say."""
        times = self._owners.slowed(owner)
        if status in _TOO_FAST and not asked_for:
            if delay and self.slowed(owner, delay) < _LONGEST_SLOWED:
                self._slow(owner, times + 1)
            else:
                self._good.forget(owner)
        elif times and status not in _TOO_FAST:
            self._good.note(owner, good := self._good.get(owner, 0) + 1)
            if good >= _ANSWERS_TO_HALVE:
                self._slow(owner, times - 1)

    def _slow(self, owner: str, times: int) -> None:
        self._good.forget(owner)
        self._owners.tick(time.monotonic())
        self._owners.slow(owner, times)

    def busy(self, place: Place, owner: str, now: float) -> Wait:
        """Note that an owner answered that it has too much to do, and not for how long."""
        failures = self._count(owner, again=place.attempts > 1)
        wait = self._wait(failures)
        self._hold(owner, now, wait, failures)
        return Wait(wait, final=False)

    def robots_unknown(self, owner: str, url: str, error: RobotsUnknown, now: float) -> Wait:
        """Note that the robots.txt of a URL's site is unknown, as it could not be fetched."""
        if error.failures > len(self._waits):
            if error.is_new and error.failures == len(self._waits) + 1:
                self._give_up(ROBOTS_UNKNOWN)
            return Wait(0.0, final=True)
        if self._tries.leave_alone(url, error.wait):
            return Wait(0.0, final=False)
        self._hold(owner, now, error.wait)
        return Wait(error.wait, final=False)

    def _count(self, name: str, *, again: bool) -> int:
        """Return the failures of a name with one more; ``again``: unless only the same document has failed again."""
        before = self._owners.failures(name)
        return before if before and again else before + 1

    def _wait(self, failures: int) -> float:
        return self._waits[min(failures, len(self._waits)) - 1]

    def set_back(self, name: str) -> None:
        """Note an answer of an owner, site or host that is no failure."""
        if self._owners.failures(name):
            self._owners.hold(name, -math.inf, failures=0)

    def _hold(self, owner: str, now: float, seconds: float, failures: int | None = None) -> None:
        self._owners.tick(now)
        self._owners.hold(owner, now + seconds if seconds else -math.inf, failures=failures)

    def _give_up(self, reason: str) -> None:
        self._crawl.counters.counts[f"given_up/{reason}"] += 1


def _host(url: str) -> str:
    """Return the name under which a host's failures are kept: with the dot at the end no owner has it."""
    return f"{host_of(url).rstrip('.')}."


def tried_again(settings: BaseSettings) -> set[int]:
    """Return the statuses of documents that are asked for again: Scrapy would at once, within a lease."""
    again = settings.getlist("RETRY_HTTP_CODES") if settings.getbool("RETRY_ENABLED") else []
    return {int(status) for status in again}
