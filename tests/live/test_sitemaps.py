"""Sitemaps in a live crawl, by the servers' own logs: what is found by them, and what hostile ones cost."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from crawl_helpers import crawl_log, scrapy
from live_helpers import check_archive, crawl_live, text_page
from scrapy import Spider
from scrapy.utils.test import get_crawler

from crawl4llm.live import sitemaps
from crawl4llm.live.sitemap_files import Listing
from crawl4llm.live.sitemaps import Sitemaps
from crawl4llm.parts import Parts
from tests.testweb import FewPages, LocalWeb, Logged, read_log, running, waits

MOST, DELAY = 12, 0.1
HOSTS = ("good.test", "www.good.test", "deep.test", "bomb.test", "many.test", "wide.test", "shut.test", "broken.test")
ROBOTS = {
    "good.test": "Sitemap: /index.xml\nUser-agent: *\nDisallow: /private\n",
    "www.good.test": "User-agent: other\nDisallow: /\nSitemap: /of-www.xml",
    "deep.test": "Sitemap: /0.xml",
    "bomb.test": "Sitemap: /bomb.gz\nSitemap: /endless\n",
    "many.test": "Sitemap: /many.xml",
    "wide.test": "".join(f"Sitemap: /none-{number}.xml\n" for number in range(50)),
    "shut.test": "Sitemap: /private/map.xml\nUser-agent: *\nDisallow: /private",
    "broken.test": "Sitemap: /gb.xml\nSitemap: /status\nSitemap: /page\n"
    "Sitemap: http://nobody.test/map.xml\nSitemap: /after.xml",
}


def urlset(*urls: str) -> bytes:
    return b"<urlset>" + b"".join(b"<url><loc>%b</loc></url>" % url.encode() for url in urls) + b"</urlset>"


def index(*urls: str) -> bytes:
    return b"<sitemapindex>" + b"".join(b"<sitemap><loc>%b</loc></sitemap>" % url.encode() for url in urls)


def web_pages() -> dict[str, dict[str, bytes]]:
    """Homes without links, and sitemaps that name what nothing leads to."""
    pages = {host: {"/": text_page(number, []).body} for number, host in enumerate(HOSTS)}
    found = {f"/found-{number}": text_page(10 + number, []).body for number in range(20)}
    for host in HOSTS:
        pages[host].update(found)
    pages["good.test"].update(
        {
            "/index.xml": index("/a.xml", "/b.xml.gz", "/c.txt", "/index.xml"),
            "/a.xml": urlset(
                "/found-0",
                "/found-1",
                "http://www.good.test/found-0",
                "http://many.test/found-19",
                "/map.png",
                "/private/x",
                "/found-0",
            ),
            "/b.xml.gz": gzip.compress(urlset("/found-2")),
            "/c.txt": b"http://good.test/found-3\nhttp://good.test/\n",
        }
    )
    pages["www.good.test"]["/of-www.xml"] = urlset("/found-4")
    pages["deep.test"].update({f"/{n}.xml": index(f"/{n + 1}.xml", f"/{n}-more.xml") for n in range(40)})
    pages["bomb.test"]["/bomb.gz"] = gzip.compress(b"<urlset>" + b" " * (80 << 20), 1)
    pages["many.test"]["/many.xml"] = urlset(*(f"/found-{number}" for number in range(300_000)))
    pages["shut.test"]["/private/map.xml"] = urlset("/found-0")
    gb = urlset("/found-8", "/found-9").replace(b"</url><url>", "</url><title>日本</title><url>".encode("gb2312"))
    pages["broken.test"]["/gb.xml"] = b"<?xml version='1.0' encoding='gb2312'?>" + gb
    pages["broken.test"].update({"/page": b"<html><p>Not found", "/after.xml": b"<urlset><url><loc>/found-7</loc><"})
    return pages


class Crawled(NamedTuple):
    """A crawl of sites that have nothing but sitemaps."""

    output: Path
    job: Path
    asked: list[Logged]
    stats: dict[str, float]
    log: str

    def paths(self, host: str) -> list[str]:
        return [one.path for one in self.asked if one.host == host]

    def pages(self, host: str) -> dict[str, str | None]:
        """The sitemap on which each page was found, by path."""
        lines = [line for line in crawl_log(self.output) if line["url"].split("/")[2].startswith(f"{host}:")]
        return {
            f"/{line['url'].split('/', 3)[3]}": line["parent"] and line["parent"].split("/", 3)[3] for line in lines
        }


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("sitemaps")
    rules = {"bomb.test/endless": "endless", "broken.test/status": "status:503"}
    web = LocalWeb(folder / "web", FewPages(web_pages()), robots=ROBOTS, misbehaving=rules)
    with running(web):
        settings = {
            "SITEMAPS": MOST,
            "CRAWL_BATCH_SIZE": 0,
            "DOWNLOAD_DELAY": DELAY,
            "DELAY_FACTOR": 0,
            "DOWNLOAD_MAXSIZE": None,
            "CRAWL_MAX_PAGES": 1000,
            "RETRY_WAITS": "0.1",
            "JOBDIR": folder / "job",
            "DNS_HOSTS": web.hosts_file,
            "PROGRESS_BAR": "off",
        }
        result = crawl_live([web.url(host, "/") for host in HOSTS], folder / "run", **settings)
        assert result.returncode == 0, result.stderr
    stats = json.loads((folder / "run/stats.json").read_text())
    yield Crawled(folder / "run", folder / "job", read_log(web.log_file), stats, result.stderr)


def test_what_sitemaps_name_is_crawled(crawled: Crawled) -> None:
    """Of the owner's other hosts too, but not of other owners; by the same rules as links."""
    assert crawled.pages("good.test") == {
        "/": None,
        "/found-0": "a.xml",
        "/found-1": "a.xml",
        "/found-2": "b.xml.gz",
        "/found-3": "c.txt",
    }
    assert crawled.pages("www.good.test") == {"/": None, "/found-0": "a.xml", "/found-4": "of-www.xml"}
    named = {"/found-8": "gb.xml", "/found-9": "gb.xml", "/found-7": "after.xml"}
    assert crawled.pages("broken.test") == {"/": None, **named}
    assert {line["depth"] for line in crawl_log(crawled.output)} == {0, 1}
    assert crawled.stats["crawl4llm/dropped/robots"] == 1, "/private/x"
    assert crawled.stats["crawl4llm/links/file_type"] == 1, "/map.png"
    check_archive(crawled.output)


def test_a_sitemap_whose_reading_fails_ends_no_other_of_its_owner(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def read(data: bytes, url: str, *_: object) -> Listing:
        if "bad" in url:
            raise RuntimeError("not anticipated")
        return Listing([f"{url}/page"], [])

    async def download(self: Sitemaps, url: str) -> bytes:
        return b""

    monkeypatch.setattr(sitemaps, "read_sitemap", read)
    monkeypatch.setattr(Sitemaps, "_download", download)
    monkeypatch.setattr(Sitemaps, "_is_over", False)
    counts: Counter[str] = Counter()
    followed: list[str] = []
    crawl: Any = SimpleNamespace(
        counters=SimpleNamespace(counts=counts),
        scope=SimpleNamespace(may_list=lambda *_: True),
        parts=Parts(),
        follow=lambda page: followed.extend(link.key for link in page.links),
        wake=lambda: None,
    )
    named = [f"http://a.test/{name}.xml" for name in ("one", "bad", "two")]
    asyncio.run(Sitemaps(get_crawler(Spider), crawl, 10)._read_site("a.test", "http://a.test", named))
    assert followed == ["http://a.test/one.xml/page", "http://a.test/two.xml/page"]
    assert (counts["sitemaps/read"], counts["sitemaps/failed"]) == (2, 1)
    assert "Cannot read the sitemap http://a.test/bad.xml" in caplog.text


def test_no_more_is_asked_for_than_the_bounds_allow(crawled: Crawled) -> None:
    assert crawled.paths("deep.test").count("/0.xml") == 1
    assert not [path for path in crawled.paths("deep.test") if path in {"/3.xml", "/2-more.xml"}], "the fourth level"
    assert len([path for path in crawled.paths("wide.test") if "none-" in path]) == 10
    assert crawled.pages("wide.test") == {"/": None}
    assert sorted(crawled.pages("many.test")) == sorted(["/", *(f"/found-{number}" for number in range(MOST))])
    assert crawled.pages("bomb.test") == {"/": None}
    assert "/private/map.xml" not in crawled.paths("shut.test")
    asked = Counter(
        (one.host, one.path) for one in crawled.asked if one.path != "/robots.txt"
    )  # a probe of the network
    assert max(asked.values()) == 1


def test_sitemaps_wait_for_their_turns_and_are_in_the_log_of_requests(crawled: Crawled) -> None:
    for owner, seconds in waits(crawled.asked).items():
        assert not seconds or min(seconds) >= DELAY, owner
    rows = scrapy("report", str(crawled.job), "--owner", "good.test", "--json").stdout
    purposes = Counter(request["for"] for request in json.loads(rows)["requests"])
    assert purposes["sitemap"] == 5
    read, failed = (crawled.stats[f"crawl4llm/sitemaps/{name}"] for name in ("read", "failed"))
    asked = [one for one in crawled.asked if one.path.endswith((".xml", ".gz", ".txt", "/endless", "/status", "/page"))]
    assert read + failed == len([one for one in asked if one.path != "/robots.txt"]) + 2, "one forbidden, one nowhere"


def test_nothing_is_left_and_nothing_is_an_error(crawled: Crawled) -> None:
    assert "Traceback" not in crawled.log
    assert not (crawled.output / "errors.log").exists() or not (crawled.output / "errors.log").read_text()
    assert scrapy("frontier", str(crawled.job), "--verify").stdout.startswith("sound: ")
    assert crawled.stats["crawl4llm/frontier/queued"] == 0


def test_a_crawl_that_goes_on_reads_them_by_the_robots_txt_that_it_has(tmp_path: Path) -> None:
    """Where it needs that: nothing is lost by a kill, and robots.txt is not asked for again."""
    pages = {"/": text_page(1, ["/1", "/2", "/3"]).body, "/map.xml": urlset("/4", "/1")}
    pages |= {f"/{number}": text_page(number, []).body for number in range(1, 5)}
    robots = {"a.test": "Sitemap: http://else.test/map.xml\nSitemap: /map.xml"}
    hosts = {"a.test": pages, "else.test": {"/map.xml": b""}}
    web = LocalWeb(tmp_path / "web", FewPages(hosts), robots=robots)
    settings = {"CRAWL_BATCH_SIZE": 0, "JOBDIR": tmp_path / "job", "SCOPE_DOMAINS": "a.test"}
    with running(web):
        for most, sitemaps in ((2, 0), (100, 10)):
            more = {"CRAWL_MAX_PAGES": most, "SITEMAPS": sitemaps, "DNS_HOSTS": web.hosts_file}
            result = crawl_live([web.url("a.test", "/")], tmp_path / "run", **settings, **more)
            assert result.returncode == 0, result.stderr
    assert {line["url"].rpartition("/")[2] for line in crawl_log(tmp_path / "run")} == {"", "1", "2", "3", "4"}
    asked = Counter(one.path for one in read_log(web.log_file))
    assert (asked["/map.xml"], asked["/robots.txt"]) == (1, 1)
    assert {one.host for one in read_log(web.log_file)} == {"a.test"}, "the scope holds for sitemaps too"
