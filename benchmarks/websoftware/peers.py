"""Plain Scrapy on the web of real software: a CrawlSpider that follows each link breadth first and extracts texts with
trafilatura, alone or with Nutch's default URL filter (``SCRAPY_SETTINGS_MODULE``)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import trafilatura
from scrapy import Request
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

SPIDER_MODULES = [__name__]
NETWORK_ALLOWED = "127.0.0.0/8"
ROBOTSTXT_OBEY = True
TELNETCONSOLE_ENABLED = False
LOG_LEVEL = "INFO"
DOWNLOAD_TIMEOUT = 60
CONCURRENT_REQUESTS_PER_DOMAIN = 1
RANDOMIZE_DOWNLOAD_DELAY = False
DOWNLOAD_VERIFY_CERTIFICATES = True
# Scrapy's manual on crawling in breadth-first order
DEPTH_PRIORITY = 1
SCHEDULER_DISK_QUEUE = "scrapy.squeues.PickleFifoDiskQueue"
SCHEDULER_MEMORY_QUEUE = "scrapy.squeues.FifoMemoryQueue"
DOWNLOAD_HANDLERS = {"http": "crawl4llm.live.wire.WireHandler", "https": "crawl4llm.live.wire.WireHandler"}
EXTENSIONS = {"crawl4llm.live.network.Network": 0, "benchmarks.websoftware.stopping.StopAfter": 0}

NUTCH = (
    (False, r"^(file|ftp|mailto):"),
    (
        False,
        r"\.(gif|GIF|jpg|JPG|png|PNG|ico|ICO|css|sit|eps|wmf|zip|ppt|mpg|xls|gz|rpm|tgz|mov|MOV|exe|jpeg|JPEG|bmp|BMP)$",
    ),
    (False, r"[?*!@=]"),
    (False, r".*(/.+?)/.*?\1/.*?\1/"),
    (True, r"."),
)
"""The rules of Apache Nutch's conf/regex-urlfilter.txt.template: the first that is found in a URL says whether it is
taken."""


def taken_by_nutch(url: str) -> bool:
    """Tell whether Nutch's default filter takes a URL."""
    return next((takes for takes, pattern in NUTCH if re.search(pattern, url)), False)


class BreadthFirst(CrawlSpider):
    """Follows all links of the seeds' pages."""

    name = "breadth_first"
    rules = (Rule(LinkExtractor(), callback="extract", follow=True),)

    def __init__(self, seeds: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seeds = Path(seeds).read_text().split()

    async def start(self) -> AsyncIterator[Any]:
        for url in self.seeds:
            yield Request(url, dont_filter=True)

    def extract(self, response: Response, **_: Any) -> None:
        """Extract the text, and let it go."""
        if isinstance(response, TextResponse):
            trafilatura.extract(response.text, fast=True, include_comments=False, include_tables=True)


class WithNutchsFilter(BreadthFirst):
    """Follows the links that Nutch's default filter takes."""

    name = "nutch_filter"
    rules = (Rule(LinkExtractor(), callback="extract", follow=True, process_links="_taken"),)

    def _taken(self, links: list[Any]) -> list[Any]:
        return [link for link in links if taken_by_nutch(link.url)]
