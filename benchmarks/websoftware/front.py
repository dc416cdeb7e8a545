"""A web server for the small web, which has none of Debian's: serves files or passes requests on, with TLS, and logs as
the others do (``python -m benchmarks.websoftware.front CONFIGURATION``)."""

from __future__ import annotations

import json
import mimetypes
import ssl
import sys
import threading
import time
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_SECONDS = 60


class _Handler(BaseHTTPRequestHandler):
    told: dict[str, Any]
    log_file: Any
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        status, headers, body = self._answer()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        kind, agent = headers.get("Content-Type", ""), self.headers.get("User-Agent", "")
        fields = [f"{time.time():.3f}", self.told["port"], self.headers.get("Host", ""), self.requestline]
        self.log_file.write("\t".join(map(str, [*fields, status, len(body), kind, agent])) + "\n")
        self.log_file.flush()

    def _answer(self) -> tuple[int, dict[str, str], bytes]:
        if self.told["redirect"]:
            return 301, {"Location": self.told["redirect"] + self.path}, b""
        return self._passed_on() if self.told["socket"] else self._file()

    def _passed_on(self) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection(self.told["socket"], timeout=_SECONDS)
        headers = {"Host": self.told["name"], "X-Forwarded-Proto": "https", "Connection": "close"}
        connection.request("GET", self.path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        kept = {"Content-Type", "Location", "Set-Cookie", "X-Robots-Tag"}
        return answer.status, {name: value for name, value in answer.getheaders() if name in kept}, body

    def _file(self) -> tuple[int, dict[str, str], bytes]:
        root = Path(self.told["root"])
        path = (root / unquote(urlsplit(self.path).path).lstrip("/")).resolve()
        if path.is_dir() and not self.path.partition("?")[0].endswith("/"):
            return 301, {"Location": f"{self.path}/"}, b""
        file = path / "index.html" if path.is_dir() else path
        if not file.is_relative_to(root.resolve()) or not file.is_file():
            return 404, {"Content-Type": "text/html"}, b"<h1>Not found</h1>"
        return 200, {"Content-Type": mimetypes.guess_type(file.name)[0] or "text/plain"}, file.read_bytes()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the class below
        """Say nothing: the access log has it."""


def main() -> None:
    told = json.loads(Path(sys.argv[1]).read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(told["certificate"])
    log = Path(told["log"]).open("a", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    for one in told["servers"]:
        handler = type("Handler", (_Handler,), {"told": one, "log_file": log})
        server = ThreadingHTTPServer((one["address"], one["port"]), handler)
        if one["port"] == 443:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
