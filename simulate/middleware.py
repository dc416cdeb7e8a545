"""The downloader middleware of a simulation (FetchPages): answers requests from a corpus instead of the web."""

from __future__ import annotations

from scrapy import Request
from scrapy.http import HtmlResponse, Response, TextResponse

from crawl4llm.base.errors import MissingRecord
from crawl4llm.base.pages import Corpus, PageRecord
from crawl4llm.crawl.request_meta import attach_page, is_leased, lease_of
from simulate.web import SimulatedWeb


class SimulationMiddleware:
    """Answers each request from the corpus, 404 for a document that the corpus lacks. Nothing reaches the network.

    A damaged record raises CorruptRecord, which the request's errback gets.
    """

    web = SimulatedWeb

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def process_request(self, request: Request) -> Response:
        """Look up a leased document by its key, any other request by its URL."""
        key = lease_of(request).entry.key if is_leased(request) else self._corpus.resolve(request.url)
        try:
            page = None if key is None else self._corpus.page(key)
        except MissingRecord:
            page = None
        if page is None:
            return Response(request.url, status=404, request=request)
        attach_page(request, page)
        return _response(request, page)


def _response(request: Request, page: PageRecord) -> Response:
    if page.html is not None:
        return HtmlResponse(page.url, body=page.html, encoding="utf-8", request=request)
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    return TextResponse(page.url, headers=headers, body=(page.text or "").encode(), encoding="utf-8", request=request)
