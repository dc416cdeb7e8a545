"""What live crawls are measured against: plain Scrapy spiders that fetch each of the URLs given once.

They have Scrapy's settings as they are, but for the live profile's download handler
(``SCRAPY_SETTINGS_MODULE=benchmarks.live_peers``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import trafilatura
from resiliparse.extract.html2text import extract_plain_text
from scrapy import Request, Spider
from scrapy.http import Response, TextResponse

SPIDER_MODULES = [__name__]
USER_AGENT = "benchmark (+mailto:benchmark@example.org)"
NETWORK_ALLOWED = "127.0.0.0/8"
CONCURRENT_REQUESTS = 128
ROBOTSTXT_OBEY = True  # as the live profile does
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
LOG_LEVEL = "INFO"
REDIRECT_ENABLED = METAREFRESH_ENABLED = RETRY_ENABLED = False
DOWNLOAD_HANDLERS = {
    "http": "crawl4llm.live.wire.WireHandler",
    "https": "crawl4llm.live.wire.WireHandler",
}
EXTENSIONS = {"crawl4llm.live.network.Network": 0, "benchmarks.live_runs.Meter": 0}


class EmptySpider(Spider):
    """Fetches the URLs of a file, in their order, and does nothing with them."""

    name = "empty"

    def __init__(self, urls: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = Path(urls)

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls.read_text().splitlines():
            yield Request(url, dont_filter=True)

    def parse(self, response: Response, **_: Any) -> None:
        """Do nothing."""


class ExtractingSpider(EmptySpider):
    """Extracts each page's main text in its callback."""

    name = "extracting"

    def __init__(self, urls: str, extractor: str, **kwargs: Any) -> None:
        super().__init__(urls, **kwargs)
        self._extract = getattr(self, f"_{extractor}")

    def parse(self, response: Response, **_: Any) -> None:
        """Extract the text, and let it go."""
        if isinstance(response, TextResponse):
            self._extract(response.text)

    @staticmethod
    def _trafilatura(html: str) -> None:
        trafilatura.extract(html, fast=True, include_comments=False, include_tables=True)

    @staticmethod
    def _resiliparse(html: str) -> None:
        extract_plain_text(html, main_content=True, alt_texts=False, comments=False)
