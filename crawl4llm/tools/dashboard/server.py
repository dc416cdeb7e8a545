"""The server of the dashboard: read-only, on the loopback interface, for users who know its address.

The address has a random token that no other user or page of this machine can guess. The Host header must be this
server's own: requests of a page whose host name was pointed here (DNS rebinding) are refused. The page loads and runs
files of this server only (Content Security Policy), and treats everything from crawled pages as text.
"""

from __future__ import annotations

import errno
import hmac
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any, Final

from crawl4llm.base.errors import InputError
from crawl4llm.tools.dashboard.watch import REST, Watch

_PAGE: Final = Path(__file__).parent / "page"
_FILES: Final = {
    "": ("dashboard.html", "text/html"),
    "dashboard.css": ("dashboard.css", "text/css"),
    "dashboard.js": ("dashboard.js", "text/javascript"),
}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LOOK_SECONDS, _SIGN_OF_LIFE_SECONDS = 0.5, 10.0
_FOLLOW_SECONDS = 2.0
"""Between two looks at a storage, and for the reading of its log."""


class Dashboard(ThreadingHTTPServer):
    """Serves the state of a watch."""

    daemon_threads = True

    def __init__(self, watch: Watch, port: int) -> None:
        """Bind it; port 0 is a free one. Raises InputError if that is not possible."""
        self.watch = watch
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            why = "is taken" if taken else f"cannot be used ({error})"
            raise InputError(f"--port {port} {why}; give another, or leave it out for a free one") from None
        self.path = f"/{secrets.token_urlsafe(24)}/"
        self.hosts = {f"{name}:{self.server_address[1]}" for name in ("127.0.0.1", "localhost")}
        self.url = f"http://127.0.0.1:{self.server_address[1]}{self.path}"

    def follow(self, opened: Callable[[], Watch]) -> None:
        """Serve the newest state of a storage from now on: a watch sees one state of it."""
        while True:
            began, newest = time.thread_time(), self.watch
            with suppress(InputError, OSError):  # a storage out of reach: the last state stays
                newest = opened()
            if newest.output != self.watch.output:
                newest.now()  # begins to read the log
            time.sleep(max(_FOLLOW_SECONDS, REST * (time.thread_time() - began)))
            if newest.output != self.watch.output:
                self.watch = newest

    def server_bind(self) -> None:
        """Bind the socket; HTTPServer's own would ask the DNS for this machine's name."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that has gone away."""


class _Handler(BaseHTTPRequestHandler):
    server: Dashboard
    timeout = 30
    server_version = sys_version = ""

    def do_GET(self) -> None:
        """Answer a request."""
        path, _, query = self.path.partition("?")
        root, name = path[: len(self.server.path)], path[len(self.server.path) :]
        if self.headers.get("Host") not in self.server.hosts:
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", b"This server has another name.\n")
        elif not hmac.compare_digest(root.encode(), self.server.path.encode()):
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"Open the whole address that the command has printed.\n")
        elif name in _FILES:
            file, media_type = _FILES[name]
            self._answer(HTTPStatus.OK, media_type, (_PAGE / file).read_bytes())
        elif name == "text" and query.isascii() and query.isdigit() and len(query) < 20:
            found = self.server.watch.text(int(query))
            self._answer(HTTPStatus.OK, "application/json", json.dumps(found).encode())
        elif name == "events":
            self._answer(HTTPStatus.OK, "text/event-stream")
            for event in self._events():
                self.wfile.write(event)
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"There is no such page.\n")

    def _events(self) -> Iterator[bytes]:
        """Yield server-sent events: the state of the watch, after each change."""
        sent, when = b"", 0.0
        while True:
            now = self.server.watch.now()
            if now != sent:
                sent, when = now, time.monotonic()
                yield b"data: %b\n\n" % now
            elif time.monotonic() - when >= _SIGN_OF_LIFE_SECONDS:
                when = time.monotonic()
                yield b": nothing new\n\n"  # fails where nobody listens any more
            time.sleep(_LOOK_SECONDS)

    def _answer(self, status: HTTPStatus, media_type: str, body: bytes | None = None) -> None:
        """Send the answer, or its head alone if its body comes later."""
        self.send_response(status)
        length = {} if body is None else {"Content-Length": str(len(body))}
        for name, value in {"Content-Type": f"{media_type}; charset=utf-8", **length, **_HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the standard library
        """Say nothing: the address would be in the log, with its token."""
