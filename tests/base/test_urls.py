"""Document keys and lookup forms of URLs."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from crawl4llm.base.urls import host_named, host_of, lookup_form, normalise_url


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
        ("http://example.org/[a]{b}|c^e`?\\", "http://example.org/%5Ba%5D%7Bb%7D%7Cc%5Ee%60?%5C"),
        ("http:\\\\example.org\\a", "http://example.org/a"),
        ("http://example.org/100%", "http://example.org/100%25"),
        ("http://example.org/%zz%4", "http://example.org/%25zz%254"),
        ("http://example.org/a/./b/../c", "http://example.org/a/c"),
        ("http://example.org/../a/%2E%2E/b", "http://example.org/b"),
        ("http://example.org/a/..", "http://example.org/"),
        ("http://example.org/a/.b/c.../d", "http://example.org/a/.b/c.../d"),
        ("http://example.org/a//b", "http://example.org/a//b"),
        ("http://example.org/a/b?x=/../y", "http://example.org/a/b?x=/../y"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://faß.example/", "http://xn--fa-hia.example/"),
        ("http:/example.org/a", "http://example.org/a"),
        ("http:///example.org/a", "http://example.org/a"),
        ("http:example.org", "http://example.org/"),
        ("http://example.org:08080/", "http://example.org:8080/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://example.org\\@evil.example/", "http://example.org/@evil.example/"),
        # Refused by the URL Standard: the keys that archives have.
        ("http://a b.example/c d", "http://a%20b.example/c%20d"),
        ("http://localhost:port/", "http://localhost%3Aport/"),
        ("http://example.org:65536/", "http://example.org:65536/"),
        ("http://1.2.3.4.5/", "http://1.2.3.4.5/"),
        ("http://[::1/", "http://[::1/"),
        ("http:", "http:"),
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
@example("%68ttp://a b/../c")
@example("%41b:c")
@example("http://\u2064./")
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


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://User@H.Example:81/", "h.example"),
        ("http://h\\@other/", "h"),
        ("http://0x7f.1:80/", "127.0.0.1"),
        ("http://127.0.0.1/", "127.0.0.1"),
        ("http://[::FFFF:1.2.3.4]:80/", "::ffff:102:304"),
        ("http://faß.example./", "xn--fa-hia.example."),
        ("http:h", "h"),
        ("ftp://H/x", "h"),
        ("http://a b/", "a%20b"),
        ("http://", ""),
        ("mailto:x@y", ""),
        ("", ""),
    ],
)
def test_hosts(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("Faß.Example.", "xn--fa-hia.example"),
        ("a\u3002b", "a.b"),
        ("0x7f.1", "127.0.0.1"),
        ("a_b", "a_b"),
        ("a:80", ""),
        ("http://a", ""),
        ("a/b", ""),
        ("a\\b", ""),
        ("u@a", ""),
        ("a b", ""),
        ("[::1]", ""),
        ("", ""),
    ],
)
def test_a_host_alone(name: str, host: str) -> None:
    assert host_named(name) == host
