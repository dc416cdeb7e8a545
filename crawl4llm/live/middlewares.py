"""Scrapy's redirects and robots.txt, with what a crawl of the live web needs besides."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.utils.httpobj import urlparse_cached

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser


class Redirecting(RedirectMiddleware):
    """Takes a redirect that leads to no URL for what it is: an answer without a page."""

    # Scrapy's takes the spider too, which is deprecated and asked of no middleware any more.
    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Return the request for where a redirect leads, or the answer itself."""
        try:
            return super().process_response(request, response)
        except ValueError:  # such as javascript:, or a port that is none
            return response


class Robots(RobotsTxtMiddleware):
    """Lets a host's first request wait for robots.txt, and the others for the first.

    Scrapy (2.13 to 2.19) lets all wait for one Deferred. asyncio's view of that hands its result to the first who
    waits, and None to the rest, which are then fetched whatever robots.txt says.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By host and port, as Scrapy keeps the rules."""

    async def robot_parser(self, request: Request) -> RobotParser | None:
        """Return the rules for a request; None where the host has none."""
        async with self._turns[urlparse_cached(request).netloc]:
            return await super().robot_parser(request)
