"""What the export tests share: runs written by the archive writer itself, exports made in this process."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from archive_helpers import INFO
from evaluation_helpers import line
from scrapy.settings import Settings

from crawl4llm.base.pages import PageRecord
from crawl4llm.base.tables import text_lines
from crawl4llm.tools.export.export import export
from crawl4llm.tools.export.filters import Wanted
from crawl4llm.warc import ArchiveFormat, ArchiveWriter

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MODEL = "sha256:" + "a" * 64


class Page(NamedTuple):
    """A page of a run."""

    id: str
    text: str | None
    influence: float | None = 0.5
    language: str | None = None
    html: bytes | None = None
    host: str = "site.example.org"


def pages(count: int, words: int = 20) -> list[Page]:
    """Pages with texts of their own, each a little better than the one before."""
    texts = (" ".join(f"word{number}x{place}" for place in range(words)) for number in range(count))
    return [Page(f"key-{number:03d}", text, number / count) for number, text in enumerate(texts)]


def html_of(text: str) -> bytes:
    """A page with that text as its only content, for an extractor."""
    return f"<!doctype html><title>A page</title><body><main><p>{text}</p></main></body>".encode()


def write_run(
    run: Path, crawled: Iterable[Page], *, texts: bool = True, text_only: bool = False, compression: str = "gzip"
) -> Path:
    """The output directory of a crawl; ``texts``: with WARC_TEXT; ``text_only``: its corpus held no HTML."""
    run.mkdir(parents=True)
    info = replace(INFO, prefix="pages")
    archive = ArchiveWriter(run / "warc", info, 100_000, form=ArchiveFormat(text=texts, compression=compression))
    lines = []
    for order, page in enumerate(crawled):
        url = f"http://{page.host}/{page.id}"
        html = None if text_only else page.html or html_of(page.text or "")
        record = PageRecord(page.id, url, "2022-08-01T12:00:00Z", html, page.text, page.language)
        fields = {"id": page.id, "influence": page.influence, "order": order, "language": page.language}
        archive.write(record, fields, page.text if texts else None)
        lines.append(line(order, id=page.id, url=url, influence=page.influence))
    archive.close()
    (run / "crawl.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (run / "settings.json").write_text(json.dumps({"crawl_id": str(INFO.crawl_id), "model_digest": MODEL}))
    return run


def run_export(out: Path, *sources: Path | str, settings: dict[str, Any] | None = None, **wanted: Any) -> list[str]:
    """Export in this process; the lines that the command would print."""
    ours = {"SCORING_WORKERS": 0, "PROGRESS_BAR": "off", "TEXT_EXTRACTOR": "resiliparse"}
    given = {"DOWNLOAD_MAXSIZE": 10_000_000, **ours, **(settings or {})}  # the profile's
    return list(text_lines(export(Settings(given), list(map(str, sources)), out, Wanted(**wanted))))


def manifest(out: Path) -> dict[str, Any]:
    """The manifest of an export."""
    content: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    return content


def files(out: Path) -> dict[str, bytes]:
    """The files of an export."""
    return {path.name: path.read_bytes() for path in sorted((out / "documents").iterdir())}


def documents(out: Path) -> list[dict[str, Any]]:
    """All documents of an export in lines of JSON, in their order."""
    unpack = {"zst": zstd.decompress, "gz": gzip.decompress, "jsonl": bytes}
    contents = (unpack[name.rpartition(".")[2]](data) for name, data in files(out).items())
    return [json.loads(line) for content in contents for line in content.splitlines()]


def ids(out: Path) -> list[str]:
    """The documents of an export."""
    return [document["id"] for document in documents(out)]


def flip(path: Path, offset: int) -> None:
    """Damage one byte of a file."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    path.write_bytes(data)


def entries(index: Path) -> Sequence[dict[str, Any]]:
    """The fields of an index's lines."""
    return [json.loads(line.split(" ", 2)[2]) for line in index.read_text().splitlines()]
