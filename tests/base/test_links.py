"""Links of HTML pages."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from crawl4llm.base.html_tree import (
    FoundLink,
    HtmlLink,
    HtmlTree,
    _cut_at_attributes,
    distinct_links,
    html_links,
    refresh_target,
)

PAGE = "https://site.example/folder/page.html?query#fragment"


def urls(html: str, page: str = PAGE) -> list[str]:
    return [link.url for link in html_links(HtmlTree(html.encode()), page)]


def test_elements_that_link_in_page_order() -> None:
    html = """<meta http-equiv=Refresh content="5; URL='/refreshed'">
        <link rel=next href=/no><img src=/no><form action=/no></form><p>
        <a href="a">one</a> <map><area href=b alt=" two  words "></map> <a name=no>no</a> <a href=c><b>th</b>ree
        lines</a>"""
    assert html_links(HtmlTree(html.encode()), PAGE) == [
        HtmlLink("https://site.example/refreshed", "", False),
        HtmlLink("https://site.example/folder/a", "one", False),
        HtmlLink("https://site.example/folder/b", "two words", False),
        HtmlLink("https://site.example/folder/c", "three lines", False),
    ]


def test_boilerplate_is_what_stands_in_header_footer_and_nav() -> None:
    html = """<header><p><a href=a>x</a></p></header><nav><ul><li><a href=b>x</a></ul></nav>
        <main><a href=c>x</a><article><footer><map><area href=d></map></footer></article></main><div class=nav>
        <a href=e>x</a></div>"""
    assert [link.boilerplate for link in html_links(HtmlTree(html.encode()), PAGE)] == [True, True, False, True, False]


def test_one_link_for_each_target_the_first_with_a_text() -> None:
    html = '<nav><a href=a><img></a></nav><a href=b>b</a><a href="./a#x">text</a><a href=a>other</a><a href=b#>c</a>'
    assert html_links(HtmlTree(html.encode()), PAGE) == [
        HtmlLink("https://site.example/folder/a", "text", False),
        HtmlLink("https://site.example/folder/b", "b", False),
    ]


def test_queries_are_in_the_charset_of_the_page_after_a_base_too() -> None:
    links: list[FoundLink] = [("?q=é", "", False, "", ""), ("/é?é", "", False, "", "")]
    for base, path in ((None, "/folder/page.html"), ("/other/x", "/other/x")):
        found = [link.url for link in distinct_links(links, PAGE, base, "windows-1252")]
        assert found == [f"https://site.example{path}?q=%E9", "https://site.example/%C3%A9?%E9"]


def test_a_page_does_not_link_to_itself() -> None:
    assert urls('<a href="">x</a><a href="#top">x</a><a href="page.html?query#end">x</a><a href=page.html>x</a>') == [
        "https://site.example/folder/page.html"
    ]


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("<base href=//cdn.example/x/>", "https://cdn.example/x/a"),
        ("<base target=_top><base href=/y/z>", "https://site.example/y/a"),
        ("<base href=/y/><base href=/z/>", "https://site.example/y/a"),
        ("<base href=mailto:me>", "https://site.example/folder/a"),
        ("<base href>", "https://site.example/folder/a"),
    ],
)
def test_base(base: str, url: str) -> None:
    assert urls(f"{base}<a href=a>x</a>") == [url]


@pytest.mark.parametrize(
    "reference",
    [
        "mailto:a@b.c",
        "javascript:void(0)",
        "data:text/html,x",
        "ftp://a/b",
        "tel:+1",
        "https://",
        "http:///",
        "HTTP:",
        "http://[::1",
        "http://localhost:port/",
        "http://h:65536/",
        "http://a b/",
        "http://a%2Fb/",
        "http://1.2.3.4.5/",
    ],
)
def test_what_is_no_link_to_the_web(reference: str) -> None:
    assert urls(f'<a href="{reference}">x</a>') == []


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        (" \n/a\tb\r\nc ", "https://site.example/abc"),
        ("HTTPS://Other.Example", "https://other.example/"),
        ("/a b&amp;c?d=é", "https://site.example/a%20b&c?d=%C3%A9"),
        ("//", None),
        ("a:b", None),
        ("./a:b", "https://site.example/folder/a:b"),
    ],
)
def test_references_as_people_write_them(reference: str, url: str | None) -> None:
    assert urls(f'<a href="{reference}">x</a>') == ([url] if url else [])


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=/a", "/a"),
        ("5; URL = '/a' ", "/a"),
        ('.5,url="/a b"rest', "/a b"),
        ("3 /a", "/a"),
        ("0;/a", "/a"),
        ("0; url=http://h/?a='b'", "http://h/?a='b'"),
        ("5", None),
        ("", None),
        ("url=/a", None),
    ],
)
def test_meta_refresh(content: str, target: str | None) -> None:
    assert refresh_target(content) == target


@pytest.mark.parametrize(
    "html",
    [
        b"",
        b"\xff\xfe<a href=\xff>",
        b"\0<a href=\0a>x</a>",
        b"<" * 100_000,
        b"<div>" * 100_000 + b"<a href=a>x",
        b"<header>" * 20_000 + b"<a href=a>x",
        b"<a href=a>" * 50_000,
        b"<!--" + b"<a href=a>" * 1000,
    ],
    ids=["empty", "not UTF-8", "zeros", "open tags", "deep", "deep boilerplate", "links in links", "comment"],
)
def test_hostile_pages_end_soon(html: bytes) -> None:
    start = time.process_time()
    html_links(HtmlTree(html), PAGE)
    assert time.process_time() - start < 5


def test_links_before_too_deep_a_place_are_found() -> None:
    html = "<a href=a>x</a>" + "<div>" * 20_000 + "<a href=b>x</a>"
    assert urls(html) == ["https://site.example/folder/a"]


def test_long_pages_are_read_to_their_end() -> None:
    script = "<script>" + "if (a<b) c();" * 5000 + "</script><!--" + "<div>" * 5000 + "-->"
    html = script + "<ul>" + "<li><p>x<br><img>" * 5000 + "<div><span>x</span></div>" * 5000 + "<a href=a>x</a>"
    assert urls(html) == ["https://site.example/folder/a"]


def test_links_beyond_ten_thousand_are_left_out() -> None:
    html = "".join(f"<a href={number}>x</a>" for number in range(10_500))
    assert urls(html) == [f"https://site.example/folder/{number}" for number in range(10_000)]


def test_a_long_base_and_long_references_are_none() -> None:
    long = "a" * 8193
    assert urls(f'<base href="/{long}/"><a href=b>x</a><a href="{long}">y</a>') == ["https://site.example/folder/b"]
    assert urls(f'<base href="/{long[3:]}/"><a href=b>x</a>') == [f"https://site.example/{long[3:]}/b"]
    assert refresh_target(f"0; url={long}") is None


@pytest.mark.parametrize("nest", ["<svg>{}", "{}"])
def test_links_in_links_take_no_more_memory_than_the_page(nest: str) -> None:
    """Each holds all the text after it: a GB of it, in a page of a MB."""
    opening = "".join(f'<a href="/{number}">{number} {"" if "svg" in nest else "<object>"}' for number in range(1000))
    html = (nest.format(opening) + "x " * 500_000).encode()
    tracemalloc.start()
    links = html_links(HtmlTree(html), PAGE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 << 20
    assert len(links) == 1000
    assert links[0].anchor.startswith("0 1 2")
    assert len(links[0].anchor) == 1000
    assert (links[5].anchor[:5], links[999].anchor) == ("5 6 7", "")


def test_few_links_in_links_keep_their_texts() -> None:
    html = b"<svg><a href=/1>one <a href=/2>two</a></a></svg>"
    assert [link.anchor for link in html_links(HtmlTree(html), PAGE)] == ["one two", "two"]


@pytest.mark.parametrize("attribute", ["a{} ", "a{}=1 ", "a{}='>' ", 'a{}="<>"/', "<a{}\n"])
def test_a_page_is_read_up_to_an_element_with_too_many_attributes(attribute: str) -> None:
    """80,000 of them take nine seconds to parse."""
    many = "".join(map(attribute.format, range(80_000)))
    html = f"<a href=/before>x</a><p {many}>text</p><a href=/after>y</a>".encode()
    assert _cut_at_attributes(html) == b"<a href=/before>x</a>"
    assert [link.url for link in html_links(HtmlTree(html), PAGE)] == ["https://site.example/before"]


def test_many_elements_with_attributes_are_read() -> None:
    html = b"".join(b'<a href="/%d" class="a b" data-x=\'{"a": 1}\' hidden>x</a>\n' % number for number in range(9000))
    assert _cut_at_attributes(html) == html
    assert len(html_links(HtmlTree(html), PAGE)) == 9000


def test_links_of_svg_and_math() -> None:
    """SVG 2, 16.1.6: ``href``, or else ``xlink:href``, which HTML itself does not have."""
    html = (
        '<svg><a xlink:href="svg">drawn</a><a href="first" xlink:href="second">two</a><base xlink:href="/elsewhere/">'
        '<foreignObject><base href="/base/"></foreignObject></svg>'
        '<math><a xlink:href="math">x</a></math><a xlink:href="none">no link</a><svg><area xlink:href="area"/></svg>'
    )
    assert urls(html) == [f"https://site.example/base/{name}" for name in ("svg", "first", "math", "area")]


def test_many_bases_in_deep_drawings_are_read_soon() -> None:
    html = "<svg>" + "<g>" * 900 + '<base xlink:href="/x/">' * 20_000 + '<a href="y">'
    began = time.process_time()
    urls(html)
    assert time.process_time() - began < 5
