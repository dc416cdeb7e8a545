"""The rate of requests to an IP address: a server of many sites gets no more requests than a server of one.

A request that is due soon takes the next free slot of the address and waits for it. An owner whose slot is further off
is put aside, and another owner takes its place in the downloader. It returns after all owners that were put aside with
a better document. So the best document of an address goes first, and N owners give back about N log N leases.
"""

from __future__ import annotations

import asyncio
import math
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

from scrapy import Request

from crawl4llm.base.urls import host_of
from crawl4llm.live.network import Network

_SHORT_WAIT: Final = 1.0
"""Seconds; a shorter wait, of _SHORT_LINE intervals at most, puts no owner aside."""
_SHORT_LINE: Final = 2
_LONGEST_INTERVAL: Final = 86_400.0
_SPARE: Final = 1000
"""Addresses that are no reason to look for those that can be forgotten."""


class _Address:
    """The state of one address; times are those of the rate's clock."""

    __slots__ = ("aside", "free_at", "sent_at", "waiting")

    def __init__(self) -> None:
        self.free_at = self.sent_at = -math.inf
        """The next place that nobody has taken; when a request was sent last."""
        self.waiting = 0
        """Requests that have taken a place and were not sent."""
        self.aside: list[tuple[float, float]] = []
        """A pair per owner that was put aside, sorted: the negated score of its best document, and the time of its
        return."""


class AddressRate:
    """Keeps requests to one address ``1 / rate`` seconds apart, over all owners; with a rate of 0 nothing waits.

    An address may be forgotten when it may be asked again and nobody waits for it; this is done whenever the table has
    doubled.
    """

    def __init__(self, network: Network | None, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._network = network if rate else None
        self.interval = min(1 / rate, _LONGEST_INTERVAL) if rate else 0.0
        self._clock = clock
        self._addresses: dict[str, _Address] = {}
        self._most = _SPARE

    def __len__(self) -> int:
        """Return the number of addresses that are known."""
        return len(self._addresses)

    def look_up(self, request: Request) -> asyncio.Task[str | None] | None:
        """Return the address that a request will be sent to; None if the address has no rate, as for a proxy.

        It is the first address that may be connected to. Twisted's endpoint tries the next one after 0.3 seconds
        without an answer (twisted.internet.endpoints.HostnameEndpoint); such a request still counts for the first.
        """
        if self._network is None or "proxy" in request.meta:
            return None
        return asyncio.ensure_future(self._first_address(self._network, host_of(request.url)))

    async def _first_address(self, network: Network, host: str) -> str | None:
        found = await network.first_address(host)
        if found is None:
            return None
        address = ip_address(found.partition("%")[0])
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return str(mapped or address)

    def put_aside(self, address: str, score: float) -> float | None:
        """Return when an owner with a document of this score comes again; None if its turn is soon."""
        one, now = self._of(address), self._clock()
        if one.free_at - now <= min(_SHORT_WAIT, _SHORT_LINE * self.interval):
            return None
        rank = bisect_right(one.aside, (-score, math.inf))
        until = one.free_at + rank * self.interval
        one.aside.insert(rank, (-score, until))
        return until

    async def wait(self, address: str, sleep: Callable[[float], Awaitable[None]], *, first: bool = False) -> None:
        """Take the next place, and wait for it; ``sleep`` waits for some of the seconds that it is given.

        ``first``: the place before all others, as a page waits that keeps a place in the downloader."""
        one, now = self._of(address), self._clock()
        one.aside = [(score, until) for score, until in one.aside if until > now]
        place = now if first else max(one.free_at, now)
        one.free_at = max(one.free_at, now) + self.interval
        one.waiting += 1
        try:
            # One that woke up late has put off those behind it.
            while (left := max(place, one.sent_at + self.interval) - self._clock()) > 0:
                await sleep(left)
        finally:
            one.waiting -= 1
        one.sent_at = now = self._clock()
        one.free_at = max(one.free_at, now + self.interval)

    def _of(self, address: str) -> _Address:
        one = self._addresses.get(address)
        if one is None:
            if len(self._addresses) >= self._most:
                now = self._clock()
                self._addresses = {
                    name: known
                    for name, known in self._addresses.items()
                    if known.waiting or known.free_at > now or any(until > now for _, until in known.aside)
                }
                self._most = max(_SPARE, 2 * len(self._addresses))
            one = self._addresses[address] = _Address()
        return one
