"""Charsets of pages: what the byte order mark, the head and the document say, also where that is wrong."""

from __future__ import annotations

import codecs
import time

import pytest
from hypothesis import given, strategies as st

from crawl4llm.base.charsets import html_in_utf8, name_of

RUSSIAN, GERMAN = "<p>Страница, и не одна", "<p>Größe und Maß"


JAPANESE, CHINESE = (
    "<p>これは日本語の文章です。文字コードを宣言していません。",
    "<p>这是一篇没有声明字符编码的中文文章，内容足够长。",  # noqa: RUF001,
)
GREEK, POLISH = (
    "<p>Αυτή είναι μια σελίδα στα ελληνικά, χωρίς δήλωση.",
    "<p>Zażółć gęślą jaźń, to jest strona po polsku, źródło wiedzy.",
)
KOREAN = "<p>이 문서는 한국어로 작성되었으며 문자 집합을 선언하지 않습니다."


def read(body: bytes, charset: str = "") -> str:
    return html_in_utf8(body, f"text/html; charset={charset}" if charset else "text/html").data.decode()


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


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("iso-8859-8-i", "iso-8859-8-i"),
        ("x-gbk", "gbk"),
        ("windows-949", "euc-kr"),
        ("koi8", "koi8-r"),
        ("ks_c_5601-1987", "euc-kr"),
        ("sun_eu_greek", "iso-8859-7"),
        ("x-mac-ukrainian", "x-mac-cyrillic"),
        ("csisolatin9", "iso-8859-15"),
        ("windows-31j", "shift_jis"),
        ("hz-gb-2312", "replacement"),
        (" UTF8\n", "utf-8"),
        ("latin1", "windows-1252"),
        ("utf-7", None),
        ("hex", None),
        ("ebcdic", None),
    ],
)
def test_labels_of_the_encoding_standard(label: str, name: str | None) -> None:
    assert name_of(label) == name


@pytest.mark.parametrize(
    "start",
    [
        b"<meta charset=windows-1251>",
        b"<meta charset='bogus'><meta charset=windows-1251>",
        b'<meta charset=><META CHARSET = "Windows-1251">',
        b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">',
        b"<meta content='text/html;charset = cp1251;x' http-equiv=content-type>",
        b"<meta content='charset=utf-8'><meta charset=windows-1251>",
        b"<!-- <meta charset=utf-8> --><meta charset=windows-1251>",
        b"<!--><meta charset=windows-1251>",
        b"<p title='<meta charset=utf-8>'><meta charset=windows-1251>",
        b"<metax charset=utf-8></meta charset=utf-8><meta/charset=windows-1251>",
        b"<! <meta charset=utf-8><meta charset=windows-1251 charset=utf-8>",
        b"<?xml version='1.0' encoding='windows-1251'?><p>",
        b"<?xml version='1.0' encoding='utf-8'?><meta charset=windows-1251>",
        b" " * 2000 + b"<meta charset=windows-1251>",
    ],
)
def test_what_a_document_declares(start: bytes) -> None:
    """HTML Standard, 13.2.3.2."""
    found = html_in_utf8(start + RUSSIAN.encode("cp1251"))
    assert found.charset == "windows-1251"
    assert found.data.decode().endswith(RUSSIAN)


def test_a_document_that_can_be_read_is_not_in_utf_16() -> None:
    assert read(b"<meta charset=utf-16>" + RUSSIAN.encode()).endswith(RUSSIAN)
    assert read(b"<meta charset=x-user-defined>" + GERMAN.encode("latin-1")).endswith(GERMAN)
    wide = f"<?xml version='1.0'?>{RUSSIAN}"
    assert read(wide.encode("utf-16-le")) == wide
    assert read(wide.encode("utf-16-be")) == wide


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc-jp"),
        (JAPANESE, "iso-2022-jp"),
        (CHINESE, "gbk"),
        (KOREAN, "euc-kr"),
        (RUSSIAN * 3, "windows-1251"),
        (RUSSIAN * 3, "koi8-r"),
        (GREEK, "iso-8859-7"),
        (POLISH, "iso-8859-2"),
        (GERMAN, "windows-1252"),
    ],
)
def test_what_declares_nothing_is_detected(text: str, charset: str) -> None:
    assert read(text.encode(charset)) == text
    assert read(text.encode(charset) * 2000) == text * 2000, "64 KiB of it are enough"


def test_the_replacement_encoding_has_one_character() -> None:
    """Encoding Standard, 14.1: these encodings were used for attacks."""
    assert read(b"<p>text", "iso-2022-kr") == "\ufffd"


@given(st.binary(max_size=300), st.text(max_size=20))
def test_any_bytes_become_utf_8(body: bytes, charset: str) -> None:
    for start in (b"", b"<meta charset=" + charset.encode() + b">", b"<meta "):
        html_in_utf8(start + body, f"text/html;charset={charset}").data.decode()


@pytest.mark.parametrize(
    "unit", [b"<", b"<!--", b"<meta ", b"<meta x=", b"charset=", b"<?xml ", b"\xff", b"\x1b$B\xa4"]
)
def test_charsets_are_found_soon(unit: bytes) -> None:
    began = time.process_time()
    html_in_utf8(unit * ((4 << 20) // len(unit)))
    assert time.process_time() - began < 5  # quadratic would be minutes
