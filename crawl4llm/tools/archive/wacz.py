"""The WACZ writer: a dataset as one file that replay tools open, version 1.1.1 (specs.webrecorder.net).

The index is that of py-wacz and ReplayWeb.page: gzip members of 1,024 sorted lines (``index.cdx.gz``), and a list of
their places (``index.idx``). Compressed files are stored in the ZIP as they are.

wabac.js, the replay engine of ReplayWeb.page, assumes that a file's local header has no extra fields if its entry in
the ZIP's directory has none. So a file has ZIP64 sizes (APPNOTE 6.3.10, 4.5.3) in both if it is that large, else in
neither.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError, PageError, reading
from crawl4llm.base.tables import Fact, Part
from crawl4llm.base.terminal import harmless
from crawl4llm.base.version import __version__
from crawl4llm.base.whole_files import check_new_file
from crawl4llm.scoring import title_of
from crawl4llm.tools.archive.facts import Facts, read_lines
from crawl4llm.tools.archive.folder import Dataset, now, whole_file
from crawl4llm.warc import REVISIT_MIME, IndexLine, RecordReader, html_of_record, parse_index_line

VERSION: Final = "1.1.1"
_LINES: Final = 1024
_COPIED: Final = 1 << 20
_LARGEST_PAGE: Final = 10 << 20
"""Bytes of a page whose title is read; Scrapy's own limit."""
_LONGEST_TITLE: Final = 500
_REMEMBERED: Final = 10_000
"""Places of pages that are kept for their revisits."""
_MADE: Final = {
    "index.cdx.gz": "indexes/index.cdx.gz",
    "index.idx": "indexes/index.idx",
    "pages.jsonl": "pages/pages.jsonl",
}


def write_wacz(dataset: Dataset, path: Path, folder: Path) -> Iterator[Part]:
    """Write the WACZ of a finished dataset; ``folder`` is for temporary files. Yields a line for the user.

    Files of extracted text are left out, and pages of which only the text is held are not listed: there is nothing in
    them to replay. Raises InputError.
    """
    check_name(path)
    files = list(_indexed_files(dataset))
    with whole_file(path) as new, zipfile.ZipFile(new, "w") as archive:
        package = _Package(archive)
        for file in Progress(files, "Packing", unit=" files"):
            # Files with credentials are for their owner alone.
            os.fchmod(new.fileno(), os.fstat(new.fileno()).st_mode & file.stat().st_mode)
            with file.open("rb") as source:
                package.add(f"archive/{file.name}", source, zipfile.ZipInfo.from_file(file, strict_timestamps=False))
        _write_index(dataset, folder)
        with (folder / "pages.jsonl").open("wb") as pages:
            pages.writelines(_pages(dataset))
        for made, name in _MADE.items():
            with (folder / made).open("rb") as source:
                package.add(name, source, compress=made == "pages.jsonl")
        package.finish(dataset.given.resolve().name)
    yield Fact("wacz", path)


def check_name(path: Path) -> None:
    """Raise InputError if no WACZ can be written to ``path``."""
    if path.suffix != ".wacz":
        raise InputError(f"{path}: a WACZ has a name that ends with .wacz")
    check_new_file(path, "--wacz")


def check_packable(dataset: Dataset) -> None:
    """Raise InputError if a dataset has nothing that a WACZ holds, or something that it does not hold."""
    for _ in _indexed_files(dataset):
        pass


def _indexed_files(dataset: Dataset) -> Iterator[Path]:
    paths = dataset.warc_files()
    parsed = map(parse_index_line, read_lines(dataset.index))
    named = dict.fromkeys(line.place[0] for line in parsed if line is not None)
    for name in named:
        if name not in paths or "/" in name or not name.endswith((".warc", ".warc.gz")):
            raise InputError(f"{dataset.root / name}: a WACZ takes only .warc.gz files of one folder")
        yield paths[name]
    if not named:
        raise InputError(f"{dataset.index} has no entries; there is nothing to replay")


class _Package:
    """The files of a WACZ, with the list of them that goes in last."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._resources: list[dict[str, Any]] = []

    def add(self, name: str, source: BinaryIO, info: zipfile.ZipInfo | None = None, *, compress: bool = False) -> None:
        entry = zipfile.ZipInfo(name) if info is None else info
        entry.filename = name
        entry.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
        is_large = os.fstat(source.fileno()).st_size > zipfile.ZIP64_LIMIT
        entry.file_size = 0  # of one that is nearly so large zipfile would write ZIP64 sizes in the local header alone
        digest, size = hashlib.sha256(), 0
        with self._archive.open(entry, "w", force_zip64=is_large) as out:
            for piece in iter(lambda: source.read(_COPIED), b""):
                out.write(piece)
                digest.update(piece)
                size += len(piece)
        short = name.rpartition("/")[2].lower()
        self._resources.append({"name": short, "path": name, "hash": f"sha256:{digest.hexdigest()}", "bytes": size})

    def finish(self, title: str) -> None:
        """Write ``datapackage.json`` and its digest."""
        package = {
            "profile": "data-package",
            "wacz_version": VERSION,
            "title": title,
            "created": now(),
            "software": f"crawl4llm/{__version__}",
            "resources": self._resources,
        }
        data = json.dumps(package, indent=2).encode()
        digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(data).hexdigest()}"}
        for name, content in (("datapackage.json", data), ("datapackage-digest.json", json.dumps(digest).encode())):
            self._archive.writestr(name, content, zipfile.ZIP_DEFLATED)


def _write_index(dataset: Dataset, folder: Path) -> None:
    with (folder / "index.cdx.gz").open("wb") as data, (folder / "index.idx").open("w") as places, Facts() as facts:
        lines = facts.in_order(read_lines(dataset.index))
        places.write(f"!meta 0 {json.dumps({'format': 'cdxj-gzip-1.0', 'filename': 'index.cdx.gz'})}\n")
        offset = 0
        while block := list(islice(lines, _LINES)):
            member = gzip.compress(b"".join(block), mtime=0)
            place = {"offset": offset, "length": len(member), "digest": f"sha256:{hashlib.sha256(member).hexdigest()}"}
            places.write(f"{block[0].split(b'{', 1)[0].strip().decode('ascii')} {json.dumps(place)}\n")
            data.write(member)
            offset += len(member)


def _pages(dataset: Dataset) -> Iterator[bytes]:
    """Yield the documents in crawl order; redirects to them, and texts, are no pages. Raises InputError for none."""
    yield json.dumps({"format": "json-pages-1.0", "id": "pages", "title": "All pages"}).encode() + b"\n"
    found = False
    titles = _Titles(dataset)
    for number, line in enumerate(Progress(read_lines(dataset.index), "Reading titles", unit=" pages"), 1):
        parsed = parse_index_line(line)
        if parsed is None or not parsed.id:
            continue
        if "status" not in parsed.fields and parsed.fields.get("mime") == "text/plain":
            continue  # a conversion record, which is all that is held of its page
        found = True
        try:
            stamp = datetime.strptime(parsed.timestamp, "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
            page = {"id": parsed.id, "url": parsed.fields["url"], "ts": f"{stamp:%Y-%m-%dT%H:%M:%SZ}"}
        except (KeyError, ValueError):
            at = f"{dataset.index} line {number}"
            raise InputError(f"{at} has no URL or an invalid date; repair the dataset, then pack it") from None
        if title := titles.title(parsed):
            page["title"] = title
        yield json.dumps(page).encode() + b"\n"
    if not found:
        raise InputError(f"{dataset.index} leads to texts only; there is nothing to replay")


class _Titles:
    """The titles of a dataset's pages."""

    def __init__(self, dataset: Dataset) -> None:
        paths = dataset.warc_files()
        no_points = Path(os.devnull, "points")
        self._records = RecordReader[str](lambda name: (paths[name], no_points), _LARGEST_PAGE)
        self._by_digest: dict[str, IndexLine] = {}

    def title(self, line: IndexLine) -> str:
        """Return the title of the page of an index line; empty if it has none, or cannot be read."""
        digest = str(line.fields.get("digest"))
        if line.fields.get("mime") == REVISIT_MIME:
            original = self._by_digest.get(digest)
            return "" if original is None else self._read(original, line)
        self._by_digest[digest] = line
        if len(self._by_digest) > _REMEMBERED:
            del self._by_digest[next(iter(self._by_digest))]
        return self._read(line)

    def _read(self, line: IndexLine, revisit: IndexLine | None = None) -> str:
        try:
            stored = self._records.read(*line.place)
            answer = None if revisit is None else self._records.read(*revisit.place)
            with reading(stored.at):
                title = title_of(html_of_record(stored, _LARGEST_PAGE, answer).data)
        except (PageError, ValueError):
            return ""
        return harmless(title)[:_LONGEST_TITLE]
