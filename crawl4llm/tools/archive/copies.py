"""Copies of a dataset: in ClueWeb12's layout with its document ids, a sample like its B13, or one file for replay.

A file of the dataset becomes a file of the copy. In ClueWeb12's layout it is the file ``0000wb-00`` of the directory
``0000wb`` of the segment ``NAME_00``, with two digits each for segment, directory and file. Its documents have ids from
``name-0000wb-00-00000`` on. A sample holds every kth document of each file, counted from the first, and keeps the ids.
A file with fewer than k documents has none in the sample, as the size of B13 implies (52,343,021 of 733,019,372
documents in 33,447 files).

The file for replay is a WACZ, version 1.1.1 (specs.webrecorder.net). Its index is that of py-wacz and ReplayWeb.page:
gzip members of 1,024 sorted lines (``index.cdx.gz``), and a list of their places (``index.idx``). Compressed files are
stored in the ZIP as they are.

wabac.js, the replay engine of ReplayWeb.page, assumes that a file's local header has no extra fields if its entry in
the ZIP's directory has none. So a file has ZIP64 sizes (APPNOTE 6.3.10, 4.5.3) in both if it is that large, else in
neither.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError, PageError, reading
from crawl4llm.base.tables import Fact, Part
from crawl4llm.base.terminal import harmless
from crawl4llm.base.version import __version__
from crawl4llm.base.whole_files import check_free, check_new_file, whole_folder
from crawl4llm.crawl import read_blocked, write_blocked
from crawl4llm.parts import publish, published
from crawl4llm.scoring import title_of
from crawl4llm.tools.archive import rewrite
from crawl4llm.tools.archive.facts import TEXT, Facts, read_lines
from crawl4llm.tools.archive.folder import Dataset, now, whole_file, writing
from crawl4llm.tools.archive.survey import md5_of
from crawl4llm.warc import REVISIT_MIME, IndexLine, RecordReader, html_of_record, parse_index_line

_PER_FOLDER: Final = 100
"""Most files of a directory, directories of a segment, and segments, with two digits."""
VERSION: Final = "1.1.1"
_NO_RESOURCE_NAME: Final = re.compile(r"[^a-z0-9._-]")
"""Characters that no name of a resource may have (Data Package v1, "Data Resource"); its path has them all."""
_LINES: Final = 1024
_COPIED: Final = 1 << 20
_LARGEST_PAGE: Final = 10 << 20
"""Bytes of a page whose title is read; Scrapy's own limit."""
_LONGEST_TITLE: Final = 500
_REMEMBERED: Final = 10_000
"""Places of pages that are kept for their revisits."""


# -- ClueWeb12's layout, and samples ---------------------------------------------------------------------------------


def copy_dataset(dataset: Dataset, facts: Facts, out: Path, name: str | None, every: int | None) -> Iterator[Part]:
    """Copy a finished dataset, which :func:`check_copy` has checked, into a new folder, which appears whole; yields a
    line for the user.

    ``name``: of the copy, for ids and ClueWeb12's layout. Without it names stay, and there are no ids. ``every``: k,
    for a sample.
    """
    _select_sample(facts, every or 1)
    rewrite.find_refilled(facts)
    writer = rewrite.RecordWriter(dataset, facts)
    digests, counts = [], []
    with writing(out), whole_folder(out.absolute()) as folder:
        for number, file, prefix in Progress(list(_files(dataset, facts, name)), "Copying", unit=" files"):
            if facts.first("SELECT 1 FROM kept JOIN numbered USING (file, offset) WHERE file = ?", number) is None:
                continue
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as target:
                shutil.copymode(writer.paths[number], path)
                documents = writer.write(
                    number, target, file, counted=name is not None, filename=path.name, id_prefix=prefix
                )
            digests.append((file, md5_of(path)))
            counts.append((file, documents))
        for index in dataset.indexes:
            if index.exists():
                rewrite.write_index(dataset, facts, index, folder / index.name)
        _write_lists(folder, name, digests, counts)
        if blocked := read_blocked(dataset.base):  # exports of the copy leave these domains out too
            write_blocked(folder, blocked)
        if lists := published(dataset.base).lists:
            publish(lists, folder)
    total = sum(count for _, count in counts)
    value = {"path": out, "documents_and_texts": total, "files": len(counts)}
    yield Fact("copy", value, f"{out}: {total:,} documents and texts in {len(counts):,} files")


def check_target(dataset: Dataset, out: Path) -> None:
    """Raise InputError if a copy of a dataset cannot be made in ``out``; else the folder is there."""
    if out.resolve().is_relative_to(dataset.root.resolve()):
        raise InputError(
            f"{out} is inside the dataset, which would then hold each document twice; give a folder elsewhere"
        )
    check_free(out)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    check_new_file(out / rewrite.MD5)


def check_copy(dataset: Dataset, facts: Facts, name: str | None, every: int | None) -> None:
    """Raise InputError, before anything is changed, if a dataset has no such copy."""
    number = every or 1
    if facts.first(f"SELECT 1 FROM numbered WHERE kind != '{TEXT}' AND number = ?", number - 1) is None:
        raise InputError(f"no file of {dataset.root} has {number} documents; give a smaller --sample")
    for _ in _files(dataset, facts, name):  # can they be numbered?
        pass


def _files(dataset: Dataset, facts: Facts, copy: str | None) -> Iterator[tuple[int, str, str]]:
    """Yield the number of each file, its name in the copy, and the beginning of its documents' ids, if they have
    any."""
    texts = set(facts.column("SELECT DISTINCT file FROM texts"))
    serial = 0
    for number, name in facts.names().items():
        if copy is None:
            yield number, name, ""
        elif number in texts:  # ClueWeb12 has none: beside the segments, under their own names
            yield number, f"text/{name}", ""
        else:
            segment, rest = divmod(serial, _PER_FOLDER**2)
            directory, file = divmod(rest, _PER_FOLDER)
            serial += 1
            if segment >= _PER_FOLDER:
                raise InputError(f"{dataset.root} holds more files than ClueWeb12's names can number")
            place = f"{segment:02d}{directory:02d}wb"
            suffix = name[name.rindex(".warc") :]
            path = f"{copy}_{segment:02d}/{place}/{place}-{file:02d}{suffix}"
            yield number, path, f"{copy.lower()}-{place}-{file:02d}-"


def _select_sample(facts: Facts, every: int) -> None:
    """Keep every kth document of each file, all records of its page, and its text. A document has its old number."""
    facts.execute(f"""INSERT INTO kept SELECT file, offset FROM numbered
        WHERE kind != '{TEXT}' AND number % {every} = {every - 1}""")
    facts.execute("""INSERT OR IGNORE INTO kept SELECT r.file, r.offset FROM records r
        WHERE (r.file, r.page) IN (SELECT n.file, n.page FROM numbered n JOIN kept k USING (file, offset))
        AND EXISTS (SELECT 1 FROM documents d WHERE d.file = r.file AND d.page = r.page)""")
    rewrite.keep_texts(facts)


def _write_lists(out: Path, name: str | None, digests: list[tuple[str, str]], counts: list[tuple[str, int]]) -> None:
    """Write MD5 and count files; in ClueWeb12's layout for each segment, the latter with names below it."""
    if name is None:
        rewrite.write_list(out / rewrite.MD5, digests)
        rewrite.write_list(out / rewrite.COUNTS, counts)
        return
    for segment in sorted({file.partition("/")[0] for file, _ in digests}):
        within = f"{segment}/"
        rewrite.write_list(out / f"{segment}.md5", [entry for entry in digests if entry[0].startswith(within)])
        (out / "recordcounts").mkdir(exist_ok=True)
        held = [(file.removeprefix(within), count) for file, count in counts if file.startswith(within)]
        rewrite.write_list(out / "recordcounts" / f"{segment}_counts.txt", held)


# -- WACZ --------------------------------------------------------------------------------------------------------------


def write_wacz(dataset: Dataset, path: Path) -> Iterator[Part]:
    """Write the WACZ of a finished dataset, for a path that :func:`check_name` has checked; yields a line for the user.

    Files of extracted text are left out, and pages of which only the text is held are not listed: there is nothing in
    them to replay. Raises InputError.
    """
    files = list(indexed_files(dataset))
    with whole_file(path) as new, zipfile.ZipFile(new, "w") as archive:
        package = _Package(archive)
        for file in Progress(files, "Packing", unit=" files"):
            # Files with credentials are for their owner alone.
            os.fchmod(new.fileno(), os.fstat(new.fileno()).st_mode & file.stat().st_mode)
            with file.open("rb") as source:
                package.add(f"archive/{file.name}", source, zipfile.ZipInfo.from_file(file, strict_timestamps=False))
        places: list[bytes] = []
        package.make("indexes/index.cdx.gz", _blocks(dataset, places))
        package.make("indexes/index.idx", places)
        package.make("pages/pages.jsonl", _pages(dataset), compress=True)
        package.finish(dataset.given.resolve().name)
    yield Fact("wacz", path)


def check_name(path: Path) -> None:
    """Raise InputError if no WACZ can be written to ``path``."""
    if path.suffix != ".wacz":
        raise InputError(f"{path}: a WACZ has a name that ends with .wacz")
    check_new_file(path, "--wacz")


def indexed_files(dataset: Dataset) -> Iterator[Path]:
    """Yield the files that a WACZ holds. Raises InputError if it would hold others, or none."""
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
        short = _NO_RESOURCE_NAME.sub("-", name.rpartition("/")[2].lower())
        self._resources.append({"name": short, "path": name, "hash": f"sha256:{digest.hexdigest()}", "bytes": size})

    def make(self, name: str, content: Iterable[bytes], *, compress: bool = False) -> None:
        """Add a file with this content."""
        with tempfile.TemporaryFile() as made:
            made.writelines(content)
            made.seek(0)
            self.add(name, made, compress=compress)

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


def _blocks(dataset: Dataset, places: list[bytes]) -> Iterator[bytes]:
    """Yield the blocks of the sorted index, and add the lines of their places."""
    places.append(f"!meta 0 {json.dumps({'format': 'cdxj-gzip-1.0', 'filename': 'index.cdx.gz'})}\n".encode())
    offset = 0
    lines = read_lines(dataset.sorted_index)
    while block := list(islice(lines, _LINES)):
        member = gzip.compress(b"".join(block), mtime=0)
        place = {"offset": offset, "length": len(member), "digest": f"sha256:{hashlib.sha256(member).hexdigest()}"}
        places.append(b"%b %b\n" % (block[0].split(b"{", 1)[0].strip(), json.dumps(place).encode()))
        yield member
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
