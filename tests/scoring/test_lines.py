"""Figures of a text's lines: how long they are, and how much of them are links."""

from __future__ import annotations

import time

import pytest

from crawl4llm.base.html_tree import HtmlTree, link_texts
from crawl4llm.scoring import HtmlPage, PageRater, RatedText, influence_task
from crawl4llm.scoring.length import LengthScorer
from crawl4llm.scoring.lines import Lines, lines_of
from crawl4llm.scoring.text import EXTRACTORS

LINKS = frozenset({"Home", "Main page", "Über uns", "[edit]", "首页", "Page 2", "¶"})


@pytest.mark.parametrize(
    ("line", "is_linked"),
    [
        ("Home", True),
        ("  - Main   page", True),
        ("Home | Main page | Page 2", True),
        ("Home » Main page \u203a Page 2", True),
        ("| Home | Page 2 | |", True),
        ("Home\t\tMain page", True),
        ("• über uns", False),
        ("• Über uns", True),
        ("edit", True),
        ("首页", True),
        ("Main page ¶", True),
        ("Home | Main page | a word", False),
        ("Main page of the site", False),
        ("12", False),
        ("---", False),
    ],
)
def test_a_line_of_links(line: str, is_linked: bool) -> None:
    found = lines_of(line, LINKS)
    assert found is not None
    assert found.linked == is_linked


def test_words_are_bytes_and_links_are_left_out() -> None:
    assert lines_of("", LINKS) is None
    assert lines_of(" \n\t\n", LINKS) is None
    assert lines_of("six by", ()) == Lines(1.0, 0.0)
    assert lines_of("twelve bytes\n\nsix by", ()) == Lines(1.5, 0.0)
    assert lines_of("漢字漢字", ()) == Lines(2.0, 0.0)
    found = lines_of("twelve bytes\nHome  \nPage 2\n[edit]", LINKS)
    assert found is not None
    assert found.linked == 16 / 28
    assert found.unlinked_words == pytest.approx(12 / 4 / 6)
    assert lines_of("a lone \ud800 half of a character", LINKS) is not None


def test_texts_of_links_are_those_that_readers_see() -> None:
    html = (
        "<a href='/'>Home</a><a href='#top'> Main\n page </a><a>no link</a><a href='/i'><img alt='x'></a>"
        "<nav><a href='/e'>[<b>edit</b>]</a></nav><template><a href='/t'>unseen</a></template>"
    )
    assert link_texts(HtmlTree(html.encode())) == {"Home", "Main page", "[edit]"}


@pytest.mark.parametrize("html", [b"<a href=x>" * 60_000, b"<svg><a href=x>t" * 30_000, b"<a href=x>word</a>" * 60_000])
def test_texts_of_many_links_take_little_time(html: bytes) -> None:
    began = time.process_time()
    lines_of("word\n" * 100_000, link_texts(HtmlTree(html)))
    assert time.process_time() - began < 30


def test_pages_have_figures_of_their_lines_if_these_are_wanted() -> None:
    html = (
        "<html><body><main>"
        + "<p>A paragraph of a page, which has a few words and a <a href='/link'>link</a> within.</p>" * 5
        + "<p><a href='/next'>A sentence of its own that is a link to another page of this site.</a></p></main></body>"
    ).encode()
    corpus: object = None
    rater = PageRater(corpus, LengthScorer(), "resiliparse", lines=True)  # type: ignore[arg-type]
    task = influence_task(text=True, signature=False, more=rater.tells_more)
    rated = task(rater, HtmlPage("https://site.example/", html))
    assert isinstance(rated, RatedText)
    text = EXTRACTORS["resiliparse"](html.decode())
    assert rated.text == text
    texts = {"link", "A sentence of its own that is a link to another page of this site."}
    assert rated.lines == lines_of(text, texts)
    assert rated.lines is not None
    assert 0 < rated.lines.linked < 1
    other = task(rater, HtmlPage("https://site.example/", html, frozenset({"link"})))
    assert isinstance(other, RatedText)
    assert other.lines is not None
    assert other.lines.linked == 0, "texts of links that are given are not looked for"
    plain = PageRater(corpus, LengthScorer(), "resiliparse")  # type: ignore[arg-type]
    assert not plain.tells_more
