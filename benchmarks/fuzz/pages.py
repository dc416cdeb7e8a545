"""Targets: HTML pages. Their links, heads, charsets and texts."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Final

from benchmarks.fuzz.target import CRAWLER, PAGE, Reader, Target, text_of

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
_ANY_TAG: Final = re.compile(rb"<[^>]*>")


def _links(_: Path) -> Reader:
    from crawl4llm.base.html_tree import HtmlTree, html_links
    from crawl4llm.base.session_links import without_sessions
    from crawl4llm.base.urls import normalise_url

    def read(data: bytes) -> None:
        links = html_links(HtmlTree(data), PAGE)
        for link in [*links, *without_sessions(links, PAGE, [(b"Set-Cookie", data)])]:
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
        said = said_in_tree(tree, CRAWLER)
        head = with_cookies(page_head(tree, PAGE), [(b"Set-Cookie", data)])
        for url in filter(None, (head.canonical, *(url for _, url in head.alternates))):
            assert normalise_url(url) == url, head
        assert len(head.generator) <= 200
        assert "\n" not in head.generator, head
        assert len(head.marks) <= 2 * MOST_MARKS, head
        assert all(mark.root.startswith("/") for mark in head.marks if mark.root), head
        assert said_in_html(data, CRAWLER) == said, "the quick question loses nothing"
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


def _text_of_pages(_: Path) -> Reader:
    from crawl4llm.base.html_bounds import bounded
    from crawl4llm.scoring.text import count_tokens, title_of

    def read(data: bytes) -> None:
        assert data.startswith(bounded(data))
        assert "\n" not in title_of(data)
        count_tokens(text_of(data))

    return Reader(read)


def _measures_of_texts(_: Path) -> Reader:
    from crawl4llm.base.html_tree import HtmlTree
    from crawl4llm.scoring import BundledLanguages, linked_share

    languages = BundledLanguages()
    languages.load()  # imports, which no input may do

    def read(data: bytes) -> None:
        text = text_of(_ANY_TAG.sub(b" ", data))
        share = linked_share(HtmlTree(data), text)
        assert share is None or 0 <= share <= 1
        assert languages.language(text) != ""

    return Reader(read)


TARGETS: Final = (
    Target("links", _links, lambda: _HTML, tokens=_TAGS, longest=1 << 15, weight=3),
    Target("heads", _heads, lambda: _HTML, tokens=_TAGS, longest=1 << 15, weight=2),
    Target("charsets", _charsets, _charset_seeds, tokens=(*_TAGS, b"charset=", b"Content-Encoding: br\n"), weight=3),
    Target("measures", _measures_of_texts, lambda: _HTML, tokens=_TAGS, longest=1 << 15, weight=1),
    Target("bounds", _text_of_pages, lambda: _HTML, tokens=_TAGS, longest=1 << 16, weight=1),
)
"""All targets of pages, by name."""
