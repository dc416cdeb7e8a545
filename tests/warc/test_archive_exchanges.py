"""Pages that came over the network: golden text of their records, hostile heads, what other readers make of them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from archive_helpers import (
    INFO,
    SeenRecord,
    capture,
    captured,
    fastwarc_records,
    index,
    page,
    warc_files,
    warcbench_check,
    warcio_check,
)

from crawl4llm.base.pages import PageRecord
from crawl4llm.warc import ArchiveFormat, ArchiveWriter, cdxj
from crawl4llm.warc.http_messages import MAX_HEAD
from crawl4llm.warc.page_records import Entry, digest
from crawl4llm.warc.reader import read_record, read_stored

ZIPPED = gzip.compress(b"<p>zipped", mtime=0)


def archive_of(directory: Path, *pages: PageRecord, **form: Any) -> list[Entry]:
    """Archive pages, each with its key as the only field; the entries of the index, redirects' too."""
    archive = ArchiveWriter(directory, INFO, 10**9, form=ArchiveFormat(**form))
    for one in pages:
        archive.write(one, {"id": one.key})
    archive.close()
    return list(cdxj.read(directory / "index.cdxj", redirects=True))


def records_of(directory: Path) -> list[str]:
    """The records of an archive of one file, as text with LF, without the warcinfo record."""
    (file,) = warc_files(directory)
    text = gzip.decompress(file.read_bytes()).decode("latin-1").replace("\r\n", "\n")
    return [f"WARC/1.1\n{record}" for record in text.split("WARC/1.1\n")][2:]


def test_response_request_and_metadata(tmp_path: Path) -> None:
    signals = (("x-robots-tag", "noai, noimageai"), ("TDM-Reservation", "1"))
    headers = [*capture().headers, *((name.encode(), value.encode()) for name, value in signals)]
    archive_of(tmp_path, captured("key", capture("/a?b=c", headers=headers)))
    response, request, metadata = records_of(tmp_path)
    identifier = field(response, "WARC-Record-ID")
    warcinfo = field(response, "WARC-Warcinfo-ID")
    assert (
        response
        == f"""\
WARC/1.1
WARC-Type: response
WARC-Record-ID: {identifier}
WARC-Date: 2026-11-20T12:00:00.123456Z
WARC-Target-URI: http://example.org/a?b=c
WARC-Warcinfo-ID: {warcinfo}
WARC-IP-Address: 93.184.216.34
WARC-Protocol: http/1.1
WARC-Payload-Digest: {digest(b"<p>hello")}
WARC-Block-Digest: sha1:IMVLEK5NQN53MJH6R5HGHDAS32PQL4A2
Content-Type: application/http; msgtype=response
Content-Length: 137

HTTP/1.1 200 OK
Content-Type: text/html; charset=utf-8
Content-Length: 8
x-robots-tag: noai, noimageai
TDM-Reservation: 1

<p>hello

"""
    )
    assert (
        request
        == f"""\
WARC/1.1
WARC-Type: request
WARC-Record-ID: {field(request, "WARC-Record-ID")}
WARC-Date: 2026-11-20T12:00:00.123456Z
WARC-Target-URI: http://example.org/a?b=c
WARC-Warcinfo-ID: {warcinfo}
WARC-IP-Address: 93.184.216.34
WARC-Protocol: http/1.1
WARC-Concurrent-To: {identifier}
WARC-Payload-Digest: {digest(b"")}
WARC-Block-Digest: sha1:WTBKAXXDTXAMVT5K3T2VAW2OWHOLUH3L
Content-Type: application/http; msgtype=request
Content-Length: 63

GET /a?b=c HTTP/1.1
Host: example.org
User-Agent: crawler



"""
    )
    assert field(metadata, "WARC-Concurrent-To") == identifier
    assert metadata.endswith("\n\nid: key\n\n\n")


def field(record: str, name: str) -> str:
    """The value of a record's field."""
    (value,) = [line.partition(": ")[2] for line in record.splitlines() if line.startswith(f"{name}: ")]
    return value


def http_head(record: str) -> list[str]:
    """The lines of the HTTP head in a record."""
    return record.split("\n\n")[1].splitlines()


@pytest.mark.parametrize(
    ("changes", "fields", "head"),
    [
        pytest.param(
            {"body": ZIPPED, "headers": [(b"Content-Encoding", b"gzip"), (b"Transfer-Encoding", b"chunked")]},
            {},
            ["HTTP/1.1 200 OK", "Content-Encoding: gzip", "X-Crawler-Transfer-Encoding: chunked", "Content-Length: 29"],
            id="chunked",
        ),
        pytest.param(
            {
                "headers": [(b"content-encoding", b"br"), (b"content-length", b"7"), (b"vary", b"*")],
                "body_is_decoded": True,
                "exact_headers": False,
                "protocol": "h2",
            },
            {"WARC-Protocol": "h2", "Crawl4LLM-HTTP-Headers": "order and case not kept"},
            [
                "HTTP/1.1 200 OK",
                "X-Crawler-content-encoding: br",
                "X-Crawler-content-length: 7",
                "vary: *",
                "Content-Length: 8",
            ],
            id="decoded",
        ),
        pytest.param(
            {"headers": [(b"Content-Length", b"1000")], "truncated": "disconnect"},
            {"WARC-Truncated": "disconnect"},
            ["HTTP/1.1 200 OK", "X-Crawler-Content-Length: 1000", "Content-Length: 8"],
            id="truncated",
        ),
        pytest.param(
            {"headers": [], "protocol": "http/1.0", "status": 404, "reason": "", "ip_address": "2001:db8::1"},
            {"WARC-IP-Address": "2001:db8::1", "WARC-Protocol": "http/1.0"},
            ["HTTP/1.0 404 "],
            id="no headers",
        ),
        pytest.param({"headers": [(b"Content-Length", b"99")], "method": "HEAD"}, {}, None, id="head"),
    ],
)
def test_heads_fit_what_is_stored(
    tmp_path: Path, changes: dict[str, Any], fields: dict[str, str], head: list[str] | None
) -> None:
    archive_of(tmp_path, captured("key", capture(**changes)))
    response = records_of(tmp_path)[0]
    assert http_head(response) == (head or ["HTTP/1.1 200 OK", "Content-Length: 99"])
    assert {name: field(response, name) for name in fields} == fields
    assert "WARC-Truncated" in fields or "WARC-Truncated" not in response
    assert "Crawl4LLM-HTTP-Headers" in fields or "Crawl4LLM" not in response


def test_a_request_is_the_one_that_was_sent(tmp_path: Path) -> None:
    """Not in the version of the answer, and without what is for the proxy's eyes only."""
    headers = [(b"Host", b"example.org"), (b"Proxy-Authorization", b"Basic YTpi"), (b"Accept", b"*/*")]
    archive_of(tmp_path, captured("key", capture(protocol="http/1.0", request_headers=headers)))
    response, request = records_of(tmp_path)[:2]
    assert http_head(response)[0] == "HTTP/1.0 200 OK"
    assert http_head(request) == ["GET / HTTP/1.1", "Host: example.org", "Accept: */*"]


_SENT = [(b"Host", b"example.org"), (b"cookie", b"id=1"), (b"AUTHORIZATION", b"Basic Yg=="), (b"Accept", b"*/*")]


@pytest.mark.parametrize("credentials", [False, True])
def test_credentials_are_archived_only_where_they_are_asked_for(tmp_path: Path, credentials: bool) -> None:
    """Those for a proxy never are."""
    headers = [*_SENT, (b"proxy-AUTHORIZATION", b"Basic YTpi")]
    moved = capture("/old", b"", status=302, request_headers=headers)
    page = captured("key", moved, capture("/new", request_headers=headers))
    archive_of(tmp_path, page, credentials=credentials, text=True)
    requests = [record for record in records_of(tmp_path) if field(record, "WARC-Type") == "request"]
    assert len(requests) == 2
    for request in requests:
        kept = ["cookie: id=1", "AUTHORIZATION: Basic Yg=="] if credentials else []
        assert http_head(request)[1:] == ["Host: example.org", *kept, "Accept: */*"]
        assert ("Crawl4LLM-HTTP-Headers: credentials left out" in request) is not credentials
        assert "YTpi" not in request
    (file,) = warc_files(tmp_path)
    assert not (credentials and file.stat().st_mode & 0o077)
    judged(tmp_path)


@pytest.mark.parametrize("exact", [True, False])
def test_a_response_that_was_put_together_again_sets_no_cookies(tmp_path: Path, exact: bool) -> None:
    headers = [(b"Content-Type", b"text/html"), (b"Set-cookie", b"id=secret")]
    archive_of(tmp_path, captured("key", capture(headers=headers, exact_headers=exact)), credentials=True)
    response = records_of(tmp_path)[0]
    assert ("Set-cookie: id=secret" in http_head(response)) is exact
    said = "order and case not kept, credentials left out"
    assert (f"Crawl4LLM-HTTP-Headers: {said}\n" in response) is not exact


def test_a_reason_phrase_stays_the_bytes_that_it_was(tmp_path: Path) -> None:
    archive_of(tmp_path, captured("key", capture(reason="g\xfct \xc3\xbc")))
    (file,) = warc_files(tmp_path)
    assert b"\r\nHTTP/1.1 200 g\xfct \xc3\xbc\r\n" in gzip.decompress(file.read_bytes())


def test_redirects_are_exchanges_of_their_own(tmp_path: Path) -> None:
    moved = capture("/old", b"moved", status=301, reason="Moved", headers=[(b"Location", b"/new")])
    entries = archive_of(tmp_path, captured("key", moved, capture("/new")))
    kinds = [field(record, "WARC-Type") for record in records_of(tmp_path)]
    assert kinds == ["response", "request", "response", "request", "metadata"]
    assert [(entry.id, entry.url, entry.status) for entry in entries] == [
        ("", "http://example.org/old", "301"),
        ("key", "http://example.org/new", "200"),
    ]
    assert [read_record(tmp_path, entry) for entry in entries] == [b"moved", b"<p>hello"]
    assert index(tmp_path) == entries[1:]
    identifiers = [field(record, "WARC-Record-ID") for record in records_of(tmp_path)]
    assert len(set(identifiers)) == 5


def judged(directory: Path) -> list[SeenRecord]:
    """The records of an archive's only file, once all readers have accepted it, without the warcinfo record."""
    (file,) = warc_files(directory)
    warcio_check([file])
    warcbench_check(file)
    return fastwarc_records(file)[1:]


def test_header_bombs_are_bounded(tmp_path: Path) -> None:
    html = (b"Content-Type", b"text/html")
    bombs = {
        "many": capture(headers=[html, *[(b"X-%d" % n, b"v" * 99) for n in range(5000)]]),
        "long": capture(headers=[(b"X", b"v" * 10**6), html]),
        "long name": capture(headers=[(b"n" * 10**6, b"v"), html]),
        "request": capture(request_headers=[(b"Referer", b"c" * 10**5), (b"Host", b"example.org")]),
        "long url": capture("/" + "a" * 16_000, headers=[(b"Set-Cookie", b"v" * 10**5), html]),
        "reason": capture(reason="x" * 10**6),
        "NUL": capture(headers=[(b"Content-Type", b"text/html\0x")]),
    }
    entries = archive_of(tmp_path, *(captured(key, bomb) for key, bomb in bombs.items()))
    kinds = [record.kind for record in judged(tmp_path)]  # FastWARC reads heads of 32 KiB, those of HTTP too
    assert kinds == ["response", "request", "metadata"] * len(bombs)
    assert {read_record(tmp_path, entry) for entry in entries} == {b"<p>hello"}
    assert {entry.mime for entry in entries} == {"text/html"}
    records = records_of(tmp_path)
    for number, key in enumerate(bombs):
        exchange = records[3 * number : 3 * number + 2]
        assert all(len("\r\n".join(http_head(record))) <= MAX_HEAD for record in exchange)
        shortened = ["Crawl4LLM-HTTP-Headers: shortened" in record for record in exchange]
        assert shortened == [key not in {"request", "reason", "NUL"}, key == "request"]


@pytest.mark.parametrize("url", ["", "http://example.org/" + "a" * 100_000, "data:text/html,hello"])
def test_without_a_url_that_fits_a_page_is_stored_as_a_corpus_has_it(tmp_path: Path, url: str) -> None:
    entries = archive_of(tmp_path, captured("key", capture(url=url), capture("/")), captured("none", capture(url=url)))
    assert (entries[0].id, entries[0].url) == ("key", "http://example.org/")
    assert read_record(tmp_path, entries[1]) == b"<p>as the crawl saw it"
    warcio_check(warc_files(tmp_path))


def test_nothing_that_was_sent_forges_a_record_or_field(tmp_path: Path) -> None:
    bad = [
        capture(headers=[(b"A\r\nWARC-Type: b", b"c\r\n\r\nWARC/1.1\r\nd\0"), (b"", b"e"), (b"\xff", b"\xfe")]),
        capture(reason="OK\r\nX: y\r\n\r\n<p>forged", method="G E\r\nT: x"),
        capture("/\r\nX: y\ud800\xff", ip_address="1.2.3.4\r\nX: y", protocol="http/1.1\r\nX: y", date="now\r\nX: y"),
        capture(request_headers=[(b"Host", b"a\r\nb")], request_body=b"WARC/1.1\r\n\r\n"),
        capture(body=b"WARC/1.1\r\nContent-Length: 9\r\n\r\n" * 9, headers=[(b"Content-Type", b"\xff\xfe; x")]),
    ]
    entries = archive_of(tmp_path, *(captured(f"key\r\n{number}", one) for number, one in enumerate(bad)))
    seen = judged(tmp_path)
    assert [record.kind for record in seen] == ["response", "request", "metadata"] * len(bad)
    assert not any("X" in record.head or "T" in record.head for record in seen)
    assert [record.content for record in seen[1::3]] == [one.request_body for one in bad]
    for one, entry in zip(bad, entries, strict=True):
        assert read_stored(tmp_path, entry.filename, entry.offset, entry.length).payload == one.body


def test_bytes_that_are_not_utf8_stay_as_they_were(tmp_path: Path) -> None:
    (entry,) = archive_of(tmp_path, captured("key", capture(body=b"<p>\xe9", headers=[(b"X-Name", b"caf\xe9")])))
    stored = read_stored(tmp_path, entry.filename, entry.offset, entry.length)
    assert b"X-Name: caf\xe9\r\n" in stored.data
    assert read_record(tmp_path, entry) == "<p>é".encode()


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """An archive with records of all kinds."""
    pages = [
        captured("first", capture("/first")),
        captured("again", capture("/r", b"", status=302, headers=[(b"Location", b"/again")]), capture("/again")),
        captured("cut", capture("/cut", b"<p>hel", truncated="time")),
        captured(
            "zip", capture("/zip", ZIPPED, headers=[(b"Content-Encoding", b"gzip"), (b"Transfer-Encoding", b"x")])
        ),
        captured("post", capture("/post", method="POST", request_body=b"a=b")),
        page(5),
        PageRecord("text", "http://example.org/text", text="hello \N{SNOWMAN}"),
        PageRecord("ftp", "ftp://example.org/", html=b"<p>file"),
    ]
    archive = ArchiveWriter(tmp_path, INFO, 10**9, form=ArchiveFormat(text=True, revisits=10))
    for one in pages:
        archive.write(one, {"id": one.key, "influence": 0.1, "none": None, "title": "\N{SNOWMAN}\r\nX: y"}, "the text")
    archive.close()
    return tmp_path


def test_all_readers_accept_all_kinds(mixed: Path) -> None:
    files = warc_files(mixed)
    assert len(files) == 2
    warcio_check(files)
    kinds = set()
    for file in files:
        warcbench_check(file)
        kinds |= {record.kind for record in fastwarc_records(file)}
    assert kinds == {"warcinfo", "response", "request", "metadata", "revisit", "resource", "conversion"}
