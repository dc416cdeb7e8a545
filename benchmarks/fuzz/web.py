"""Targets: what servers send. Pages, URLs, robots.txt, sitemaps, tdmrep.json, header fields."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from benchmarks.fuzz.mutators import of_json
from benchmarks.fuzz.target import Reader, Target

_PAGE: Final = "http://site.example/folder/page.html?q=1"
_CRAWLER: Final = "crawl4llm"
_HTML: Final = (
    b"""<!doctype html><html><head><meta charset=utf-8><base href="/base/"><title>A &amp; b</title>
<meta name="robots" content="noai, noarchive"><meta http-equiv="refresh" content="5; url='next.html'">
<meta name="tdm-reservation" content="1"><link rel="license" type="application/rsl+xml" href="/l.xml"></head><body>
<nav><a href="?p=2">next</a></nav><svg><a xlink:href="#x"><text>x</text></a></svg><script>if (a < b) "</head>"</script>
<map><area href="//other.example/x" alt="area"></map><a href="../up/./a b.html">up <b>bold</b></a><!-- c --></body>""",
    '<a href="http://b\u00fccher.example/\u00e4?\u00f6#f">\u00fc</a>'.encode(),
    b"<frameset><frame src=a></frameset><a href=&#106;avascript:x>j</a><a href='data:,x'>d</a><a href=''>e</a>",
)
_TAGS: Final = (
    *(b"<a href=", b"<base href=", b"<area href=", b"<meta http-equiv=refresh content=", b"<svg>", b"<math>", b"</a>"),
    *(b"<!--", b"-->", b"<script>", b"</script>", b"<template>", b"</head>", b"<title>", b"<select>", b"<table>"),
    *(b"<b>", b"<p>", b"<nav>", b"xlink:href=", b"&#x", b"&amp;", b"<![CDATA[", b"<plaintext>", b"<iframe>", b"url="),
    *(
        b'<meta name="robots" content="noindex">',
        b"content-usage",
        b"tdm-policy",
        b"<link rel=license type=",
        b"'",
        b'"',
    ),
)
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
_ANY_TAG: Final = re.compile(rb"<[^>]*>")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _links(_: Path) -> Reader:
    from crawl4llm.base.html_tree import HtmlTree, html_links
    from crawl4llm.base.urls import normalise_url

    def read(data: bytes) -> None:
        for link in html_links(HtmlTree(data), _PAGE):
            assert normalise_url(link.url) == link.url, link
            assert "\n" not in link.anchor, link

    return Reader(read)


def _heads(_: Path) -> Reader:
    from crawl4llm.base.html_tree import HtmlTree
    from crawl4llm.base.page_heads import page_head, with_cookies
    from crawl4llm.base.software_marks import MOST_MARKS
    from crawl4llm.base.urls import normalise_url
    from crawl4llm.optouts.html_meta import said_in_html, said_in_tree
    from crawl4llm.optouts.said import as_text, from_text

    def read(data: bytes) -> None:
        tree = HtmlTree(data)
        said = said_in_tree(tree, _CRAWLER)
        head = with_cookies(page_head(tree, _PAGE), [(b"Set-Cookie", data)])
        for url in filter(None, (head.canonical, *(url for _, url in head.alternates))):
            assert normalise_url(url) == url, head
        assert len(head.generator) <= 200
        assert "\n" not in head.generator, head
        assert len(head.marks) <= 2 * MOST_MARKS, head
        assert all(mark.root.startswith("/") for mark in head.marks if mark.root), head
        assert said_in_html(data, _CRAWLER) == said, "the quick question loses nothing"
        from_text(as_text(said))

    return Reader(read)


def _charsets(_: Path) -> Reader:
    from crawl4llm.base.errors import Bomb, TooLarge
    from crawl4llm.warc.payload import html_of, is_html
    from crawl4llm.warc.records import CONTENT_TYPE, Fields

    html_of(b"\xe4", Fields(b""))  # imports the detector, which no input may do

    def read(data: bytes) -> None:
        head, _, body = data.partition(b"\n\n")
        fields = Fields(b"\n" + head)
        is_html(fields.get(CONTENT_TYPE), body)
        for as_sent in (False, True):
            html_of(body, fields, 1 << 20, as_sent=as_sent).data.decode()

    return Reader(read, (ValueError, Bomb, TooLarge))


def _charset_seeds() -> list[bytes]:
    from crawl4llm.base.compression import zstd

    named = [f"Content-Type: text/html; charset={name}\n\n".encode() for name in ("utf-8", "gbk", "utf-16", "x-sjis")]
    bodies = [
        b"<p>a\xe4",
        "\u4e2d\u6587".encode("gbk"),
        "\ufeff<p>\u00e4".encode("utf-16"),
        "\u3042".encode("shift_jis"),
    ]
    packed = {b"gzip": gzip.compress(_HTML[0], mtime=0), b"zstd": zstd.compress(_HTML[1])}
    return [
        *(head + body for head, body in zip(named, bodies, strict=True)),
        *(b"Content-Type: text/html\nContent-Encoding: %b\n\n%b" % item for item in packed.items()),
        b"\n\n<meta charset=koi8-r><meta http-equiv=content-type content='text/html; charset=big5'>",
        b"Content-Type: text/html\n\n<?xml version='1.0' encoding='iso-8859-2'?><html>",
    ]


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
        url = _text(data)
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
        base, _, reference = _text(data).partition("\n")
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
        rules = parse(data, _CRAWLER)
        delay = rules.crawl_delay
        assert delay is None or isinstance(delay, float), delay
        for url in urls:
            if not rules.allows(url):
                assert "\n" not in (rules.line_against(url) or "\n")
            rules.said(url)
        assert rules.size >= 0
        signals_of(data, _CRAWLER).of(urls[1])
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
        said = said_in_head(headers, _CRAWLER)
        text = as_text(said)
        assert "\n" not in text, text
        from_text(text), from_text(_text(data))

    return Reader(read)


def _retry_after(_: Path) -> Reader:
    from crawl4llm.live.places import wait_in

    wait: Callable[[Any], float] = wait_in

    def read(data: bytes) -> None:
        assert 0 <= wait(SimpleNamespace(headers={"Retry-After": data})) <= 86_400

    return Reader(read)


def _text_of_pages(_: Path) -> Reader:
    from crawl4llm.base.html_bounds import bounded
    from crawl4llm.scoring.text import count_tokens, title_of

    def read(data: bytes) -> None:
        assert data.startswith(bounded(data))
        assert "\n" not in title_of(data)
        count_tokens(_text(data))

    return Reader(read)


def _measures_of_texts(_: Path) -> Reader:
    from crawl4llm.base.html_tree import HtmlTree
    from crawl4llm.scoring import BundledLanguages, linked_share

    languages = BundledLanguages()
    languages.load()  # imports, which no input may do

    def read(data: bytes) -> None:
        text = _text(_ANY_TAG.sub(b" ", data))
        share = linked_share(HtmlTree(data), text)
        assert share is None or 0 <= share <= 1
        assert languages.language(text) != ""

    return Reader(read)


def _seen_in_archives(_: Path) -> Reader:
    from crawl4llm.optouts.heard import Heard, OfSite, of_site

    def read(data: bytes) -> None:
        location, _, body = data.partition(b"\n")
        answers = [
            of_site(purpose, "http://site.example", "2026-01-01T00:00:00Z", status, _text(location), body, _CRAWLER)
            for purpose, status in (("robots.txt", 200), ("robots.txt", 301), ("tdmrep.json", 200))
        ]
        heard = Heard([one for one in answers if isinstance(one, OfSite)])
        heard.said(_PAGE, _PAGE, "2025-01-01T00:00:00Z")

    return Reader(read)


TARGETS: Final = (
    Target("links", _links, lambda: _HTML, tokens=_TAGS, longest=1 << 15, weight=3),
    Target("heads", _heads, lambda: _HTML, tokens=_TAGS, longest=1 << 15, weight=2),
    Target("charsets", _charsets, _charset_seeds, tokens=(*_TAGS, b"charset=", b"Content-Encoding: br\n"), weight=3),
    Target("measures", _measures_of_texts, lambda: _HTML, tokens=_TAGS, longest=1 << 15, weight=1),
    Target("bounds", _text_of_pages, lambda: _HTML, tokens=_TAGS, longest=1 << 16, weight=1),
    Target(
        *("urls", _urls),
        lambda: [_PAGE.encode(), "HTTPS://u:p@B\u00fccher.example:443/%7ea/../b c?d=[e]#f".encode(), b"mailto:a@b.c"],
        tokens=_URL_PARTS,
        longest=4096,
        weight=2,
    ),
    Target(
        *("references", _references),
        lambda: [
            _PAGE.encode() + b"\n" + one for one in (b"../a b?c#d", b"//x.example", b"?q", b"http:/x", b"#f", b"")
        ],
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
