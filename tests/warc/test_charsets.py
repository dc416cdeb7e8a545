"""Charsets of pages: what the byte order mark, the head and the document say, also where that is wrong."""

from __future__ import annotations

import codecs

import pytest

from crawl4llm.warc.payload import html_of
from crawl4llm.warc.records import Fields

RUSSIAN, GERMAN = "<p>Страница, и не одна", "<p>Größe und Maß"


def read(body: bytes, charset: str = "") -> str:
    head = f"\nContent-Type: text/html; charset={charset}" if charset else "\nContent-Type: text/html"
    return html_of(body, Fields(head.encode())).decode()


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        (RUSSIAN.encode("cp1251"), "windows-1251", RUSSIAN),
        (b"<meta charset=koi8-r>" + RUSSIAN.encode("koi8-r"), "", RUSSIAN),
        (b"<meta charset=utf-8>" + RUSSIAN.encode("cp1251"), "windows-1251", RUSSIAN),
        (codecs.BOM_UTF8 + RUSSIAN.encode(), "windows-1251", RUSSIAN),
        (codecs.BOM_UTF16_LE + RUSSIAN.encode("utf-16-le"), "utf-8", RUSSIAN),
        (RUSSIAN.encode(), "", RUSSIAN),
        (GERMAN.encode("latin-1"), "", GERMAN),
        (GERMAN.encode("latin-1"), "no-such-charset", GERMAN),
        (b"<meta charset=hex>" + GERMAN.encode(), "", GERMAN),
    ],
)
def test_the_charset_that_holds(body: bytes, charset: str, text: str) -> None:
    assert read(body, charset).endswith(text)


def test_what_does_not_fit_is_replaced() -> None:
    """A head that is wrong, and alone in what it says, is believed."""
    found = read(b"<p>A" + RUSSIAN.encode("cp1251"), "utf-8")
    assert found.startswith("<p>A<p>")
    assert "\ufffd" in found
    assert "Страница" not in found


@pytest.mark.parametrize("lost", [1, 2])
def test_a_body_that_is_cut_within_a_character(lost: int) -> None:
    """UTF-8 that says so nowhere stays UTF-8; a lone last byte of Latin-1 is none of it."""
    assert read((RUSSIAN + "€").encode()[:-lost]) == RUSSIAN + "\ufffd"
    assert read("<p>caf\xe9".encode("latin-1")) == "<p>caf\xe9"
    assert read((GERMAN + "\xe9").encode("latin-1")) == GERMAN + "\xe9"
