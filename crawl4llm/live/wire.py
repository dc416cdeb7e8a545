"""HTTP messages as they go over the wire: Scrapy's handler for http and https, with a tap on its connections.

Twisted's HTTP client, on which the handler stands, hands on header fields by name: their case, their order and the
fields that concern the connection (RFC 9110, 7.6.1) are lost. So they are noted here as they are sent and parsed.

In a live crawl each request has a connection of its own. One that is kept until the owner's next turn, seconds later,
may have been closed by the server meanwhile; Twisted then sends the request a second time at once. And the many that
are never used again take this process's open files. :mod:`crawl4llm.live.answers` reads the answers.

No public way leads there. The tap leans on these names, which tests/live/test_wire.py holds to the installed versions:

- Scrapy: ``HTTP11DownloadHandler._pool``, the Twisted pool that its connections come from, and ``_contextFactory``,
  which verifies certificates.
- Twisted: ``HTTPConnectionPool._factory``, which makes factories of connections; ``HTTP11ClientProtocol._parser``,
  which reads the answer to the request just sent.
- Twisted: ``_handshakeDone`` of the transport of a TLS connection, which says that the next bytes are the request's.
- Public names of transports: ``transport``, by which one over TLS has the one below it, and ``writeSomeData`` of that,
  which gives bytes to the system, and may return why the connection is lost.
- Public names of transports over TLS: ``getHandle``, pyOpenSSL's connection.
- Public names of classes in Twisted's private module ``twisted.web._newclient``: ``HTTP11ClientProtocol.request``,
  ``Request.writeTo``, which writes the head in one ``writeSequence``, and ``Request.absoluteURI``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final
from urllib.parse import urldefrag

from OpenSSL import SSL
from scrapy import Request, signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.web.client import URI

from crawl4llm.base.errors import NoPage
from crawl4llm.base.pages import utc_date
from crawl4llm.base.reasons import DNS, REFUSED_ADDRESS
from crawl4llm.base.urls import host_of
from crawl4llm.crawl import Driven, is_leased, lease_of
from crawl4llm.frontier import Outcome
from crawl4llm.live.answers import AnswerTap, Exchange
from crawl4llm.live.certificates import NamedHosts
from crawl4llm.live.network import Network
from crawl4llm.live.places import LONGEST_TRY, TRY
from crawl4llm.live.request_log import LED, SENT, RequestLog, purpose_of, reason_of
from crawl4llm.live.stopping import NotHeld, Stopping, Withdrawn, abort_downloads, crawl_of, is_stopping
from crawl4llm.live.verdicts import verdict

_EXCHANGE: Final = "crawl4llm_exchange"
_LONGEST_IDLE: Final = 4
"""Seconds for which an idle connection is kept. Many servers close it after five, and a request at that moment fails;
also, a crawl of many owners would hold too many open files."""
_STATUSES: Final = range(100, 600)
_UNKNOWN_ERROR: Final = 599
"""A status that no server sends."""


def take_exchange(request: Request) -> Exchange | None:
    """Return, once, the recorded exchange of a request; None if its answer did not come through this handler."""
    exchange: Exchange | None = request.meta.pop(_EXCHANGE, None)
    return exchange


def known_status(status: int) -> int:
    """Return a status, or 599 if it is invalid: such an answer counts as a server error (RFC 9110, 15)."""
    return status if status in _STATUSES else _UNKNOWN_ERROR


class WireHandler(HTTP11DownloadHandler):
    """Attaches to each request the exchange that :func:`take_exchange` returns. The head of an answer has a limit.

    With the extension Stopping it raises Withdrawn for a request that a stop ends. With Network it raises NoPage for a
    host that may not be connected to. The add-on has neither. With Network an invalid status is replaced by 599. A
    connection is not kept if the owner's next request would come too late for it. No request is sent twice: Twisted
    alone would repeat one at once if its reused connection was closed without an answer.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._of = crawler
        self._begun: Exchange | None = None
        """Of the response whose head has just been read."""
        self._pool._factory = partial(self._tapped_factory, self._pool._factory)  # type: ignore[assignment]
        if crawler.settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"):
            self._contextFactory = NamedHosts(self._contextFactory)  # type: ignore[assignment]
        self._on_the_wire: set[asyncio.Task[Response]] = set()
        self._unconnected: dict[str, list[Request]] = {}
        """Requests that have no connection yet, by host."""
        self._withdraws = crawler.get_extension(Stopping) is not None
        self._network = crawler.get_extension(Network)
        self._log = crawler.get_extension(RequestLog)
        self._crawl = crawl_of(crawler)
        if self._network is not None:
            self._pool.persistent = crawler.settings.getfloat("DOWNLOAD_DELAY") < _LONGEST_IDLE
            self._pool.retryAutomatically, self._pool.cachedConnectionTimeout = False, _LONGEST_IDLE
        self._aborted = False
        self._led: set[str] = set()
        """Hosts that are asked for a robots.txt to which another site's redirects."""
        self._tries: dict[str, Any] = {}
        """By host, of which one request at a time is sent: its transport, once it has one, of those that are tries."""
        self._too_late: set[str] = set()
        """Hosts to which no connection came in time."""
        self._withheld: set[str] = set()
        """Hosts that a request was not written to, as they may be another worker's by now."""
        crawler.signals.connect(self._note, signal=signals.headers_received)
        crawler.signals.connect(self._abort, signal=abort_downloads)

    async def download_request(self, request: Request) -> Response:
        """Send a request, and note it in the request log; returns its response. Not while the crawl is stopping, nor to
        a domain that is blocked."""
        if self._withdraws and is_stopping(self._of):
            raise Withdrawn("the crawl is stopping")
        if self._crawl is not None and (refusal := self._crawl.scope.blocked(request.url)) is not None:
            raise NoPage(f"{request.url}: its domain is blocked", refusal.reason, wanted=False, why=refusal.why)
        request.meta[SENT] = False
        failure = None
        try:
            return await (self._send(request) if self._log is None else self._log.noted(request, self._send))
        except BaseException as error:
            failure = reason_of(error)
            raise
        finally:
            if self._crawl is not None:
                unsent = None if request.meta[SENT] else failure
                lease = lease_of(request) if is_leased(request) else None
                self._crawl.requested(request.url, purpose_of(request), unsent, lease)

    async def _send(self, request: Request) -> Response:
        if self._network is not None:
            self._network.install()
        host = host_of(request.url)
        led = {host} if LED in request.meta else set()
        unconnected = self._unconnected.setdefault(host, [])
        unconnected.append(request)
        self._led |= led
        exchange = asyncio.ensure_future(super().download_request(request))
        self._on_the_wire.add(exchange)
        if (seconds := request.meta.get(TRY)) is not None:
            self._tries[host] = None
            timer = asyncio.get_running_loop().call_later(seconds, self._end_try, host, exchange)
            exchange.add_done_callback(lambda _: timer.cancel())
        try:
            response = await exchange
        except BaseException as error:
            if self._aborted:
                raise Withdrawn("the crawl is stopping") from None
            if host in self._too_late:
                raise TimeoutError(f"{request.url}: no connection in {LONGEST_TRY:g} s") from None
            if host in self._withheld:
                raise NotHeld(request.url) from None
            if verdict(error) == (Outcome.FAILED, DNS):
                self._check_refusal(request)
            raise
        finally:
            self._on_the_wire.discard(exchange)
            self._led -= led
            if request in unconnected:
                unconnected.remove(request)
            if not self._unconnected.get(host):  # that list may be a later one
                self._unconnected.pop(host, None)
            self._withheld.discard(host)
            self._too_late.discard(host)
            self._tries.pop(host, None)
        if self._network is None or response.status in _STATUSES:
            return response
        return response.replace(status=known_status(response.status))

    def _end_try(self, host: str, exchange: asyncio.Task[Response]) -> None:
        """End an exchange that has no connection yet, or one without a finished handshake of TLS."""
        transport = self._tries.get(host)
        handle = getattr(transport, "getHandle", None)
        tls = handle() if handle is not None else None
        if transport is None or (isinstance(tls, SSL.Connection) and tls.get_peer_finished() is None):
            self._too_late.add(host)
            exchange.cancel()

    def _check_refusal(self, request: Request) -> None:
        """Raise NoPage if the host of a request, or its proxy's, has an address, but none that may be asked."""
        host = host_of(request.meta.get("proxy") or request.url)
        if self._network is not None and (address := self._network.refused(host)):
            raise NoPage(f"{request.url}: {host} is {address}, which is not public", REFUSED_ADDRESS, wanted=False)

    def _abort(self) -> None:
        """End the exchange in flight."""
        self._aborted = True
        for exchange in self._on_the_wire:
            exchange.cancel()

    def _note(self, request: Request) -> None:
        """Attach the exchange just begun; Scrapy sends this in the callback chain of the request's own response. A site
        whose head came has answered, whatever becomes of the body."""
        if self._crawl is not None and (sites := self._crawl.sites_of(request.url)) is not None:
            sites.answered(request.url)
        if self._begun is not None:
            request.meta[_EXCHANGE], self._begun = self._begun, None

    def _tapped_factory(self, make: Callable[..., Any], *args: Any) -> Any:
        """Return a factory of connections that are tapped, as the pool asks for one."""
        factory = make(*args)
        build = factory.buildProtocol

        def build_tapped(address: Any) -> Any:
            connection = build(address)
            connection.request = partial(self._request, connection, connection.request)
            return connection

        factory.buildProtocol = build_tapped
        return factory

    def _request(self, connection: Any, send: Callable[[Any], Any], request: Any) -> Any:
        """Send a request over a connection, which has one at a time."""
        address = getattr(connection.transport.getPeer(), "host", None)
        exchange = Exchange(utc_date(), time.monotonic(), ip_address=address)
        url = _url_of(request)
        if (host := host_of(url)) in self._tries:
            self._tries[host] = connection.transport
        if self._crawl is not None:
            asked = _taken(self._unconnected.get(host, []), request)
            self._guard(connection.transport, self._crawl, url, exchange, asked)
        write = request.writeTo
        request.writeTo = lambda transport: write(_Tap(transport, exchange))
        answered = send(request)
        if connection._parser is not None:  # else the connection could not take the request
            AnswerTap(connection, exchange, closes=not self._pool.persistent)
        return answered.addCallback(self._begin_response, exchange)

    def _guard(self, transport: Any, crawl: Driven, url: str, exchange: Exchange, asked: Request | None) -> None:
        """Let the connection be lost if its host is blocked, or may be another worker's, when the request is written.

        The loop may write it late: after the handshake of TLS, or after the process has stood still. Note with the
        request that it is written.
        """
        top = transport
        while (below := getattr(transport, "transport", None)) is not None:
            transport = below
        host, write = host_of(url), partial(type(transport).writeSomeData, transport)

        def write_if_held(data: bytes) -> Any:
            may_be_sent = crawl.scope.blocked(url) is None and crawl.may_send(url, led=host in self._led)
            if exchange.status_line or may_be_sent:
                written = write(data)
                if asked is not None and exchange.request_head and getattr(top, "_handshakeDone", True):
                    asked.meta[SENT] = asked.meta[SENT] or (isinstance(written, int) and written > 0)
                return written
            self._withheld.add(host)
            return NotHeld(url)

        transport.writeSomeData = write_if_held

    def _begin_response(self, response: Any, exchange: Exchange) -> Any:
        self._begun = exchange
        return response


def _taken(waiting: list[Request], request: Any) -> Request | None:
    """Remove from those that wait, all of one host, the request that is one of Twisted's; there is mostly one."""
    for place, asked in enumerate(waiting):
        if len(waiting) == 1 or _as_twisted(asked.url) == request.absoluteURI:
            return waiting.pop(place)
    return None


def _as_twisted(url: str) -> bytes:
    """Return a URL as one of Twisted's requests has it."""
    parsed: Any = URI
    return bytes(parsed.fromBytes(urldefrag(url).url.encode("ascii", "replace")).toBytes())


def _url_of(request: Any) -> str:
    """Return a URL of the host that one of Twisted's requests is for."""
    (host, *_) = request.headers.getRawHeaders(b"host") or [b""]
    return f"http://{host.decode('latin-1')}/"


class _Tap:
    """A transport that notes the head of the request written to it: Twisted writes that, and nothing else, in lines."""

    def __init__(self, transport: Any, exchange: Exchange) -> None:
        self._transport = transport
        self._exchange = exchange

    def writeSequence(self, lines: Iterable[bytes]) -> None:  # noqa: N802 - Twisted's name
        lines = list(lines)
        self._exchange.request_head = b"".join(lines)
        self._transport.writeSequence(lines)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
