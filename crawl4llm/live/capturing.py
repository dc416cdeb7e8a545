"""Exchanges as they went over the network: a middleware keeps them with their requests.

Exchanges without a page are archived too, so that the crawl can be explained from its archive. Answers for robots.txt
and the like are archived whole, and so are answers whose bodies unpack to far too much. If a server refused a document,
or the head of its answer opts it out, only that head is archived. It shows who forbade to keep the document, without
the document.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Final
from urllib.parse import urldefrag

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from crawl4llm.base.errors import Why
from crawl4llm.base.pages import Capture, HeaderFields, Truncation, utc_date
from crawl4llm.crawl import Driven, Hop, is_leased, lease_of
from crawl4llm.live.answers import Exchange
from crawl4llm.live.bodies import CUT
from crawl4llm.live.request_log import purpose_of
from crawl4llm.live.stopping import crawl_of
from crawl4llm.live.wire import take_exchange
from crawl4llm.warc import digest

BOMB, REFUSAL, OPT_OUT_HEAD = "bomb", "refusal", "opt-out"
"""Purposes of exchanges, besides the names of files."""
REFUSALS: Final = {401, 402, 403, 451}
"""Statuses that refuse a document to this crawler, as opposed to those that say that it does not exist."""
REDIRECTS: Final = {301, 302, 303, 307, 308}
_CAPTURES, _SENT = "crawl4llm_captures", "crawl4llm_sent"
WANTED: Final = "crawl4llm_wanted"
"""In the meta of requests for files of sites, whose answers are archived."""
ALLOWED_BY: Final = "crawl4llm_allowed_by"
"""In the meta of requests: the robots.txt that allowed it, as :attr:`crawl4llm.base.pages.Capture.robots` has it."""
_MAGIC: Final = {b"gzip": b"\x1f\x8b", b"x-gzip": b"\x1f\x8b", b"zstd": b"\x28\xb5\x2f\xfd"}
"""Content codings whose bodies can be recognised (RFC 1952, 2.3.1; RFC 8878, 3.1.1)."""


def captures_of(request: Request) -> tuple[Capture, ...]:
    """Return the exchanges that led to a request's response, redirects first; none if it was not sent."""
    captures: tuple[Capture, ...] = request.meta.get(_CAPTURES, ())
    return captures


def forget_captures(request: Request) -> None:
    """Remove the captures that a request has from another one, whose meta was copied."""
    request.meta.pop(_CAPTURES, None)


def hop_of(request: Request) -> Hop | None:
    """Return the redirects that led to a request without an answer; None if there were no redirects."""
    redirects = [capture for capture in captures_of(request) if capture.status in REDIRECTS]
    return Hop(request.url, redirects) if redirects else None


def go_on(request: Request, hop: Hop) -> Request:
    """Return the request for where redirects have led, to replace the one for the document they began at."""
    meta = {**request.meta, _CAPTURES: tuple(hop.captures), "redirect_times": len(hop.captures)}
    return request.replace(url=hop.url, meta=meta)


class Capturing:
    """Downloader middleware, the innermost except Bodies.

    Next to it are cookies, decompression, redirects, retries and the cache. An answer from a cache or from another
    middleware has no capture, because no request was sent. Requests of Scrapy's own (the files of media pipelines) are
    left alone, unless they are WANTED. An answer through another download handler is counted here.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Capturing:
        """Build it for the crawl of the spider."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Note that the request goes to the network now."""
        take_exchange(request)  # of a request that this one is a copy of
        request.meta[_SENT] = request.callback is not NO_CALLBACK or WANTED in request.meta

    def process_response(self, request: Request, response: Response) -> Response:
        """Keep the exchange with the request; the answer is passed on."""
        exchange = take_exchange(request)
        if request.meta.pop(_SENT, False):
            redirects = [capture for capture in captures_of(request) if capture.status in REDIRECTS]
            request.meta[_CAPTURES] = (*redirects, _capture(request, response, exchange))
            if exchange is None:
                self._count(request)
        else:
            forget_captures(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Forget the request: there is no answer."""
        take_exchange(request)
        request.meta.pop(_SENT, None)

    def _count(self, request: Request) -> None:
        if (crawl := crawl_of(self._crawler)) is not None:
            lease = lease_of(request) if is_leased(request) else None
            crawl.requested(request.url, purpose_of(request), None, lease)


def _capture(request: Request, response: Response, exchange: Exchange | None) -> Capture:
    make = partial(
        Capture,
        url=urldefrag(request.url).url,
        method=request.method,
        request_body=request.body,
        status=response.status,
        body=response.body,
        truncated=_truncated(response.flags),
        robots=request.meta.get(ALLOWED_BY),
    )
    if exchange is not None and exchange.status_line:
        protocol, _, rest = exchange.status_line.partition(b" ")
        return make(
            date=exchange.date,
            request_headers=exchange.request_headers,
            reason=rest.partition(b" ")[2].decode("latin-1"),
            headers=exchange.headers,
            exact_headers=True,
            protocol=protocol.decode("latin-1").lower(),
            ip_address=exchange.ip_address,
            milliseconds=round(1000 * (time.monotonic() - exchange.started)),
        )
    # Through another handler (HTTP/2, a browser): as far as it can be known.
    headers = [(name, value) for name, values in response.headers.items() for value in values]
    return make(
        date=utc_date(seconds_ago=request.meta.get("download_latency", 0.0)),  # until the head was there
        request_headers=[(name, value) for name, values in request.headers.items() for value in values],
        reason=HTTPStatus(response.status).phrase if response.status in set(HTTPStatus) else "",
        headers=headers,
        exact_headers=False,
        body_is_decoded=_is_decoded(headers, response.body),
        protocol=response.protocol.lower() if response.protocol else None,
        ip_address=str(response.ip_address) if response.ip_address else None,
    )


def _truncated(flags: Sequence[str]) -> Truncation | None:
    """Return why a body is not whole, by Scrapy's flags and ours."""
    if CUT in flags:
        return "length"
    if "dataloss" in flags:
        return "disconnect"
    return "unspecified" if "download_stopped" in flags else None


def _is_decoded(headers: HeaderFields, body: bytes) -> bool:
    """Return whether the handler has undone the content coding that the head names."""
    coding = next((value.strip().lower() for name, value in headers if name.lower() == b"content-encoding"), b"")
    return bool(body) and coding in _MAGIC and not body.startswith(_MAGIC[coding])


def keep(crawler: Crawler, request: Request, purpose: str, site: str) -> str | None:
    """Archive the exchange of a request; ``site``: the site whose file the answer is.

    Returns the digest and date by which its record is found; None if there was no exchange: an answer of a cache.
    """
    captures = captures_of(request)
    if not captures:
        return None
    capture = captures[-1]
    if capture.truncated == "unspecified":  # Scrapy's, of a download that was stopped: we do that at a length only
        capture = replace(capture, truncated="length")
    if (crawl := crawl_of(crawler)) is not None:
        crawl.keep_exchange(capture, purpose, {"site": site})
    return source_of(capture)


def keep_head(
    crawl: Driven, request: Request, purpose: str, rule: str, about: Mapping[str, str] = MappingProxyType({})
) -> Why | None:
    """Archive the head of the answer to a request for a document that is not to be kept itself.

    Redirects that led there are left out. ``about``: more for the record's metadata. Returns the rule with the place of
    the record; None if nothing was sent.
    """
    captures = captures_of(request)
    if not captures:
        return None
    head = replace(captures[-1], body=b"", truncated="unspecified" if captures[-1].body else None)
    crawl.keep_exchange(head, purpose, {"said": rule, **about})
    return why(rule, source_of(head))


def keep_bomb(crawl: Driven, request: Request) -> Why | None:
    """Archive the answer to a request for a document as it was sent, because its body unpacks to far too much.

    Redirects that led there are left out. Returns the rule with the place of the record; None if nothing was sent.
    """
    captures = captures_of(request)
    if not captures:
        return None
    rule = f"{len(captures[-1].body):,} bytes that unpack to far more"
    crawl.keep_exchange(captures[-1], BOMB, {"said": rule})
    return why(rule, source_of(captures[-1]))


def source_of(capture: Capture) -> str:
    """Return payload digest and date of a capture's record, as in the index, with a blank between."""
    return f"{digest(capture.body)} {capture.date}"


def of_target(rule: str, request: Request) -> str:
    """Return a rule against a request, with the request's URL if redirects led to it: the document itself was
    allowed."""
    return f"{rule}, for {request.url}" if request.meta.get("redirect_times") else rule


def why(rule: str, source: str | None) -> Why:
    """Return a rule with the place of the record that says so."""
    if not source:
        return Why(rule)
    payload_digest, _, date = source.partition(" ")
    return Why(rule, payload_digest, date)
