"""Scrapy's redirects, with what a crawl of the live web needs besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware

if TYPE_CHECKING:
    from scrapy.http import Response


class Redirecting(RedirectMiddleware):
    """Takes a redirect that leads to no URL for what it is: an answer without a page. Sends one to another host in that
    host's slot of the downloader; Scrapy would leave it in the one where it began."""

    # Scrapy's takes the spider too, which is deprecated and asked of no middleware any more.
    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Return the request for where a redirect leads, or the answer itself."""
        try:
            result = super().process_response(request, response)
        except ValueError:  # such as javascript:, or a port that is none
            return response
        if isinstance(result, Request):
            result.meta.pop(Downloader.DOWNLOAD_SLOT, None)  # the new host has a delay of its own
        return result
