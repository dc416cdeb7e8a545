"""What the head of a page says, and what its links say of themselves."""

from crawl4llm.base.html_tree import HtmlTree, html_links
from crawl4llm.base.page_heads import NO_HEAD, page_head

URL = "https://site.example/wiki/page"


def head(html: str) -> object:
    return page_head(HtmlTree(html.encode()), URL)


def test_a_head_says_canonical_generator_and_translations() -> None:
    found = page_head(
        HtmlTree(
            b"""<head><base href="/docs/"><link rel="canonical" href="page#top">
            <meta name="Generator" content="MediaWiki
            1.39"><meta name="generator" content="other">
            <link rel=alternate hreflang=DE href="https://site.example/de/page">
            <link rel=alternate type="application/rss+xml" href=feed></head><p>text"""
        ),
        URL,
    )
    assert found.canonical == "https://site.example/docs/page"
    assert found.generator == "MediaWiki 1.39"
    assert found.alternates == (("de", "https://site.example/de/page"),)


def test_two_canonicals_are_none() -> None:
    both = '<link rel="canonical" href="/a"><link rel="canonical" href="/{}">'
    assert page_head(HtmlTree(both.format("b").encode()), URL).canonical == ""
    assert page_head(HtmlTree(both.format("a").encode()), URL).canonical == "https://site.example/a"


def test_a_body_says_nothing_of_the_page() -> None:
    assert head('<body><p>text<link rel="canonical" href="/a"><meta name="generator" content="x">') == NO_HEAD
    assert head("") == NO_HEAD


def test_a_head_without_bounds_is_read_to_a_bound() -> None:
    many = "".join(f'<link rel="alternate" hreflang="de" href="/{number}">' for number in range(5000))
    found = page_head(HtmlTree(f'<head>{many}<link rel="canonical" href="/last"></head>'.encode()), URL)
    assert len(found.alternates) == 500
    assert not found.canonical
    assert head(f'<head><link rel="canonical" href="/{"a" * 9000}"></head>') == NO_HEAD


def test_links_say_why_they_are_not_followed_and_in_which_language_they_lead() -> None:
    html = """<a href="/a" rel="external NoFollow ugc">a</a><a href="/b" rel="nofollow"></a><a href="/b">b</a>
        <a href="/c">c</a><a href="/c" rel="nofollow" hreflang="fr">again</a>
        <a href="/d" rel="sponsored nofollow">d</a>"""
    found = {link.url[-1]: link for link in html_links(HtmlTree(html.encode()), URL)}
    assert {name: link.rel for name, link in found.items()} == {
        "a": "nofollow ugc",
        "b": "",
        "c": "",
        "d": "nofollow sponsored",
    }
    assert found["b"].anchor == "b"
    assert found["c"].language == "fr"
