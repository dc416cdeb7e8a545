"""Marks by which a page tells the software that made it."""

from __future__ import annotations

import re
import time

import pytest

from crawl4llm.base.html_tree import HtmlTree
from crawl4llm.base.page_heads import NO_HEAD, page_head, with_cookies
from crawl4llm.base.software_marks import ASSETS, COOKIE, ELEMENT, GENERATOR, MOST_MARKS, SOFTWARE, Mark

URL = "https://site.example/blog/2020/a-post/"


def marks(html: str, url: str = URL) -> set[Mark]:
    return set(page_head(HtmlTree(html.encode()), url).marks)


REAL = {
    # heads as the software writes them: MediaWiki 1.39, DokuWiki 2022, WordPress 6.1, phpBB 3.3, MyBB 1.8, OpenCart 4,
    # Trac 1.5, Roundup 2.2, gitweb 2.39, Sphinx 5, Discourse 3, HyperKitty 1.3
    '<meta name="generator" content="MediaWiki 1.39.1"><script async src="/w/load.php?lang=en&amp;modules=startup">': {
        Mark("mediawiki", GENERATOR),
        Mark("mediawiki", ASSETS, "/"),
    },
    '<meta name="generator" content="DokuWiki"/><link rel="stylesheet" href="/wiki/lib/exe/css.php?t=dokuwiki">': {
        Mark("dokuwiki", GENERATOR),
        Mark("dokuwiki", ASSETS, "/wiki/"),
    },
    "<link rel='stylesheet' href='https://site.example/blog/wp-includes/css/dist/style.min.css?ver=6.1'>": {
        Mark("wordpress", ASSETS, "/blog/")
    },
    '<body id="phpbb" class="nojs"><link href="./styles/prosilver/theme/a.css?assets_version=7" rel="stylesheet">': {
        Mark("phpbb", ELEMENT),
        Mark("phpbb", ASSETS, "/blog/2020/a-post/"),
    },
    '<script src="https://site.example/forum/jscripts/general.js?ver=1827"></script>': {
        Mark("mybb", ASSETS, "/forum/")
    },
    '<link type="text/css" href="catalog/view/stylesheet/stylesheet.css" rel="stylesheet">': {
        Mark("opencart", ASSETS, "/blog/2020/a-post/")
    },
    '<link rel="stylesheet" href="/trac/chrome/common/css/trac.css" type="text/css" />': {
        Mark("trac", ASSETS, "/trac/")
    },
    '<link rel="stylesheet" href="/tracker/@@file/style.css">': {Mark("roundup", ASSETS, "/tracker/")},
    '<meta name="generator" content="gitweb/2.39.2 git/2.39.2"/><script src="/static/gitweb.js"></script>': {
        Mark("gitweb", GENERATOR),
        Mark("gitweb", ASSETS, "/"),
    },
    '<script id="documentation_options" src="../_static/documentation_options.js"></script>': {
        Mark("sphinx", ASSETS, "/blog/2020/")
    },
    '<meta name="generator" content="Discourse 3.2.0"><meta id="data-discourse-setup">': {
        Mark("discourse", GENERATOR),
        Mark("discourse", ELEMENT),
    },
    '<link href="/static/hyperkitty/css/x.css" rel="stylesheet">': {Mark("hyperkitty", ASSETS, "/")},
}


@pytest.mark.parametrize("html", REAL)
def test_pages_tell_their_software(html: str) -> None:
    assert marks(f"<html><head>{html}") == REAL[html]


@pytest.mark.parametrize(
    "html",
    [
        '<img src="https://other.example/wp-content/uploads/a.png">',  # of another site
        '<meta name="description" content="WordPress 6.1">',
        '<meta name="generator" content="made with MediaWiki">',
        '<p>wp-content/ and load.php?</p><a href="/wp-content/">x</a>',
        '<script src="/not-wp-content/x.js"></script>',
        "<script>var a = '/wp-content/'</script>",
        '<script src="/x.js?url=/wp-content/y"></script>',
        '<img src="http://[broken/wp-content/x.png">',
        f'<img src="/{"a" * 2000}/wp-content/x.png">',
    ],
)
def test_others_do_not(html: str) -> None:
    assert marks(f"<html><head>{html}") == set()


def test_cookies_are_marks_too() -> None:
    headers = [(b"Set-Cookie", b"OCSESSID=1; path=/"), (b"set-cookie", b"mybb[lastvisit]=2"), (b"X", b"OCSESSID=1")]
    assert with_cookies(NO_HEAD, headers).marks == (Mark("opencart", COOKIE), Mark("mybb", COOKIE))
    for odd in (b"", b"=", b"\xff=1", b"OCSESSIDs=1", b"a" * 100_000):
        assert with_cookies(NO_HEAD, [(b"Set-Cookie", odd)]) == NO_HEAD


def test_expressions_have_no_groups_of_their_own() -> None:
    for name, of in SOFTWARE.items():
        assert name.isidentifier()
        assert any(of)
        for pattern in (of.generator, of.assets, of.cookie):
            assert re.compile(pattern).groups == 0, name
            assert not pattern or re.fullmatch(pattern, "") is None, name


def test_a_page_with_marks_of_all_is_read_in_bounds() -> None:
    generators = "".join(
        f'<script src="/{number}/wp-content/{"chrome/common/" * 60}x.js"></script>' for number in range(20_000)
    )
    began = time.process_time()
    assert marks(f"<html><body>{generators}") == {Mark("wordpress", ASSETS, "/0/")}
    assert time.process_time() - began < 5.0
    every = " ".join(
        f'<script src="/{place}/{asset}"></script>'
        for place in range(5)
        for asset in ("wp-content/", "chrome/common/css/", "@@file/")
    )
    assert len(page_head(HtmlTree(every.encode()), URL).marks) <= MOST_MARKS
