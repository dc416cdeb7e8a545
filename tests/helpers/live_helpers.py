"""A small web with whatever the real one has, on a real socket, and live crawls of it."""

from __future__ import annotations

import gzip
import random
import socketserver
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from addon_site import Answer, page, serve
from crawl_helpers import begin, crawl_log, scrapy
from scrapy_server import Process

from crawl4llm.warc import cdxj

SCORER = "length"
USER_AGENT = "testbot/1.0 (+http://testbot.example/about)"
PAGES = 40
DEAD = ("http://no-such-host.invalid/", "http://127.0.0.1:9/")
"""A host without an address, and a port (discard) at which no server listens."""
LATIN = page(0.5, ["/page-9"], seed=57).body.decode().replace("theory", "Größe")
"""A page with characters that are other bytes in other charsets."""


def text_page(number: int, links: Sequence[str]) -> Answer:
    """A page whose text is longer than that of others, or shorter, as its number falls."""
    one = page(0.5, links, seed=number)
    more = b"".join(b"<p>One more sentence %d, and it is about %d.</p>" % (n, number) for n in range(number % 13))
    return one._replace(body=one.body.replace(b"</article>", more + b"</article>"))


def moved(target: str, status: int = 301) -> Answer:
    return Answer(b"moved", status, headers={"Location": target})


def small_web() -> dict[str, Answer | Sequence[Answer]]:
    """Forty pages in a random graph, and links to all that a crawl can meet besides pages."""
    draw = random.Random(7)
    special = ["/missing", "/moved-0", "/to-moved-0", "/to-visited", "/dir", "/loop-a", "/loop-b", "/same-a", "/same-b"]
    special += ["/private/a", "/notes.txt", "/broken", "/large", "/bomb", "/to-missing", "/latin", "/refresh", "/self"]
    web: dict[str, Answer | Sequence[Answer]] = {}
    for number in range(PAGES):
        links = [f"/page-{draw.randrange(PAGES)}" for _ in range(4)] + [draw.choice(special) for _ in range(3)]
        answer = text_page(number, links)
        if number % 5 == 1:
            answer = answer._replace(body=gzip.compress(answer.body, mtime=0), headers={"Content-Encoding": "gzip"})
        web[f"/page-{number}"] = answer._replace(chunked=number % 7 == 2)
    web["/page-0"] = text_page(0, [*special, "/page-1", "/page-2"])
    web["/moved-0"] = moved("/moved-1", 302)
    web["/moved-1"] = moved("/target#part", 307)
    web["/target"] = text_page(50, ["/page-3", "/moved-1", "/only-from-target"])
    web["/only-from-target"] = text_page(51, ["/target"])
    web["/to-moved-0"] = moved("/moved-0")
    web["/to-visited"] = moved("/page-1")
    web["/to-missing"] = moved("/missing")
    web["/dir"] = moved("/dir/", 308)
    web["/dir/"] = text_page(52, ["page", "../page-4"])
    web["/dir/page"] = text_page(53, ["/dir"])
    web["/loop-a"] = moved("/loop-b")
    web["/loop-b"] = moved("/loop-a")
    web["/self"] = (moved("/self"), text_page(54, ["/page-5"]))
    web["/same-a"] = web["/same-b"] = text_page(55, ["/page-6", "/page-39"])
    web["/notes.txt"] = Answer(b"Only text.", content_type="text/plain")
    web["/private/a"] = text_page(56, ["/page-7"])
    web["/robots.txt"] = Answer(b"User-agent: *\nDisallow: /private/\n", content_type="text/plain")
    web["/broken"] = Answer(b"<p>out of order", 500)
    web["/large"] = Answer(b"<p>" + b"much " * 40_000)
    web["/bomb"] = Answer(gzip.compress(b"<p>" + b"much " * 400_000, mtime=0), headers={"Content-Encoding": "gzip"})
    web["/latin"] = Answer(LATIN.encode("latin-1"), content_type="text/html")
    web["/refresh"] = Answer(b'<meta http-equiv="refresh" content="0; url=/page-8"><p>Wait for the next page.</p>')
    return web


def crawl_live(
    urls: Sequence[str], output: Path, env: Mapping[str, str] | None = None, **settings: object
) -> subprocess.CompletedProcess[str]:
    """Run a live crawl of a local web to its end, without the delay, rate and budgets that strangers are due, and in
    batches unless CRAWL_BATCH_SIZE is given."""
    return scrapy(*live_args(urls, output, **settings), env={"SCRAPY_PROJECT": "live", **(env or {})})


def start_live(
    urls: Sequence[str], output: Path, *, is_forked: bool = True, **settings: object
) -> Process | subprocess.Popen[str]:
    """Begin the same as a shell does."""
    return begin(live_args(urls, output, **settings), {"SCRAPY_PROJECT": "live"}, is_forked=is_forked)


def live_args(urls: Sequence[str], output: Path, **settings: object) -> list[str]:
    """Arguments of ``scrapy`` for a live crawl; a setting that is None is left out, so that the profile's holds."""
    seeds = output.with_suffix(".seeds")
    seeds.write_text("".join(f"{url}\n" for url in urls))
    given = {
        "OUTPUT_DIR": output,
        "SCORER": SCORER,
        "URL_POLICY": "parent_first",
        "USER_AGENT": USER_AGENT,
        "SCORING_WORKERS": 1,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "CRAWL_BATCH_SIZE": 100,
        "DOWNLOAD_DELAY": 0,
        "DELAY_FACTOR": 0,
        "IP_RATE": 0,
        "NETWORK_ALLOWED": "127.0.0.0/8",
        "DOWNLOAD_MAXSIZE": 100_000,
        "RETRY_TIMES": 1,
        "URL_BUDGET": 0,
        **settings,
    }
    options = [part for name, value in given.items() if value is not None for part in ("-s", f"{name}={value}")]
    return ["crawl", "influence", "-a", f"seeds={seeds}", *options]


def check_archive(output: Path) -> list[str]:
    """Nothing is in log or archive twice; returns what is."""
    log = [line["id"] for line in crawl_log(output)]
    assert len(set(log)) == len(log)
    assert [entry.id for entry in cdxj.read(output / "warc/index.cdxj") if entry.id] == log
    return log


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 600
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


class Crawled(NamedTuple):
    """A finished live crawl of the small web, which is served no longer."""

    output: Path
    url: str
    """Of the site, without the slash."""
    asked: list[str]
    """Paths in the order in which they were asked for."""
    raw_url: str
    raw_requests: list[bytes]
    """What the server got that :data:`RAW_RESPONSE` is from."""

    def path(self, key: str) -> str:
        """A document key without the site."""
        return key.removeprefix(self.url)


RAW_RESPONSE = (
    b"HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n"
    b"HTTP/1.1 200 Just fine\r\n"
    b'x-first: 1\r\nETAG:"a"\r\ncontent-TYPE: text/html\r\nX-First: 2\r\nX-Folded: one\r\n  two\r\n'
    b"CONNECTION: close\r\ntransfer-encoding: chunked\r\n\r\n"
    b"1b\r\n<p>A page that was sent by \r\n5\r\nhand.\r\n0\r\n\r\n"
)
_crawled: list[Crawled] = []
"""By this process, if it did."""
RAW_BODY = b"<p>A page that was sent by hand."


@contextmanager
def serve_raw(response: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that says the same to each request; its URL, and the requests as they came."""
    requests: list[bytes] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            requests.append(self.request.recv(65536))
            self.request.sendall(response)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", requests
        finally:
            server.shutdown()
            thread.join()


def crawled_once(folders: pytest.TempPathFactory) -> Crawled:
    """The one live crawl in batches that several test files look at: it ends with an empty frontier."""
    if not _crawled:
        _crawled.append(_crawl(folders.mktemp("live") / "run"))
    return _crawled[0]


def _crawl(output: Path) -> Crawled:
    with serve(small_web()) as site, serve_raw(RAW_RESPONSE) as (raw_url, raw_requests):
        seeds = [f"{site.url}/page-0", f"{site.url}/gone", f"{site.url}/dir", f"{raw_url}/raw", *DEAD]
        result = crawl_live(seeds, output, CRAWL_BATCH_SIZE=5, CRAWL_MAX_PAGES=100, WARC_TEXT=1, BODY_LIMIT=0)
        assert result.returncode == 0, result.stdout + result.stderr
        return Crawled(output, site.url, [asked.path for asked in site.asked], raw_url, raw_requests)
