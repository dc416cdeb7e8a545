"""Answers that no server should send, and that browsers take: what of them is crawled, and how it is archived."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from crawl_helpers import crawl_log
from live_helpers import check_archive, crawl_live
from twisted.internet.testing import StringTransport
from twisted.web import _newclient
from twisted.web.http_headers import Headers
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders

from crawl4llm.live.answers import AnswerTap, Exchange

PAGE = b"<html><p>A page with a sentence, and with another sentence to read.</p></html>"
HTML = b"Content-Type: text/html\r\n"


class Odd(NamedTuple):
    """An answer, and what is to become of it: a page, unless it fails for a reason."""

    answer: bytes
    reason: str | None = None


def whole(head: bytes, body: bytes = PAGE) -> Odd:
    """An answer with a length."""
    return Odd(b"HTTP/1.1 200 OK\r\n%b%bContent-Length: %d\r\n\r\n%b" % (HTML, head, len(body), body))


def closing(head: bytes, body: bytes = PAGE, reason: str | None = None) -> Odd:
    """An answer without a length of its own."""
    return Odd(b"HTTP/1.1 200 OK\r\n%b%b\r\n%b" % (HTML, head, body), reason)


def chunked(body: bytes, reason: str | None = None) -> Odd:
    return closing(b"Transfer-Encoding: chunked\r\n", body, reason)


HALF, REST = PAGE[:20], PAGE[20:]
ODD = {
    "/plain": whole(b""),
    "/long-line": whole(b"X-Policy: %b\r\n" % (b"a" * 200_000)),
    "/long-folded": whole(b"X-Policy: a\r\n %b\r\n\t%b\r\n" % (b"b" * 20_000, b"c" * 20_000)),
    "/folded-first": Odd(b"HTTP/1.1 200 OK\r\n folded\r\n" + HTML + b"\r\n" + PAGE),
    "/folded-type": Odd(b"HTTP/1.1 200 OK\r\nContent-Type:\r\n text/html\r\n\r\n" + PAGE),
    "/no-colon": whole(b"Welcome to my server!\r\n of folds\r\n"),
    "/odd-name": whole(b"Bad Name: 1\r\n<b>: 2\r\n: 3\r\nX\xff: 4\r\nX-Good: 5\r\n"),
    "/blank-before-colon": Odd(b"HTTP/1.1 200 OK\r\nContent-Type : text/html\r\n\r\n" + PAGE),
    "/types-in-a-list": Odd(b"HTTP/1.1 200 OK\r\nContent-Type: text/html, text/html; charset=utf-8\r\n\r\n" + PAGE),
    "/types-in-fields": Odd(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + HTML + b"\r\n" + PAGE),
    "/no-type": Odd(b"HTTP/1.1 200 OK\r\nContent-Type: none\r\n\r\n" + PAGE),
    "/line-feeds": Odd(b"HTTP/1.1 200 OK\nContent-Type: text/html\n\n" + PAGE),
    "/empty-lines-before": Odd(b"\r\n\r\nHTTP/1.1 200 OK\r\n" + HTML + b"\r\n" + PAGE),
    "/no-version": Odd(b"HTTP 200 Document follows\r\n" + HTML + b"\r\n" + PAGE),
    "/version-2": Odd(b"HTTP/2 200\r\n" + HTML + b"\r\n" + PAGE),
    "/blanks-in-status": Odd(b"http/1.1   200  OK\r\n" + HTML + b"\r\n" + PAGE),
    "/colon-in-status": Odd(b"HTTP/1.1 200: OK\r\n" + HTML + b"\r\n" + PAGE),
    "/other-coding-field": whole(b"Client-Transfer-Encoding: chunked\r\n"),
    "/length-word": closing(b"Content-Length: thousand\r\n"),
    "/no-status": Odd(PAGE, "connection"),
    "/early-hints": Odd(b"HTTP/1.1 103 Early\r\nLink: </x>\r\nTransfer-Encoding: x\r\n\r\n" + whole(b"").answer),
    "/length-42s": closing(b"Content-Length: 42s\r\n"),
    "/length-plus": closing(b"Content-Length: +10\r\n"),
    "/length-negative": closing(b"Content-Length: -1\r\n"),
    "/length-empty": closing(b"Content-Length: \r\n"),
    "/length-digits": closing(b"Content-Length: %b\r\n" % (b"9" * 5000)),
    "/length-twice": whole(b"Content-Length: 0%d\r\n" % len(PAGE)),
    "/length-list": closing(b"Content-Length: %d, %d\r\n" % (len(PAGE), len(PAGE))),
    "/lengths-differ": closing(b"Content-Length: 10\r\nContent-Length: 11\r\n", reason="connection"),
    "/lengths-differ-in-a-list": closing(b"Content-Length: 10, 10s\r\n", reason="connection"),
    "/identity": whole(b"Transfer-Encoding: identity\r\n"),
    "/no-coding": whole(b"Transfer-Encoding: \r\n"),
    "/unasked-coding": closing(b"Transfer-Encoding: gzip, chunked\r\n", reason="connection"),
    "/chunked-twice": closing(
        b"Transfer-Encoding: Chunked\r\nTransfer-Encoding: identity, chunked\r\nContent-Length: 1\r\n",
        b"%x\r\n%b\r\n0\r\n\r\n" % (len(PAGE), PAGE),
    ),
    "/padded-chunks": chunked(b"%x   \r\n%b\r\n %x\t\r\n%b\r\n0\r\n\r\n" % (len(HALF), HALF, len(REST), REST)),
    "/chunk-extensions": chunked(b'%x ;a="\x01\r\n%b\r\n0;b\r\nDigest: x\r\n\r\n' % (len(PAGE), PAGE)),
    "/chunks-of-line-feeds": chunked(b"%x\n%b\n0\n\n" % (len(PAGE), PAGE)),
    "/cut-chunk": chunked(b"%x\r\n%b" % (len(PAGE) + 5, PAGE), "cut_short"),
    "/chunk-without-size": chunked(b"%x\r\n%b\r\nzz\r\nmore" % (len(PAGE), PAGE), "cut_short"),
}


@contextmanager
def serving(answers: dict[str, bytes]) -> Iterator[str]:
    """Serve bytes by path, each on a connection of its own."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            path = self.rfile.readline().split()[1].decode()
            while self.rfile.readline().strip():
                pass
            self.request.sendall(answers.get(path, b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, str]:
    output = tmp_path_factory.mktemp("odd") / "run"
    with serving({path: odd.answer for path, odd in ODD.items()}) as url:
        settings = {"RETRY_TIMES": 0, "RETRY_WAITS": "0.1", "DELAY_FACTOR": 0, "WARC_REVISITS": 0}
        result = crawl_live([url + path for path in ODD], output, **settings)
    assert result.returncode == 0, result.stderr
    return url, output, result.stderr


def archived(url: str, output: Path) -> dict[str, tuple[StatusAndHeaders, bytes]]:
    """Heads and bodies of answers, by path."""
    found = {}
    for file in (output / "warc").glob("*-0*.warc.gz"):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "response":
                    path = record.rec_headers["WARC-Target-URI"].removeprefix(url)
                    found[path] = record.http_headers, record.content_stream().read()
    return found


def test_what_browsers_take_is_crawled(crawled: tuple[str, Path, str]) -> None:
    url, output, log = crawled
    assert "Traceback" not in log
    failures = map(json.loads, (output / "failures.jsonl").read_text().splitlines())
    assert {line["id"].removeprefix(url): line["reason"] for line in failures} == {
        path: odd.reason for path, odd in ODD.items() if odd.reason
    }
    pages = {path for path, odd in ODD.items() if not odd.reason}
    assert {line["id"].removeprefix(url) for line in crawl_log(output)} == pages
    found = archived(url, output)
    assert {path: found[path][1] for path in pages} == dict.fromkeys(pages, PAGE)
    check_archive(output)


def test_heads_are_archived_as_they_were_sent(crawled: tuple[str, Path, str]) -> None:
    """Fields that no request or answer may have as fields too; the lines of one are joined."""
    url, output, _ = crawled
    heads = {path: head for path, (head, _) in archived(url, output).items()}
    assert heads["/blank-before-colon"].headers[0] == ("Content-Type", "text/html")
    assert heads["/folded-type"].headers[0] == ("Content-Type", "text/html")
    assert [name for name, _ in heads["/no-colon"].headers] == ["Content-Type", "Content-Length"]
    assert [value for _, value in heads["/odd-name"].headers[1:5]] == ["1", "2", "4", "5"]
    assert heads["/long-folded"]["Content-Length"] == str(len(PAGE)), "what is too long for a record is left out"
    assert heads["/no-version"].statusline == "200 Document follows"
    assert heads["/length-42s"]["X-Crawler-Content-Length"] == "42s"


def test_a_long_line_that_comes_byte_by_byte_takes_no_more_time_than_it_has_bytes() -> None:
    """Searching all of it for each byte takes ten seconds."""
    connection = _newclient.HTTP11ClientProtocol(lambda _: None)
    connection.makeConnection(StringTransport())
    request = _newclient.Request(b"GET", b"/x", Headers({b"host": [b"a.test"]}), None)
    answered: list[object] = []
    connection.request(request).addBoth(answered.append)
    exchange = Exchange("", 0.0)
    AnswerTap(connection, exchange, closes=False)
    connection.dataReceived(b"HTTP/1.1 200 OK\r\nX: ")
    began = time.process_time()
    for _ in range(250_000):
        connection.dataReceived(b"a")
    assert time.process_time() - began < 3
    for byte in b"\r\nContent-Length: 0\r\n\r\n":
        connection.dataReceived(bytes([byte]))
    assert len(exchange.headers[0][1]) == 250_000
    assert [getattr(one, "code", one) for one in answered] == [200]
