"""Ends a crawl after so many requests to the hosts of the web, as Ctrl-C ends it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import signals

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

_FREE = {"/robots.txt", "/.well-known/tdmrep.json"}


class StopAfter:
    """Scrapy extension that counts requests which have reached the downloader; STOP_AFTER says how many are enough."""

    def __init__(self, crawler: Crawler) -> None:
        self._left = crawler.settings.getint("STOP_AFTER")
        lines = Path(crawler.settings["DNS_HOSTS"]).read_text().splitlines()
        self._hosts = {line.split()[1] for line in lines}
        crawler.signals.connect(self._asked, signal=signals.request_reached_downloader)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> StopAfter:
        return cls(crawler)

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.path not in _FREE and parts.hostname in self._hosts:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGINT)
