"""Main text from HTML, by each extractor, whatever the page."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from lxml.html import InputElement
from trafilatura.utils import load_html

from crawl4llm.scoring.text import EXTRACTORS, extract_text, load_extractor, title_of
from simulate.demo.text import page_html
from simulate.demo.web import Web

PARAGRAPHS = [
    "The reader of a page came for its text, and an extractor is to hand over that text and little else.",
    "Größe, naïveté and \N{GREEK SMALL LETTER PI} survive; so do 漢字 and \N{SNOWMAN}, for pages are in UTF-8 here.",
    "A third paragraph makes the article long enough that no extractor takes it for a teaser or a caption.",
]
PAGE = f"""<!DOCTYPE html><html lang="en"><head><title>A page</title><style>p {{ color: red }}</style>
<script>var hidden = "in a script";</script></head><body>
<nav><ul><li><a href="/">Home link</a></li><li><a href="/about">About link</a></li></ul></nav>
<article><h1>What a page says</h1>{"".join(f"<p>{text}</p>" for text in PARAGRAPHS)}
<table><tr><td>cell of a table</td><td>12.5</td></tr></table></article>
<footer><p>Copyright footer line</p></footer></body></html>""".encode()

FORMS = (
    "<html><body><form action='/search'><label for='q'>Find</label><input id='q' value='x'><select><option>one</select>"
    f"<textarea>{PARAGRAPHS[0]}</textarea></form><div id='cookie-banner' class='nav'><p>accept</p></div><!-- x -->"
    f"<div class='article'><p>{PARAGRAPHS[1]}</p><p>{PARAGRAPHS[2]}</p></div></body></html>"
).encode()

HOSTILE = {
    "nothing": b"",
    "white space": b" \n\t ",
    "no html": b"just a line of text without any tag, which some servers call text/html",
    "no body": b"<html><head><title>t</title></head></html>",
    "no UTF-8": b"<html><body><p>\xff\xfe\x80 caf\xe9 " + b"word " * 100 + b"</p>",
    "NUL bytes": b"<html><body><p>\0\0 " + b"word\0 " * 100 + b"</p>",
    "an encoding declared": b'<?xml version="1.0" encoding="UTF-16"?><html><body><p>'
    + b"word " * 100
    + b"</p></body></html>",
    "tags cut off": b"<html><body><div><p>" + b"word " * 100 + b"<a href='",
    "only markup": b"<" * 20_000,
    "entities": b"<p>&#0;&#xD800;&#x110000;&nosuch;&amp " + b"word " * 100 + b"</p>",
    "binary": bytes(range(256)) * 200,
    "deep": b"<div>" * 3000 + b"word " * 100,
}


@pytest.fixture(params=sorted(EXTRACTORS))
def name(request: pytest.FixtureRequest) -> str:
    """The name of each extractor."""
    extractor: str = request.param
    return extractor


def test_main_text_is_found_and_boilerplate_is_not(name: str) -> None:
    text = extract_text(PAGE, EXTRACTORS[name])
    for paragraph in PARAGRAPHS:
        assert paragraph in text
    assert "cell of a table" in text
    for boilerplate in ("Home link", "About link", "in a script", "color: red", "<p>"):
        assert boilerplate not in text


@pytest.mark.parametrize("page", HOSTILE.values(), ids=HOSTILE.keys())
def test_any_bytes_have_a_text(name: str, page: bytes) -> None:
    text = extract_text(page, EXTRACTORS[name])
    assert isinstance(text, str)
    assert text == extract_text(page, EXTRACTORS[name])
    text.encode()


@pytest.mark.parametrize("page", [HOSTILE["nothing"], HOSTILE["white space"], HOSTILE["no body"]])
def test_a_page_without_text_has_the_empty_one(name: str, page: bytes, caplog: pytest.LogCaptureFixture) -> None:
    assert extract_text(page, EXTRACTORS[name]).strip() == ""
    assert caplog.messages == [], "it is counted; in the log of a long crawl it would be noise"


def test_bytes_that_are_no_utf_8_cost_only_themselves(name: str) -> None:
    assert "word word word" in extract_text(HOSTILE["no UTF-8"], EXTRACTORS[name])


def test_pages_leave_no_mark_on_each_other(name: str) -> None:
    extractor = EXTRACTORS[name]
    before = extract_text(PAGE, extractor)
    for page in [*HOSTILE.values(), PAGE]:
        extract_text(page, extractor)
    assert extract_text(PAGE, extractor) == before


def test_an_extractor_is_loaded_by_its_name(name: str) -> None:
    assert load_extractor(name) is EXTRACTORS[name]


def test_a_faster_trafilatura_gives_the_same_texts() -> None:
    """Only a process that has not used it yet has trafilatura as it comes."""
    web = Web(60, 6, 0)
    pages = [page_html(page, web.sites[page.site], web.blocks(page), web.links[page.number]) for page in web.pages]
    pages += [page.decode("utf-8", "replace") for page in (PAGE, FORMS, *HOSTILE.values())]
    script = """import json, sys, trafilatura
recipe = {"fast": True, "include_comments": False, "include_tables": True}
print(json.dumps([trafilatura.extract(page, **recipe) or "" for page in json.load(sys.stdin)]))"""
    plain = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(pages), capture_output=True, text=True, check=True
    )
    assert [EXTRACTORS["trafilatura"](page) for page in pages] == json.loads(plain.stdout)
    assert not isinstance(load_html(FORMS).find(".//input"), InputElement), "it is the faster one"


@pytest.mark.parametrize(
    ("html", "title"),
    [
        (b"<title>One\n two</title><p>", "One two"),
        ("<TITLE lang=de>Käse &amp; 1 &lt; 2 <b></Title >".encode(), "Käse & 1 < 2 <b>"),
        (b"<p>no title</p>", ""),
        (b"<title>without an end<p>", ""),
        (b"<titles>x</titles><title></title>", ""),
        (b"<title>" + b"x" * 100_000 + b"</title>", ""),
    ],
)
def test_title(html: bytes, title: str) -> None:
    assert title_of(html) == title


def test_titles_that_do_not_end_take_no_time() -> None:
    """A search for an end from each of them would take hours."""
    began = time.process_time()
    assert title_of(b"<title " * 1_500_000) == ""
    assert title_of(b"<title>" * 1_500_000) == ""
    assert time.process_time() - began < 20
