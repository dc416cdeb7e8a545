"""What foreign strings become in WARC headers."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, strategies as st

from crawl4llm.base.files import ArchiveError
from crawl4llm.warc.page_records import MAX_URI, is_utc_date, one_line, record_bytes, safe_uri, utf8

ANY_TEXT = st.text(st.characters() | st.sampled_from("\r\n\0\t\x7f\x85\u2028 %<>\"'é\ud800\udfff"))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.org/a?b=c&d=[1]#e", "http://example.org/a?b=c&d=[1]#e"),
        ("http://example.org/a%20b", "http://example.org/a%20b"),
        ("http://example.org/100%", "http://example.org/100%25"),
        ("HTTPS://Example.org/A", "https://Example.org/A"),
        (" http://example.org/\n", "http://example.org/"),
        ("http://example.org/a b\r\nWARC-Type: x", "http://example.org/a%20b%0D%0AWARC-Type:%20x"),
        ("http://münchen.de/ä", "http://m%C3%BCnchen.de/%C3%A4"),
        ("http://example.org/\x00\x7f<>", "http://example.org/%00%7F%3C%3E"),
        ("http://example.org/" + "é" * MAX_URI, ""),
        ("\r\n", ""),
    ],
)
def test_safe_uri(url: str, expected: str) -> None:
    assert safe_uri(url) == expected


@given(ANY_TEXT)
def test_a_safe_uri_is_printable_ascii_means_the_same_and_stays(url: str) -> None:
    uri = safe_uri(url)
    assert re.fullmatch("[!-~]*", uri)
    assert safe_uri(uri) == uri
    if not re.search("%[0-9A-Fa-f]{2}", url):
        spoken = url.strip("".join(map(chr, range(33)))).encode("utf-8", "surrogatepass")
        assert unquote_to_bytes(uri).lower() == spoken.lower()


@given(ANY_TEXT)
def test_one_line_is_one_line_of_utf8(value: str) -> None:
    line = one_line(value)
    assert not re.search(rb"[\x00-\x1f\x7f]", line.encode())
    assert line == value or one_line(line) == line


def test_utf8_replaces_what_utf8_cannot_hold() -> None:
    assert utf8("é\ud83d\n") == "é\ufffd\n".encode()
    assert utf8("😀") == "😀".encode()


@pytest.mark.parametrize(
    ("date", "valid"),
    [
        ("2022-08-01T12:00:00Z", True),
        ("2022-08-01T12:00:00.123456789Z", True),
        ("2024-02-29T23:59:59Z", True),
        ("2022-02-29T12:00:00Z", False),
        ("2022-08-01T12:00:00.1234567890Z", False),
        ("2022-08-01T12:00:00", False),
        ("2022-08-01T12:00:00Z\n", False),
        ("\uff12022-08-01T12:00:00Z", False),
    ],
)
def test_is_utc_date(date: str, valid: bool) -> None:
    assert is_utc_date(date) is valid


@pytest.mark.parametrize("value", ["2022-08-01T00:00:00Z\r\nWARC-Type: response", "a\nb", "a\rb", "a\0b"])
def test_no_value_of_a_field_ends_its_line(value: str) -> None:
    with pytest.raises(ArchiveError, match="holds a line end or NUL"):
        record_bytes("warcinfo", [("WARC-Date", value)], "application/warc-fields", b"")
    with pytest.raises(ArchiveError, match="holds a line end or NUL"):
        record_bytes("warcinfo", [(value, "x")], "application/warc-fields", b"")
