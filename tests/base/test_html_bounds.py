"""Pages that would take too much memory as a tree: only the beginning is read, by all parsers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from crawl4llm.base.html_bounds import MOST_ATTRIBUTES, MOST_ELEMENTS, MOST_TAGS, bounded
from crawl4llm.base.html_tree import HtmlTree, html_links
from crawl4llm.base.processes import in_child
from crawl4llm.scoring.text import EXTRACTORS, extract_text

FORMATTING = b"<p>" + b"".join(b"<b a=%d>" % number for number in range(4000)) + b"<p>x<i></i>" * 4000
BOMBS = {
    "paragraphs": b"<p>a " * 2_000_000,
    "comments": b"<!---->" * 1_400_000,
    "ends": b"</p>" * 2_500_000,
    "attributes": b"".join(b"<p %b>" % b" ".join(b"%x" % n for n in range(4096, 4596)) for _ in range(4000)),
    "formatting": FORMATTING,
    "code": FORMATTING.replace(b"<b ", b"<CODE\n"),
}
HIDDEN = {
    "comment": b"<b x=%d><!--</b>-->",
    "bogus comment": b"<b x=%d><?</b>",
    "script": b"<b x=%d><script></b></script>",
    "textarea": b"<b x=%d><textarea></b></textarea>",
    "value": b'<b x="></b>%d">',
    "value in an inline tag": b"<b x=%d><img x='></b>'>",
    "name of a value": b'<b ="%d></b><i a=\'">',
    "cell": b"<b x=%d><table><td></b></table>",
    "blocks": b"<b x=%d>" + b"<div>" * 9 + b"</b>" + b"</div>" * 9,
    "case": b"<B\fX=%d></i>",
    "letters of a value": b"<b x=%d>",
}
"""Start tags whose elements a parser leaves unclosed, although an end tag seems to follow."""
for name, tag in HIDDEN.items():
    some = [tag % number for number in range(3000)]
    if name == "letters of a value":
        some = [b"<b x=%b>" % bytes(b"aA"[number >> bit & 1] for bit in range(12)) for number in range(3000)]
    BOMBS[name] = b"".join(b"<p>%b</p>" % one for one in some) + b"<p>a" * 3000
ITALIC = b"".join(b"<i x=%d>" % number for number in range(3000))
BOMBS["end tags"] = b"<small><tt>" * 1500 + ITALIC + b"</tt></small>a" * 3000
MOST_MEBIBYTES = 200
"""Beyond what a process has before it reads a page."""


def most_memory() -> int:
    """Return the most memory that this process had, in mebibytes; getrusage() would count that of its parent too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def memory_of(name: str) -> int:
    """Return the memory that this process takes more, in mebibytes, to read links and text of a bomb."""
    html = BOMBS[name]
    Path("/proc/self/clear_refs").write_text("5")  # the most is what it is now
    before = most_memory()
    html_links(HtmlTree(html), "http://a.test/")
    extract_text(html, EXTRACTORS["both"])
    return most_memory() - before


@pytest.fixture(scope="module")
def _imported() -> None:
    """The packages that extract texts are imported before processes are forked."""
    assert extract_text(b"<p>a</p>", EXTRACTORS["both"])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.usefixtures("_imported")
@pytest.mark.parametrize("name", BOMBS)
def test_a_tree_takes_little_memory(name: str) -> None:
    """Without bounds the paragraphs take more than a gigabyte, and the formatting elements, of 80 KB, eleven."""
    assert in_child(memory_of, name) < MOST_MEBIBYTES


@pytest.mark.parametrize("name", BOMBS)
def test_no_more_than_the_bounds_is_left(name: str) -> None:
    html = bounded(BOMBS[name])
    assert BOMBS[name].startswith(html)
    assert 0 < len(html) < len(BOMBS[name])
    assert html.count(b"<") <= MOST_TAGS
    assert html.count(b"<") - html.count(b"</") <= MOST_ELEMENTS
    assert bounded(html) == html


@pytest.mark.parametrize(
    "html",
    [
        b"<p>a " * MOST_ELEMENTS,
        b"<p>a</p>" * MOST_ELEMENTS,
        b"".join(b"<p %b>" % b" ".join(b"%x" % n for n in range(4096, 5119)) for _ in range(MOST_ATTRIBUTES >> 10)),
        b"<p><b>bold</b> <i>and</i> <code>more</code></p>" * 10_000,
        b"<p><b>unclosed" * 20_000,
        b"word " * 2_000_000,
    ],
    ids=["elements", "tags", "attributes", "closed", "alike", "text"],
)
def test_a_page_within_the_bounds_is_read_to_its_end(html: bytes) -> None:
    """Of unclosed elements that are alike, a parser opens three anew."""
    assert bounded(html) == html
