"""Scrapy's redirects, with what a crawl of the live web needs besides."""

from __future__ import annotations

from urllib.parse import urldefrag

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.settings import BaseSettings

from crawl4llm.base.errors import NoPage
from crawl4llm.base.reasons import REDIRECT_LOOP, TOO_MANY_REDIRECTS
from crawl4llm.base.references import redirect_target


class Redirecting(RedirectMiddleware):
    """Follows a redirect to where it leads a browser. Takes one that leads to no URL for what it is: an answer without
    a page. Sends one to another host in that host's slot of the downloader; Scrapy would leave it in the one where it
    began. Ends a loop at its first URL that was asked for before."""

    def __init__(self, settings: BaseSettings) -> None:
        super().__init__(settings)
        self._ends_loops = not settings.getbool("COOKIES_ENABLED")
        """With a cookie the same URL may be answered otherwise, and REDIRECT_MAX_TIMES alone ends a loop."""

    # Scrapy's takes the spider too, which is deprecated and asked of no middleware any more.
    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Return the request for where a redirect leads, or the answer itself. Raises NoPage where redirects have no
        end."""
        target = redirect_target(request.url, response.headers.get("Location") or b"")
        if target is None:  # such as javascript:, or a port that is none
            return response
        headers = response.headers.copy()
        headers["Location"] = target
        try:
            result = super().process_response(request, response.replace(headers=headers))
        except IgnoreRequest as error:
            raise NoPage(f"{request.url}: {error}", TOO_MANY_REDIRECTS) from error
        if isinstance(result, Request):
            before = {urldefrag(url).url for url in result.meta["redirect_urls"]}
            if self._ends_loops and urldefrag(result.url).url in before:
                raise NoPage(f"{request.url}: redirects to {result.url} again", REDIRECT_LOOP)
            result.meta.pop(Downloader.DOWNLOAD_SLOT, None)  # the new host has a delay of its own
            return result
        return response
