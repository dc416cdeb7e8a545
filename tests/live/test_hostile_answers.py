"""Answers by which a server would take memory, time or connections without end, in one crawl of several such hosts."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from crawl_helpers import crawl_log, stats
from live_helpers import crawl_live
from tls_helpers import make_certificate
from warcio.archiveiterator import ArchiveIterator

from crawl4llm.live.wire import known_status

PAGE = b"<p>A page.</p>"
ENOUGH = 16 << 20
"""Bytes after which a server stops: far more than sockets hold."""
FLOODS = {
    "long.test": (b"HTTP/1.1 200 OK\r\n", b"X-Long: %b\r\n" % (b"a" * 16_000)),
    "line.test": (b"HTTP/1.1 200 OK\r\nX: ", b"a"),
    "many.test": (b"HTTP/1.1 200 OK\r\n", b"a:b\r\n"),
    "folded.test": (b"HTTP/1.1 200 OK\r\nX: a\r\n", b" %b\r\n" % (b"a" * 16_000)),
    "interim.test": (b"", b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"),
}
"""Heads without an end: what begins them, and what follows over and over."""
STATUSES = ("-1", "0", "99", "600", "999", "9" * 4000)
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"


def answer(status: str, body: bytes = PAGE) -> bytes:
    return b"HTTP/1.1 %b X\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (
        status.encode(),
        len(body),
        body,
    )


class Hostile(socketserver.ThreadingTCPServer):
    """Listens at all addresses of this machine."""

    daemon_threads = True

    def __init__(self) -> None:
        self.sent: dict[str, int] = {}
        """Bytes by host, of floods."""
        """Hosts and paths, by connection."""
        super().__init__(("0.0.0.0", 0), Handler)


class Handler(socketserver.StreamRequestHandler):
    server: Hostile

    def handle(self) -> None:
        while line := self.rfile.readline():
            path, host = line.split()[1].decode(), ""
            while (line := self.rfile.readline()).strip():
                if line.lower().startswith(b"host:"):
                    host = line[5:].strip().decode().partition(":")[0]
            self.answer(host, path)

    def answer(self, host: str, path: str) -> None:
        if path == "/robots.txt":
            self.request.sendall(answer("404"))
        elif host in FLOODS:
            self.flood(host, *FLOODS[host])
        elif host == "chunks.test":
            body = b"".join(b"1\r\n%c\r\n" % byte for byte in PAGE * 2000)
            self.request.sendall(CHUNKED + body + b"0\r\n\r\n")
        elif host == "status.test" and path != "/":
            self.request.sendall(answer(STATUSES[int(path[1:])]))
        else:
            self.request.sendall(answer("200", b"".join(b"<a href=/%d>x</a>" % n for n in range(len(STATUSES)))))

    def flood(self, host: str, first: bytes, more: bytes) -> None:
        more *= 65_536 // len(more) + 1
        self.server.sent[host] = 0
        self.request.sendall(first)
        while self.server.sent[host] < ENOUGH:
            try:
                self.request.sendall(more)
            except OSError:
                return
            self.server.sent[host] += len(more)


@contextmanager
def hostile() -> Iterator[Hostile]:
    with Hostile() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_hostile_answers_end_within_bounds(tmp_path: Path) -> None:
    hosts = [*FLOODS, "chunks.test", "status.test"]
    (tmp_path / "hosts").write_text("".join(f"127.7.0.{n + 1} {host}\n" for n, host in enumerate(hosts)))
    output = tmp_path / "run"
    with hostile() as server:
        port = server.server_address[1]
        settings = {"CRAWL_BATCH_SIZE": 0, "DELAY_FACTOR": 0, "RETRY_WAITS": "0.1", "RETRY_TIMES": 0}
        result = crawl_live(
            [f"http://{host}:{port}/" for host in hosts], output, DNS_HOSTS=tmp_path / "hosts", **settings
        )
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    lines = map(json.loads, (output / "failures.jsonl").read_text().splitlines())
    ended = {line["id"].removeprefix("http://").replace(f":{port}", ""): line["reason"] for line in lines}
    expected = {f"{host}/": "connection" for host in FLOODS}
    expected |= {f"status.test/{n}": "http_599" for n in range(len(STATUSES))}
    assert ended == expected
    assert {line["id"] for line in crawl_log(output)} == {f"http://{host}:{port}/" for host in hosts[-2:]}
    assert stats(output)["failed/http_599"] == len(STATUSES)
    assert server.sent.keys() == FLOODS.keys()
    assert max(server.sent.values()) < ENOUGH, "the connection was closed"
    _, bodies = archived(output)
    assert bodies[f"http://chunks.test:{port}/"] == PAGE * 2000


def archived(output: Path) -> tuple[list[dict[str, str]], dict[str, bytes]]:
    """Heads of requests, and bodies by URL."""
    heads, bodies = [], {}
    for file in (output / "warc").glob("*-0*.warc.gz"):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "request":
                    heads.append(dict(record.http_headers.headers))
                elif record.rec_type == "response":
                    bodies[record.rec_headers["WARC-Target-URI"]] = record.content_stream().read()
    return heads, bodies


def test_a_tls_connection_that_its_server_does_not_close_is_closed(tmp_path: Path) -> None:
    """The server answers, and closes nothing: the first connection has ended when the second request comes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(tmp_path))
    events: list[str] = []

    class KeepsOpen(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with context.wrap_socket(self.request, server_side=True) as connection:
                connection.recv(65_536)
                events.append("asked")
                connection.sendall(answer("200"))
                with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as below:
                    while below.recv(65_536):  # what TLS says of its end
                        pass
            events.append("closed")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), KeepsOpen) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        settings = {"CRAWL_BATCH_SIZE": 0, "DOWNLOAD_DELAY": 6, "ROBOTSTXT_OBEY": 0, "DOWNLOAD_VERIFY_CERTIFICATES": 0}
        urls = [f"https://127.0.0.1:{server.server_address[1]}/{name}" for name in "ab"]
        result = crawl_live(urls, tmp_path / "run", **settings)
        server.shutdown()
    assert result.returncode == 0, result.stderr
    assert len(crawl_log(tmp_path / "run")) == 2
    assert events[:3] == ["asked", "closed", "asked"]
    heads, _ = archived(tmp_path / "run")
    assert [head.get("Connection") for head in heads] == ["close"] * 2, "as it was sent"


@pytest.mark.parametrize(("status", "known"), [(100, 100), (599, 599), (99, 599), (600, 599), (-1, 599)])
def test_known_status(status: int, known: int) -> None:
    assert known_status(status) == known
