"""Targets: archives and corpora of others. WARC and ARC in all compressions, CDXJ, WAT, ClueWeb22's records."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.fuzz.mutators import GZIP, in_members, of_json, of_json_lines
from benchmarks.fuzz.target import Reader, Target

_DATE: Final = "2022-08-01T12:00:00Z"
_ID: Final = "clueweb22-en0000-00-00000"
_WORDS: Final = (
    *(b"WARC/1.1\r\n", b"WARC-Type: response\r\n", b"WARC-Type: revisit\r\n", b"WARC-Type: metadata\r\n", b"\r\n\r\n"),
    *(b"Content-Length: ", b"WARC-Target-URI: <http://a.example/>\r\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 301 x\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"WARC-Payload-Digest: sha1:", b"0\r\n\r\n"),
    *(b"WARC-Truncated: length\r\n", b"WARC-Block-Digest: md5:", b"filedesc://a.arc ", b" 127.0.0.1 20200203040506 "),
    *(
        b"WARC-Date: 2020-02-03T04:05:06Z\r\n",
        b"software: crawl4llm/0.1\r\n",
        b"Location: /x\r\n",
        b"http-header-user-agent: ",
    ),
)
_ARC: Final = (
    b"filedesc://a.arc 0.0.0.0 20200203040506 text/plain 69\n1 0 Tests\nURL IP-address Archive-date Content-type "
    b"Archive-length\n\n\nhttp://a.example/ 127.0.0.1 20200203040506 text/html 49\nHTTP/1.1 200 OK\r\n"
    b"Content-Type: text/html\r\n\r\n<p>hi</p>\n"
)
_WAT: Final = {
    "Envelope": {
        "Payload-Metadata": {
            "HTTP-Response-Metadata": {
                "HTML-Metadata": {
                    "Head": {"Base": "/b/", "Metas": [{"http-equiv": "refresh", "content": "0;url=/r"}]},
                    "Links": [{"path": "A@/href", "url": "x?y", "text": "a"}, {"path": "IMG@/src", "url": "i"}],
                }
            }
        }
    }
}


def _records() -> list[bytes]:
    """Return the records of an archive, as the project writes them."""
    from uuid import UUID

    from crawl4llm.base.pages import Capture, PageRecord
    from crawl4llm.warc.exchanges import exchange
    from crawl4llm.warc.page_records import RecordBuilder, Values

    builder = RecordBuilder(UUID(int=1), _DATE)
    info = builder.warcinfo_id("a.warc")
    page = PageRecord("a", "http://a.example/", _DATE, b'<p><a href="/b">hi</a>', language="en")
    content = builder.content(page, info)
    capture = Capture(
        *("http://a.example/robots.txt", _DATE, "GET", [(b"Host", b"a.example")], b"", 200, "OK"),
        *([(b"Content-Type", b"text/html"), (b"Content-Encoding", b"gzip"), (b"Transfer-Encoding", b"chunked")], True),
        gzip.compress(b"User-agent: *\nDisallow: /a\n", mtime=0),
    )
    response, request = exchange(builder, capture, "b", info, hop=0, find=lambda _: None, purpose="robots.txt")
    fields: Values = {"id": "a", "order": 1, "opt-out-signals": "meta * page robots noai", "language": "en"}
    return [
        builder.warcinfo(
            "a.warc", {"software": "crawl4llm/0.1.0", "http-header-user-agent": "x/1", "opt-out": "noted"}
        ),
        *(content.data, builder.metadata("a", content, info, fields), response.data, request),
        builder.text(page, content, info, "hi\n").data,
    ]


def _archive(folder: Path) -> Reader:
    from crawl4llm.base.charsets import html_in_utf8
    from crawl4llm.base.errors import PageError
    from crawl4llm.tools.archive.survey import faults
    from crawl4llm.warc.reader import WarcReader, begins_like_archive, html_of_record, parse_stored
    from crawl4llm.warc.records import UnreadableFile
    from simulate.warcs.scan import Source, scan_part

    path = folder / "input.warc"
    html_in_utf8(b"\xe4")  # imports the detector of charsets, which no input may do

    def read(data: bytes) -> None:
        path.write_bytes(data)
        begins_like_archive(path)
        reader = WarcReader(path)
        end = 0
        for offset, length, frame in reader.stretches():
            assert end <= offset < offset + length <= len(data), (end, offset, length)
            end = offset + length
            if frame is None or frame.record is None:
                continue
            with suppress(PageError):
                faults(frame, frame.record, reader.pieces(offset, length))
            with suppress(PageError, ValueError):
                stored = parse_stored(reader.read(offset, length, 1 << 20), "at")
                html_of_record(stored, 1 << 20).data.decode()
        scan_part(Source(path, folder / "points"), canonical_links=True)

    return Reader(read, (UnreadableFile,))


def _packed(name: str) -> list[bytes]:
    from crawl4llm.base.compression import COMPRESSIONS

    records = _records()
    compress: Any = COMPRESSIONS[name].compress
    return [b"".join(map(compress, records)), *map(compress, records[:3])]


def _plain_seeds() -> list[bytes]:
    records = _records()
    bare = records[1].replace(b"\r\n", b"\n")
    return [b"".join(records), *records, _ARC, bare + bare]


def _zstd(data: bytes) -> bytes:
    from crawl4llm.base.compression import zstd

    return zstd.compress(data)


def _unzstd(data: bytes) -> bytes:
    from crawl4llm.base.compression import inflate

    return inflate(data, "zstd", 1 << 20)


def _index(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.tools.export.archive_source import read_values
    from crawl4llm.tools.export.documents import load_all
    from crawl4llm.warc.cdxj import parse_index_line, parse_many, read

    path = folder / "index.cdxj"

    def read_index(data: bytes) -> None:
        path.write_bytes(data)
        lines = data.splitlines(keepends=True)
        for line in lines:
            if (parsed := parse_index_line(line)) is not None:
                again = parse_index_line(parsed.at(*parsed.place))
                assert again is not None, line
                assert again.place == parsed.place, line
                assert isinstance(parsed.id, str), line
        with suppress(LookupError, ValueError):
            for _ in parse_many(lines):
                pass
        with suppress(InputError):
            for _ in read_values(path, load_all, str):
                pass
        for _ in read(path, redirects=True):
            pass

    return Reader(read_index, (InputError,))


def _index_seeds() -> list[bytes]:
    from crawl4llm.warc.page_records import Entry

    plain = Entry(
        "http://a.example/b?c", "20220801120000", "text/html", "200", "sha1:" + "A" * 32, 10, 0, "a.warc.gz", "k"
    )
    about = {"purpose": "robots.txt", "site": "http://a.example", "opt-out-signals": "x"}
    text = Entry("urn:x", "20220801120000", "text/plain", None, "sha1:" + "B" * 32, 9, 10, "b.warc", "", "en", about)
    return [plain.line() + text.line(), plain.line()]


def _wat(_: Path) -> Reader:
    from crawl4llm.warc.payload import wat_links, wat_page

    def read(data: bytes) -> None:
        wat_links(data, "http://a.example/")
        wat_page(data, "http://a.example/")

    return Reader(read, (ValueError,))


def _inflate(_: Path) -> Reader:
    from crawl4llm.base.compression import CODINGS, InflateError, gunzip_pieces, inflate, inflate_start

    codings = list(CODINGS)

    def read(data: bytes) -> None:
        coding, body = codings[data[0] % len(codings)] if data else "gzip", data[1:]
        for most in (100, 1 << 20):
            assert len(inflate_start(body, coding, most)) <= most
            with suppress(InflateError):
                inflate_start(body, coding, most, 1 << 22)
            with suppress(InflateError):
                assert len(inflate(body, coding, most)) <= most
        parts = iter([body[:10], body[10:]])
        with suppress(InflateError):
            for piece in gunzip_pieces(lambda: next(parts, b"")):
                assert len(piece) <= 1 << 20

    return Reader(read, (InflateError,))


def _inflate_seeds() -> list[bytes]:
    import zlib

    brotli: Any = import_module("brotli")

    text = b"<p>some text, some text" * 30
    return [
        *(b"\0" + gzip.compress(text, mtime=0) * 2, b"\1" + zlib.compress(text), b"\1" + zlib.compress(text)[2:-4]),
        *(b"\3" + _zstd(text) * 2, b"\3\x50\x2a\x4d\x18\2\0\0\0ab" + _zstd(text)),
        b"\2" + brotli.compress(text),
    ]


def _clueweb(_: Path) -> Reader:
    from simulate.clueweb22.records import (
        HTML,
        MalformedRecordError,
        parse_html,
        parse_links,
        parse_text,
        url_at_start,
    )

    def read(data: bytes) -> None:
        url_at_start(HTML, data, _ID), url_at_start("txt", data, _ID)
        with suppress(MalformedRecordError):
            parse_html(data, _ID)
        for prefix in ("", "clueweb22-en"):
            with suppress(MalformedRecordError):
                parse_links(data, _ID, "outlink", prefix)
        with suppress(MalformedRecordError):
            parse_text(data, _ID).text.encode()

    return Reader(read)


def _clueweb_seeds() -> list[bytes]:
    text = {
        "URL": "http://a.example/\n",
        "URL-hash": "x",
        "Language": "en",
        "ClueWeb22-ID": _ID,
        "Clean-Text": "a\ud800b",
    }
    links = {"url": "http://a.example/", "urlhash": "x", "language": "en", "ClueWeb22-ID": _ID}
    link = ["http://b.example/", "H", "anchor", "0", "en", _ID[:-1] + "1"]
    html = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: {_DATE}\r\nClueWeb22-ID: {_ID}\r\nContent-Length: 3\r\n\r\n<p>"
    )
    return [json.dumps(text).encode(), json.dumps({**links, "outlinks": [link, link]}).encode(), html.encode()]


def _captures(_: Path) -> Reader:
    """What servers send, written as records of an archive and read again."""
    from uuid import UUID

    from crawl4llm.base.pages import Capture
    from crawl4llm.warc.exchanges import exchange, has_uri
    from crawl4llm.warc.page_records import RecordBuilder
    from crawl4llm.warc.reader import parse_stored

    builder = RecordBuilder(UUID(int=1), _DATE)

    def read(data: bytes) -> None:
        head, _, body = data.partition(b"\n\n")
        url, reason, *lines = [*head.split(b"\n"), b"", b""][: max(2, head.count(b"\n") + 1)]
        fields = [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]
        for is_exact in (True, False):
            capture = Capture(
                url=url.decode("utf-8", "surrogateescape"),
                date=_DATE,
                method=reason.decode("latin-1")[:9],
                request_headers=fields[:1],
                request_body=b"",
                status=200,
                reason=reason.decode("latin-1"),
                headers=fields,
                exact_headers=is_exact,
                body=body,
                body_is_decoded=not is_exact,
            )
            if not has_uri(capture):
                return
            response, request = exchange(builder, capture, "k", "<urn:x>", hop=0, find=lambda _: None)
            stored = parse_stored(response.data, "response")
            assert stored.http is not None
            assert stored.http.status == 200
            assert stored.payload == body
            assert stored.record.length == len(stored.record.block(stored.data)), stored.record.length
            assert parse_stored(request, "request").record.kind == "request"

    return Reader(read)


def _failures(folder: Path) -> Reader:
    from crawl4llm.base.errors import PageError
    from simulate.warcs.files import read_failure, scan_failures

    path = folder / "failures.jsonl"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        scan_failures(path)
        for place in (0, 7):
            with suppress(PageError):
                str(read_failure(path, place, len(data), "make"))

    return Reader(read)


_FAILURE: Final = {
    "id": "http://a.example/",
    "url": "http://a.example/",
    "outcome": "failed",
    "reason": "http_404",
    "depth": 1,
    "parent": None,
    "rule": "404",
    "digest": "sha1:AAAA",
    "time": _DATE,
}

TARGETS: Final = (
    Target("warc", _archive, _plain_seeds, tokens=_WORDS, longest=1 << 15, megabytes=256, weight=5),
    Target("warc-gz", _archive, lambda: _packed("gzip"), GZIP, _WORDS, 1 << 15, 256, weight=3),
    Target(
        *("warc-zst", _archive, lambda: _packed("zstd")),
        in_members(b"\x28\xb5\x2f\xfd", _unzstd, _zstd),
        _WORDS,
        longest=1 << 15,
        megabytes=256,
        weight=3,
    ),
    Target(
        "cdxj", _index, _index_seeds, of_json_lines, (b'"offset": "', b" 20220801120000 {", b"../", b'"id": '), weight=3
    ),
    Target("wat", _wat, lambda: [json.dumps(_WAT).encode()], of_json),
    Target("inflate", _inflate, _inflate_seeds, megabytes=256, weight=2),
    Target(
        "clueweb22", _clueweb, _clueweb_seeds, of_json, (b'"Clean-Text":', b"Content-Length: ", b"\\ud800"), weight=1
    ),
    Target(
        *("captures", _captures),
        lambda: [b"http://a.example/b?c\nOK\nContent-Type: text/html\nSet-Cookie: a=b\nContent-Length: 5\n\n<p>hi"],
        tokens=(b"\nTransfer-Encoding: chunked", b"\nContent-Encoding: gzip", b"\r", b"\nCookie: ", b"http://"),
    ),
    Target("failures", _failures, lambda: [json.dumps(_FAILURE).encode() + b"\n"] * 2, of_json_lines, weight=0.5),
)
