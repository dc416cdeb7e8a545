"""Requests for leased documents, and what travels in their meta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from scrapy import Request

from crawl4llm.base.pages import PageRecord
from crawl4llm.frontier import Lease

_LEASE, _PAGE = "crawl4llm_lease", "crawl4llm_page"


def request_for(lease: Lease, callback: Callable[..., Any], errback: Callable[..., Any]) -> Request:
    """The request that fetches a leased document.

    A seed is asked for by its key where that is a URL. One that is known by another key alone, or has a URL that Scrapy
    does not take, is asked for as ``corpus://KEY``, with the key percent-encoded: it may be such a URL itself.
    """
    meta = {_LEASE: lease}
    try:
        return Request(lease.entry.url or lease.entry.key, callback, meta=meta, errback=errback, dont_filter=True)
    except ValueError:
        url = f"corpus://{quote(lease.entry.key, safe='')}"
        return Request(url, callback, meta=meta, errback=errback, dont_filter=True)


def lease_of(request: Request | None) -> Lease:
    """The lease a request was made for."""
    assert request is not None
    lease: Lease = request.meta[_LEASE]
    return lease


def is_leased(request: Request) -> bool:
    """Whether the request was made for a leased document."""
    return _LEASE in request.meta


def page_of(request: Request | None) -> PageRecord | None:
    """The page that was fetched for a request, if there is one."""
    assert request is not None
    return request.meta.get(_PAGE)


def attach_page(request: Request, page: PageRecord) -> None:
    """Hand the page that was fetched to the request's callback."""
    request.meta[_PAGE] = page
