"""Where a redirect leads a live crawl, and what of the web is a document: as browsers have it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings

from crawl4llm.crawl.fetched_web import LiveCorpus
from crawl4llm.live.fetching import Redirecting
from crawl4llm.live.sitemap_files import read_sitemap
from crawl4llm.optouts.heard import of_site
from crawl4llm.optouts.patterns import Pattern, path_of
from crawl4llm.optouts.table import ROBOTS_TXT


def redirected(location: bytes | None, status: int = 302, **meta: Any) -> str | None:
    """Where the answer leads; None if it is given back as it came."""
    middleware = Redirecting(Settings())
    middleware.crawler = SimpleNamespace(spider=None)  # type: ignore[assignment]
    request = Request("https://a.example/x?y", meta=meta)
    response = Response(request.url, status, {} if location is None else {"Location": location})
    result = middleware.process_response(request, response)
    if isinstance(result, Request):
        return result.url
    assert result is response
    return None


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"/z", "https://a.example/z"),
        (b"\\z", "https://a.example/z"),
        (b"\\\\b.example\\z", "https://b.example/z"),
        (b"////b.example/z", "https://b.example/z"),
        (b"http:b.example", "http://b.example/"),
        (b"http://0x7f.1/", "http://127.0.0.1/"),
        ("http://fa\xdf.example/\xe9".encode(), "http://xn--fa-hia.example/%C3%A9"),
        (b"/\xe9?\xe9", "https://a.example/%E9?%E9"),
        (b" /z#part ", "https://a.example/z"),
        (b"javascript:x", None),
        (b"http://b.example:port/", None),
        (b"http://a b/", None),
        (None, None),
    ],
)
def test_redirects(location: bytes | None, target: str | None) -> None:
    assert redirected(location) == target


def test_an_answer_that_is_no_redirect_is_given_back() -> None:
    assert redirected(b"/z", 200) is None
    assert redirected(b"/z", dont_redirect=True) is None


def test_documents_of_the_web() -> None:
    corpus = LiveCorpus()
    assert corpus.resolve("HTTP://0x7F.1:80/\\a") == "http://127.0.0.1//a"
    for url in ("http://a b/", "http://h:65536/", "http://1.2.3.4.5/", "http://", "ftp://h/", "mailto:x", "h", ""):
        assert corpus.resolve(url) is None
        assert not corpus.is_key(url)
    assert corpus.is_key("http://127.0.0.1//a")
    assert not corpus.is_key("http://0x7f.1/")


def test_urls_of_sitemaps() -> None:
    locs = "".join(
        f"<url><loc>{url}</loc></url>" for url in ("\\a", "http:///h/b", "http://h:x/c", "http:/h/d", "http:e")
    )
    data = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locs}</urlset>'.encode()
    found = read_sitemap(data, "http://h/sitemaps/1.xml", 10, lambda url: True)
    assert found is not None
    assert list(found.pages) == ["http://h/a", "http://h/b", "http://h/h/d", "http://h/sitemaps/e"]


def test_a_pattern_is_no_url() -> None:
    assert Pattern("/a\\b").matches(path_of("http://h/a%5Cb"))
    assert not Pattern("/a\\b").matches(path_of("http://h/a\\b"))


@pytest.mark.parametrize(
    ("location", "other"),
    [
        ("//b.example/robots.txt", "https://b.example"),
        ("\\\\b.example\\robots.txt", "https://b.example"),
        ("http:a.example/robots.txt", "http://a.example"),
        ("/robots.txt", None),
        ("//b.example/other.txt", None),
    ],
)
def test_redirects_of_robots_txt_in_archives(location: str, other: str | None) -> None:
    found = of_site(ROBOTS_TXT, "https://a.example", "", 301, location, b"", "bot")
    assert (found and found.leads_to) == other
