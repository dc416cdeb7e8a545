"""What is taken of an answer: a downloader middleware that ends the download of what is no page, or too long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scrapy import signals
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest, StopDownload

from crawl4llm.base.errors import Bomb, NoPage
from crawl4llm.base.reasons import DAMAGED
from crawl4llm.crawl.reorder_buffer import is_leased
from crawl4llm.options import read_options
from crawl4llm.warc.payload import decoded, may_be_html
from crawl4llm.warc.records import Fields

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response

CUT: Final = "crawl4llm_cut"
"""Flag of a response whose body was cut at BODY_LIMIT."""
_LARGEST_FILE: Final = 50 << 20
"""Bytes to which an answer that is no page's is unpacked where its request has no limit: those of a sitemap."""
_RECEIVED: Final = "crawl4llm_received"


@dataclass(slots=True)
class _Received:
    """How many bytes of the body have come that a request is answered with."""

    size: int = 0


class Bodies:
    """Cuts bodies of pages at BODY_LIMIT, and takes none of a media type that no page has.

    Next to the network, so that all others see the body as it is archived. Requests that are not for a page
    (robots.txt) are left alone.
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
        if self._limit and is_leased(request):
            request.meta[_RECEIVED] = _Received()
            request.meta["download_maxsize"] = 0

    def process_response(self, request: Request, response: Response) -> Response:
        """Return the response, without what came beyond the limit in the last part of the body."""
        received: _Received | None = request.meta.get(_RECEIVED)
        if received is None or received.size <= self._limit:
            return response
        return response.replace(body=response.body[: self._limit], flags=[*response.flags, CUT])

    def _head_received(self, headers: Headers, body_length: int | str, request: Request) -> None:
        """End the download of what its head says is no page; of several types the first counts, as it does later."""
        if body_length == 0:  # there is nothing to end, such as in most redirects
            return
        types = headers.getlist("Content-Type")
        if types and is_leased(request) and not may_be_html(types[0]):
            raise StopDownload(fail=False)

    def _received(self, data: bytes, request: Request) -> None:
        """End the download beyond the limit: a body of just that length is whole."""
        received: _Received | None = request.meta.get(_RECEIVED)
        if received is not None:
            received.size += len(data)
            if received.size > self._limit:
                raise StopDownload(fail=False)


class Decompressing(HttpCompressionMiddleware):
    """Undoes content codings of answers that are no page's, such as a robots.txt, within the bounds of pages.

    Pages are read as archived, in the processes that parse them. Of what unpacks to far too much nothing is kept:
    Scrapy's own way keeps as much as DOWNLOAD_MAXSIZE allows, for as long as its error lives.
    """

    # Scrapy's takes the spider too, which is deprecated and asked of no middleware any more.
    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Return the response, decoded if it is not a page's. Raises IgnoreRequest if it unpacks to more than its
        DOWNLOAD_MAXSIZE, and NoPage if it is a bomb or damaged."""
        named = response.headers.getlist("Content-Encoding")
        if is_leased(request) or request.method == "HEAD" or not named:
            return response
        most = request.meta.get("download_maxsize", self._max_size) or _LARGEST_FILE
        body, fault = _decoded(response.body, Fields(b"\nContent-Encoding: " + b", ".join(named)), most)
        if fault is not None:
            raise NoPage(f"{response.url}: {fault[1]}", fault[0])
        if len(body) > most:
            del body
            raise IgnoreRequest(f"{response.url}: unpacks to more than DOWNLOAD_MAXSIZE ({most:,} bytes)")
        decoded_response = response.replace(body=body)
        del decoded_response.headers["Content-Encoding"]
        return decoded_response


def _decoded(body: bytes, fields: Fields, most: int) -> tuple[bytes, tuple[str, str] | None]:
    """Return a body without its codings, a byte more than ``most`` at most; or why it has none, as reason and message.
    An error that were raised from here would keep what was unpacked until then."""
    try:
        return decoded(body, fields, most + 1, as_sent=True), None
    except Bomb as error:
        return b"", (error.reason, str(error))
    except ValueError as error:
        return b"", (DAMAGED, str(error))
