"""The network of a live crawl: looks hosts up without blocking, and returns only addresses that may be connected to.

Twisted's endpoint asks the reactor's name resolver for every host, even if the host is an address, and connects to the
result without another look-up (twisted.internet.endpoints.HostnameEndpoint). So every connection is checked here:
addresses in any notation, host names, and targets of redirects.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any, Final, Literal, NamedTuple

from scrapy.crawler import Crawler
from scrapy.resolver import HostResolution
from scrapy.settings import BaseSettings
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IAddress, IHostnameResolver
from zope.interface import implementer

from crawl4llm.base.files import raised_limit
from crawl4llm.live.addresses import NoAnswer, Rules, system_addresses, written_addresses
from crawl4llm.live.recent import Recent
from crawl4llm.options import read_options

logger = logging.getLogger(__name__)

_KEPT_SECONDS: Final = 600.0
"""Seconds for which an answer is kept; the system does not say which lifetime the domain's owner asks for."""
_FAILURE_KEPT_SECONDS: Final = 30.0
_THREADS: Final = 32
"""Look-ups at once, besides those whose time is up; each takes a thread, as the system's resolver waits."""
_MOST_THREADS: Final = 256
"""Threads in all; while so many look-ups hang, others wait until one of them ends."""


class Found(NamedTuple):
    """The result of the last look-up of a host."""

    addresses: Sequence[str]
    """Those that may be connected to."""
    refused: str | None = None
    """An address that may not be connected to, if there are no others."""
    said: str | None = None
    """The reason for a missing answer."""


@implementer(IHostnameResolver)
class Network:
    """Scrapy extension, and the reactor's name resolver while requests are sent.

    Answers of DNSCACHE_SIZE hosts are kept, for a shorter time if the host has no address; failed look-ups are not
    kept. A look-up ends DNS_TIMEOUT seconds after it began. ``look_up`` returns a host's addresses, or raises NoAnswer;
    it runs in a thread.
    """

    def __init__(
        self, rules: Rules, settings: BaseSettings, look_up: Callable[[str], Sequence[str]] = system_addresses
    ) -> None:
        self._rules = rules
        self._look_up = look_up
        self._timeout = settings.getfloat("DNS_TIMEOUT")
        size = settings.getint("DNSCACHE_SIZE")
        self._known: Recent[tuple[Found, float]] = Recent(max(size, 1))
        """Results for the latest hosts, each with the monotonic time at which it expires."""
        self._keeps = settings.getbool("DNSCACHE_ENABLED") and size > 0
        self._waiting: dict[str, _LookUp] = {}
        self._threads = _Threads()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Network:
        """Build it with the checked NETWORK_ALLOWED and DNS_HOSTS; lets this process have the sockets it needs."""
        raised_limit()
        return cls(Rules.of(read_options(crawler.settings)), crawler.settings)

    def install(self) -> None:
        """Make this the reactor's name resolver, if it is not yet; Scrapy installs its own when the reactor starts."""
        from twisted.internet import reactor  # to import it is to install it

        pluggable: Any = reactor
        if pluggable.nameResolver is not self:
            pluggable.installNameResolver(self)

    def refused(self, host: str) -> str | None:
        """Return the address for which a host was refused when it was looked up last; None if it was not."""
        written = written_addresses(host)
        found = self._judge(written, in_url=True) if written else self._known.get(host, (None, 0.0))[0]
        return found.refused if found else None

    async def first_address(self, host: str) -> str | None:
        """Return the address of a host that is connected to first; None if it has none that may be connected to."""
        found: asyncio.Future[Found] = asyncio.get_running_loop().create_future()

        def tell(known: Found) -> None:
            if not found.done():  # else nobody waits any more
                found.set_result(known)

        self._find(host, tell)
        return next(iter((await found).addresses), None)

    def resolveHostName(  # noqa: N802 - Twisted's names; its interfaces are no types
        self,
        resolutionReceiver: Any,  # noqa: N803
        hostName: str,  # noqa: N803
        portNumber: int = 0,  # noqa: N803
        addressTypes: Collection[type[IAddress]] | None = None,  # noqa: N803
        transportSemantics: Literal["TCP", "UDP"] = "TCP",  # noqa: N803
    ) -> HostResolution:
        """Tell a receiver the addresses of a host; see twisted.internet.interfaces.IHostnameResolver."""
        resolution = HostResolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)

        def tell(found: Found) -> None:
            for address in found.addresses:
                kind = IPv6Address if ":" in address else IPv4Address
                if addressTypes is None or kind in addressTypes:
                    resolutionReceiver.addressResolved(kind(transportSemantics, address, portNumber))
            resolutionReceiver.resolutionComplete()

        self._find(hostName.lower(), tell)
        return resolution

    def _find(self, host: str, tell: Callable[[Found], None]) -> None:
        """Report the addresses of a host, at once or later."""
        if written := written_addresses(host):
            tell(self._judge(written, in_url=True))
        elif self._rules.hosts is not None:
            tell(self._kept(host, self._rules.hosts.get(host.removesuffix("."), ())))
        elif host in self._known and time.monotonic() < self._known[host][1]:
            self._known.move_to_end(host)
            tell(self._known[host][0])
        elif look_up := self._waiting.get(host):
            look_up.tell.append(tell)
            if look_up.hangs and look_up.timer is None:
                self._time(host, look_up)
        else:
            self._begin(host, tell)

    def _begin(self, host: str, tell: Callable[[Found], None]) -> None:
        """Begin the one look-up of a host for all that ask for it until it ends."""
        loop = asyncio.get_running_loop()
        look_up = self._waiting[host] = _LookUp([tell])

        def ask() -> None:
            """Look it up, in a thread."""
            found: Sequence[str] | NoAnswer
            _call(loop, self._time, host, look_up)
            try:
                found = self._look_up(host)
            except NoAnswer as error:
                found = error
            _call(loop, self._end, host, look_up, found)

        self._threads.run(ask)

    def _time(self, host: str, look_up: _LookUp) -> None:
        """Limit the wait for a look-up to ``seconds`` from its beginning or, if it already hangs, from now."""
        look_up.timer = asyncio.get_running_loop().call_later(self._timeout, self._give_up, host, look_up)

    def _give_up(self, host: str, look_up: _LookUp) -> None:
        """Tell that there is no answer; another thread takes the place of the one that is held up."""
        look_up.timer = None
        if not look_up.hangs:
            look_up.hangs = True
            self._threads.hanging += 1
            self._threads.start()
        look_up.end(Found((), said=f"the look-up of {host} took more than {self._timeout:g} s"))

    def _end(self, host: str, look_up: _LookUp, answer: Sequence[str] | NoAnswer) -> None:
        """Take the answer to a look-up; one for which nobody waits any more is known from now on."""
        del self._waiting[host]
        if look_up.timer is not None:
            look_up.timer.cancel()
        self._threads.hanging -= look_up.hangs
        if isinstance(answer, NoAnswer):
            look_up.end(Found((), said=str(answer)))
        else:
            look_up.end(self._kept(host, answer))

    def _kept(self, host: str, addresses: Sequence[str]) -> Found:
        """Return the verdict on the addresses of a host, and keep it for a while."""
        found = self._judge(addresses)
        seconds = _KEPT_SECONDS if found.addresses else _FAILURE_KEPT_SECONDS
        self._known.note(host, (found, time.monotonic() + (seconds if self._keeps else 0.0)))
        return found

    def _judge(self, addresses: Sequence[str], *, in_url: bool = False) -> Found:
        permitted = [address for address in addresses if self._rules.permit(address, in_url=in_url)]
        return Found(permitted, None if permitted or not addresses else addresses[0])


@dataclass(slots=True)
class _LookUp:
    """A look-up that is queued or under way."""

    tell: list[Callable[[Found], None]]
    """Callers that wait for its end."""
    timer: asyncio.TimerHandle | None = None
    """Ends their waiting; None before the look-up has begun, and after their time was up."""
    hangs: bool = False
    """True if it has taken too long."""

    def end(self, found: Found) -> None:
        """Report to the waiting callers."""
        if found.said:
            logger.debug("no answer: %s", found.said)
        waiting, self.tell = self.tell, []
        for tell in waiting:
            tell(found)


def _call(loop: asyncio.AbstractEventLoop, what: Callable[..., None], *args: object) -> None:
    """Call something in a loop's thread, from another one, unless the loop was closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what, *args)


class _Threads:
    """Threads for look-ups, started when they are needed.

    They are daemons, unlike the reactor's own and those of concurrent.futures: the end of a crawl does not wait for a
    look-up whose server does not answer.
    """

    def __init__(self) -> None:
        self.hanging = 0
        """Those with a look-up whose time is up."""
        self._started = 0
        self._idle = Semaphore(0)
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def run(self, job: Callable[[], None]) -> None:
        """Run a job in a thread, as soon as one is free."""
        if not self._idle.acquire(blocking=False):
            self.start()
        self._jobs.put(job)

    def start(self) -> None:
        """Start a thread, unless there are as many as there may be."""
        if self._started < min(_THREADS + self.hanging, _MOST_THREADS):
            self._started += 1
            Thread(target=self._work, name=f"dns-{self._started}", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._jobs.get()()
            self._idle.release()
