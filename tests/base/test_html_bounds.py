"""Bounds on trees: of hostile HTML no more than so many elements and bytes are read, of usual pages all."""

from __future__ import annotations

import subprocess
import sys

import pytest
from crawl_helpers import PROJECT
from selectolax.lexbor import LexborHTMLParser

from crawl4llm.base.html_bounds import MOST_ELEMENTS, bounded
from simulate.demo.text import page_html
from simulate.demo.web import Web

SIZE = 10_000_000
MOST_MEMORY = 250_000_000
"""Bytes of a process that reads links and text of one such page; it has 90 MB before, and 600 MB to 2 GB with the whole
tree of one of these pages."""
PAGES = {
    "paragraphs": b"<p>a ",
    "end tags": b"</p>a",
    "comments": b"<!---->",
    "breaks": b"<br>",
    "attributes": b"<p a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8>",
    "short attributes": b"<p a b c d e f g h i j k l m n o p q r s t u v w x y z>a",
    "formatting": b"<b><p>",
    "formatting of many kinds": b"<b><i><u><s><p>a",
    "nested": b"<div>",
    "lists": b"<ul><li>a",
}
READ = """
import resource, sys
from crawl4llm.base.html_links import html_links
from crawl4llm.scoring.text import EXTRACTORS, extract_text
unit, size = sys.argv[1].encode(), int(sys.argv[2])
html = (unit * (size // len(unit) + 1))[:size]
html_links(html, "http://a.example/")
extract_text(html, EXTRACTORS["trafilatura"])
print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def page(name: str) -> bytes:
    return (PAGES[name] * (SIZE // len(PAGES[name]) + 1))[:SIZE]


@pytest.mark.parametrize("name", PAGES)
def test_a_tree_has_no_more_elements(name: str) -> None:
    html = bounded(page(name))
    assert page(name).startswith(html)
    assert 0 < len(html) < SIZE
    elements = len(LexborHTMLParser(html).css("*"))
    assert elements <= 3 * MOST_ELEMENTS


@pytest.mark.parametrize("name", ["paragraphs", "formatting", "attributes"])
def test_reading_a_page_takes_little_memory(name: str) -> None:
    command = [sys.executable, "-c", READ, PAGES[name].decode(), str(SIZE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PROJECT)
    assert int(done.stdout) < MOST_MEMORY


def test_usual_pages_are_read_whole() -> None:
    web = Web(40, 4, 0)
    for one in web.pages:
        html = page_html(one, web.sites[one.site], web.blocks(one), web.links[one.number]).encode()
        assert bounded(html) is html


def test_many_elements_are_read_up_to_the_bound() -> None:
    for unit in (b"<p>a</p>\n", b"<b>a</b>\n", b"<tr><td>a</td></tr>\n"):
        html = unit * (MOST_ELEMENTS // unit.count(b"</"))
        assert bounded(html) == html
        assert bounded(html + b"<p>more") == html
