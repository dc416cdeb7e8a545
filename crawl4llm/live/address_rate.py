"""The rate of requests to an IP address: of all the sites that one server has, it gets no more at a time than from one.

Whoever is to be sent soon takes the next free place in time and waits for it. An owner whose turn is further off is put
aside, and its place in the downloader is another's: it comes again when all that are put aside with a better document
have had theirs. So of N owners some N log N leases are given back, and the best document of an address goes first.
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
"""Seconds for which nobody is put aside, where they are no more than so many intervals."""
_SHORT_LINE: Final = 2
_LONGEST_INTERVAL: Final = 86_400.0
_SPARE: Final = 1000
"""Addresses that are no reason to look for those that can be forgotten."""


class _Address:
    """What is known of one address, by the clock of the rate."""

    __slots__ = ("aside", "free_at", "sent_at", "waiting")

    def __init__(self) -> None:
        self.free_at = self.sent_at = -math.inf
        """The next place that nobody has taken; when a request was sent last."""
        self.waiting = 0
        """Requests that have taken a place and were not sent."""
        self.aside: list[tuple[float, float]] = []
        """Of each owner that was put aside its best document's score, negative, and when it comes again; sorted."""


class AddressRate:
    """Keeps what is sent to one address ``1 / rate`` seconds apart, over all owners; with a rate of 0 nothing waits.

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
        """Find out the address that a request will be sent to; None for one that has no rate, as a proxy's has none.

        It is the first that may be asked. Twisted's endpoint goes on to the next after 0.3 seconds without an answer
        (twisted.internet.endpoints.HostnameEndpoint); such a request counts for the first all the same.
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
        """Return when an owner with a document of this score comes again; None where its turn is soon."""
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
