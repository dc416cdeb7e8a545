"""Bodies: a downloader middleware that ends the download of an answer that is no page or is too long."""

from __future__ import annotations

from typing import Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Headers, Response

from crawl4llm.base.errors import NoPage
from crawl4llm.crawl import is_leased
from crawl4llm.options import read_options
from crawl4llm.warc import Fields, all_known, decoded, may_be_html

CUT: Final = "crawl4llm_cut"
"""Flag of a response whose body was cut at BODY_LIMIT."""
MOST_UNPACKED: Final = "crawl4llm_most_unpacked"
"""In the meta of requests that are no page's: bytes of the unpacked body that are read, at most."""
MOST_RECEIVED: Final = "crawl4llm_most_received"
"""The same: bytes of the body, as they come over the wire, beyond which the download ends."""
_RECEIVED: Final = "crawl4llm_received"
"""In the same: bytes that have come."""


class Bodies:
    """Cuts bodies of pages at BODY_LIMIT, and takes none of a media type that no page has.

    Next to the network, so that all others see the body as it is archived. The download of anything else, such
    as robots.txt, ends at MOST_RECEIVED.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Read BODY_LIMIT. Raises InputError."""
        self._limit = read_options(crawler.settings).body_limit
        crawler.signals.connect(self._head_received, signal=signals.headers_received)
        crawler.signals.connect(self._received, signal=signals.bytes_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Bodies:
        """Build it with the settings of a crawl."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Begin to count; Scrapy's own limit would discard the page."""
        if MOST_RECEIVED in request.meta:
            request.meta[_RECEIVED] = 0
        elif self._limit and is_leased(request):
            request.meta[_RECEIVED] = request.meta["download_maxsize"] = 0

    def process_response(self, request: Request, response: Response) -> Response:
        """Return the response; a page is cut at the limit if the last part of its body exceeded it."""
        if not is_leased(request) or request.meta.get(_RECEIVED, 0) <= self._limit:
            return response
        return response.replace(body=response.body[: self._limit], flags=[*response.flags, CUT])

    def _head_received(self, headers: Headers, body_length: int | str, request: Request) -> None:
        """End the download of an answer whose head says that it is no page."""
        if body_length == 0:  # there is nothing to end, such as in most redirects
            return
        types = headers.getlist("Content-Type")
        if types and is_leased(request) and not may_be_html(b", ".join(types)):
            raise StopDownload(fail=False)

    def _received(self, data: bytes, request: Request) -> None:
        """End the download beyond the limit: a body of just that length is whole."""
        if _RECEIVED in request.meta:
            request.meta[_RECEIVED] += len(data)
            if request.meta[_RECEIVED] > request.meta.get(MOST_RECEIVED, self._limit):
                raise StopDownload(fail=False)


class Decompressing(HttpCompressionMiddleware):
    """Unpacks answers that are no pages, such as robots.txt, within limits. The process that parses a page unpacks
    it."""

    # Scrapy's takes the spider too, which is deprecated and asked of no middleware any more.
    def process_response(self, request: Request, response: Response) -> Response:  # type: ignore[override]
        """Return the response, unpacked if it is not a page's. Raises IgnoreRequest for a bomb and a damaged body.

        A coding that is not known stays, with the field of the head.
        """
        if is_leased(request) or not (codings := b",".join(response.headers.getlist("Content-Encoding"))):
            return response
        fields = Fields(b"\nContent-Encoding: " + codings)
        try:
            body = decoded(response.body, fields, request.meta.get(MOST_UNPACKED), as_sent=True)
        except (ValueError, NoPage) as error:
            refused = f"{request.url}: {error}"
        else:
            headers = Headers(response.headers)
            if all_known(codings):
                del headers["Content-Encoding"]
            return response.replace(body=body, headers=headers)
        raise IgnoreRequest(refused)  # here, since a cause would keep in memory what was unpacked
