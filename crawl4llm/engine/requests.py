"""The requests for leased documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote

from scrapy import Request

from crawl4llm.crawl import leased
from crawl4llm.frontier import Lease


def request_for(lease: Lease, callback: Callable[..., Any], errback: Callable[..., Any]) -> Request:
    """Return the request that fetches a leased document.

    A seed is requested by its key if that is a URL. Otherwise, or if Scrapy does not accept its URL, it is requested as
    ``corpus://KEY``. The key is percent-encoded, because it may be such a URL itself.
    """
    make = partial(Request, callback=callback, meta=leased(lease), errback=errback, dont_filter=True)
    try:
        return make(lease.entry.url or lease.entry.key)
    except ValueError:
        return make(f"corpus://{quote(lease.entry.key, safe='')}")
