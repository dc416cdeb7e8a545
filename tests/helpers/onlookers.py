"""Components of somebody else that look on: what they see goes to files in the folder of the environment's SEEN."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from scrapy import Request, signals
from scrapy.crawler import Crawler

from crawl4llm.live.stopping import abort_downloads


def seen(what: str) -> list[str]:
    """The lines of what was seen."""
    file = Path(os.environ["SEEN"]) / what
    return file.read_text().splitlines() if file.exists() else []


def _note(what: str, line: str) -> None:
    with (Path(os.environ["SEEN"]) / what).open("a") as file:
        file.write(f"{line}\n")


class Middleware:
    """Downloader middleware: notes each request, and presses Ctrl-C when one for ``/slow`` is on the wire."""

    def process_request(self, request: Request) -> None:
        _note("requests", request.url)
        if request.url.endswith("/slow"):
            asyncio.get_running_loop().call_later(1.0, os.kill, os.getpid(), signal.SIGINT)


class Extension:
    """Extension: notes Scrapy's signals of responses and items, and that of a stop."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Extension:
        extension = cls()
        crawler.signals.connect(extension.response, signal=signals.response_received)
        crawler.signals.connect(extension.item, signal=signals.item_scraped)
        crawler.signals.connect(extension.abort, signal=abort_downloads)
        return extension

    def response(self) -> None:
        _note("responses", "one")

    def item(self) -> None:
        _note("items", "one")

    def abort(self) -> None:
        _note("aborts", "one")
