"""Sites of several owners: addresses of this machine, each with a log of when an exchange began and ended."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import NamedTuple

from addon_site import Answer, Handler, Server

Pages = Mapping[str, Answer | Sequence[Answer]]


class Logged(NamedTuple):
    """An exchange as the server saw it, by the monotonic clock."""

    path: str
    began: float
    ended: float
    """Just before its last byte was sent."""


class OwnerSite:
    """The site of one owner; ``pages`` may be filled in later."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.pages: Pages = {}
        self.log: list[Logged] = []
        self.begun: list[str] = []
        """Paths asked for, as soon as they are."""

    def answer(self, path: str) -> Answer:
        """What there is at a path; where that is several answers, they are given in turn."""
        before = self.begun.count(path)
        self.begun.append(path)
        found = self.pages.get(path, Answer(b"<p>not here", 404))
        return found if isinstance(found, Answer) else found[min(before, len(found) - 1)]

    def paths(self) -> list[str]:
        """Paths in the order in which they were asked for, those of robots.txt and well-known files apart."""
        return [path for path in self.begun if not path.startswith(("/robots.txt", "/.well-known/"))]

    def gaps(self, kills: Sequence[float] = ()) -> list[float]:
        """Seconds from the end of each exchange to the beginning of the next; ``kills``: when who asked was gone, of
        which a site that is about to answer knows nothing."""
        log = sorted(self.log, key=lambda one: one.began)
        ended = [min([one.ended, *(kill for kill in kills if kill > one.began)]) for one in log]
        return [after.began - end for end, (_, after) in zip(ended, pairwise(log), strict=False)]


@contextmanager
def serve_owners(number: int) -> Iterator[list[OwnerSite]]:
    """So many sites, each at an address of its own."""
    with ExitStack() as served:
        yield [served.enter_context(serve_at(f"127.0.0.{last}")) for last in range(11, 11 + number)]


@contextmanager
def serve_at(address: str, port: int = 0) -> Iterator[OwnerSite]:
    """A site at an address of this machine."""

    class Answers(Handler):
        def do_GET(self) -> None:
            began = time.monotonic()
            answer = site.answer(self.path)
            time.sleep(answer.seconds)
            try:
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.content_type)
                self.send_header("Content-Length", str(len(answer.body)))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                site.log.append(Logged(self.path, began, time.monotonic()))
                self.wfile.write(answer.body)
            except ConnectionError:  # a crawler that was killed
                site.log.append(Logged(self.path, began, time.monotonic()))

    server = Server((address, port), Answers)
    site = OwnerSite(f"http://{address}:{server.server_port}")
    with _running(server):
        yield site


@contextmanager
def serve_hang_ups(address: str) -> Iterator[tuple[str, list[float]]]:
    """A server that closes each connection at once; its URL, and when it was asked."""
    asked: list[float] = []

    class HangsUp(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            asked.append(time.monotonic())
            self.request.recv(1)

    server = socketserver.ThreadingTCPServer((address, 0), HangsUp)
    with _running(server):
        yield f"http://{address}:{server.server_address[1]}", asked


@contextmanager
def _running(server: socketserver.TCPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
