"""The extractor ``both``: trafilatura's text, and resiliparse's if trafilatura's is no good."""

from __future__ import annotations

import time

import pytest

from crawl4llm.scoring.choosing import LEAST_SHARE, better_text
from crawl4llm.scoring.text import EXTRACTORS, extract_text, extractor_identity

SENTENCES = [
    "A crawler reads a page from its first word to its last, and keeps what a reader would keep of it.",
    "Whoever keeps half a sentence keeps nothing, for the words that are missing are those that it begins with.",
    "The third paragraph names a file and a command, as the documentation of software does on each page.",
    "The last one ends the page, so that its text is long enough for any extractor to call it a text.",
]
WHOLE = "\n".join(SENTENCES)


def in_divs() -> bytes:
    """A page as DocBook's tools write it: paragraphs in ``div`` elements, and examples that have ``p`` elements."""
    paragraphs = "".join(
        f'<div class="para">The <code>command-{number}</code> reads <em>each of its files</em> before it begins. {text}'
        "</div>"
        for number, text in enumerate(SENTENCES)
    )
    listing = "".join(f"line {number} of a file with settings = {number}\n" for number in range(40))
    example = f'<div class="example"><p class="title"><strong>Example of a file</strong></p><pre>{listing}</pre></div>'
    return f"<html><body><div class='section'><h2>Commands</h2>{paragraphs}{example}</div></body></html>".encode()


def test_a_page_with_paragraphs_in_divs_keeps_them() -> None:
    page = in_divs()
    beginnings = [f"The command-{number} reads each of its files" for number in range(len(SENTENCES))]
    alone = extract_text(page, EXTRACTORS["trafilatura"])
    assert not any(begin in alone for begin in beginnings), "else there is nothing to mend"
    text = extract_text(page, EXTRACTORS["both"])
    assert all(found in text for found in [*SENTENCES, *beginnings])
    assert text == extract_text(page, EXTRACTORS["resiliparse"])


NAVIGATION = "".join(f"<li><a href='/{place}'>Place {place}</a></li>" for place in range(12))


def test_a_page_of_which_trafilatura_gives_all_has_its_main_text_alone() -> None:
    sentence = "Some <b>text</b>, of which <i>nothing</i> stands in a paragraph, and <u>little</u> in all."
    page = f"<html><body><ul>{NAVIGATION}</ul><main><div>{sentence}</div></main></body></html>".encode()
    assert "Place 7\n" in extract_text(page, EXTRACTORS["trafilatura"]), "else there is nothing to mend"
    text = extract_text(page, EXTRACTORS["both"])
    assert "Place 7" not in text
    assert "Some text, of which nothing stands in a paragraph, and little in all." in text


def test_posts_that_are_marked_up_as_comments_are_the_text_of_a_page_that_has_no_other() -> None:
    posts = "".join(f'<div class="comment"><div class="comment__text"><p>{text}</p></div></div>' for text in SENTENCES)
    forum = f"<html><body><h1>How are pages read?</h1><div class='comments'>{posts}</div></body></html>".encode()
    for name in ("trafilatura", "resiliparse"):
        assert SENTENCES[0] not in extract_text(forum, EXTRACTORS[name]), "else there is nothing to mend"
    assert all(text in extract_text(forum, EXTRACTORS["both"]) for text in SENTENCES)


def test_comments_are_no_part_of_a_text_that_is_one() -> None:
    article = "".join(f"<p>{text}</p>" for text in SENTENCES)
    posts = "".join(f'<div class="comment"><p>Post {number}: {SENTENCES[0]}</p></div>' for number in range(40))
    page = f"<html><body><article>{article}</article><div class='comments'>{posts}</div></body></html>".encode()
    assert "Post 7" not in extract_text(page, EXTRACTORS["both"])


def test_a_text_of_all_of_the_page_is_better_than_none() -> None:
    assert better_text(WHOLE, " \n", is_whole_page=True) == WHOLE
    assert better_text(WHOLE, "A text.", is_whole_page=True) == "A text."


def test_other_pages_have_trafilaturas_text() -> None:
    page = "<html><body><article>" + "".join(f"<p>{text}</p>" for text in SENTENCES) + "</article></body></html>"
    both, alone = (extract_text(page.encode(), EXTRACTORS[name]) for name in ("both", "trafilatura"))
    assert both == alone == WHOLE
    table = (
        f"<article>{''.join(f'<p>{text}</p>' for text in SENTENCES)}<table><tr><td>e\u0301</td><td> </td></tr></table>"
    )
    assert extract_text(table.encode(), EXTRACTORS["both"]) == extract_text(table.encode(), EXTRACTORS["trafilatura"])


def test_a_text_that_is_much_shorter_is_not_taken() -> None:
    other = "".join(SENTENCES)
    blank = sum(map(str.isspace, other))
    least = int(LEAST_SHARE * (len(other) - blank))
    enough = "x" * (least + 1)
    assert better_text(enough, other) == enough
    assert better_text(enough[:-2], other) == other
    assert better_text(f"{' ' * 1000}\n\n{enough[:-2]}", other) == other, "white space is no text"
    assert better_text("", "x") == "x"
    assert better_text("x", "") == "x"
    assert better_text("", "") == ""


@pytest.mark.parametrize(
    ("text", "is_cut"),
    [
        (WHOLE, False),
        (WHOLE.lower(), False),
        (WHOLE[30:], True),
        (f"{SENTENCES[0]}\n{WHOLE[len(SENTENCES[0]) + 40 :]}", True),
        # it has what stands before: only its lines are others
        (WHOLE.replace(", ", ",\n"), False),
        # too far down to be looked at
        ("\n".join([*SENTENCES[:3], SENTENCES[3][30:]]), False),
        # too short a line to be found, and then a whole one
        (f"each\n{WHOLE}", False),
        # what is missing has its like elsewhere
        (f"{WHOLE[10:]}\nA crawler reads on, if nobody tells it to stop.", True),
    ],
)
def test_a_text_that_begins_within_a_sentence_is_not_taken(text: str, is_cut: bool) -> None:
    assert better_text(text, WHOLE) == (WHOLE if is_cut else text)


@pytest.mark.parametrize("before", ["1.2. ", "\u2022 ", "- ", "[1] "])
def test_numbers_and_bullets_are_no_beginning_of_a_sentence(before: str) -> None:
    assert better_text(WHOLE, "\n".join(f"{before}{text}" for text in SENTENCES)) == WHOLE


@pytest.mark.parametrize("first", ["\u4e00", "\uac00", "\u1200"], ids=["Chinese", "Korean", "Amharic"])
def test_scripts_without_case_or_blanks_are_told_alike(first: str) -> None:
    lines = ["".join(chr(ord(first) + 60 * line + place) for place in range(60)) for line in range(4)]
    other = "\n".join(lines)
    assert better_text(other[12:], other) == other
    spaced = other.replace(lines[0][0], f"{lines[0][0]} ")
    assert better_text(spaced, other) == spaced, "white space makes no difference"


@pytest.mark.parametrize("text", ["a" * 250_000, "a b\n" * 50_000, "\n" * 250_000, "abcdefgh" * 25_000 + "x"])
def test_long_texts_take_little_time(text: str) -> None:
    began = time.process_time()
    for other in (text, text[1:], text * 2, f"{text[:-1]}b"):
        better_text(text, other)
        better_text(other, text)
    assert time.process_time() - began < 5


def test_the_score_cache_tells_extractors_and_their_versions_apart() -> None:
    found = [extractor_identity(name) for name in EXTRACTORS]
    assert len({tuple(one) for one in found}) == len(EXTRACTORS)
    trafilatura, resiliparse, both = found
    assert both[1:3] == [trafilatura[1], resiliparse[1]]
    assert both[3:] == [2]
