"""What archiving a page costs, against warcio's create_warc_record and its default gzip level.

    python -m benchmarks.archive [--pages 2000] [--rounds 5] [--out FOLDER]

Pages of ../shared/corpora/real-web, or of the demo web, are archived as a simulated crawl does it, with html, as text
only, and as a live crawl does it, with request and response; warcio makes and writes records of the same content. All
of it takes its turn in each round. Ours includes the index, which warcio's does not; both write to a file. Of a page of
a simulation there are two records, of a live one three.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from benchmarks.corpora import html_parts, real_html
from benchmarks.results import Result, Table, add_output, publish
from crawl4llm.base.compression import COMPRESSIONS, NAME, Compression, compress_with_zlib
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.scoring.text import EXTRACTORS, extract_text
from crawl4llm.warc import ArchiveFormat, ArchiveInfo, ArchiveWriter
from crawl4llm.warc.page_records import warc_fields

DATE = "2026-11-20T12:00:00Z"
INFO = ArchiveInfo(UUID(int=6), "crawl", DATE, {"software": "benchmarks/archive.py"})
HTTP = [("Content-Type", "text/html; charset=utf-8")]
WITHOUT_ISAL = "zlib"
COMPRESSIONS[WITHOUT_ISAL] = Compression(".warc.gz", compress_with_zlib)


class Way(NamedTuple):
    """A way to archive pages."""

    name: str
    write: Callable[[Path, Sequence[PageRecord]], None]


def html_pages(wanted: int) -> list[PageRecord]:
    """Html pages, evenly drawn from all files."""
    step = max(1, 20_000 // wanted)
    pages = (page for part in html_parts(1, step) for page in part.pages())
    return [PageRecord(page.url, page.url, DATE, page.html) for page in pages if page.html]


def fields(page: PageRecord, order: int) -> dict[str, str | int | float | None]:
    """What a crawl says of a page."""
    score = order / 99_991
    return {
        "id": page.key,
        "influence": score,
        "priority": score,
        "order": order,
        "iteration": order // 100,
        "depth": 3,
        "policy": "influence",
        "language": "en",
        "model-digest": f"sha256:{'0123456789abcdef' * 4}",
        "corpus": "warc",
    }


def ours(form: str) -> Callable[[Path, Sequence[PageRecord]], None]:
    """Our writer, with a compression."""

    def write(folder: Path, pages: Sequence[PageRecord]) -> None:
        archive = ArchiveWriter(folder, INFO, 10**9, form=ArchiveFormat(compression=form, revisits=1000))
        for order, page in enumerate(pages):
            archive.write(page, fields(page, order))
        archive.close()

    return write


def with_warcio(folder: Path, pages: Sequence[PageRecord]) -> None:
    """The same pages by warcio."""
    folder.mkdir()
    with (folder / "crawl.warc.gz").open("wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version="WARC/1.1")

        def write(kind: str, page: PageRecord, block: bytes, line: str | None = None, media_type: str = "") -> None:
            http = None if line is None else StatusAndHeaders(line[9:], list(HTTP), protocol=line[:8])
            record = writer.create_warc_record(
                *(page.url, kind, BytesIO(block), len(block), media_type),
                warc_headers_dict={"WARC-Date": DATE},
                http_headers=http,
            )
            writer.write_record(record)

        for order, page in enumerate(pages):
            if page.html is None:
                write("conversion", page, (page.text or "").encode(), media_type="text/plain")
            else:
                write("response", page, page.html, "HTTP/1.1 200 OK")
            if page.captures:
                write("request", page, b"", "GET /     HTTP/1.1")
            write("metadata", page, warc_fields(fields(page, order)), media_type="application/warc-fields")


def as_live(page: PageRecord) -> PageRecord:
    """A page as a live crawl has it."""
    headers = [(name.encode(), value.encode()) for name, value in HTTP]
    sent = [(b"Host", b"example.org"), (b"User-Agent", b"crawl4llm"), (b"Accept", b"text/html")]
    capture = Capture(
        url=page.url,
        date=DATE,
        method="GET",
        request_headers=sent,
        request_body=b"",
        status=200,
        reason="OK",
        headers=headers,
        exact_headers=True,
        body=page.html or b"",
        protocol="http/1.1",
        ip_address="192.0.2.1",
    )
    return replace(page, captures=[capture])


def cpu_seconds(write: Callable[[Path, Sequence[PageRecord]], None], pages: Sequence[PageRecord]) -> tuple[float, int]:
    """What archiving the pages takes, and the bytes of the files."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        write(Path(folder) / "warc", pages)
        spent = time.process_time() - started
        return spent, sum(file.stat().st_size for file in Path(folder).rglob("*.warc.*"))


def compare(title: str, pages: Sequence[PageRecord], rounds: int) -> Table:
    """Return a line for each way to archive the pages."""
    ways = [Way(f"ours, {NAME}", ours("gzip")), Way("ours, zlib (no isal)", ours(WITHOUT_ISAL))]
    ways += [Way("ours, zstd level 3", ours("zstd")), Way("warcio, gzip level 9", with_warcio)]
    spent: dict[str, list[float]] = {way.name: [] for way in ways}
    sizes = {}
    for _ in range(rounds):
        for way in ways:
            cost, sizes[way.name] = cpu_seconds(way.write, pages)
            spent[way.name].append(cost)
    records = len(pages) * (3 if pages[0].captures else 2)
    peer = statistics.median(spent[ways[-1].name])
    mean = sum(len(page.html if page.html is not None else (page.text or "").encode()) for page in pages) / len(pages)
    rows: list[Sequence[str | float | None]] = []
    for name, seconds in spent.items():
        median = statistics.median(seconds)
        rows.append([name, median / records * 1e6, median / peer, sizes[name] / 1e6])
    title = f"{title}: {len(pages):,} pages of {mean / 1000:.1f} KB in {records:,} records, medians of {rounds}"
    return Table(title, ("", "µs a record", "of warcio", "MB"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    add_output(parser)
    args = parser.parse_args()
    pages = html_pages(args.pages)
    result = Result("archive", [real_html().what])
    result.tables.append(compare("Html, simulated", pages, args.rounds))
    result.tables.append(compare("Html, live", [as_live(page) for page in pages], args.rounds))
    extractor = EXTRACTORS["trafilatura"]
    texts = [replace(page, html=None, text=extract_text(page.html or b"", extractor)) for page in pages[::4]]
    result.tables.append(compare("Text only", texts, args.rounds))
    publish(result, args)


if __name__ == "__main__":
    main()
