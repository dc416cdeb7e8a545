"""robots.txt in live crawls: a clock that runs faster than the real one, and servers that break off."""

from __future__ import annotations

import json
import os
import socketserver
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from crawl4llm.live.robots import Robots

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

_RATE, _STEP = "ROBOTS_CLOCK_RATE", "ROBOTS_CLOCK_STEP"


class FastRobots(Robots):
    """Robots whose clock runs as many times faster as the environment says; the rest of the crawl has the real one."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FastRobots:
        rate, began = float(os.environ[_RATE]), time.time()
        return cls(crawler, lambda: began + rate * (time.time() - began))


class SteppingRobots(Robots):
    """Robots for whose clock each request takes as long as the environment says, and nothing else takes any time."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SteppingRobots:
        step, began = float(os.environ[_STEP]), time.time()
        return cls(crawler, lambda: began + step * crawler.stats.get_value("downloader/request_count", 0))


def faster(rate: float) -> tuple[Mapping[str, str], dict[str, str]]:
    """The environment and the settings of a live crawl whose clock for robots.txt is faster."""
    return {_RATE: str(rate)}, _in_place_of_robots(FastRobots)


def stepping(seconds: float) -> tuple[Mapping[str, str], dict[str, str]]:
    """The same of one whose clock for robots.txt goes on by so many seconds with each request, and not else."""
    return {_STEP: str(seconds)}, _in_place_of_robots(SteppingRobots)


def _in_place_of_robots(one: type[Robots]) -> dict[str, str]:
    middlewares = {"crawl4llm.live.robots.Robots": None, f"{__name__}.{one.__name__}": 100}
    return {"DOWNLOADER_MIDDLEWARES": json.dumps(middlewares)}


class Raw:
    """A server that says what it is told to byte for byte, and closes the connection."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[str] = []
        """Paths in the order in which they were asked for."""
        self.sent = 0
        """Bytes, as far as the system took them."""


@contextmanager
def serve_bytes(*answers: bytes, endless: bytes = b"") -> Iterator[Raw]:
    """A server that gives its answers in turn, the last of them to all others too.

    If there is something ``endless``, that follows again and again.
    """

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            raw.asked.append(self.request.recv(65536).split(b" ")[1].decode())
            with suppress(OSError):
                self.request.sendall(answers[min(len(raw.asked), len(answers)) - 1])
                while endless:
                    self.request.sendall(endless)
                    raw.sent += len(endless)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        raw = Raw(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield raw
        finally:
            server.shutdown()
            thread.join()
