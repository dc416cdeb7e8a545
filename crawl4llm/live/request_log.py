"""The request log of a live crawl with JOBDIR or STORAGE: each request with its time, owner, and the rule it waited
for."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from crawl4llm.base.domains import owner_of
from crawl4llm.base.reasons import ERROR, STOPPED
from crawl4llm.crawl import RequestFiles, RequestLines, is_leased, lease_of
from crawl4llm.live.recent import Recent
from crawl4llm.live.stopping import Withdrawn, crawl_of
from crawl4llm.live.verdicts import verdict

CONTROL, CRAWL_DELAY, DELAY_FACTOR = "control.json", "Crawl-delay", "DELAY_FACTOR"
DOWNLOAD_DELAY, IP_RATE, RETRY_AFTER, RETRY_WAITS = "DOWNLOAD_DELAY", "IP_RATE", "Retry-After", "RETRY_WAITS"
SLOWED = "429, 503"
"""The rules by which an owner's next request waits."""
SITEMAP: Final = "crawl4llm_sitemap"
"""In the meta of requests for sitemaps."""
SENT: Final = "crawl4llm_sent_out"
"""In the meta of requests: whether a byte of it has been given to the network."""
PRICES: Final = {
    "crawler-price": "Cloudflare pay per crawl: currency and amount (documentation of 2025-08-27)",
    "crawler-error": "the same: what was wrong with an offer",
    "payment-required": "x402 version 2: JSON in Base64",
    "www-authenticate": "RSL 1.0 (2025-11-06), Crawler Authorization Protocol: License ...",
    "link": "RSL 1.0: the licence",
}
"""Header fields of 402 responses with prices and ways to pay. They are logged, never acted upon."""
_LONGEST_PRICE: Final = 500
"""Characters of a field's value that are noted."""
_MOST_PRICES: Final = 10
FILE: Final = "crawl4llm_file"
"""In the meta of requests for files of sites: their purpose, if that is not robots.txt."""
LED: Final = "crawl4llm_robots_led"
"""In the meta of requests for a robots.txt to which that of another site redirects."""
_OWNERS: Final = 65_536
"""Owners whose last exchange is remembered, the last ones; about 200 bytes each."""
_LONGEST_URL: Final = 4096


class RequestLog:
    """Scrapy extension: a line for each request, when its exchange has ended, however it ended.

    A line is a JSON object with

    - ``time``, in UTC, at which the request was given to the network; ``owner``; ``url``;
    - ``for``: ``document``, ``redirect``, ``retry``, ``robots.txt``, ``tdmrep.json``, ``sitemap`` or ``other``;
    - ``sent``: whether a byte of it went out; false if the look-up or the connection failed;
    - ``status``; ``error``: the reason, if there was no answer;
    - ``bytes`` of the body; ``ms`` that the exchange took;
    - ``waited``: seconds since the end of the last exchange with that owner; null if none is remembered;
    - ``rule``: the reason for which the owner had to be left alone;
    - ``price``, only with status 402: the answer's words about a price.
    """

    def __init__(self, crawler: Crawler, files: RequestLines) -> None:
        """``files`` takes the lines."""
        self._files = files
        self._last: Recent[tuple[float, str | None]] = Recent(_OWNERS)
        """By owner: when its last exchange ended, by the monotonic clock, and the rule for the next."""
        crawler.signals.connect(self._files.close, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RequestLog:
        """Build it for a crawl with JOBDIR or STORAGE. Raises NotConfigured for other crawls, and InputError if the
        folder cannot be made."""
        if (crawl := crawl_of(crawler)) is None:
            raise NotConfigured
        jobdir = crawler.settings.get("JOBDIR")
        files: RequestLines | None = RequestFiles(Path(jobdir)) if jobdir else crawl.requests
        if files is None:
            raise NotConfigured
        return cls(crawler, files)

    def note_rule(self, owner: str, rule: str) -> None:
        """Record the rule that an owner's next request waits for."""
        ended, _ = self._last.get(owner, (None, None))
        if ended is not None:
            self._last[owner] = ended, rule

    async def noted(self, request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
        """Send a request, and write its line. Raises the errors of ``send``, and InputError if the line cannot be
        written."""
        at, began = time.time(), time.monotonic()
        owner = owner_of(request.url)
        ended, rule = self._last.get(owner, (None, None))
        response, error = None, None
        try:
            response = await send(request)
        except BaseException as raised:
            error = reason_of(raised)
            raise
        else:
            return response
        finally:
            now = time.monotonic()
            self._last.note(owner, (now, None))
            date = datetime.fromtimestamp(at, tz=timezone.utc).isoformat(timespec="milliseconds")
            line = {
                "time": date.replace("+00:00", "Z"),
                "owner": owner,
                "url": request.url[:_LONGEST_URL],
                "for": purpose_of(request),
                "sent": request.meta[SENT],
                "status": response and response.status,
                "error": error,
                "bytes": len(response.body) if response else 0,
                "ms": round(1000 * (now - began)),
                "waited": None if ended is None else round(began - ended, 3),
                "rule": rule,
            }
            if response and (price := price_of(response)):
                line["price"] = price
            self._files.append(json.dumps(line).encode() + b"\n", at)


def price_of(response: Response) -> str | None:
    """Return the fields of a 402 that are in PRICES, as ``name: value; ...``; None for other answers, or without such
    fields.

    Characters that are not printable ASCII are replaced.
    """
    if response.status != 402:
        return None
    found = []
    for name in PRICES:
        for value in response.headers.getlist(name):
            text = value[:_LONGEST_PRICE].decode("ascii", "replace")
            found.append(f"{name}: {''.join(char if ' ' <= char <= '~' else '?' for char in text)}")
    return "; ".join(found[:_MOST_PRICES]) or None


def reason_of(error: BaseException) -> str:
    """Return why a request has no answer: a reason of a document, or STOPPED."""
    if isinstance(error, (Withdrawn, asyncio.CancelledError)):
        return STOPPED
    known = verdict(error)
    return ERROR if known is None else known[1]


def purpose_of(request: Request) -> str:
    """Return the purpose of a request, as the log has it."""
    if not is_leased(request):
        if SITEMAP in request.meta:
            return "sitemap"
        return str(request.meta.get(FILE, "robots.txt")) if request.meta.get("dont_obey_robotstxt") else "other"
    if request.meta.get("redirect_times"):
        return "redirect"
    return "retry" if request.meta.get("retry_times") or lease_of(request).entry.attempts > 1 else "document"
