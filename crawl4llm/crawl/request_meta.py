"""What travels in the meta of a request: the lease it was made for, and the page that was fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawl4llm.base.pages import PageRecord
from crawl4llm.frontier import Lease

if TYPE_CHECKING:
    from scrapy import Request

_LEASE, _PAGE = "crawl4llm_lease", "crawl4llm_page"


def leased(lease: Lease) -> dict[str, Any]:
    """Return the meta of a request for a leased document."""
    return {_LEASE: lease}


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
