"""Scores the requests of other people's spiders: by the page on which each was found."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.spidermiddlewares.base import BaseSpiderMiddleware

from crawl4llm.addon.meta import GIVEN, as_score, note_found
from crawl4llm.addon.run import AddonRun

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)


class LinkScoring(BaseSpiderMiddleware):
    """Notes on each request that a spider makes where it was found."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._run = AddonRun.of(crawler)
        self._complained = False

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Nothing is started when the add-on cannot do its work."""
        if self._run.failure is None:
            async for item in super().process_start(start):
                yield item

    def get_processed_request(self, request: Request, response: Response | None) -> Request:
        """See BaseSpiderMiddleware; ``response`` is None for start requests."""
        note_found(request, response)
        given = request.meta.get(GIVEN)
        if given is not None and as_score(given) is None and not self._complained:
            self._complained = True
            logger.warning("meta[%r] = %r of %s is not a number; such scores are not used", GIVEN, given, request)
        return request
