"""Collections of WARC files as a corpus."""

from __future__ import annotations

import gzip
import json
import logging
import pickle
import random
import re
import shutil
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from archive_helpers import write_archive
from corpus_contract import CorpusContract
from warc_helpers import (
    DATE,
    HTML,
    arc,
    arc_head,
    clueweb09,
    html_of,
    http,
    page,
    record,
    redirect,
    response,
    url_of,
    warcinfo,
    write,
)

from crawl4llm.base.compression import zstd
from crawl4llm.base.errors import Bomb, CorruptRecord, InputError, MissingRecord, PageError
from crawl4llm.base.page_heads import NO_HEAD
from crawl4llm.base.pages import Corpus, Link, PageRecord
from crawl4llm.base.reasons import ERROR
from crawl4llm.frontier import Outcome
from crawl4llm.live.verdicts import verdict
from crawl4llm.warc import payload as warc_payload
from crawl4llm.warc.records import Fields
from simulate.warcs import corpus as corpus_module
from simulate.warcs.corpus import WarcCorpus


def wet(number: int, text: str) -> bytes:
    """What Common Crawl makes of a page for its WET files."""
    fields = [f"WARC-Refers-To: <urn:uuid:{number}>", "Content-Type: text/plain"]
    return record("conversion", url_of(number), text.encode(), fields)


def wat(number: int, html_metadata: object) -> bytes:
    """What Common Crawl makes of a page for its WAT files."""
    envelope = {"Payload-Metadata": {"HTTP-Response-Metadata": {"HTML-Metadata": html_metadata}}}
    block = json.dumps({"Container": {}, "Envelope": envelope}).encode()
    fields = [f"WARC-Refers-To: <urn:uuid:{number}>", "Content-Type: application/json"]
    return record("metadata", url_of(number), block, fields)


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., WarcCorpus]:
    """Opens what lies in ``tmp_path``/collection, or a file that is written there from records."""

    def open_corpus(*records: bytes, name: str = "a.warc.gz", canonical_links: bool = False) -> WarcCorpus:
        if records:
            write(tmp_path / "collection" / name, *records)
        return WarcCorpus(tmp_path / "collection", tmp_path / "index", canonical_links)

    return open_corpus


class TestWarcCorpus(CorpusContract):
    absent_key = "https://site.example/absent"
    malformed_key = "HTTPS://site.example/page-1.html"

    @pytest.fixture
    def corpus(self, tmp_path: Path) -> WarcCorpus:
        folder = tmp_path / "collection"
        for file, name in enumerate(["a.warc.gz", "b.warc", "deep/c.warc.zst"]):
            numbers = range(5 * file, 5 * file + 5)
            links = [*map(url_of, range(15)), "/absent"]
            write(folder / name, warcinfo(), *(page(number, links) for number in numbers))
            stem = name.partition(".")[0]
            write(folder / f"{stem}.warc.wet.gz", warcinfo(), *(wet(number, f"Text {number}.") for number in numbers))
        return WarcCorpus(folder, tmp_path / "index")

    def test_all_parts_are_held(self, corpus: Corpus) -> None:
        corpus.require("text", "html", "outlinks")
        with pytest.raises(
            InputError,
            match=r"no inlinks; make a ClueWeb22 tree that does: .*scrapy corpus build --to DIR -s CORPUS=",
        ):
            corpus.require("inlinks")


def test_a_page(opened: Callable[..., WarcCorpus]) -> None:
    links = ["page-2.html", "http://site.example/page-1.html", "https://else.example/", "#top", url_of(1) + "?"]
    corpus = opened(page(1, links), page(2))
    assert corpus.page(url_of(1)) == PageRecord(
        url_of(1),
        url_of(1),
        DATE,
        html_of(1, links),
        outlinks=[
            Link(url_of(2), url_of(2), "to page-2.html", False),
            Link("https://else.example/", None, "to https://else.example/", False),
        ],
        head=NO_HEAD,
    )


# -- where collections come from --------------------------------------------------------------------------------------


def test_common_crawl_with_wet_and_wat_and_cdx(tmp_path: Path) -> None:
    segment = tmp_path / "CC-MAIN-2024-10" / "segments" / "1"
    write(segment / "warc" / "x.warc.gz", warcinfo(), page(1, [url_of(2)]), page(2, [url_of(1)]), page(3))
    write(segment / "wet" / "x.warc.wet.gz", warcinfo(), wet(2, "zwei"), wet(1, "eins"))
    links = [
        {"path": "A@/href", "url": "page-3.html#x", "text": "three"},
        {"path": "IMG@/src", "url": "image.png"},
        {"path": "AREA@/href", "url": "page-2.html", "alt": "two"},
        {"path": "A@/href", "url": "javascript:x()"},
    ]
    head = {"Base": "/", "Metas": [{"http-equiv": "Refresh", "content": "0; url=x"}, {"name": "a"}]}
    write(segment / "wat" / "x.warc.wat.gz", warcinfo(), wat(1, {"Head": head, "Links": links}), wat(2, {}), wat(9, {}))
    write(segment / "crawldiagnostics" / "x.warc.gz", redirect("http://old.example/", url_of(3)))
    (tmp_path / "cdx-00000.gz").write_bytes(gzip.compress(b"example,site)/ 20240101000000 {}"))
    corpus = WarcCorpus(tmp_path, tmp_path / "index")
    corpus.require("text", "outlinks", "html")
    assert list(corpus.keys()) == [url_of(1), url_of(2), url_of(3)]
    assert [corpus.text(key) for key in corpus.keys()] == ["eins", "zwei", ""]
    assert corpus.outlinks(url_of(1)) == [
        Link("https://site.example/x", None, "", False),
        Link(url_of(3), url_of(3), "three", False),
        Link(url_of(2), url_of(2), "two", False),
    ]
    assert corpus.outlinks(url_of(2)) == []
    assert corpus.page(url_of(1)).outlinks == corpus.outlinks(url_of(1))
    assert corpus.page(url_of(1)).html == html_of(1, [url_of(2)])
    assert corpus.outlinks(url_of(3)) == []
    assert corpus.resolve("http://old.example/") == url_of(3)


def test_wet_and_wat_files_alone(tmp_path: Path) -> None:
    write(tmp_path / "x.warc.wet.gz", wet(1, "eins"), wet(2, "zwei"))
    corpus = WarcCorpus(tmp_path / "x.warc.wet.gz", tmp_path / "index")
    assert corpus.page(url_of(1)) == PageRecord(url_of(1), url_of(1), DATE, text="eins")
    assert corpus.outlinks(url_of(1)) == []
    with pytest.raises(MissingRecord, match="holds only the text of"):
        corpus.html(url_of(1))
    corpus.require("text")
    with pytest.raises(InputError, match="holds no HTML; set SIMULATION_TEXT=corpus"):
        corpus.require("html")
    with pytest.raises(InputError, match="holds neither HTML nor WAT"):
        corpus.require("outlinks")
    write(tmp_path / "x.warc.wat.gz", wat(1, {"Links": [{"path": "A@/href", "url": url_of(2)}]}))
    corpus = WarcCorpus(tmp_path / "x.warc.wet.gz", tmp_path / "index")
    corpus.require("text", "outlinks")
    assert corpus.page(url_of(1)).outlinks == [Link(url_of(2), url_of(2), "", False)]


def test_a_wet_file_whose_records_refer_to_none(tmp_path: Path) -> None:
    write(tmp_path / "x.warc.gz", page(1), response(url_of(2), http(html_of(2))))
    texts = [record("conversion", url_of(number), b"text %d" % number) for number in (2, 3, 1)]
    write(tmp_path / "x.warc.wet.gz", *texts, record("conversion", None, b"of no page"))
    corpus = WarcCorpus(tmp_path, tmp_path / "index")
    assert [corpus.text(key) for key in corpus.keys()] == ["text 1", "text 2"]


@pytest.mark.parametrize("block", [b"{", b"[]", b'{"Envelope": 7}', b"[" * 10**5])
def test_a_damaged_wat_record(tmp_path: Path, block: bytes) -> None:
    write(tmp_path / "x.warc.gz", page(1))
    write(tmp_path / "x.warc.wat.gz", record("metadata", url_of(1), block, ["WARC-Refers-To: <urn:uuid:1>"]))
    corpus = WarcCorpus(tmp_path, tmp_path / "index")
    with pytest.raises(CorruptRecord, match=r"x\.warc\.wat\.gz: record at 0: not the JSON of a WAT file"):
        corpus.outlinks(url_of(1))


@pytest.mark.parametrize("html", [{"Links": 7}, {"Head": {"Metas": True}}, {"Links": {}}, {"Links": ["x"]}])
def test_a_wat_record_with_other_values(tmp_path: Path, html: object) -> None:
    write(tmp_path / "x.warc.gz", page(1))
    write(tmp_path / "x.warc.wat.gz", wat(1, html))
    with pytest.raises(CorruptRecord, match="not the JSON of a WAT file"):
        WarcCorpus(tmp_path, tmp_path / "index").outlinks(url_of(1))


def test_a_link_of_a_wat_record_whose_path_is_no_text(tmp_path: Path) -> None:
    write(tmp_path / "x.warc.gz", page(1))
    write(tmp_path / "x.warc.wat.gz", wat(1, {"Links": [{"path": ["A@/href"], "url": "/x"}]}))
    assert WarcCorpus(tmp_path, tmp_path / "index").outlinks(url_of(1)) == []


def test_texts_are_required_of_every_file(opened: Callable[..., WarcCorpus], tmp_path: Path) -> None:
    write(tmp_path / "collection" / "x.warc.wet.gz", wet(1, "eins"))
    write(tmp_path / "collection" / "x.warc.gz", page(1))
    corpus = opened(page(2), name="y.warc.gz")
    with pytest.raises(InputError, match=r"y\.warc\.gz has no WET file with texts; set SIMULATION_TEXT=extracted"):
        corpus.require("text")
    with pytest.raises(MissingRecord, match=f"neither .* has the text of {re.escape(url_of(2))}"):
        corpus.text(url_of(2))


def test_clueweb09(opened: Callable[..., WarcCorpus]) -> None:
    corpus = opened(
        clueweb09(None, b"x"), *(clueweb09(number, html_of(number)) for number in range(3)), name="00.warc.gz"
    )
    record = corpus.page(url_of(1))
    assert (record.date, record.html) == (None, html_of(1) + b"\n\n")
    assert corpus.resolve("clueweb09-en0000-00-00002") == url_of(2)
    assert corpus.resolve("clueweb09-en0000-00-00009") is None


def test_our_own_archive(tmp_path: Path) -> None:
    pages = [
        PageRecord("1", url_of(1), "2021-01-01T00:00:00Z", html=html_of(1, [url_of(2)])),
        PageRecord("2", url_of(2), text="Text of page 2, \N{SNOWMAN}."),
        PageRecord("3", "ftp://site.example/3", html=html_of(3)),
    ]
    write_archive(tmp_path / "warc", pages, max_bytes=1)
    corpus = WarcCorpus(tmp_path / "warc", tmp_path / "index")
    assert list(corpus.keys()) == [url_of(1), url_of(2), "ftp://site.example/3"]
    assert [corpus.page(key) for key in corpus.keys()] == [
        PageRecord(
            url_of(1),
            url_of(1),
            pages[0].date,
            pages[0].html,
            outlinks=[Link(url_of(2), url_of(2), f"to {url_of(2)}", False)],
            head=NO_HEAD,
        ),
        PageRecord(url_of(2), url_of(2), "2022-08-01T12:00:00Z", text=pages[1].text),
        PageRecord(
            "ftp://site.example/3",
            "ftp://site.example/3",
            "2022-08-01T12:00:00Z",
            html_of(3),
            outlinks=[],
            head=NO_HEAD,
        ),
    ]


def test_clueweb22_html_files(tmp_path: Path, shared: Callable[[str], Path]) -> None:
    corpus = WarcCorpus(shared("clueweb22-sample/html"), tmp_path / "index")
    assert len(corpus) > 500
    record = corpus.page(next(corpus.keys()))
    assert record.html
    assert record.language == "en"
    assert record.outlinks


@pytest.mark.parametrize(
    ("date", "utc"),
    [
        ("2020-02-03T04:05:06Z", "2020-02-03T04:05:06Z"),
        ("2020-02-03T04:05:06.789012Z", "2020-02-03T04:05:06Z"),
        ("2020-02-03T04:05:06+05:30", "2020-02-02T22:35:06Z"),
        ("2020-02-03T04:05:06-0800", "2020-02-03T12:05:06Z"),
        ("2020-02-03", "2020-02-03T00:00:00Z"),
        ("20200203040506", "2020-02-03T04:05:06Z"),
        ("2020-02-30T04:05:06Z", None),
        ("0001-01-01T00:00:00+23:00", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_dates(opened: Callable[..., WarcCorpus], date: str, utc: str | None) -> None:
    corpus = opened(record("response", url_of(1), http(html_of(1)), ["Content-Type: application/http"], date=date))
    assert corpus.page(url_of(1)).date == utc


# -- URLs -------------------------------------------------------------------------------------------------------------


def test_resolution_forgives_what_the_web_forgives(opened: Callable[..., WarcCorpus]) -> None:
    corpus = opened(response("https://h.example/a/", http(html_of(1))), response("http://h.example/", http(html_of(2))))
    for url in (
        "https://h.example/a/",
        "http://h.example/a",
        "HTTPS://H.EXAMPLE:443/a/#b",
        "h.example/a",
        " //h.example/a ",
    ):
        assert corpus.resolve(url.strip(" /")) == "https://h.example/a/"
    for url in ("https://h.example/index.html", "h.example", "http://h.example/x/.."):
        assert corpus.resolve(url) == "http://h.example/"
    for url in ("https://h.example/A/", "http://www.h.example/", "http://h.example/a/b", "", "?", "no such name"):
        assert corpus.resolve(url) is None


def test_documents_of_urls_that_the_parser_refuses_are_found(opened: Callable[..., WarcCorpus]) -> None:
    corpus = opened(
        response("http://h.example:08080/", http(html_of(1))), response("http://a%20b.example/", http(html_of(2)))
    )
    assert list(corpus.keys()) == ["http://h.example:8080/", "http://a%20b.example/"]
    assert corpus.resolve("http://h.example:08080/") == "http://h.example:8080/"
    assert corpus.resolve("http://a b.example/") == "http://a%20b.example/"


def test_redirects_are_followed(opened: Callable[..., WarcCorpus]) -> None:
    corpus = opened(
        redirect("http://h.example/1", "2?x=y"),
        redirect("http://h.example/2?x=y", "//h.example/3/#top", "302 Found"),
        redirect("https://h.example/3", url_of(1), "308 Permanent Redirect"),
        redirect("http://h.example/loop", "/loop2"),
        redirect("http://h.example/loop2", "/loop"),
        redirect("http://h.example/self", "/self/"),
        redirect("http://h.example/out", "http://else.example/"),
        redirect("http://h.example/mail", "mailto:a@b.c"),
        redirect("http://h.example/nowhere", ""),
        page(1, ["http://h.example/1", "http://h.example/loop"]),
    )
    for url in ("http://h.example/1", "https://h.example/1/", "http://h.example/2?x=y", "http://h.example/3"):
        assert corpus.resolve(url) == url_of(1)
    for name in ("loop", "loop2", "self", "out", "mail", "nowhere"):
        assert corpus.resolve(f"http://h.example/{name}") is None
    assert corpus.outlinks(url_of(1)) == [
        Link("http://h.example/loop", None, "to http://h.example/loop", False),
    ]


def test_what_is_recorded_comes_before_what_is_forgiven(opened: Callable[..., WarcCorpus]) -> None:
    folder = response("http://h.example/a/", http(html_of(2)))
    corpus = opened(
        page(1), folder, redirect("http://h.example/a", url_of(1)), redirect("http://h.example/b", url_of(1))
    )
    assert corpus.resolve("http://h.example/a/") == "http://h.example/a/"
    assert corpus.resolve("http://h.example/a") == url_of(1)
    assert corpus.resolve("https://h.example/a") == "http://h.example/a/"
    assert corpus.resolve("https://h.example/b/") == url_of(1)


def test_revisits_resolve(opened: Callable[..., WarcCorpus]) -> None:
    digests = [f"WARC-Payload-Digest: sha1:{letter * 32}" for letter in "ABCD"]
    profile = "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"
    corpus = opened(
        response(url_of(1), http(html_of(1)), [digests[0]]),
        response(url_of(2), http(html_of(2)), [digests[1]]),
        record("revisit", "http://h.example/by-uri", http(), [profile, f"WARC-Refers-To-Target-URI: <{url_of(1)}>"]),
        record("revisit", "http://h.example/by-digest", http(), [profile, digests[1]]),
        record("revisit", "http://h.example/by-neither", http(), [profile]),
        record("revisit", "http://h.example/unknown", http(), [profile, digests[2]]),
        record("revisit", "http://h.example/moved", http(b"", "301 Moved", [f"Location: {url_of(2)}"]), [profile]),
        record("revisit", url_of(1), http(), [profile, f"WARC-Refers-To-Target-URI: {url_of(1)}"]),
    )
    assert len(corpus) == 2
    assert corpus.resolve("http://h.example/by-uri") == url_of(1)
    assert corpus.resolve("http://h.example/by-digest") == url_of(2)
    assert corpus.resolve("http://h.example/moved") == url_of(2)
    assert corpus.resolve("http://h.example/by-neither") is None
    assert corpus.resolve("http://h.example/unknown") is None


def test_canonical_links_by_option(opened: Callable[..., WarcCorpus]) -> None:
    def canonical(number: int, link: str, before: bytes = b"") -> bytes:
        return response(url_of(number), http(b"<!doctype html>" + before + link.encode() + b"<body>"))

    records = [
        canonical(1, '<link rel="canonical" href="/one?a=1&amp;b=2">'),
        canonical(2, "<LINK HREF=/two REL=canonical>", b"<style>" + b"a{}" * 3000 + b"</style>"),
        canonical(3, f"<link rel='canonical' href='{url_of(3)}'>"),
        canonical(4, "<link rel=stylesheet href=/four><link rel=canonical>"),
        canonical(5, '<link rel="canonical" href="/one?a=1&amp;b=2">'),
    ]
    assert opened(*records).resolve("https://site.example/two") is None
    corpus = opened(*records, canonical_links=True)
    assert corpus.resolve("https://site.example/one?a=1&b=2") == url_of(1)
    assert corpus.resolve("https://site.example/two") == url_of(2)
    assert corpus.resolve("https://site.example/four") is None


# -- payloads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<p>é".encode(), "text/html; charset=utf-8"),
        ("<p>é".encode("latin-1"), "text/html; charset=ISO-8859-1"),
        ("<p>é".encode("utf-16"), "text/html"),
        (b"\xef\xbb\xbf" + "<p>é".encode(), "text/html; charset=latin-1"),
        ("<meta charset=windows-1252><p>é".encode("cp1252"), "text/html"),
        ("<meta charset=windows-1252><p>é".encode("cp1252"), "text/html; charset=no-such-charset"),
        ("<?xml version='1.0' encoding='latin-1'?><p>é".encode("latin-1"), "application/xhtml+xml"),
        ("<p>é".encode(), "text/html"),
        ("<p>é".encode("cp1252"), "text/html"),
    ],
)
def test_charsets(opened: Callable[..., WarcCorpus], body: bytes, content_type: str) -> None:
    corpus = opened(response(url_of(1), http(body, fields=[f"Content-Type: {content_type}"])))
    assert corpus.html(url_of(1)).decode().endswith("<p>é")


def test_links_are_in_the_charset_of_the_page(opened: Callable[..., WarcCorpus]) -> None:
    """URL Standard, 4.3: the query is, the path is not."""
    body = "<meta charset=windows-1252><a href='/é?é'>x</a>".encode("cp1252")
    corpus = opened(response(url_of(1), http(body, fields=["Content-Type: text/html"])))
    wanted = url_of(1).rpartition("/")[0] + "/%C3%A9?%E9"
    assert [link.url for link in corpus.outlinks(url_of(1))] == [wanted]
    assert [link.url for link in corpus.page(url_of(1)).outlinks or ()] == [wanted]


def test_an_error_that_nobody_foresaw_fails_its_page(
    opened: Callable[..., WarcCorpus], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = opened(response(url_of(1), http(html_of(1))))
    monkeypatch.setattr(corpus_module, "html_links", lambda *_: {}["href"])
    for read in (corpus.page, corpus.outlinks):
        with pytest.raises(PageError, match="href") as raised:
            read(url_of(1))
        assert raised.value.reason == ERROR
    assert "Traceback" in caplog.text


@pytest.mark.parametrize(
    "charset", ["hex", "base64", "rot13", "idna", "punycode", "undefined", "unicode_escape", "utf-7", "\N{SNOWMAN}"]
)
def test_a_charset_that_is_none(opened: Callable[..., WarcCorpus], charset: str) -> None:
    corpus = opened(response(url_of(1), http(b"<p>\\ud800 x", fields=[f"Content-Type: text/html; charset={charset}"])))
    assert corpus.html(url_of(1)) == b"<p>\\ud800 x"


@pytest.mark.parametrize(
    ("content_type", "is_page"),
    [
        ("text/html, text/html; charset=utf-8", True),
        ("text/plain, text/html", True),
        ("text/html, text/plain", False),
        ("text/html, */*", True),
        ("text/html, none", True),
        ('text/html; a="b, text/plain"', True),
        ("none", True),
        ("text/plain\r\nContent-Type: text/html", True),
        ("text/html;\r\n charset=utf-8", True),
        ("\r\n\ttext/html", True),
    ],
)
def test_the_type_is_the_last_one_of_several(
    opened: Callable[..., WarcCorpus], content_type: str, is_page: bool
) -> None:
    head = http(html_of(2), fields=[f"Content-Type: {content_type}"])
    corpus = opened(page(1), response(url_of(2), head))
    assert (corpus.resolve(url_of(2)) is not None) is is_page


def test_a_wrong_charset_costs_only_the_characters(opened: Callable[..., WarcCorpus]) -> None:
    corpus = opened(response(url_of(1), http("<p>é!".encode("latin-1"))))
    assert corpus.html(url_of(1)).decode() == "<p>\N{REPLACEMENT CHARACTER}!"


def chunked(body: bytes) -> bytes:
    parts = [body[:5], body[5:]]
    return b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def deflated(body: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-15)
    return deflate.compress(body) + deflate.flush()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        (["Transfer-Encoding: chunked"], chunked),
        (["Transfer-Encoding: chunked"], bytes),
        (["Transfer-Encoding: chunked"], lambda body: chunked(body)[:-5]),
        (["Content-Encoding: gzip"], gzip.compress),
        (["Content-Encoding: x-gzip", "Transfer-Encoding: Chunked"], lambda body: chunked(gzip.compress(body))),
        (["Content-Encoding: gzip"], bytes),
        (["Content-Encoding: deflate"], zlib.compress),
        (["Content-Encoding: deflate"], deflated),
        (["Content-Encoding: deflate"], bytes),
        (["Content-Encoding: br"], lambda body: pytest.importorskip("brotli").compress(body)),
        (["Content-Encoding: br"], lambda body: pytest.importorskip("brotli") and body),
        (["Content-Encoding: zstd"], lambda body: pytest.importorskip("backports.zstd").compress(body)),
        (["Content-Encoding: deflate, gzip"], lambda body: gzip.compress(zlib.compress(body))),
        (["Content-Encoding: utf-8"], bytes),
        (["Content-Encoding: deflate", "Content-Encoding: gzip"], lambda body: gzip.compress(zlib.compress(body))),
        (["Content-Encoding:", "\tgzip"], gzip.compress),
        (["Content-Encoding : gzip"], gzip.compress),
        (["Content-Encoding: gzip"], lambda body: b"".join(map(gzip.compress, (body[:9], b"", body[9:20], body[20:])))),
        (["Content-Encoding: zstd"], lambda body: b"".join(map(zstd.compress, (body[:9], b"", body[9:20], body[20:])))),
        (["Content-Encoding: zstd"], lambda body: b"\x5a\x2a\x4d\x18\x03\0\0\0abc" + zstd.compress(body)),
        (["Transfer-Encoding: chunked, chunked"], chunked),
        (["Transfer-Encoding: identity", "Transfer-Encoding: chunked"], chunked),
        (["Transfer-Encoding: identity"], bytes),
    ],
)
def test_codings_are_undone(
    opened: Callable[..., WarcCorpus], fields: list[str], code: Callable[[bytes], bytes]
) -> None:
    corpus = opened(response(url_of(1), http(code(html_of(1)), fields=[f"Content-Type: {HTML}", *fields])))
    assert corpus.html(url_of(1)) == html_of(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coding", "code"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("br", lambda body: pytest.importorskip("brotli").compress(body, quality=5)),
        ("zstd", lambda body: pytest.importorskip("backports.zstd").compress(body)),
    ],
)
def test_a_body_is_inflated_so_far_and_no_further(
    coding: str, code: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warc_payload, "_LARGEST_BODY", 1 << 20)
    fields = Fields(f"\nContent-Type: {HTML}\nContent-Encoding: {coding}".encode())
    body = b"<p>" + random.Random(1).randbytes(1 << 20).hex().encode()
    assert warc_payload.html_of(code(body), fields).data == body[: 1 << 20]


@pytest.mark.parametrize("codings", [["gzip"], ["gzip", "gzip"], ["deflate"], ["br"], ["zstd"]])
def test_a_body_that_unpacks_to_far_too_much_is_a_bomb(opened: Callable[..., WarcCorpus], codings: list[str]) -> None:
    """Whatever DOWNLOAD_MAXSIZE allows; one of a ratio below 100 is none, nor is one below 1 MiB."""
    pytest.importorskip("brotli")
    code: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
    code |= {"br": import_module("brotli").compress, "zstd": pytest.importorskip("backports.zstd").compress}
    bodies = [html_of(1).ljust(5 << 20), html_of(2).ljust((1 << 20) - 1)]
    draw = random.Random(1)
    bodies.append(html_of(3) + b"".join(draw.randbytes(9).hex().encode() * 10 for _ in range(6000)))
    fields = [f"Content-Type: {HTML}", f"Content-Encoding: {', '.join(codings)}"]
    records = []
    for number, body in enumerate(bodies, 1):
        for coding in codings:
            body = code[coding](body)  # noqa: PLW2901
        records.append(response(url_of(number), http(body, fields=fields)))
    corpus = opened(*records)
    for ask in (corpus.page, corpus.html):
        with pytest.raises(Bomb) as raised:
            ask(url_of(1))
        assert verdict(raised.value) == (Outcome.FAILED, "bomb")
    assert corpus.html(url_of(2)) == bodies[1]
    if len(codings) == 1:
        assert corpus.html(url_of(3)) == bodies[2]


def test_a_damaged_coding_is_a_damaged_page(opened: Callable[..., WarcCorpus]) -> None:
    body = gzip.compress(html_of(1))[:10] + b"\xff" * 50
    corpus = opened(
        response(url_of(1), http(body, fields=[f"Content-Type: {HTML}", "Content-Encoding: gzip"])), page(2)
    )
    with pytest.raises(CorruptRecord, match=r"a\.warc\.gz: record at 0: content coding gzip"):
        corpus.page(url_of(1))
    assert corpus.page(url_of(2)).html == html_of(2)


# -- files that change ------------------------------------------------------------------------------------------------


def test_the_index_follows_the_files(
    opened: Callable[..., WarcCorpus], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO)
    assert len(opened(page(1), page(2))) == 2
    assert caplog.messages == [f"Making the index of {tmp_path / 'collection'} in {tmp_path / 'index'}"]
    first = opened()
    assert len(caplog.messages) == 1
    assert len(opened(page(1), page(2), page(3))) == 3
    assert len(opened(page(4), name="b.warc")) == 4
    write(tmp_path / "collection" / "empty.warc.gz")
    assert len(opened()) == 4
    assert "Left out: " in caplog.messages[-1]
    with pytest.raises(InputError, match="has changed since it was indexed"):
        first.check()
    opened().check()


def test_a_file_that_vanished_or_changed_meanwhile(opened: Callable[..., WarcCorpus], tmp_path: Path) -> None:
    corpus = opened(page(1), page(2))
    file = tmp_path / "collection" / "a.warc.gz"
    data = file.read_bytes()
    write(file, page(3, ["x" * 1000]), page(2))
    for look_up in (corpus.page, corpus.html):
        with pytest.raises(
            CorruptRecord, match=r"a\.warc\.gz: record at 0.*run .*scrapy corpus index|a\.warc\.gz: record at 0"
        ):
            look_up(url_of(1))
    file.unlink()
    corpus.close()
    with pytest.raises(MissingRecord, match=r"a\.warc\.gz: was removed after indexing; run .*scrapy corpus index -s"):
        corpus.page(url_of(1))
    file.write_bytes(data)
    assert corpus.page(url_of(1)).html == html_of(1)


def test_damage_that_indexing_does_not_see_is_found_at_the_page(
    opened: Callable[..., WarcCorpus], tmp_path: Path
) -> None:
    noise = random.Random(1).randbytes(3000).hex()
    file = write(tmp_path / "collection" / "a.warc.gz", page(1), page(2, [noise]), page(3))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    corpus = opened()
    assert len(corpus) == 3
    with pytest.raises(CorruptRecord, match=r"a\.warc\.gz: record at \d+"):
        corpus.page(url_of(2))
    assert [corpus.html(url_of(number)) for number in (1, 3)] == [html_of(1), html_of(3)]


def test_equal_collections_have_one_identity(opened: Callable[..., WarcCorpus], tmp_path: Path) -> None:
    corpus = opened(page(1), page(2))
    shutil.copytree(tmp_path / "collection", tmp_path / "copy")
    assert WarcCorpus(tmp_path / "copy", tmp_path / "index2").identity() == corpus.identity()
    canonical = opened(canonical_links=True)
    write(tmp_path / "copy" / "b.warc", page(3))
    other = WarcCorpus(tmp_path / "copy", tmp_path / "index2")
    assert len({corpus.identity(), canonical.identity(), other.identity()}) == 3


def test_a_copy_for_another_process_does_not_look_at_the_files(
    opened: Callable[..., WarcCorpus], tmp_path: Path
) -> None:
    pickled = pickle.dumps(opened(page(1)))
    write(tmp_path / "collection" / "b.warc", page(2))
    assert len(pickle.loads(pickled)) == 1
    assert len(pickled) < 2000


@pytest.mark.parametrize("suffix", [".warc.gz", ".arc.gz"])
def test_files_that_are_compressed_as_a_whole(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("indexed_gzip")
    noise = [random.Random(number).randbytes(40_000).hex() for number in range(120)]
    records = [warcinfo(), *(page(number, [text]) for number, text in enumerate(noise))]
    if suffix == ".arc.gz":
        records = [arc_head(), *(arc(url_of(number), html_of(number, [text])) for number, text in enumerate(noise))]
    file = tmp_path / f"a{suffix}"
    file.write_bytes(gzip.compress(b"".join(records), 1))
    corpus = WarcCorpus(file, tmp_path / "index")
    assert len(corpus) == 120
    for number in (119, 0, 60):
        assert corpus.html(url_of(number)) == html_of(number, [noise[number]])
    assert pickle.loads(pickle.dumps(corpus)).html(url_of(7)) == html_of(7, [noise[7]])
    if suffix == ".warc.gz":
        texts = b"".join(wet(number, f"Text {number}") for number in range(120))
        (tmp_path / "a.warc.wet.gz").write_bytes(gzip.compress(texts))
        assert WarcCorpus(file, tmp_path / "index").text(url_of(119)) == "Text 119"
    file.write_bytes(file.read_bytes()[:-100_000])
    corpus = WarcCorpus(file, tmp_path / "index")
    assert 100 < len(corpus) < 120
    assert corpus.html(url_of(100)) == html_of(100, [noise[100]])


# -- the real thing ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_web(tmp_path_factory: pytest.TempPathFactory) -> WarcCorpus:
    folder = Path(__file__).resolve().parents[3] / "shared" / "corpora" / "real-web"
    if not folder.exists():
        pytest.skip(f"needs {folder}, which is not here")
    return WarcCorpus(folder, tmp_path_factory.mktemp("real-web"))


def links_of_reference(shared: Callable[[str], Path]) -> dict[str, int]:
    """Links to documents of the corpus, by page, as an independent program found them."""
    found = {}
    for file in sorted(shared("clueweb22-real/outlink").rglob("*.json.gz")):
        with gzip.open(file, "rt") as lines:
            for line in filter(str.strip, lines):
                page = json.loads(line)
                found[page["url"]] = len({link[5] for link in page["outlinks"]} - {None})
    return found


@pytest.mark.slow
def test_links_of_real_pages(real_web: WarcCorpus, shared: Callable[[str], Path]) -> None:
    assert len(real_web) == 21_599
    reference = links_of_reference(shared)
    sample = real_web.sample(300, 0)
    found = sum(len({link.key for link in real_web.outlinks(key)} - {None}) for key in sample)
    assert found == pytest.approx(sum(reference.get(key, 0) for key in sample), rel=0.05)
