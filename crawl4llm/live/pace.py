"""Pace: the downloader middleware that sends each owner one request at a time, after its politeness delay.

An owner is held for the whole of a lease, or for an exchange without a lease (a robots.txt to which another owner
redirects). All exchanges with an owner go through one place, in which they wait for each other. The delay runs from the
end of one (last byte, time-out, closed connection) to the sending of the next, with any download handler.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import time
from contextlib import ExitStack
from functools import partial

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from crawl4llm.base.domains import owner_of
from crawl4llm.base.reasons import CONNECTION, DNS, HELD, REFUSED, ROBOTS_UNKNOWN, TIMEOUT
from crawl4llm.crawl import Control, Driven, is_leased, lease_of, owner_of_lease
from crawl4llm.frontier import Lease, Owners
from crawl4llm.live import request_log
from crawl4llm.live.address_rate import AddressRate
from crawl4llm.live.backoff import Backoff, Tries, Wait, tried_again
from crawl4llm.live.capturing import captures_of
from crawl4llm.live.fetching import elsewhere, leads_on
from crawl4llm.live.network import Network
from crawl4llm.live.outage import SILENCE, Outage, is_probe
from crawl4llm.live.places import LONGEST_TRY, PATIENT, TRY, Exchange, Later, Place, Places, retry_after
from crawl4llm.live.recent import Recent
from crawl4llm.live.robots import Robots, RobotsUnknown
from crawl4llm.live.stopping import NotHeld, Withdrawn, crawl_of, is_stopping
from crawl4llm.live.verdicts import machine_error, verdict
from crawl4llm.options import read_options

logger = logging.getLogger(__name__)

_MOST_BY_DURATION = 60.0
"""Seconds; more than this is not waited because an exchange took long."""
_LONGEST_WAIT = 60.0
"""Seconds that a request may wait in the downloader, in which it takes the place of another."""
_LONGEST_FOR_A_REDIRECT = 30.0
"""Seconds beyond which a redirect ends the lease, and its target is queued."""
_NOT_WRITTEN = 3.0
"""Seconds by which a delay may be cut short by a restart."""
_PARKED_LINES = 20
"""Parked owners that the log names."""
_MOST_GIVEN_BACK = 65_536
"""Owners that are remembered; of one that is forgotten a document is given back once more."""
_MOST_WAITING = 8
"""Requests for robots.txt that may wait for each other."""
_SHORT_WAIT = 1.0
"""Seconds for which a document is not given back."""
_LOOK_SECONDS = 0.1
"""Waiting requests check so often whether the crawl stops."""
_OF_THE_OWNER = {CONNECTION, DNS, REFUSED, TIMEOUT}
"""Reasons of failures that other documents of the site would have too."""
_BUSY = {429, 502, 503, 504}
"""Statuses of overloaded servers, or of the proxies in front of them."""
_SLOT = "crawl4llm"
"""The slot of Scrapy's downloader that all requests share: it has no delay, so that nothing waits twice."""


class Pace:
    """Downloader middleware, the innermost; also the :class:`crawl4llm.crawl.turns.Turns` of its crawl.

    Only for a crawl whose frontier is ordered by owners: Scrapy's downloader alone delays others. Raises Later for a
    request that returns to the frontier, and Withdrawn if the crawl stops.
    """

    def __init__(self, crawler: Crawler, crawl: Driven, owners: Owners) -> None:
        self._crawler, self._crawl, self._owners = crawler, crawl, owners
        options = read_options(crawler.settings)
        self._delay = crawler.settings.getfloat("DOWNLOAD_DELAY")
        self._factor, self._cap = options.delay_factor, options.crawl_delay_cap
        self._longest_wait = max(_LONGEST_WAIT, 2 * self._delay)
        self._control = Control()
        log = crawler.get_extension(request_log.RequestLog)
        self._note_rule = log.note_rule if log is not None else lambda _owner, _rule: None
        """Records for the request log why an owner's next request waits."""
        self._is_stopping = partial(is_stopping, crawler)
        self._robots: Robots | None = None
        self._addresses = AddressRate(crawler.get_extension(Network), options.ip_rate)
        self._places = Places(owners, time.monotonic())
        self._running: dict[Request, Exchange] = {}
        self._tries = Tries(crawl, owners)
        self._backoff = Backoff(crawl, owners, options.retry_waits, self._tries)
        self._tried_again = tried_again(crawler.settings)
        self._outage = Outage(crawler, crawl, owners)
        self._parked = 0
        """Owners parked by this process."""
        self._given_back: Recent[None] = Recent(_MOST_GIVEN_BACK)
        """Owners of documents that were given back, after robots.txt was asked for, and have not been sent for yet."""
        crawl.turns = self
        crawler.signals.connect(self._opened, signal=signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Pace:
        """Build it for the spider's crawl. Raises NotConfigured if there are no owners."""
        crawl = crawl_of(crawler)
        if crawl is None or crawl.owners is None:
            raise NotConfigured
        return cls(crawler, crawl, crawl.owners)

    def _opened(self) -> None:
        self._crawler.engine.downloader.per_slot_settings[_SLOT] = {"concurrency": sys.maxsize, "delay": 0.0}
        self._robots = self._crawler.get_downloader_middleware(Robots)

    def steer(self, control: Control) -> None:
        """Apply the delays of the control file; longer delays hold at once, also for waiting owners."""
        before = {one: self._base_delay(one) for one in {"", *self._control.delays, *control.delays, *self._places}}
        self._control, now = control, time.monotonic()
        for owner, delay in before.items():
            if (longer := self._base_delay(owner)) > delay:
                self._places.since = now
                self._places.wait(owner, longer)
        self._longest_wait = max(_LONGEST_WAIT, 2 * max([self._delay, control.delay or 0.0, *control.delays.values()]))

    # -- the leases of the crawl ----------------------------------------------------------------------------------

    def begin(self, lease: Lease) -> None:
        """Keep the owner of a document for its lease."""
        self._outage.begun()
        if owner := owner_of_lease(lease):
            # Where its partition was lost and came again, an exchange of then may still go on.
            self._places.taken(owner).lease = lease

    def end(self, lease: Lease, *, asked: bool = True) -> None:
        """Keep it no longer; it may be asked again after its delay."""
        owner = owner_of_lease(lease)
        if place := self._places.get(owner):
            # The last exchange may have been for a robots.txt that forbids the document, and has a delay for others.
            delay = self._crawl_delay(lease.entry.url or lease.entry.key)
            place.send_at = max(place.send_at, place.ended + min(delay, self._cap))
            if place.lease is lease:  # else it was let go before
                place.lease = None
                self._places.leave(owner, place)

    # -- Scrapy's interface ---------------------------------------------------------------------------------------

    async def process_request(self, request: Request) -> None:
        """Wait until the request may be sent."""
        request.meta.update(download_slot=_SLOT, autothrottle_dont_adjust_delay=True)
        if not (owner := owner_of(request.url)):
            return
        if reason := self._backoff.given_up(request.url):
            self._tries.give_up(request.url)
            raise Later(f"{request.url}: its host or site is given up", reason, final=True)
        place = await self._enter(request, owner)
        if place.users >= _MOST_WAITING and not is_leased(request):
            raise Later(f"{owner} has many requests waiting", HELD, wait=_LONGEST_WAIT)
        place.users += 1
        with ExitStack() as undone:
            undone.callback(self._places.leave, owner, place, users=1)
            await place.turn.acquire()
            undone.callback(place.turn.release)
            await self._wait_for_turn(request, owner, place)
            undone.pop_all()
        self._running[request] = Exchange(owner, request.url, place, time.monotonic())

    def process_response(self, request: Request, response: Response) -> Response:
        """Record the end of an exchange, and when the server allows the next."""
        if (exchange := self._running.pop(request, None)) is None:
            return response
        wait = retry_after(response)
        self._tries.answered(exchange)
        self._backoff.heard(exchange.owner, response.status, self._base_delay(exchange.owner), wait)
        self._end_exchange(exchange, wait)
        self._outage.answered(exchange.owner, exchange.url)
        self._backoff.answered(exchange.owner, exchange.url, time.monotonic())
        if is_leased(request):
            self._end_attempt(exchange, response.status, wait)
        return response

    async def process_exception(self, request: Request, exception: Exception) -> None:
        """Note the end of an exchange without an answer; errors of the owner's are the errors of all its documents."""
        if isinstance(exception, Later):
            if exception.reason == HELD or exception.wait:  # of a robots.txt
                self._places.wait(owner_of(request.url), exception.wait)
                if leads_on(request):
                    raise elsewhere(request) from exception
            return
        if isinstance(exception, RobotsUnknown) and exception.reason == ROBOTS_UNKNOWN:
            raise self._hold_for_robots(request, exception) from exception
        if (exchange := self._running.pop(request, None)) is None:
            return
        is_try = self._tries.of(exchange.url) is not None
        self._end_exchange(exchange, is_try=is_try)
        known = None if isinstance(exception, Withdrawn) or machine_error(exception) else verdict(exception)
        if known is None:
            return
        if is_try:
            self._tries.failed(exchange, request, self._base_delay(exchange.owner))
        if known[1] not in SILENCE:
            self._outage.alive()
        elif is_probe(request):
            return
        elif await self._is_network_down(exchange, is_try=is_try):
            raise Later(f"{request.url}: no network") from exception
        if known[1] in _OF_THE_OWNER:
            owner, url, place, _ = exchange
            age = math.inf if self._robots is None else self._robots.age(url)
            wait = self._backoff.failed(place, owner, url, known[1], time.monotonic(), age)
            raise self._later(owner, known[1], wait) from exception  # of a robots.txt: so ends what needs it

    # -- its parts ------------------------------------------------------------------------------------------------

    async def _is_network_down(self, exchange: Exchange, *, is_try: bool) -> bool:
        """Return whether a silence is the network's fault; in that case the request waits."""
        owner, url, place, _ = exchange
        if is_try and place.lease is not None and not place.users:
            place.lease = None  # what it was kept for ends now; others of its documents need not wait for that
            self._places.leave(owner, place)
            self._crawl.wake()
        if not await self._outage.is_to_blame(owner, can_wait=is_try):
            return False
        if is_try:
            self._tries.forgive(url)
        self._places.wait(owner, self._outage.pause)
        return True

    async def _enter(self, request: Request, owner: str) -> Place:
        """Return the place of an owner, held for a lease, or from now on for an exchange without a lease. Raises
        NotHeld."""
        while (place := self._places.get(owner)) is None:
            now = time.monotonic()
            self._owners.tick(now)
            if self._owners.occupy(owner):
                return self._places.taken(owner)
            self._check_held(request, owner)  # else who waits for this could keep it from being held again
            await self._sleep(self._owners.ready_at(owner) - now, owner, self._longest_wait)
        return place

    async def _wait_for_turn(self, request: Request, owner: str, place: Place) -> None:
        # Only now may robots.txt be known: it came last, or it was kept by a process that may have asked until its end.
        crawl_delay, steered = self._crawl_delay(request.url), self._control.delay_of(owner) or 0.0
        if crawl_delay > self._cap:
            raise self._park(owner, crawl_delay, place)
        delay = max(crawl_delay, steered)
        if delay and place.ended + delay > place.send_at:
            place.send_at = place.ended + delay
            self._note_rule(owner, request_log.CRAWL_DELAY if crawl_delay >= steered else request_log.CONTROL)
        if is_leased(request) and not captures_of(request) and "retry_times" not in request.meta:
            # robots.txt had to be asked for first. Meanwhile the place in the downloader can be another owner's.
            wait = place.send_at - time.monotonic()
            is_first = owner not in self._given_back
            if wait > (_SHORT_WAIT if is_first else self._longest_wait) and not self._is_stopping():
                self._given_back.note(owner, None)
                raise Later(f"{request.url}: due in {wait:.0f} s")
            self._given_back.forget(owner)
        if place.send_at - time.monotonic() > _LONGEST_FOR_A_REDIRECT and leads_on(request):
            raise elsewhere(request)
        longest = max(self._longest_wait, self._cap if PATIENT in request.meta else 0.0)
        while (wait := place.send_at - time.monotonic()) > 0:
            await self._sleep(wait, owner, longest)
        self._tries.begin(request)
        await self._wait_for_address(request, owner, place)
        if self._is_stopping():
            raise Withdrawn("the crawl is stopping")
        if is_leased(request) and (lease := lease_of(request)) is not place.lease and owner_of_lease(lease) == owner:
            raise NotHeld(owner)  # its partition was lost; whoever has that, perhaps this worker again, begins anew
        self._check_held(request, owner)

    def _check_held(self, request: Request, owner: str) -> None:
        """Raise NotHeld if another worker may be asking the owner."""
        if not self._crawl.may_send(request.url, led=request_log.LED in request.meta):
            raise NotHeld(owner)

    async def _wait_for_address(self, request: Request, owner: str, place: Place) -> None:
        """Wait until a request may go to the address; if that takes long, let the owner wait in the frontier."""
        if (look_up := self._addresses.look_up(request)) is None:
            return
        began, is_try = time.monotonic(), TRY in request.meta
        while not look_up.done():
            await asyncio.wait({look_up}, timeout=_LOOK_SECONDS)
            if self._is_stopping():
                look_up.cancel()
                raise Withdrawn("the crawl is stopping")
            if is_try and time.monotonic() - began >= LONGEST_TRY:
                look_up.cancel()
                request.meta[TRY] = 0.0  # its time is up
                return
        if is_try:
            request.meta[TRY] = max(LONGEST_TRY - (time.monotonic() - began), 0.0)
        if (address := look_up.result()) is None:
            return  # the connection will say why
        lease = place.lease if is_leased(request) or place.ended <= self._places.since else None
        if lease is not None and not captures_of(request) and "retry_times" not in request.meta:
            until = self._addresses.put_aside(address, lease.entry.score)
            if until is not None:
                place.send_at = max(place.send_at, until)
                self._note_rule(owner, request_log.IP_RATE)
                raise Later(f"{request.url}: {address} gets no request yet")
        longest = self._longest_wait + self._addresses.interval
        began = time.monotonic()
        is_first = PATIENT in request.meta
        await self._addresses.wait(address, lambda seconds: self._sleep(seconds, owner, longest), first=is_first)
        if time.monotonic() - began >= _LOOK_SECONDS:
            self._note_rule(owner, request_log.IP_RATE)

    async def _sleep(self, seconds: float, owner: str, longest: float) -> None:
        """Wait for a part of this. Raises Withdrawn, or Later if it takes too long."""
        if self._is_stopping():
            raise Withdrawn("the crawl is stopping")
        if seconds > longest:
            raise Later(f"{owner} gets no request now", HELD, wait=seconds)
        await asyncio.sleep(min(max(seconds, 0.0), _LOOK_SECONDS))

    def _end_exchange(self, exchange: Exchange, asked_for: float = 0.0, *, is_try: bool = False) -> None:
        """Let the next request wait: a delay, or, written down at once, as long as the server said. ``is_try``: the
        site has not answered, so that the time says nothing of the owner's servers."""
        now = time.monotonic()
        owner, url, place, began = exchange
        base = self._base_delay(owner)
        by_duration = 0.0 if is_try else min(self._factor * (now - began), _MOST_BY_DURATION)
        of_rules = {
            request_log.DOWNLOAD_DELAY if self._control.delay_of(owner) is None else request_log.CONTROL: base,
            request_log.SLOWED: (slowed := self._backoff.slowed(owner, base)),
            request_log.DELAY_FACTOR: by_duration,
            request_log.CRAWL_DELAY: min(self._crawl_delay(url), self._cap),  # who asks for more is parked before that
            request_log.RETRY_AFTER: asked_for,
        }
        delay = max(of_rules.values())
        self._note_rule(owner, next(rule for rule, seconds in of_rules.items() if seconds == delay))
        place.ended, place.send_at = now, now + delay
        place.turn.release()
        self._places.leave(owner, place, users=1)
        # Of a restart all owners wait the base delay. Last, as it raises InputError if it cannot be written down.
        if asked_for or max(by_duration, slowed) > base + _NOT_WRITTEN:
            self._owners.tick(now)
            self._owners.hold(owner, place.send_at)

    def _base_delay(self, owner: str) -> float:
        """Return the seconds between two exchanges with an owner, unless something asks for more."""
        steered = self._control.delay_of(owner)
        return self._delay if steered is None else steered

    def _crawl_delay(self, url: str) -> float:
        """Return the seconds that the site of a URL asks for in its robots.txt, as far as that is known."""
        return (None if self._robots is None else self._robots.crawl_delay(url)) or 0.0

    def _park(self, owner: str, delay: float, place: Place) -> Later:
        """Park an owner that asks for a longer delay than is waited for; its documents stay in the frontier. Returns
        what ends the present one: if its lease holds another owner, that owner would get endless requests."""
        if self._owners.park(owner, delay):
            self._parked += 1
            if self._parked <= _PARKED_LINES:
                logger.info(
                    "%s is parked, with %s more documents: its Crawl-delay is %.0f s, and CRAWL_DELAY_CAP %.0f s",
                    *(owner, f"{self._owners.queued_of(owner):,}", delay, self._cap),
                )
            if self._parked == _PARKED_LINES:
                logger.info("The log names no further parked owners; the statistic owners/parked counts them")
        return Later(f"{owner} is parked", HELD if place.lease is None else None)

    def _end_attempt(self, exchange: Exchange, status: int, asked_for: float) -> None:
        """Raise Later for a document whose answer says that it is to be asked for later; the turn of others comes."""
        owner, url, place, _ = exchange
        if asked_for:
            raise Later(f"{url}: asked to come again in {asked_for:.0f} s", f"http_{status}")
        if status in _BUSY:
            wait = self._backoff.busy(place, owner, time.monotonic())
            raise self._later(owner, f"http_{status}", wait._replace(final=status not in self._tried_again))
        self._backoff.set_back(owner)
        if status in self._tried_again:
            raise Later(f"{url}: answered {status}", f"http_{status}")

    def _hold_for_robots(self, request: Request, error: RobotsUnknown) -> Later:
        """Hold the owner of a site whose robots.txt is unavailable. Returns the exception that ends the document. For
        another owner it counts as an attempt, or the document would be requested endlessly."""
        owner = owner_of(request.url)
        wait = self._backoff.robots_unknown(owner, request.url, error, time.monotonic())
        place = self._places.get(owner)
        counts = wait.final or place is None or place.lease is None
        return self._later(owner, ROBOTS_UNKNOWN if counts else None, wait)

    def _later(self, owner: str, reason: str | None, wait: Wait) -> Later:
        """Return the exception that ends a document after an error of its owner, which gets no request before the wait
        is over."""
        if wait.seconds:
            self._note_rule(owner, request_log.RETRY_WAITS)
        self._places.wait(owner, wait.seconds)
        return Later(f"{owner}: {reason or 'to be requested later'}", reason, final=wait.final)
