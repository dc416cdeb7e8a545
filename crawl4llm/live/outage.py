"""Outages: distinguishes a network that is down from owners that do not answer, so that owners are not blamed for
it."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http.request import NO_CALLBACK

from crawl4llm.base.domains import owner_of
from crawl4llm.base.reasons import CONNECTION, DNS, TIMEOUT
from crawl4llm.base.urls import site_of
from crawl4llm.crawl import Driven, may_try
from crawl4llm.frontier import Owners
from crawl4llm.live.places import Later
from crawl4llm.live.recent import Recent
from crawl4llm.live.robots import Robots
from crawl4llm.live.stopping import NotHeld, is_stopping

logger = logging.getLogger(__name__)

NO_NETWORK: Final = "no_network"
SILENCE: Final = {CONNECTION, DNS, TIMEOUT}
"""Reasons of exchanges that also fail without a network."""
_PROBE: Final = "crawl4llm_probe"
"""In the meta of requests by which the network is tried."""
_SEVERAL: Final = 8
"""Owners that were silent one after the other, before which the network is not doubted."""
_INTERVAL: Final = 30.0
"""Seconds between two tries; a tenth of CRAWL_WAIT at most."""
_LOOK_SECONDS: Final = 0.2


def is_probe(request: Request) -> bool:
    """Return whether a request only tries whether there is a network."""
    return _PROBE in request.meta


class Outage:
    """Detects that the network is down.

    An outage is suspected if several owners in a row are silent, or if one is and no owner answers for a while after.
    The outcome of their documents stays open until then, and no document is handed out. The crawl requests the
    robots.txt of an owner that answered lately, within its politeness delay: without an answer the network is down. If
    no owner has answered yet, the network counts as down until one does. In an outage the crawl tries one document now
    and then, and stops after CRAWL_WAIT seconds.
    """

    def __init__(self, crawler: Crawler, crawl: Driven, owners: Owners) -> None:
        self._crawler, self._crawl, self._owners = crawler, crawl, owners
        self._wait = crawl.options.crawl_wait
        self.interval = min(_INTERVAL, self._wait / 10)
        """Seconds between two tries."""
        self.pause = min(self.interval, crawl.options.retry_waits[0])
        """Seconds without a sign of life before an outage is suspected. An owner that is not to blame is left alone as
        long."""
        self._alive = self._since = time.monotonic()
        """Of the last sign of life, and of the first silence after it."""
        self._good: Recent[str] = Recent(_SEVERAL)
        """Sites of the owners that answered last, by owner."""
        self._silent: set[str] = set()
        """Owners, since the last sign of life."""
        self._waiting = 0
        """Documents that wait for a sign of life."""
        self._is_down: asyncio.Future[bool] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._tries_one = False
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    def alive(self) -> None:
        """Record a sign of life that says nothing about an owner, such as a refused connection."""
        self._alive = time.monotonic()
        self._silent.clear()

    def answered(self, owner: str, url: str) -> None:
        """Note an answer."""
        self.alive()
        self._good.note(owner, site_of(url))

    def begun(self) -> None:
        """Note that a document was handed out: if the network is down, it is the one that is tried."""
        if self._tries_one:
            self._crawl.limit_leases(0)

    async def is_to_blame(self, owner: str, *, can_wait: bool = False) -> bool:
        """Return whether it is the network's fault that an owner was silent, as soon as another owner answers, or does
        not when it is tried. True also if the crawl stops meanwhile, so that no owner is blamed. ``can_wait``: nobody
        is held up meanwhile, so an answer of the owner who is asked next is waited for."""
        failed = time.monotonic()
        if not self._silent:
            self._since = failed
        self._silent.add(owner)
        self._know_one()
        self._waiting += 1
        try:
            while self._watching is None and len(self._silent) < _SEVERAL:
                if self._alive > failed:
                    return False
                if is_stopping(self._crawler):
                    return True
                if time.monotonic() - failed >= self.pause or not (
                    self._crawl.in_flight > self._waiting or (can_wait and self._is_asked_by(failed + self.pause))
                ):
                    break  # nobody else is being asked who could answer
                await asyncio.sleep(min(self.pause, _LOOK_SECONDS))
        finally:
            self._waiting -= 1
        if self._watching is None:
            if self._alive > failed:
                return False
            self._is_down = asyncio.get_running_loop().create_future()
            self._watching = asyncio.ensure_future(self._watch(self._is_down))
        assert self._is_down is not None
        return await asyncio.shield(self._is_down)

    # -- its parts ------------------------------------------------------------------------------------------------

    def _is_asked_by(self, until: float) -> bool:
        """Return whether an owner that may answer will get a request before a time."""
        ready = self._owners.next_ready() if self._good and self._crawl.may_lease else None
        return ready is not None and ready < until

    def _know_one(self) -> None:
        """Take the site whose robots.txt an earlier process received last, if no owner has answered this process."""
        robots = None if self._good else self._crawler.get_downloader_middleware(Robots)
        site = None if robots is None else robots.copies.store.latest()
        if site is not None and (owner := owner_of(f"{site}/")):
            self._good.note(owner, site)

    async def _watch(self, is_down: asyncio.Future[bool]) -> None:
        """From the first doubt to a sign of life, or to the end of the crawl."""
        said, began = False, time.monotonic()
        self._crawl.doubts_network = True
        try:
            while True:
                down = not self._good or await self._is_silent()
                if self._alive >= began or not down:
                    return
                if not is_down.done():
                    is_down.set_result(True)
                seconds = time.monotonic() - self._since
                one = next(iter(self._silent), "")
                asked = (
                    f"none of the {len(self._silent):,} owners requested has"
                    if len(self._silent) > 1
                    else f"{one} has not"
                )
                if seconds >= self._wait:
                    message = f"no network: {asked} answered for {seconds:.0f} s; no document is lost"
                    self._crawl.stop(NO_NETWORK, f"{message}, resume the crawl when the network is back")
                    return
                if not said and (self._good or seconds >= self.interval):
                    said = True
                    left = f"one is tried every {self.interval:.0f} s, for {self._wait - seconds:.0f} s more"
                    logger.warning("No network: %s answered for %.0f s; %s", asked, seconds, left)
                if self._good or len(self._silent) >= _SEVERAL:
                    self._tries_one = True
                    self._crawl.limit_leases(1)
                    self._crawler.signals.send_catch_log(may_try)
                if not await self._sleep(began):
                    return
        finally:
            if not is_down.done():
                is_down.set_result(False)
            self._silent.clear()
            self._tries_one, self._watching = False, None
            self._crawl.doubts_network = False
            self._crawl.limit_leases(None)
            self._crawler.signals.send_catch_log(may_try)
            if said and self._crawl.stopped is None and not is_stopping(self._crawler):
                logger.info("The network is back after %.0f s", time.monotonic() - self._since)

    async def _is_silent(self) -> bool:
        """Send a request to an owner that answered lately. False: it answers, or no owner is free now, so nothing is
        known."""
        self._crawl.limit_leases(0)
        now = time.monotonic()
        good = [name for name, site in reversed(self._good.items()) if self._crawl.may_send(f"{site}/")]
        may_be_asked = (name for name in good if self._owners.ready_at(name) - now <= self.interval)
        asked = next((name for name in may_be_asked if name not in self._silent), None)
        if asked is None:  # one of the silent, who may answer to something else; others are being asked
            asked = next((name for name in good if name in self._silent), None)
        if asked is None:
            return False
        began = time.monotonic()
        return await self._try(f"{self._good[asked]}/robots.txt") and self._alive < began

    async def _try(self, url: str) -> bool:
        """Send a request; the code that sees its end records the outcome. False: it may not be sent now."""
        meta = {_PROBE: True, "dont_obey_robotstxt": True, "dont_redirect": True, "dont_retry": True}
        try:
            await self._crawler.engine.download_async(Request(url, callback=NO_CALLBACK, meta=meta))
        except (Later, NotHeld):
            return False
        except Exception as error:  # noqa: BLE001 - of whatever kind: there was no answer
            logger.debug("%s: %r", url, error)
        return True

    async def _sleep(self, began: float) -> bool:
        """Sleep until the next try. False: the crawl is stopping, or there was a sign of life since a time."""
        end = time.monotonic() + self.interval
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _LOOK_SECONDS))
            if self._alive >= began or is_stopping(self._crawler):
                return False
        return True

    def _closed(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
