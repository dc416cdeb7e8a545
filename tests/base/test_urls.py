"""Document keys and lookup forms of URLs."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawl4llm.base.urls import lookup_form, normalise_url


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://example.org/a/b?c=d&a=b", "http://example.org/a/b?c=d&a=b"),
        ("HTTP://Example.ORG/A", "http://example.org/A"),
        ("http://example.org", "http://example.org/"),
        ("http://example.org?q", "http://example.org/?q"),
        ("http://example.org:80/", "http://example.org/"),
        ("https://example.org:443", "https://example.org/"),
        ("https://example.org:/", "https://example.org/"),
        ("https://example.org:80/", "https://example.org:80/"),
        ("http://User:Word@Example.org/", "http://User:Word@example.org/"),
        ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]/"),
        ("http://example.org/a#b", "http://example.org/a"),
        ("http://example.org/?a#b?c", "http://example.org/?a"),
        ("  http://example.org/a b\n/c\t", "http://example.org/a%20b/c"),
        ("http://example.org/%7euser/%c3%a9", "http://example.org/~user/%C3%A9"),
        ("http://example.org/é?ö", "http://example.org/%C3%A9?%C3%B6"),
        ("http://example.org/caf\udce9", "http://example.org/caf%E9"),
        ("http://example.org/[a]{b}|c\\d^e`", "http://example.org/%5Ba%5D%7Bb%7D%7Cc%5Cd%5Ee%60"),
        ("http://example.org/100%", "http://example.org/100%25"),
        ("http://example.org/%zz%4", "http://example.org/%25zz%254"),
        ("http://example.org/a/./b/../c", "http://example.org/a/c"),
        ("http://example.org/../a/%2E%2E/b", "http://example.org/b"),
        ("http://example.org/a/..", "http://example.org/"),
        ("http://example.org/a/.b/c.../d", "http://example.org/a/.b/c.../d"),
        ("http://example.org/a//b", "http://example.org/a//b"),
        ("http://example.org/a/b?x=/../y", "http://example.org/a/b?x=/../y"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http:/example.org/a", "http:/example.org/a"),
        ("ftp://Example.org/A#b", "ftp://Example.org/A"),
        ("URN:uuid:1 2", "urn:uuid:1%202"),
        ("no url", "no%20url"),
        ("", ""),
    ],
)
def test_document_key(url: str, key: str) -> None:
    assert normalise_url(url) == key
    assert normalise_url(key) == key


@given(
    st.text() | st.text().map("http://h/".__add__) | st.text("aA%2eéE./?#:@[] \\\ud800\udce9").map("https://".__add__)
)
@example("http://::")
@example("HTTP::/0")
@example("http://:80/0")
@example("http://h/%25")
@example("http://%31/")
@example("http://a%3Ab:1/")
@example("https:// /")
@example("https://.\u3002")
@example("HTTP://[::")
def test_any_text_has_one_key(url: str) -> None:
    key = normalise_url(url)
    assert normalise_url(key) == key
    assert key.isascii()
    assert "#" not in key
    assert not any(character.isspace() for character in key)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.org/a", "https://example.org/a"),
        ("http://example.org/", "http://example.org/index.html"),
        ("http://example.org/a/", "http://example.org/a"),
        ("http://example.org/a/?q=1", "http://example.org/a?q=1"),
        ("http://example.org/a/index.htm?q=1", "https://example.org/a/?q=1"),
        ("http://example.org/a?", "http://example.org/a"),
    ],
)
def test_lookups_forgive(one: str, other: str) -> None:
    assert lookup_form(one) == lookup_form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.org/a", "http://example.org/A"),
        ("http://example.org/a", "http://www.example.org/a"),
        ("http://example.org/a?q=1", "http://example.org/a"),
        ("http://example.org/a?q=1/", "http://example.org/a?q=1"),
        ("http://example.org:8080/", "http://example.org/"),
        ("http://example.org/myindex.html", "http://example.org/"),
        ("http://example.org/index.php", "http://example.org/"),
        ("ftp://example.org/a", "http://example.org/a"),
    ],
)
def test_lookups_tell_apart(one: str, other: str) -> None:
    assert lookup_form(one) != lookup_form(other)
