"""The share of a text that stands in links."""

from __future__ import annotations

import pytest

from crawl4llm.base.html_tree import HtmlTree
from crawl4llm.scoring import linked_share

NAVIGATION = "<nav><a href=/>Home</a> <a href=/about>About our river</a></nav>"
MANY = "".join(map(chr, range(0x4E00, 0x4E80)))
"""More ideographs than are looked for one after the other."""


@pytest.mark.parametrize(
    ("html", "text", "share"),
    [
        ("<p>one two three <a href=x>four</a> five", "one two three four five", 0.25),
        ("<ul><li><a href=x>Foo bar</a><li><a href=y>Baz quux</a></ul>", "- Foo bar\n- Baz quux", 1),
        (f"{NAVIGATION}<p>The river runs to the sea.</p>", "The river runs to the sea.", 0),
        ("<p><a name=x>one two</a> three", "one two three", 0),
        ("<p>甲乙<a href=x>丙丁</a>戊", "甲乙丙丁戊", 0.5),
        ("<p>as it was <a href=x>as it</a>", "as it", 0.5),
        ("<p><a href=x>one <script>two</script>two</a> three", "one two three", 0.5),
        ("<p>\1one\2 two\1 <a href=x>three</a>", "one two three", 0.5),
        ("<p>\u201cone\u201d \u00e9t\u00e9\u2014<a href=x>two</a>", "one \u00e9t\u00e9 two", 0.5),
        (f"<p>{MANY}<a href=x>{MANY}</a>", f"{MANY}{MANY}", 0.502),
        ("<p>one two", "other words", None),
        ("", "one two", None),
        ("<p>one two", "", None),
    ],
    ids=[
        "prose",
        "list",
        "navigation",
        "no-link",
        "ideographs",
        "both",
        "script",
        "marks",
        "accents",
        "many",
        "other",
        "empty",
        "blank",
    ],
)
def test_the_share_of_a_text_that_stands_in_links(html: str, text: str, share: float | None) -> None:
    assert linked_share(HtmlTree(html.encode()), text) == share


def test_links_beyond_the_bound_count_as_text() -> None:
    words = [f"word{number}" for number in range(12_000)]
    html = "".join(f"<a href=x>{word}</a> " for word in words)
    assert linked_share(HtmlTree(html.encode()), " ".join(words)) == round(9_999 / 11_999, 4)
