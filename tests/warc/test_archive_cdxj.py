"""The index: lines as cdxj-indexer writes them, and reading them back."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from archive_helpers import INFO, index, page, write_archive
from hypothesis import given, strategies as st

from crawl4llm.base.errors import InputError
from crawl4llm.warc.cdxj import read
from crawl4llm.warc.page_records import Entry, safe_uri, timestamp, urlkey

ENTRY = Entry(
    url="https://www.example.org/A?b=%C3%A9",
    timestamp="20220801120000",
    mime="text/html",
    status="200",
    digest="sha1:SGQIVLRJVHX3VSGS3JSGWILZSKVFAYYY",
    length=1234,
    offset=567,
    filename="crawl-00000.warc.gz",
    id="é\ud800\n key",
)
LINE = (
    "org,example)/a?b=%c3%a9 20220801120000 "
    '{"url": "https://www.example.org/A?b=%C3%A9", "mime": "text/html", "status": "200", '
    '"digest": "sha1:SGQIVLRJVHX3VSGS3JSGWILZSKVFAYYY", "length": "1234", "offset": "567", '
    '"filename": "crawl-00000.warc.gz", "id": "\\u00e9\\ud800\\n key"}\n'
)


def test_a_line_and_back(tmp_path: Path) -> None:
    assert ENTRY.line() == LINE.encode("ascii")
    (tmp_path / "index.cdxj").write_bytes(ENTRY.line() * 2)
    assert list(read(tmp_path / "index.cdxj")) == [ENTRY, ENTRY]


def test_timestamps_are_cut_to_the_second() -> None:
    assert timestamp("2022-08-01T12:34:56.999999999Z") == "20220801123456"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (LINE[: len(LINE) // 2], "not a CDXJ entry"),
        ("\n", "not a CDXJ entry"),
        ("org,example)/ 20220801120000 []\n", "not a CDXJ entry"),
        *(
            (LINE.replace('"1234"', number), "not a CDXJ entry")
            for number in ('"long"', '"-1"', "1e999", f'"{10**17}"')
        ),
        *(
            (LINE.replace("crawl-0", name), "not a CDXJ entry")
            for name in ("../", "/", "a/../../", "\\u0000", "\\ud800")
        ),
        (LINE.replace("{", '{"x": ' + "[" * 100_000), "not a CDXJ entry"),
        (re.sub('"url": "[^"]*"', '"url": 5', LINE), "not a CDXJ entry"),
        (LINE.replace('"id"', '"key"'), "no 'id'"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "index.cdxj"
    path.write_bytes((LINE + line + LINE).encode("ascii"))
    entries = read(path)
    assert next(entries) == ENTRY
    with pytest.raises(InputError, match=f"index.cdxj line 2: {complaint}") as error:
        next(entries)
    assert "\n" not in str(error.value)


def test_an_index_that_is_missing_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the index .*none.cdxj"):
        list(read(tmp_path / "none.cdxj"))
    (tmp_path / "index.cdxj").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"cannot read the index .*index.cdxj"):
        list(read(tmp_path / "index.cdxj"))


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.Example.org/A/../b?z=1&a=2#f", "org,example)/b?a=2&z=1"),
        ("http://1.2.3.4/", "4,3,2,1)/"),
        ("http://300.2.3.4/", "http://300.2.3.4/"),
        ("http://1.2.3.%333%30%30/", "http://1.2.3.%333%30%30/"),
        ("http://1.2.3.4%0A/", "http://1.2.3.4%0A/"),
        ("http://1.2.3.%EF%BC%93%EF%BC%90%EF%BC%90/", "http://1.2.3.%EF%BC%93%EF%BC%90%EF%BC%90/"),
        ("http://example.org:port/", "http://example.org:port/"),
        ("urn:uuid:24a8773c-449b-57d6-80ff-531509a8af23", "urn:uuid:24a8773c-449b-57d6-80ff-531509a8af23"),
    ],
)
def test_urlkey(monkeypatch: pytest.MonkeyPatch, url: str, key: str) -> None:
    monkeypatch.setattr(socket, "gethostbyname_ex", _resolve_addresses_only)
    assert urlkey(url) == key


URL_PARTS = st.sampled_from(
    [
        *("http://", "https://", "ftp:", "www.", "a", "1", "07", "300", ";jsessionid=", "%31", "%2e", "%0A", "%ff"),
        *".:/?&=#@[]% \n\u00e9\uff11\u3002\ud800",
        "x" * 64,
    ]
)


@given(st.lists(URL_PARTS, max_size=10).map("".join) | st.text())
def test_every_uri_has_a_key_without_space_and_no_host_is_looked_up(url: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "gethostbyname_ex", _resolve_addresses_only)
        key = urlkey(safe_uri(url) or "urn:x:y")
    assert key
    assert key.isascii()
    assert key.isprintable()
    assert " " not in key


def _resolve_addresses_only(host: bytes) -> tuple[str, list[str], list[str]]:
    """What the resolver does with an address; fails where it would ask a name server."""
    assert host.strip(b"0123456789.") == b""
    return "", [], [socket.inet_ntoa(socket.inet_aton(host.decode()))]


def test_one_line_a_page_in_crawl_order(tmp_path: Path) -> None:
    pages = [page(number) for number in (3, 1, 2)]
    write_archive(tmp_path, pages)
    assert [(entry.id, entry.url) for entry in index(tmp_path)] == [(page.key, page.url) for page in pages]
    assert {entry.timestamp for entry in index(tmp_path)} == {timestamp(INFO.start_date)}
