"""Archive files for tests, written byte by byte: what a test wants to be wrong in them is."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterable
from pathlib import Path

from simulate.indexes import IndexSummary
from simulate.warcs.files import list_files
from simulate.warcs.index import WarcIndex
from simulate.warcs.index_build import build_warc_index

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CRLF = b"\r\n"
DATE = "2020-02-03T04:05:06Z"
HTML = "text/html; charset=utf-8"


def url_of(number: int, host: str = "site.example") -> str:
    return f"https://{host}/page-{number}.html"


def html_of(number: int, links: Iterable[str] = ()) -> bytes:
    anchors = "".join(f'<a href="{link}">to {link}</a>' for link in links)
    return f"<!doctype html><title>Page {number}</title><p>Text of page {number}.</p>{anchors}".encode()


def head(lines: Iterable[str | bytes], end: bytes = CRLF) -> bytes:
    encoded = [line if isinstance(line, bytes) else line.encode() for line in lines]
    return end.join([*encoded, b"", b""])


def http(
    body: bytes = b"", status: str = "200 OK", fields: Iterable[str] = (f"Content-Type: {HTML}",), end: bytes = CRLF
) -> bytes:
    """An HTTP response."""
    return head([f"HTTP/1.1 {status}", *fields], end) + body


def record(
    kind: str,
    url: str | bytes | None,
    block: bytes = b"",
    fields: Iterable[str] = (),
    *,
    length: int | str | None = -1,
    version: str = "WARC/1.0",
    end: bytes = CRLF,
    date: str = DATE,
) -> bytes:
    """A WARC record; ``length`` None leaves Content-Length out, -1 gives the right one."""
    lines: list[str | bytes] = [version, f"WARC-Type: {kind}", f"WARC-Date: {date}"]
    if url is not None:
        lines.append(b"WARC-Target-URI: " + (url if isinstance(url, bytes) else url.encode()))
    lines += fields
    if length is not None:
        lines.append(f"Content-Length: {len(block) if length == -1 else length}")
    return head(lines, end) + block + 2 * end


def response(url: str | bytes, block: bytes, fields: Iterable[str] = ()) -> bytes:
    """An HTTP response as crawlers archive it."""
    return record("response", url, block, ["Content-Type: application/http; msgtype=response", *fields])


def page(number: int, links: Iterable[str] = (), host: str = "site.example") -> bytes:
    block = http(html_of(number, links))
    return response(url_of(number, host), block, [f"WARC-Record-ID: <urn:uuid:{number}>"])


def warcinfo() -> bytes:
    return record("warcinfo", None, b"software: tests\r\n", ["Content-Type: application/warc-fields"])


def redirect(url: str, target: str, status: str = "301 Moved Permanently") -> bytes:
    return response(url, http(b"moved", status, (f"Location: {target}", f"Content-Type: {HTML}")))


def write(path: Path, *records: bytes) -> Path:
    """Write records as the file's name says: each compressed on its own, or none."""
    compress = {".gz": lambda data: gzip.compress(data, mtime=0), ".zst": zstd.compress}.get(path.suffix, bytes)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(compress, records)))
    return path


def arc_head() -> bytes:
    """The record that begins an ARC file."""
    block = b"1 0 Tests\nURL IP-address Archive-date Content-type Archive-length\n"
    return b"filedesc://a.arc 0.0.0.0 20200203040506 text/plain %d\n%b\n" % (len(block), block)


def arc(url: str, block: bytes, media_type: str = "text/html") -> bytes:
    """An ARC record, version 1."""
    return f"{url} 127.0.0.1 20200203040506 {media_type} {len(block)}\n".encode() + block + b"\n"


def clueweb09(number: int | None, body: bytes) -> bytes:
    """A record as in ClueWeb09: line ends were changed after lengths were counted, and dates are impossible."""
    options = {"version": "WARC/0.18", "end": b"\n", "date": "2009-03-65T08:43:19-0800"}
    if number is None:
        return record("warcinfo", None, body, length=len(body) + 1, **options)  # type: ignore[arg-type]
    block = http(body, end=b"\n")
    fields = [
        f"WARC-TREC-ID: clueweb09-en0000-00-{number:05}",
        "Content-Type: application/http;msgtype=response",
        "WARC-Identified-Payload-Type: ",
    ]
    length = len(block) + 9
    return record("response", url_of(number), block, fields, length=length, **options)  # type: ignore[arg-type]


def build(given: Path | str, index: Path, *, canonical_links: bool = False, processes: int = 1) -> IndexSummary:
    return build_warc_index(list_files(given), index, canonical_links, processes)


def keys(index: Path) -> list[str]:
    """The keys of all documents that an index holds, in its order."""
    opened = WarcIndex(index)
    return [opened.document(position).key for position in range(len(opened))]
