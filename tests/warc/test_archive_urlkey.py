"""Keys of URLs: the ones written out here, and those of the surt package, which is asked only for its answers."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings, strategies as st

from crawl4llm.warc.page_records import urlkey
from simulate.clueweb22.corpus import ClueWeb22Corpus

CLUEWEB22 = Path(__file__).resolve().parents[3] / "shared" / "clueweb22-real"
ID = "0123456789abcdef0123456789ABCDEF"
COOKIELESS = "4hqa0555fwsecu455xqckv45"

KEYS = {
    "http://example.org": "org,example)/",
    "http://example.org/": "org,example)/",
    "http://www.Example.org/A/../b?z=1&a=2#f": "org,example)/b?a=2&z=1",
    "https://www2.example.org": "org,example)/",
    "http://www.www.example.org/": "org,example,www)/",
    "http://wwww.example.org/": "org,example,wwww)/",
    "http://www12a.example.org/": "org,example,www12a)/",
    "http://www-1.example.org/": "org,example,www-1)/",
    "http://www.com/": "com)/",
    "http://www/": "www)/",
    "http://%77ww%2Eexample.org/": "org,example)/",
    "http://example.org:80/": "org,example)/",
    "https://example.org:443/": "org,example)/",
    "http://example.org:443/": "org,example:443)/",
    "https://example.org:80/": "org,example:80)/",
    "http://example.org:8080/a": "org,example:8080)/a",
    "http://example.org:0080/": "org,example)/",
    "http://example.org:0/": "org,example)/",
    "http://example.org:/a": "org,example)/a",
    "http://example.org:65535?a": "org,example:65535)/?a",
    "http://User:Pass@Example.org/": "org,example)/",
    "http://user:p%40ss@www.example.org:81/": "org,example:81)/",
    "http://a@b@example.org/": "org,example)/",
    "http://example.org/@a:b": "org,example)/@a:b",
    "http://example.org./": "org,example)/",
    "http://.example..org/": "org,example)/",
    "http://example...org/": "org,,example)/",
    "http://localhost/": "localhost)/",
    "http://exa_mple.org/": "org,exa_mple)/",
    "http://*.example.org/": "org,example,*)/",
    "http://exa%20mple.org/": "org,exa%20mple)/",
    "http://ex%2Fam%23ple.org/": "org,ex/am%23ple)/",
    "http://example.org%3a80/": "org:80,example)/",
    "http://[2001:DB8::1]/a": "2001:db8::1)/a",
    "http://u@[2001:DB8::1]:8080/a": "2001:db8::1:8080)/a",
    "https://[::1]:443/": "::1)/",
    "http://1.2.3.4/": "4,3,2,1)/",
    "http://1.2.3.4:81/a": "4,3,2,1:81)/a",
    "http://www.1.2.3.4/": "4,3,2,1)/",
    "http://1.2.3.4./": "4,3,2,1)/",
    "http://1..2.3.4/": "4,3,2,1)/",
    "http://%31.2.3.4/": "4,3,2,1)/",
    "http://\uff11.2\u30023.4/": "4,3,2,1)/",
    "http://010.0020.3.4/": "4,3,16,8)/",
    "http://1.2.772/": "4,3,2,1)/",
    "http://1.515/": "3,2,0,1)/",
    "http://16909060/": "4,3,2,1)/",
    "http://010/": "10,0,0,0)/",
    "http://4294967297/": "1,0,0,0)/",
    "http://09/": "9,0,0,0)/",
    "http://09.1/": "1,09)/",
    "http://0x7f.0.0.1/": "1,0,0,0x7f)/",
    "http://1.2.3.4.5/": "5,4,3,2,1)/",
    "http://1.2.3.4a/": "4a,3,2,1)/",
    "http://bücher.de/": "de,xn--bcher-kva)/",
    "http://B%C3%9CCHER.de/": "de,xn--bcher-kva)/",
    "http://xn--bcher-kva.de/": "de,xn--bcher-kva)/",
    "http://www.ß.de:81/": "de,ss:81)/",
    "http://é..org/": "org,%c3%a9)/",
    "http://%ff.org/": "org,%ff)/",
    "http://a%ff.org/": "org,a)/",
    "http://example.org/a/": "org,example)/a",
    "http://example.org/a//b//": "org,example)/a/b",
    "http://example.org//": "org,example)/",
    "http://example.org/a/./b/../c/.": "org,example)/a/c",
    "http://example.org/a/..": "org,example)/",
    "http://example.org/..": "org,example)/..",
    "http://example.org/../../a": "org,example)/a",
    "http://example.org/../../../a": "org,example)/../a",
    "http://example.org/a//../b": "org,example)/a/b",
    "http://example.org/a/%2E%2E/b%2Fc": "org,example)/b/c",
    "http://example.org/a/..b/...": "org,example)/a/..b/...",
    "http://example.org/A%42%2543": "org,example)/abc",
    "http://example.org/%25%32%35": "org,example)/%25",
    "http://example.org/%%33%31%zz%2": "org,example)/1%25zz%252",
    "http://example.org/%252525252541?%2541": "org,example)/a?a",
    "http://example.org/a%00b%20c%7f%C3%89%E9": "org,example)/a%00b%20c%7f%c3%89%e9",
    "http://example.org/É a?É b": "org,example)/%c3%89%20a?%c3%89%20b",
    "http://example.org/a+b%2bc": "org,example)/a+b+c",
    "http://example.org/a%23b%3fc?d%3fe%23f": "org,example)/a%23b?c?d?e%23f",
    "http://example.org/|^`{}\"<>\\~!$'()*,;:@[]": "org,example)/|^`{}\"<>\\~!$'()*,;:@[]",
    "http://example.org/a;b=1;c": "org,example)/a;b=1;c",
    "http://example.org#a?b/c": "org,example)/",
    "http://example.org?a/b/": "org,example)/?a/b/",
    "http://example.org/?": "org,example)/",
    "http://example.org/a/?b/": "org,example)/a?b/",
    "http://example.org/??a": "org,example)/??a",
    "http://example.org/?a=http://www.E.org/x/../y": "org,example)/?a=http://www.e.org/x/../y",
    "http://example.org/?B=2&a=1&a": "org,example)/?a&a=1&b=2",
    "http://example.org/?b=&a&c=1=2": "org,example)/?a&b=&c=1=2",
    "http://example.org/?&b=2&&a=1&": "org,example)/?&&&a=1&b=2",
    "http://example.org/?a=1&a!=1&a=&a==": "org,example)/?a=&a=1&a==&a!=1",
    "http://example.org/?a=%26b": "org,example)/?a=&b",
    f"http://example.org/a?jsessionid={ID}": "org,example)/a",
    f"http://example.org/a?x=1&PHPSESSID={ID}&b=2": "org,example)/a?b=2&x=1",
    f"http://example.org/a?s%69d={ID}&b": "org,example)/a?b",
    f"http://example.org/a?sid={ID}.1": f"org,example)/a?sid={ID.lower()}.1",
    "http://example.org/a?sid=0123": "org,example)/a?sid=0123",
    f"http://example.org/a?x=1&sid={ID}": "org,example)/a?&x=1",
    f"http://example.org/a?sid={ID}&sid={ID}": f"org,example)/a?&sid={ID.lower()}",
    f"http://example.org/a?oscsid={ID}&b": "org,example)/a?oscb",
    f"http://example.org/a?PHPSESSID={ID}&PHPSESSID={ID}&b": "org,example)/a?phpsesb",
    "http://example.org/a?ASPSESSIONIDAQBSDSRT=EOHBLBDDPFCLHKPGGKLILNAM&b": "org,example)/a?b",
    "http://example.org/a?ASPSESSIONIDAQBSDSRT=1": "org,example)/a?aspsessionidaqbsdsrt=1",
    "http://example.org/a?CFID=1169580&CFTOKEN=48-63&b": "org,example)/a?b",
    "http://example.org/a?b&CFID=1&CFTOKEN=2": "org,example)/a?&b",
    "http://example.org/a?cfid=1&cfid=cfid=2&cftoken=3&b": "org,example)/a?cfid=1&cfid=b",
    "http://example.org/a?cfid=1&b&cftoken=2": "org,example)/a?b&cfid=1&cftoken=2",
    f"http://example.org/a.jsp;jsessionid={ID}?b": f"org,example)/a.jsp;jsessionid={ID.lower()}?b",
    f"http://example.org/x/(S({COOKIELESS}))/A.aspx?b": "org,example)/x/a.aspx?b",
    f"http://example.org/({COOKIELESS})/(A({COOKIELESS})F({COOKIELESS}))/a.aspx/b": "org,example)/a.aspx/b",
    f"http://example.org/(S({COOKIELESS}))/a.html": f"org,example)/(s({COOKIELESS}))/a.html",
    "http:example.org/a": "org,example)/a",
    "https:////example.org/a": "org,example)/a",
    "http://https://example.org/a": "org,example)/a",
    "ftp://www.example.org:21/A/": "org,example:21)/a",
    "whois://whois.example.org/1.2.3.4": "org,example,whois)/1.2.3.4",
    "dns:example.org": "dns:example.org",
    "mailto:A@Example.org?subject=B": "mailto:a@example.org?subject=b",
    "urn:uuid:24a8773c-449b-57d6-80ff-531509a8af23": "urn:uuid:24a8773c-449b-57d6-80ff-531509a8af23",
    "data:text/plain,%41 b": "data:text/plain,a%20b",
    "file:///etc/Passwd/": "file:/etc/passwd",
    " \texa\nmple.org/a\r\n": "org,example)/a",
    "//example.org/a": "org,example)/a",
    "example.org": "org,example)/",
}

WITHOUT_A_KEY = [
    "http://300.1.1.1/",
    "http://1.2.3.08/",
    "http://1.2.65536/",
    "http://1.16777216:80/",
    "http://user@1.2.3.%EF%BC%93%30%30/",
    "http://1.2.3.4%0A/",
    "http://example.org:port/",
    "http://example.org:80:80/",
    "http://example.org:65536/",
    "http://::1/",
    "http://example.org/\ud800",
]


@pytest.mark.parametrize(("url", "key"), KEYS.items())
def test_the_key_of_a_url(url: str, key: str) -> None:
    assert urlkey(url) == key


@pytest.mark.parametrize("url", WITHOUT_A_KEY)
def test_a_url_without_a_key_stands_for_itself(url: str) -> None:
    assert urlkey(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://e.org/" + "%3" * 8000 + "5",
        "http://e.org/%" + "25" * 8000,
        "http://e.org/?&cftoken=1&" + "cfid=" * 3200,
        "http://e.org/?" + "cfid=1&cftoken=&" * 1000,
        "http://e.org/?" + f"sid={ID}_" * 430,
        "http://e.org/.aspx" + f"/(S({COOKIELESS}))" * 540 + "/x",
        "http://" + "%c3%a9" * 2600,
        "http://e.org/?id" + "&" * 16_000,
    ],
    ids=lambda url: url[:30],
)
def test_the_longest_hostile_url_takes_little_time(url: str) -> None:
    start = process_time()
    urlkey(url)
    assert process_time() - start < 1


class _AskedNameServer(Exception):
    """What surt would look up in the DNS; no OSError, so that it is not taken for an answer."""


def _parse_address(host: bytes) -> tuple[str, list[str], list[str]]:
    """What the system's resolver does with an IPv4 address; it takes no white space behind it, ``inet_aton`` does."""
    try:
        address = socket.inet_ntoa(socket.inet_aton(host.decode()))
    except OSError:
        raise _AskedNameServer from None
    if host != host.strip():
        raise _AskedNameServer
    return address, [], [address]


@pytest.fixture(scope="module")
def surt_key() -> Iterator[Callable[[str], str]]:
    """The key by surt; the URL itself where it finds none or, our one difference, would ask a name server."""
    surt = pytest.importorskip("surt", reason="the surt package, to compare with, is not installed")  # mutes warnings

    def key(url: str) -> str:
        try:
            return str(surt.surt(url))
        except (ValueError, _AskedNameServer):
            return url

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "gethostbyname_ex", _parse_address)
        yield key


def test_surt_agrees_on_the_keys_above(surt_key: Callable[[str], str]) -> None:
    assert {url: surt_key(url) for url in KEYS} == KEYS
    assert [surt_key(url) for url in WITHOUT_A_KEY] == WITHOUT_A_KEY


@pytest.mark.skipif(not CLUEWEB22.exists(), reason="the real pages are not on this machine")
def test_surt_agrees_on_real_urls(surt_key: Callable[[str], str]) -> None:
    corpus = ClueWeb22Corpus(CLUEWEB22)
    urls = [corpus.url(key) for key in corpus.sample(5000, seed=0)]
    corpus.close()
    assert {url: urlkey(url) for url in urls} == {url: surt_key(url) for url in urls}


def _joined(*pieces: str, max_size: int = 6) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces) | st.text(max_size=3), max_size=max_size).map("".join)


ESCAPES = ("%", "25", "%41", "%2e", "%2F", "%0A", "%20", "%c3%a9", "%ff", "%EF%BC%91")
HOSTS = _joined(
    "www", "www1.", "A", "1", "07", "300", ".", ".", "xn--", "\u00e9", "\uff11", "\u3002", "x" * 64, *ESCAPES
)
PATHS = _joined("/", "/", "/..", "/.", "A", ";", f"/({COOKIELESS})", f"/(S({COOKIELESS}))", "/a.aspx", *ESCAPES)
SESSIONS = (
    "sid=",
    "JSESSIONID=",
    "PHPSESSID=",
    "ASPSESSIONIDABCDEFGH=",
    "cfid=",
    "&cftoken=",
    ID,
    "ABCDEFGHIJKLMNOPQRSTUVWX",
)
QUERIES = _joined("&", "&", "=", "?", "B", "a", "a=1", *SESSIONS, *ESCAPES, max_size=8)


def _names_a_host(text: str) -> bool:
    return not set(text) & set("/?#@:[") and text.strip(" \t\n\v\f\r.") != ""


@given(
    scheme=st.sampled_from(["http://", "https://", "ftp://"]),
    user=st.sampled_from(["", "", "u@", "u:p@"]),
    host=HOSTS.filter(_names_a_host) | st.just("[2001:DB8::1]"),
    port=st.sampled_from(["", "", ":", ":80", ":0443", ":81", ":x"]),
    path=PATHS.map(lambda path: "/" + path),
    query=st.just("") | QUERIES.map(lambda query: "?" + query),
    fragment=st.sampled_from(["", "#", "#a?b"]),
)
@settings(deadline=None)
def test_surt_agrees_on_made_up_urls(
    surt_key: Callable[[str], str], scheme: str, user: str, host: str, port: str, path: str, query: str, fragment: str
) -> None:
    url = scheme + user + host + port + path + query + fragment
    assert urlkey(url) == surt_key(url)
