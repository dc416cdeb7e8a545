"""Sitemaps as bytes: what is a URL of one, and that no file costs more than its bounds."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from urllib.parse import quote

import pytest
from crawl_helpers import PROJECT

from crawl4llm.live.sitemap_files import MOST_BYTES, MOST_NAMED, Listing, named_sitemaps, read_sitemap

SITE = "http://a.example"
NS = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*urls: str) -> bytes:
    return b"<urlset %b>%b</urlset>" % (NS, b"".join(b"<url><loc>%b</loc></url>" % url.encode() for url in urls))


def read(data: bytes, most: int = 100) -> Listing | None:
    return read_sitemap(data, f"{SITE}/sitemap.xml", most, lambda url: "//a.example/" in url)


def pages(data: bytes, most: int = 100) -> list[str]:
    found = read(data, most)
    assert found is not None
    return [url.removeprefix(SITE) for url in found.pages]


def test_robots_txt_names_sitemaps_outside_of_groups() -> None:
    text = b"""\xef\xbb\xbfUser-agent: other
Disallow: /
Sitemap: http://a.example/one.xml # the first
sitemap:/two.xml\rSITEMAP : https://cdn.example/a.example.xml.gz
Sitemap: http://a.example/one.xml
Sitemap: ftp://a.example/none
Sitemap: http://user@a.example/none
# Sitemap: http://a.example/comment
Sitemap:
"""
    three = ["http://a.example/one.xml", "http://a.example/two.xml", "https://cdn.example/a.example.xml.gz"]
    assert named_sitemaps(text, SITE) == three
    many = b"".join(b"Sitemap: /%d.xml\n" % number for number in range(10_000))
    assert len(named_sitemaps(many, SITE)) == MOST_NAMED


PLAIN = urlset(f"{SITE}/1", "/2", " http://A.EXAMPLE:80/3#x ", f"{SITE}/1", f"{SITE}/4?a=1&amp;b=2")


@pytest.mark.parametrize(
    "data",
    [
        PLAIN,
        b"\xef\xbb\xbf \n<?xml version='1.0' encoding='UTF-8'?>" + PLAIN,
        PLAIN.decode().encode("utf-16"),
        gzip.compress(PLAIN),
        PLAIN.replace(b"xmlns", b"xmlns:s").replace(b"</", b"</s:").replace(b"<u", b"<s:u").replace(b"<l", b"<s:l"),
        PLAIN[: -len("</urlset>")],
        PLAIN.replace(b"</loc>", b"</loc><image:loc>http://a.example/i</image:loc>"),
        PLAIN + b"junk & <more",
        gzip.compress(PLAIN + b" " * 100_000)[:-12],
        b"".join(gzip.compress(PLAIN[at : at + 40]) for at in range(0, len(PLAIN), 40)),
        gzip.compress(b"") + gzip.compress(b"\xef") + gzip.compress(b"\xbb\xbf") + gzip.compress(PLAIN),
        b" " * 200_000 + PLAIN,
        b"<?xml version='1.0' encoding='UTF-16'?>" + PLAIN,
        b"<?xml version='1.0' encoding='no-such'?>" + PLAIN,
        b"<?xml version='1.0' encoding='zip'?>" + PLAIN,
        b"<?xml version='1.0' encoding='utf-7'?>" + PLAIN,
        b"<?xml version='1.0' encoding='utf-16'?>".decode().encode("utf-16-le") + PLAIN.decode().encode("utf-16-le"),
        b"\xef\xbb\xbfhttp://a.example/1\nHTTP://a.example/2\rhttp://a.example/3\n http://a.example/4?a=1&b=2",
        "http://a.example/1\nhttp://a.example/2\nhttp://a.example/3\nhttp://a.example/4?a=1&b=2".encode("utf-16"),
        PLAIN.replace(b"<url>", b"<url><loc></loc></url><url><loc> \n</loc></url><url><loc>#x</loc></url><url>"),
        PLAIN.replace(b"<loc>", b"<loc><url><![CDATA[").replace(b"</loc>", b"]]></url></loc>").replace(b"&amp;", b"&"),
        PLAIN.replace(b"<loc>", b"<loc>\xc2\xa0").replace(b"</loc>", b"\xe2\x80\x80</loc>"),
        b"http://a.example/1\r\n/2 is none\nhttp://a.example/2\nhttp://a.example/3\n\nhttp://a.example/4?a=1&b=2",
    ],
    ids=[
        "plain",
        "marked",
        "utf-16",
        "gzip",
        "prefix",
        "open",
        "images",
        "junk",
        "cut gzip",
        "members",
        "empty member",
        "blanks",
        "not utf-16",
        "unknown encoding",
        "no charset",
        "utf-7",
        "utf-16 without a mark",
        "marked text",
        "text in utf-16",
        "empty loc",
        "url in loc",
        "unicode blanks",
        "text",
    ],
)
def test_forms_of_one_sitemap(data: bytes) -> None:
    assert pages(data) == ["/1", "/2", "/3", "/4?a=1&b=2"]


@pytest.mark.parametrize(
    "encoding", "gb2312 gbk gb18030 big5 shift_jis euc-jp euc-kr iso-2022-jp koi8-r windows-1251 ISO-8859-1".split()
)
def test_a_sitemap_is_decoded_by_its_declaration(encoding: str) -> None:
    """Also if an element other than a URL has other letters than ASCII's, in a character of several bytes."""
    letters = {"koi8-r": "страница", "windows-1251": "страница", "ISO-8859-1": "Straße", "euc-kr": "쪽"}
    letter = letters.get(encoding, "日本")
    text = f"<urlset><title>{letter}</title><url><loc>/{letter}</loc></url><url><loc>/2</loc></url></urlset>"
    data = f"<?xml version='1.0' encoding='{encoding}'?>{text}".encode(encoding)
    assert pages(data) == [f"/{quote(letter)}", "/2"]
    assert pages(gzip.compress(data)) == [f"/{quote(letter)}", "/2"]


def test_bytes_that_are_not_in_the_encoding_cost_no_other_url() -> None:
    assert pages(urlset("/1", "/2").replace(b"/1", b"/\xff\xfe")) == ["/%EF%BF%BD%EF%BF%BD", "/2"]


def test_an_index_in_which_an_element_of_a_url_stands_within_loc() -> None:
    index = b"<sitemapindex><sitemap><loc><url>/a.xml</url></loc></sitemap></sitemapindex>"
    assert read(index) == Listing([], [f"{SITE}/a.xml"])


def test_indexes_and_foreign_urls() -> None:
    index = b"<sitemapindex><sitemap><loc>/a.xml</loc></sitemap><sitemap><loc>http://b.example/b</loc></sitemap>"
    assert read(index) == Listing([], [f"{SITE}/a.xml", "http://b.example/b"])
    assert pages(urlset("http://b.example/", "javascript:x", f"{SITE}/" + "x" * 3000, "http://[", f"{SITE}/1")) == [
        "/1"
    ]


@pytest.mark.parametrize("data", [b"", b"<html><p>Not found", b"no sitemap\n", b"\x1f\x8bbroken", b"\x00" * 1000])
def test_what_is_no_sitemap(data: bytes) -> None:
    assert read(data) is None


RSS = b"<rss version='2.0'><channel><link>http://a.example/</link>%b</channel></rss>"
RSS_ITEM = b"<item><title>x</title><link>http://a.example/%d</link><guid>http://a.example/guid</guid></item>"
ATOM = b"<feed xmlns='http://www.w3.org/2005/Atom'><link href='http://a.example/'/>%b</feed>"
ATOM_ENTRY = b"<entry><link href='/%d'/><link rel='edit' href='/edit'/><content src='/none'/></entry>"
RDF = b"<rdf:RDF xmlns:rdf='r' xmlns='http://purl.org/rss/1.0/'><channel><link>/</link></channel>%b</rdf:RDF>"
RDF_ITEM = b"<item rdf:about='/about'><link>\n/%d </link></item>"


@pytest.mark.parametrize(("feed", "entry"), [(RSS, RSS_ITEM), (ATOM, ATOM_ENTRY), (RDF, RDF_ITEM)])
def test_feeds(feed: bytes, entry: bytes) -> None:
    """Their entries' own links, not those of the feed."""
    assert pages(feed % b"".join(entry % number for number in (1, 2, 3))) == ["/1", "/2", "/3"]


def test_a_document_type_ends_it() -> None:
    laughs = b'<!DOCTYPE u [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>' + urlset("http://a.example/&b;")
    assert read(laughs) is None


def test_only_the_first_are_taken_of_a_million() -> None:
    """And no more is unpacked than is needed for them."""
    some = b"".join(b"<url><loc>http://a.example/%d</loc></url>" % number for number in range(20_000))
    data = gzip.compress(b"<urlset>" + some * 60, 1)
    began = time.process_time()
    assert pages(data, 30) == [f"/{number}" for number in range(30)]
    assert time.process_time() - began < 0.5
    many = b"<sitemapindex>" + b"<sitemap><loc>/x%d</loc></sitemap>" % 5 * 10**5
    assert read(many, 9) == Listing([], ["http://a.example/x5"])


BOMBS = """
import resource, zlib
from crawl4llm.live.sitemap_files import read_sitemap

def packed(head, part, times=11):
    press = zlib.compressobj(1, wbits=31)
    return press.compress(head) + b"".join(press.compress(part(n)) for n in range(times)) + press.flush()

MIB = 1 << 20
bombs = {
    "blanks": packed(b"<urlset>", lambda n: b" " * MIB, 70),
    "elements": packed(b"<urlset>", lambda n: b"<x/>" * (MIB // 4)),
    "names": packed(b"<urlset>", lambda n: b"".join(b"<x%x-%x/>" % (n, m) for m in range(MIB // 10))),
    "attributes": packed(b"<urlset><x ", lambda n: b"".join(b"a%x-%x='' " % (n, m) for m in range(MIB // 10))),
    "comment": packed(b"<urlset><!--", lambda n: b"x" * MIB),
    "text": packed(b"<urlset><url><loc>", lambda n: b"x" * MIB),
    "nested": packed(b"<urlset>", lambda n: b"<url>" * 10_000, 1),
    "line": packed(b"http://a.example/", lambda n: b"x" * MIB),
}
for name, bomb in bombs.items():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = read_sitemap(bomb, "http://a.example/s", 100, bool)
    print(name, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10, len(found.pages) if found else 0)
"""


def test_memory_is_bounded_whatever_a_file_holds() -> None:
    result = subprocess.run(
        [sys.executable, "-c", BOMBS], capture_output=True, cwd=PROJECT, text=True, check=True, timeout=60
    )
    lines = map(str.split, result.stdout.splitlines())
    found = {name: (int(mebibytes), int(pages)) for name, mebibytes, pages in lines}
    assert len(found) == 8
    assert max(mebibytes for mebibytes, _ in found.values()) < 48, found
    assert not any(pages for _, pages in found.values()), found
    assert MOST_BYTES == 10 << 20
