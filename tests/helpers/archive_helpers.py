"""What the archive tests share: a crawl to archive, and the three independent readers that judge the result."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from crawl_helpers import python
from fastwarc.warc import ArchiveIterator

from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.warc import ArchiveInfo, ArchiveWriter
from crawl4llm.warc.cdxj import read
from crawl4llm.warc.page_records import Entry

INFO = ArchiveInfo(
    crawl_id=UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    prefix="crawl",
    start_date="2022-08-01T12:00:00Z",
    fields={
        "software": "crawl4llm/0.1.0 Scrapy/2.19.0",
        "operator": None,
        "robots": "simulation: no requests sent",
    },
)


class SeenRecord(NamedTuple):
    """A record as FastWARC reads it."""

    kind: str
    head: dict[str, str]
    content: bytes


def page(number: int, size: int = 2000) -> PageRecord:
    """A page of ``size`` bytes of html that hardly compress."""
    words = b" ".join(b"%x" % (number * 7919 + i * i * 104729) for i in range(size // 6 + 1))
    return PageRecord(f"key-{number:05d}", f"http://example.org/{number}", html=words[:size].ljust(size))


def capture(path: str = "/", body: bytes = b"<p>hello", **others: Any) -> Capture:
    """A page that came from example.org over HTTP/1.1; ``others`` are fields of Capture."""
    length = str(len(body)).encode()
    fields: dict[str, Any] = {
        "url": f"http://example.org{path}",
        "date": "2026-11-20T12:00:00.123456Z",
        "method": "GET",
        "request_headers": [(b"Host", b"example.org"), (b"User-Agent", b"crawler")],
        "request_body": b"",
        "status": 200,
        "reason": "OK",
        "headers": [(b"Content-Type", b"text/html; charset=utf-8"), (b"Content-Length", length)],
        "exact_headers": True,
        "body": body,
        "protocol": "http/1.1",
        "ip_address": "93.184.216.34",
    }
    return Capture(**{**fields, **others})


def captured(key: str, *captures: Capture) -> PageRecord:
    """The page that exchanges led to."""
    return PageRecord(key, captures[-1].url, captures[-1].date, b"<p>as the crawl saw it", captures=captures)


def write_archive(directory: Path, pages: Iterable[PageRecord], max_bytes: int = 10**9) -> None:
    """Archive pages, each with its number as the only field, and close."""
    archive = ArchiveWriter(directory, INFO, max_bytes)
    for order, record in enumerate(pages):
        archive.write(record, {"order": order})
    archive.close()


def index(directory: Path) -> list[Entry]:
    """All entries of an archive's index."""
    return list(read(directory / "index.cdxj"))


def warc_files(directory: Path) -> list[Path]:
    """The archive's WARC files in order, finished or open."""
    return sorted(directory.glob("*.warc.gz*"))


def warcbench_check(file: Path) -> None:
    """Fail unless WARCbench, which has a parser of its own, finds no fault; where it runs, before Python 3.12.

    Its version 0.1 reads gzip by a part of Python's that went then.
    """
    if sys.version_info >= (3, 12):
        return
    pytest.importorskip("warcbench", reason="WARCbench is not installed (extra: test)")
    command = [sys.executable, "-c", "from warcbench.scripts import cli; cli()", "-o", "json", "summarize", str(file)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    summary = json.loads(result.stdout)
    assert not summary["warnings"], summary
    assert not summary["error"], summary
    assert summary["record_count"] == len(fastwarc_records(file)), summary


def warcio_check(files: Iterable[Path]) -> None:
    """Fail unless ``warcio check`` accepts the files."""
    result = python("-m", "warcio.cli", "check", "-v", *files, check=True)
    assert "digest pass" in result.stdout


def fastwarc_records(file: Path) -> list[SeenRecord]:
    """Every record of a file, in order; fails unless FastWARC finds a right block digest in each."""

    def records(verify: bool) -> list[SeenRecord]:
        with file.open("rb") as stream:
            return [
                SeenRecord(
                    record.headers["WARC-Type"],
                    {str(name): value for name, value in record.headers.items()},  # 0.14's own names hash differently
                    record.reader.read(),
                )
                for record in ArchiveIterator(stream, verify_digests=verify)
            ]

    seen = records(verify=False)
    assert len(records(verify=True)) == len(seen)  # it leaves out records that fail
    return seen
