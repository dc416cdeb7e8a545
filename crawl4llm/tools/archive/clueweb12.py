"""MD5 files, record-count files and fields of records, as ClueWeb12 has them (lemurproject.org/clueweb12/specs.php).

A line of an MD5 file ("Checksum Files") is the digest, a space, and the file. A line of a count file ("Record Count
Files") has the file and its number of documents, in columns. File names are relative to the folder of the list, after
``./``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from crawl4llm.tools.archive.changes import whole_file
from crawl4llm.tools.archive.facts import IN_CONTENT, TEXT, Facts
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.tools.archive.lines import read_lines

MD5, COUNTS = "archive.md5", "archive_counts.txt"
_COUNT_WIDTH: Final = 16
"""Places behind the name at which the last digit stands, as in ClueWeb12's own lines."""
DOCUMENTS, LENGTH = b"WARC-Number-of-Documents", b"WARC-File-Length"
TYPE, TREC_ID = b"WARC-Data-Type", b"WARC-TREC-ID"
DATA_TYPE: Final = b"web crawl"
"""ClueWeb12's name for the documents of its directories ``wb``."""


def write_md5(path: Path, digests: Iterable[tuple[str, str]]) -> None:
    """Write an MD5 file of names and digests."""
    with whole_file(path) as new:
        new.write("".join(f"{digest} ./{name}\n" for name, digest in digests).encode())


def write_counts(path: Path, counts: Iterable[tuple[str, int]]) -> None:
    """Write a record-count file."""
    with whole_file(path) as new:
        new.write("".join(f"./{name}{count:>{_COUNT_WIDTH}}\n" for name, count in counts).encode())


def document_counts(facts: Facts) -> dict[str, int]:
    """Count documents in each file: pages with a record of a crawl, extracted texts, else whatever has content."""
    names: dict[int, str] = dict(facts.rows("SELECT file, name FROM files ORDER BY file"))
    pages = dict(facts.rows("SELECT file, count(DISTINCT doc) FROM documents GROUP BY file"))
    texts = dict(facts.rows("SELECT file, count(*) FROM records WHERE kind = ? GROUP BY file", TEXT))
    others = dict(facts.rows(f"SELECT file, count(*) FROM records WHERE kind {IN_CONTENT} GROUP BY file"))
    return {name: pages.get(file) or texts.get(file) or others.get(file, 0) for file, name in names.items()}


def check_lists(dataset: Dataset, facts: Facts) -> None:
    """Compare all MD5 files and record-count files with the files that they name, and note differences."""
    counts = {name: str(count) for name, count in document_counts(facts).items()}
    digests = dict(facts.rows("SELECT name, md5 FROM files"))
    for path in dataset.lists("*.md5"):
        _check_list(path, dataset, facts, digests, digest_first=True)
    for path in dataset.lists("*_counts.txt"):
        _check_list(path, dataset, facts, counts, digest_first=False)


def _check_list(path: Path, dataset: Dataset, facts: Facts, found: Mapping[str, str], *, digest_first: bool) -> None:
    shown = path.relative_to(dataset.root).as_posix()
    bases = [path.parent, dataset.root, dataset.root / path.name.removesuffix("_counts.txt")]
    named = set()
    for number, name, value in _entries(path, digest_first=digest_first):
        names = (_below(dataset.root, base / name) for base in bases)
        file = next((known for known in names if known in found), None)
        if file is None:
            facts.problem(shown, number, f"names {name}, which is not there")
            continue
        named.add(file)
        if found[file] != value:
            what = "another MD5 digest" if digest_first else f"{found[file]} documents"
            facts.problem(shown, number, f"says {value}, but {file} has {what}")
    folders = {file.rpartition("/")[0] for file in named}
    for file in sorted(found.keys() - named):
        if file.rpartition("/")[0] in folders or not named:
            facts.problem(shown, None, f"does not name {file}")


def _entries(path: Path, *, digest_first: bool) -> Iterator[tuple[int, str, str]]:
    """Yield number, file and value of each line."""
    for number, line in enumerate(read_lines(path), 1):
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if text.strip():
            split = text.split if digest_first else text.rsplit
            first, second = split(None, 1) if " " in text.strip() else (text, "")
            yield (number, second.lstrip("*"), first.lower()) if digest_first else (number, first, second)


def _below(root: Path, path: Path) -> str:
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        return ""


def with_field(record: bytes, name: bytes, value: bytes) -> bytes:
    """Return a record with a field in its head, instead of the one of that name if there is one; the block stays."""
    head, end, block = record.partition(b"\r\n\r\n")
    line = b"%b: %b" % (name, value)
    changed, count = re.subn(rb"(?im)^%b:[^\r\n]*" % re.escape(name), lambda _: line, head, count=1)
    return (changed if count else head + b"\r\n" + line) + end + block


def field_length(name: bytes, value: bytes) -> int:
    """Return the bytes that a new field takes."""
    return len(name) + len(value) + len(b": \r\n")


def with_counts(warcinfo: bytes, documents: int, others: int) -> bytes:
    """Return a warcinfo record with ClueWeb12's three fields; ``others``: bytes, decompressed, of the other records.

    The length of the file counts the digits in which it is written.
    """
    warcinfo = with_field(warcinfo, DOCUMENTS, b"%d" % documents)
    warcinfo = with_field(warcinfo, TYPE, DATA_TYPE)
    length = 0
    while True:
        stated = with_field(warcinfo, LENGTH, b"%d" % length)
        if length == len(stated) + others:
            return stated
        length = len(stated) + others
