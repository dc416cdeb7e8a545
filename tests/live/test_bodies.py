"""What is taken of an answer: bodies are cut, what is no page ends at its head, and bad servers end within bounds."""

from __future__ import annotations

import gzip
import json
import random
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from addon_site import Answer, Site, serve
from crawl_helpers import crawl_log, stats
from live_helpers import crawl_live, serve_raw, start_live, text_page
from warcio.archiveiterator import ArchiveIterator

from tests.testweb import FewPages, LocalWeb, running
from tests.testweb.misbehaviour import BOMB, packed_bomb

LIMIT = 50_000
LINK = b'<a href="/last">the last link</a>'


def prose(size: int) -> bytes:
    """HTML that hardly gets smaller by compression."""
    draw = random.Random(1)
    sentences: list[bytes] = []
    while sum(map(len, sentences)) < size:
        words = (draw.randbytes(draw.randrange(1, 5)).hex() for _ in range(12))
        sentences.append(f"<p>{' '.join(words).capitalize()}.</p>\n".encode())
    return b"".join(sentences)


def packed(body: bytes, layers: int = 1, coding: str = "gzip") -> Answer:
    """A compressed page, more than once if asked."""
    for _ in range(layers):
        body = gzip.compress(body, mtime=0) if coding == "gzip" else zlib.compress(body)
    return Answer(body, headers={"Content-Encoding": ", ".join([coding] * layers)})


def crawl(answers: Mapping[str, Answer], output: Path, **settings: object) -> Site:
    """A crawl of all paths of a site, each of which is a seed."""
    with serve(answers) as site:
        seeds = [f"{site.url}{path}" for path in answers]
        result = crawl_live(seeds, output, **{"CRAWL_MAX_PAGES": 100, "BODY_LIMIT": LIMIT, **settings})
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    return site


def failures(output: Path, url: str) -> dict[str, str]:
    lines = map(json.loads, (output / "failures.jsonl").read_text().splitlines())
    return {line["id"].removeprefix(url): line["reason"] for line in lines}


def archived(output: Path, url: str) -> dict[str, tuple[bytes, str | None]]:
    """Bodies as they are in the archive, and WARC-Truncated, by path."""
    found = {}
    for file in sorted((output / "warc").glob("*-0*.warc.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "response":
                    path = record.rec_headers["WARC-Target-URI"].removeprefix(url)
                    found[path] = record.raw_stream.read(), record.rec_headers["WARC-Truncated"]
    return found


def test_bodies_are_cut(tmp_path: Path) -> None:
    """On the wire at BODY_LIMIT, unpacked at DOWNLOAD_MAXSIZE; both are scored, and expanded by what there is."""
    long, whole = b'<a href="/first">the first</a>' + prose(400_000) + LINK, prose(LIMIT - 100)
    answers = {
        "/plain": Answer(long),
        "/chunked": Answer(long, chunked=True),
        "/gzip": packed(long),
        "/deflate": packed(long, coding="deflate"),
        "/exact": Answer(whole.ljust(LIMIT)),
        "/one-more": Answer(whole.ljust(LIMIT + 1)),
        "/much": packed(LINK + prose(20_000) * 20),
        "/bomb": packed(LINK + b"<p>Again and again.</p>\n" * 200_000),
        "/bomb-in-a-bomb": packed(LINK + b"<p>Again and again.</p>\n" * 2_000_000, layers=3),
    }
    bombs = {"/bomb": "bomb", "/bomb-in-a-bomb": "bomb"}
    url = crawl(answers, output := tmp_path / "run", DOWNLOAD_MAXSIZE=200_000).url
    kept = archived(output, url)
    expected = {"/first": "http_404", "/last": "http_404"} | bombs
    assert failures(output, url) == expected, "links before the cut were followed"
    assert {path for path in answers if kept[path][1]} == {"/plain", "/chunked", "/gzip", "/deflate", "/one-more"}
    for path, answer in answers.items():
        body, truncated = kept[path]
        assert truncated == ("length" if len(answer.body) > LIMIT else None), path
        if not answer.chunked:
            assert body == answer.body[:LIMIT], path
    lengths = {line["id"].removeprefix(url): line["influence"] for line in crawl_log(output)}
    assert lengths.keys() == answers.keys() - bombs.keys()
    assert 0.6 * LIMIT < lengths["/plain"] <= LIMIT
    assert lengths["/plain"] == lengths["/chunked"]
    assert LIMIT < lengths["/gzip"] < 200_000, "decoded as far as it goes"
    assert lengths["/gzip"] == pytest.approx(lengths["/deflate"], rel=0.01)
    assert 0 < lengths["/much"] <= 200_000, "it unpacks to twice as much, and is no bomb"


def test_a_cut_body_is_read_from_the_archive_as_it_was_crawled(tmp_path: Path) -> None:
    long = b"<p>Begins here.</p>" + prose(400_000)
    url = crawl({"/gzip": packed(long)}, output := tmp_path / "run").url
    for file in (output / "warc").glob("*-0*.warc.gz"):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "response" and not record.rec_headers["Crawl4LLM-Purpose"]:
                    ours = record.content_stream().read()
                    assert long.startswith(ours)
                    assert len(ours) > LIMIT
    assert archived(output, url)["/gzip"][0] == packed(long).body[:LIMIT]


def test_without_a_limit_pages_are_discarded(tmp_path: Path) -> None:
    answers = {
        "/large": Answer(prose(200_000)),
        "/much": packed(prose(150_000)),
        "/bomb": packed(b"<p>again</p>\n" * 200_000),
        "/page": text_page(1, []),
    }
    with serve(answers) as site:
        seeds = [f"{site.url}{path}" for path in answers]
        crawl_live(seeds, tmp_path / "run", CRAWL_MAX_PAGES=9, BODY_LIMIT=0, DOWNLOAD_MAXSIZE=100_000)
    assert failures(tmp_path / "run", site.url) == {"/large": "too_large", "/much": "too_large", "/bomb": "bomb"}


def test_what_is_no_page_ends_at_its_head(tmp_path: Path) -> None:
    """No type, and HTML in a wrong one, are what they were."""
    html = text_page(1, []).body
    types = ["image/jpeg", "video/mp4", "application/zip", "application/octet-stream", "application/pdf", "text/css"]
    answers = {f"/{number}": Answer(html, content_type=kind) for number, kind in enumerate(types)}
    answers |= {"/plain": Answer(html, content_type="text/plain"), "/none": Answer(html, content_type="")}
    answers |= {"/html": Answer(html, content_type="TEXT/HTML ; charset=utf-8")}
    answers |= {"/missing": Answer(html, 404, content_type="image/png")}
    url = crawl(answers, output := tmp_path / "run", BODY_LIMIT=0, DOWNLOAD_MAXSIZE=0).url
    expected = dict.fromkeys([*map("/{}".format, range(len(types))), "/plain"], "not_html") | {"/missing": "http_404"}
    assert failures(output, url) == expected
    assert {line["id"].removeprefix(url) for line in crawl_log(output)} == {"/none", "/html"}


@pytest.mark.parametrize(("media_type", "reason"), [("image/jpeg", "not_html"), ("text/html", "cut_short")])
def test_a_body_that_is_no_page_is_not_waited_for(tmp_path: Path, media_type: str, reason: str) -> None:
    """The head announces a body that never comes."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: 1000000\r\n\r\n<p>Begun"
    with serve_raw(head.encode()) as (url, _):
        crawl_live([f"{url}/"], tmp_path / "run", ROBOTSTXT_OBEY=0, RETRY_TIMES=0)
    assert failures(tmp_path / "run", url) == {"/": reason}


def test_too_many_content_codings(tmp_path: Path) -> None:
    page = text_page(1, []).body
    url = crawl({"/six": packed(page, layers=6), "/five": packed(page, layers=5)}, output := tmp_path / "run").url
    assert failures(output, url) == {"/six": "damaged"}
    assert len(crawl_log(output)) == 1


# -- servers that misbehave -------------------------------------------------------------------------------------------

ENDS = {
    "endless.test": "crawled",
    "bomb.test": "bomb",
    "drip.test": "timeout",
    "hang.test": "timeout",
    "truncated.test": "cut_short",
    "short.test": "cut_short",
    "garbage.test": "connection",
    "charset.test": "crawled",
    "loop.test": "redirect_loop",
    "maze.test": "too_many_redirects",
    "cookie-wall.test": "redirect_loop",
    "good.test": "crawled",
}
"""What becomes of the page of a host that misbehaves as its name says."""
MOST_MEMORY = 400 << 20
"""Bytes of the crawl with its worker process, which take about 310 MiB; the bomb alone has 200, as text twice that."""


@pytest.mark.slow
def test_misbehaving_servers_end_within_bounds(tmp_path: Path) -> None:
    rules = {host: host.removesuffix(".test") for host in ENDS if host != "good.test"} | {"drip.test": "drip:60"}
    pages = FewPages({"good.test": {"/": text_page(1, []).body}})
    packed_bomb(BOMB)  # the server takes it from the cache
    began, most = time.monotonic(), 0
    with running(LocalWeb(tmp_path / "web", pages, misbehaving=rules)) as web:
        settings: dict[str, Any] = {"DNS_HOSTS": web.hosts_file, "DOWNLOAD_TIMEOUT": 6, "DOWNLOAD_MAXSIZE": 10_000_000}
        settings["RETRY_TIMES"] = 0
        output = tmp_path / "run"
        with start_live(web.seeds, output, is_forked=False, CRAWL_MAX_PAGES=100, **settings) as crawling:
            process = psutil.Process(crawling.pid)
            while crawling.poll() is None:
                most = max(most, memory(process))
                time.sleep(0.05)
            said = crawling.communicate()
        urls = {host: web.url(host) for host in ENDS}
    assert crawling.returncode == 0, said
    assert time.monotonic() - began < 600
    assert most < MOST_MEMORY
    assert "Traceback" not in said[0] + said[1]
    ends = failures(output, "") | {line["id"]: "crawled" for line in crawl_log(output)}
    assert {host: ends.get(url) for host, url in urls.items()} == ENDS
    kept = archived(output, "")
    assert (len(kept[urls["endless.test"]][0]), kept[urls["endless.test"]][1]) == (1 << 20, "length")
    counts = stats(output)
    assert sum(counts[f"{outcome}/{reason}"] for outcome, reason in counted(output)) == len(ENDS) - 3


def counted(output: Path) -> set[tuple[str, str]]:
    lines = map(json.loads, (output / "failures.jsonl").read_text().splitlines())
    return {(line["outcome"], line["reason"]) for line in lines}


def memory(process: psutil.Process) -> int:
    """Bytes of a process and those that it started; 0 where they have just ended."""
    try:
        return sum(one.memory_info().rss for one in [process, *process.children(recursive=True)])
    except psutil.NoSuchProcess:
        return 0
