"""The downloader middleware of a simulation (FetchPages): answers requests from a corpus instead of the web."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.http import HtmlResponse, Response, TextResponse

from crawl4llm.base.errors import MissingRecord
from crawl4llm.base.pages import PageRecord
from crawl4llm.crawl import Found, attach_page, attach_pages, crawl_on, is_for_several, is_leased, lease_of, leases_of
from simulate.web import LookUp, SimulatedWeb, Visited

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class SimulationMiddleware:
    """Answers each request from the corpus, 404 for a document that the corpus lacks. Nothing reaches the network.

    A damaged record raises CorruptRecord, which the request's errback gets. A request for several documents gets each
    page, or error, as its callback comes to it; the pages may lack content if nothing is archived.
    """

    web = SimulatedWeb
    takes_several = True
    """That a request may be for several documents."""

    def __init__(self, resolve: Callable[[str], str | None], page: LookUp, look_up: LookUp) -> None:
        """``look_up`` gives the pages of a request for several documents."""
        self._resolve, self._page, self._look_up = resolve, page, look_up

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SimulationMiddleware:
        """Return one for the corpus of the crawl that a crawler runs, or else for the corpus of its settings."""
        if (found := crawl_on(SimulatedWeb, crawler)) is None:
            visited = Visited(crawler.settings)
            return cls(visited.resolve, visited.page, visited.page)
        web, crawl = found
        return cls(web.corpus.resolve, web.corpus.page, web.look_up(crawl))

    def process_request(self, request: Request) -> Response:
        """Look up leased documents by their keys, any other request by its URL."""
        if is_for_several(request):
            attach_pages(request, (self._page_or_error(lease.entry.key) for lease in leases_of(request)))
            return Response(request.url, request=request)
        key = lease_of(request).entry.key if is_leased(request) else self._resolve(request.url)
        page = None if key is None else _found(self._page, key)
        if page is None:
            return Response(request.url, status=404, request=request)
        attach_page(request, page)
        return _response(request, page)

    def _page_or_error(self, key: str) -> Found:
        try:
            return _found(self._look_up, key)
        except Exception as error:  # noqa: BLE001 - of whatever kind: the callback takes it as its document's
            return error


def _found(look_up: LookUp, key: str) -> PageRecord | None:
    try:
        return look_up(key)
    except MissingRecord:
        return None


def _response(request: Request, page: PageRecord) -> Response:
    if page.html is not None:
        return HtmlResponse(page.url, body=page.html, encoding="utf-8", request=request)
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    return TextResponse(page.url, headers=headers, body=(page.text or "").encode(), encoding="utf-8", request=request)
