"""Targets: what servers send besides pages. URLs, robots.txt, sitemaps, tdmrep.json, header fields."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from benchmarks.fuzz.mutators import of_json
from benchmarks.fuzz.target import CRAWLER, PAGE, Reader, Target, text_of

_URL_PARTS: Final = (
    *(
        b"http://",
        b"https://",
        b"//",
        b"/../",
        b"/./",
        b"?",
        b"#",
        b":80",
        b":443",
        b"@",
        b"[::1]",
        b"%2e",
        b"%",
        b"%zz",
    ),
    *(b"xn--", "\u00df".encode(), "\u3002".encode(), b"\xed\xa0\x80", b"\\", b"\t", b"\n", b"javascript:", b"%C3%A4"),
)
_ROBOTS: Final = (
    b"User-agent: *\nDisallow: /private/*.pdf$\nAllow: /\nCrawl-delay: 2.5\nSitemap: https://site.example/map.xml\n",
    b"User-agent: crawl4llm\nUser-agent: GPTBot\nDisallow: /50%-off/\nContent-Signal: ai-train=no, search=yes\n",
    b"User-agent: *\nContent-Usage: /a/ train-ai=n\nLicense: https://site.example/l.xml\n",
    "\ufeffUser-agent: crawl4llm/1.0\r\nDisallow: /\u00e4\r\n# c\r\nContent-Usage: train-ai=n;x=1\r\n".encode(),
)
_ROBOTS_WORDS: Final = (
    *(b"User-agent: ", b"Disallow: ", b"Allow: ", b"Crawl-delay: ", b"Sitemap: ", b"Content-Signal: ", b"License: "),
    *(
        b"Content-Usage: ",
        b"crawl4llm",
        b"*",
        b"$",
        b"#",
        b"\r",
        b"\xff\xfe",
        b"%2F",
        b"ai-train=no",
        b"train-ai=n",
        b"/",
    ),
)
_SITEMAP: Final = (
    b'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    b"<url><loc>http://site.example/a?b=1&amp;c</loc><lastmod>2026-01-01</lastmod></url>"
    b'<url><loc>http://site.example/de</loc><xhtml:link xmlns:xhtml="http://www.w3.org/1999/xhtml" rel="alternate" '
    b'hreflang="de" href="http://site.example/de"/></url></urlset>'
)
_SITEMAP_INDEX: Final = (
    b'<?xml version="1.0"?><s:sitemapindex xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9">'
    b"<s:sitemap><s:loc><![CDATA[ http://site.example/b.xml.gz ]]></s:loc></s:sitemap></s:sitemapindex>"
)


def _urls(_: Path) -> Reader:
    from crawl4llm.base.domains import ascii_host, owner_of
    from crawl4llm.base.software_marks import Mark
    from crawl4llm.base.urls import host_of, lookup_form, normalise_url, site_of
    from crawl4llm.parts.aliases.patterns import holds, removals, split_url
    from crawl4llm.parts.site_rules import LISTS
    from crawl4llm.parts.site_rules.work import RulesOfSites, software_of
    from crawl4llm.parts.url_traps.rules import RULES, Traps
    from crawl4llm.warc.page_records import urlkey

    traps, rules = Traps(tuple(RULES)), RulesOfSites(software_of(LISTS))

    def read(data: bytes) -> None:
        url = text_of(data)
        key = normalise_url(url)
        assert normalise_url(key) == key, key
        assert not set(key) & set(" \t\r\n"), key
        if key.startswith(("http://", "https://")) and host_of(key):
            assert normalise_url(site_of(url)) == f"{site_of(url)}/", site_of(url)
        for form in (url, key):
            lookup_form(form), host_of(form), owner_of(form), ascii_host(form), urlkey(form)
        traps.rule_of(key)
        if (split := split_url(key)) is not None:
            for one in removals(split):
                assert len(one.form) < len(split.form), one
                assert holds(one.by_name, split.words), one
        rules.sites.learn(key, (Mark("mediawiki", "generator"), Mark("mediawiki", "assets", "/w/")))
        rules.rule_of(url), rules.rule_of(key)
        assert len(rules.sites.stored) <= 1, rules.sites.stored
        rules.sites.stored.clear()

    return Reader(read)


def _references(_: Path) -> Reader:
    from crawl4llm.base.urls import BaseUrl, normalise_url

    def read(data: bytes) -> None:
        base, _, reference = text_of(data).partition("\n")
        found = BaseUrl(base).resolve(reference)
        if found is not None and base.startswith(("http://", "https://")):
            assert normalise_url(found) == found, found
            assert found.startswith(("http://", "https://")), found

    return Reader(read)


def _robots(_: Path) -> Reader:
    from crawl4llm.live.sitemap_files import named_sitemaps
    from crawl4llm.optouts.robots_rules import parse, signals_of

    urls = ("http://site.example/", "http://site.example/private/a.pdf?x=%C3%A4", "http://site.example/50%25-off/")

    def read(data: bytes) -> None:
        rules = parse(data, CRAWLER)
        delay = rules.crawl_delay
        assert delay is None or isinstance(delay, float), delay
        for url in urls:
            if not rules.allows(url):
                assert "\n" not in (rules.line_against(url) or "\n")
            rules.said(url)
        assert rules.size >= 0
        signals_of(data, CRAWLER).of(urls[1])
        named_sitemaps(data, "http://site.example")

    return Reader(read)


def _sitemaps(_: Path) -> Reader:
    from crawl4llm.base.urls import normalise_url
    from crawl4llm.live.sitemap_files import MOST_NAMED, read_sitemap

    def read(data: bytes) -> None:
        found = read_sitemap(
            data, "http://site.example/sitemap.xml", 50, lambda url: len(url) % 7 > 0, lambda some: "de" not in some
        )
        if found is not None:
            assert len(found.pages) <= 50
            assert len(found.maps) <= MOST_NAMED
            assert all(normalise_url(url) == url for url in (*found.pages, *found.maps)), found

    return Reader(read)


def _tdmrep(_: Path) -> Reader:
    from crawl4llm.optouts.tdmrep import TdmRules

    def read(data: bytes) -> None:
        rules = TdmRules(data)
        assert rules.size >= 0
        rules.of("http://site.example/a/b?c")

    return Reader(read)


def _fields(_: Path) -> Reader:
    from crawl4llm.optouts.said import as_text, from_text
    from crawl4llm.optouts.values import said_in_head

    def read(data: bytes) -> None:
        headers = [
            (name.strip(), value.strip()) for name, _, value in (line.partition(b":") for line in data.split(b"\n"))
        ]
        said = said_in_head(headers, CRAWLER)
        text = as_text(said)
        assert "\n" not in text, text
        from_text(text), from_text(text_of(data))

    return Reader(read)


def _retry_after(_: Path) -> Reader:
    from crawl4llm.live.places import wait_in

    wait: Callable[[Any], float] = wait_in

    def read(data: bytes) -> None:
        assert 0 <= wait(SimpleNamespace(headers={"Retry-After": data})) <= 86_400

    return Reader(read)


def _seen_in_archives(_: Path) -> Reader:
    from crawl4llm.optouts.heard import Heard, OfSite, of_site

    def read(data: bytes) -> None:
        location, _, body = data.partition(b"\n")
        answers = [
            of_site(purpose, "http://site.example", "2026-01-01T00:00:00Z", status, text_of(location), body, CRAWLER)
            for purpose, status in (("robots.txt", 200), ("robots.txt", 301), ("tdmrep.json", 200))
        ]
        heard = Heard([one for one in answers if isinstance(one, OfSite)])
        heard.said(PAGE, PAGE, "2025-01-01T00:00:00Z")

    return Reader(read)


TARGETS: Final = (
    Target(
        *("urls", _urls),
        lambda: [PAGE.encode(), "HTTPS://u:p@B\u00fccher.example:443/%7ea/../b c?d=[e]#f".encode(), b"mailto:a@b.c"],
        tokens=_URL_PARTS,
        longest=4096,
        weight=2,
    ),
    Target(
        *("references", _references),
        lambda: [PAGE.encode() + b"\n" + one for one in (b"../a b?c#d", b"//x.example", b"?q", b"http:/x", b"#f", b"")],
        tokens=_URL_PARTS,
        longest=4096,
        weight=2,
    ),
    Target("robots", _robots, lambda: _ROBOTS, tokens=_ROBOTS_WORDS, weight=3),
    Target(
        *("sitemaps", _sitemaps),
        lambda: [
            *(_SITEMAP, _SITEMAP_INDEX, gzip.compress(_SITEMAP, mtime=0), _SITEMAP.decode().encode("utf-16")),
            b"\xef\xbb\xbfhttp://site.example/a\nhttps://site.example/b\n",
        ],
        tokens=(
            b"<url>",
            b"<loc>",
            b"</loc>",
            b"<!DOCTYPE",
            b"<!ENTITY",
            b"&#x",
            b"<![CDATA[",
            b"encoding='gbk'",
            b"http://",
        ),
        weight=3,
    ),
    Target(
        *("tdmrep", _tdmrep),
        lambda: [
            b'[{"location": "/a*", "tdm-reservation": 1, "tdm-policy": "https://x.example/p"}, {"location": "*"}]'
        ],
        of_json,
    ),
    Target(
        *("fields", _fields),
        lambda: [
            b"X-Robots-Tag: crawl4llm: noindex, noai\nContent-Usage: train-ai=n;a=1, search=y",
            b'Link: <https://x.example/l>; rel="license"; type="application/rsl+xml"\nTDM-Reservation: 1',
            b"TDM-Policy: /p\nTDM-Reservation: 1, 0\nContent-Signal: ai-train=no; search=yes",
            b"robots.txt * / Content-Signal ai-train=no; meta * page robots noai",
        ],
        tokens=(
            b"Content-Usage: ",
            b"train-ai=",
            b"X-Robots-Tag: ",
            b"unavailable_after: ",
            b"noai",
            b"?0",
            b":YQ==:",
            b"(",
        ),
    ),
    Target("retry-after", _retry_after, lambda: [b"120", b"Fri, 27 Nov 2026 07:00:00 GMT"], longest=256, weight=0.3),
    Target(
        *("heard", _seen_in_archives),
        lambda: [b"http://other.example/robots.txt\n" + one for one in _ROBOTS],
        tokens=_ROBOTS_WORDS,
        weight=0.5,
    ),
)
