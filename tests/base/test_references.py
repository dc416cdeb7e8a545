"""Where references lead, as browsers have it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from crawl4llm.base.urls import BaseUrl, host_of, normalise_url, parse_url, redirect_target


@pytest.mark.parametrize(
    ("reference", "url"),
    [  # RFC 3986, 5.4.1 and 5.4.2, without fragments and other schemes than http; http:g as browsers
        ("http:g", "http://a/b/c/g"),
        ("g:h", None),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g/"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"),
        ("g?y#s", "http://a/b/c/g?y"),
        (";x", "http://a/b/c/;x"),
        ("g;x", "http://a/b/c/g;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        (".g", "http://a/b/c/.g"),
        ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/./h", "http://a/b/c/g/h"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/./x", "http://a/b/c/g?y/./x"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
    ],
)
def test_references_of_rfc_3986(reference: str, url: str | None) -> None:
    assert BaseUrl("http://a/b/c/d;p?q").resolve(reference) == url


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("\\x\\y", "https://h/x/y"),
        ("\\\\other\\y", "https://other/y"),
        ("///other/y", "https://other/y"),
        ("https:/x", "https://h/x"),
        ("https:x", "https://h/a/x"),
        ("http:/x", "http://x/"),
        ("http:other/", "http://other/"),
        ("ht\ntp://o\tther\r/", "http://other/"),
        ("\0 http://other/ \x1f", "http://other/"),
        ("http://o%74her/", "http://other/"),
        ("http://fa\xdf.de/", "http://xn--fa-hia.de/"),
        ("http://\uff21\uff0e\uff22/", "http://a.b/"),
        ("http://a\xadb.example/", "http://ab.example/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://\uff11.2/", "http://1.0.0.2/"),
        ("http://[::ffff:1.2.3.4]/", "http://[::ffff:102:304]/"),
        ("http://h:00080/", "http://h/"),
        ("http://h:08080/", "http://h:8080/"),
        ("http://@h/", "http://h/"),
        ("http://h", "http://h/"),
        ("x ?a b", "https://h/a/x%20?a%20b"),
        ("?a='b'", "https://h/a/b?a='b'"),
        ("x?a='\xe9'", "https://h/a/x?a='%C3%A9'"),
        ("x?", "https://h/a/x?"),
        ("?", "https://h/a/b?"),
        ("", "https://h/a/b?c"),
        ("%2E%2e/x", "https://h/x"),
        ("\udce9?\udce9", "https://h/a/%E9?%E9"),
        ("\ud800", "https://h/a/%EF%BF%BD"),
        ("https:", "https://h/a/b?c"),
        ("http:", None),
        ("//", None),
        ("http://a\u2260%00/", None),
        ("http://\xad/", None),
        ("http://h:70000/x", None),
        ("javascript:x", None),
    ],
)
def test_references_lead_to_where_browsers_go(reference: str, url: str | None) -> None:
    assert BaseUrl("https://h/a/b?c").resolve(reference) == url


@pytest.mark.parametrize(
    ("charset", "query"),
    [
        ("utf-8", "q=%C3%A9%E2%98%83"),
        ("iso-8859-1", "q=%E9%26%239731%3B"),
        ("windows-1252", "q=%E9%26%239731%3B"),
        ("utf-16-le", "q=%C3%A9%E2%98%83"),
        ("none", "q=%C3%A9%E2%98%83"),
        ("idna", "q=%C3%A9%E2%98%83"),
        ("punycode", "q=%C3%A9%E2%98%83"),
        ("gbk", "q=%A8%A6%26%239731%3B"),
        ("gb18030", "q=%A8%A6%817%A30"),
        ("replacement", "q=%C3%A9%E2%98%83"),
        ("iso-2022-jp", "q=%26%23233%3B%26%239731%3B"),
    ],
)
def test_a_query_is_encoded_in_the_charset_of_the_page(charset: str, query: str) -> None:
    assert BaseUrl("http://h/\xe9", charset).resolve("?q=\xe9\u2603#\xe9") == f"http://h/%C3%A9?{query}"


def test_a_path_is_encoded_in_utf_8_whatever_the_charset() -> None:
    assert BaseUrl("http://h/", "shift_jis").resolve("\u8868?\u8868=%") == "http://h/%E8%A1%A8?%95%5C=%25"


def test_nothing_is_relative_to_what_the_parser_refuses() -> None:
    base = BaseUrl("http://a b/c")
    assert [base.resolve(text) for text in ("x", "/x", "", "#", "?x", "//h/x", "mailto:x")] == [None] * 7
    assert base.resolve("http://h/x") == "http://h/x"
    assert base.resolve("HTTP://h/x") == "http://h/x"


def test_the_docs_say_where_references_lead() -> None:
    text = (Path(__file__).parents[2] / "docs/simulation-and-live.md").read_text()
    base, table = re.findall(r"\| reference on `(.*?)` \| leads to \|\n.*\n((?:\|.*\n)*)", text)[0]
    rows = [[re.findall("`(.*?)`", cell) for cell in row.split(" | ")] for row in table.splitlines()]
    assert len(rows) >= 7
    for references, targets in rows:
        for reference in references:
            assert BaseUrl(base, "windows-1252").resolve(reference) == next(iter(targets), None), reference


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"/x", "http://h/x"),
        (b"//other/x", "http://other/x"),
        (b"\\other", "http://h/other"),
        ("/\xe9".encode(), "http://h/%C3%A9"),
        (b"/\xe9", "http://h/%E9"),
        (b"https:other", "https://other/"),
        (b"javascript:x", None),
        (b"http://h:x/", None),
        (b"", None),
    ],
)
def test_redirects_lead_to_where_browsers_go(location: bytes, target: str | None) -> None:
    assert redirect_target("http://h/a", location) == target


REFERENCES = st.text() | st.text("htps:/\\?#@%.[]0x7f1 \t\xdf\u3002\ud800\udce9aA-", max_size=30)


@given(REFERENCES, st.sampled_from(["http://h/a/b?c", "https://h:81/", "http://a b/", "mailto:x", ""]))
@example("http://::", "")
@example("http://\u2064", "")
def test_what_references_lead_to_is_a_key_of_a_host(reference: str, base: str) -> None:
    target = BaseUrl(base).resolve(reference)
    if target is not None:
        assert normalise_url(target) == target
        assert parse_url(target) == target
        authority = target.split("/")[2].rpartition("@")[2]
        host = authority[1 : authority.index("]")] if authority.startswith("[") else authority.partition(":")[0]
        assert host_of(target) == host != ""


@pytest.mark.parametrize(
    "reference",
    [
        "../" * 90_000,
        "http://" + "\xe9" * 125_000,
        "http://" + "\xe9." * 75_000 + "/",
        "http://a" + "\u0301\u0323" * 60_000 + "/",
        "http://" + "%C3%A9" * 42_000 + "/",
        "http://" + "@" * 250_000 + "/",
        "http://" + "xn--a." * 40_000 + "/",
        "http://" + "1." * 125_000 + "/",
        "http://[" + ":" * 250_000 + "]/",
        "http://h:" + "0" * 250_000 + "/",
        "?" + "\u2603" * 125_000,
        "/" + "%" * 250_000,
        "\udce9" * 250_000,
        "a" * 250_000 + ":",
        "http://" + "a." * 125_000 + "!/",
        " \t" * 125_000 + "x",
    ],
    ids=lambda text: ascii(text[:12]),
)
@pytest.mark.slow
@pytest.mark.parametrize("use", [BaseUrl("http://h/a", "shift_jis").resolve, normalise_url, host_of])
def test_a_quarter_of_a_mb_takes_some_seconds_at_most(reference: str, use: object) -> None:
    assert callable(use)
    began = time.process_time()
    use(reference)
    assert time.process_time() - began < 3, "it grows faster than the reference"
