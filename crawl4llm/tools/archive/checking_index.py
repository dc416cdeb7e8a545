"""Compares an index with the records that it leads to."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

from crawl4llm.tools.archive.facts import Facts
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.tools.archive.lines import as_in_warc, differences, read_lines
from crawl4llm.warc.cdxj import IndexLine, parse_index_line

_DOCUMENT = """SELECT d.doc FROM records r JOIN records c ON c.file = r.file AND c.offset = r.offset
        OR r.kind = 'text' AND c.rid = r.refers
    JOIN documents d ON d.file = c.file AND d.offset = c.offset WHERE r.file = ? AND r.offset = ?"""
"""Whose record, or whose text, is at a place."""


def check_index(facts: Facts, index: Path, kinds: Collection[str]) -> None:
    """Note where the index and the records of some kinds do not fit; its lines are in the table ``lines`` then."""
    marks = ",".join("?" * len(kinds))
    indexed = f"kind IN ({marks})"
    if not index.exists():
        if facts.first(f"SELECT 1 FROM records WHERE {indexed}", *kinds):
            facts.problem(index.name, None, "is missing")
        return
    files = {name: file for file, name in facts.rows("SELECT file, name FROM files")}
    wrong = set()
    for number, line in enumerate(read_lines(index), 1):
        parsed = parse_index_line(line)
        if parsed is None:
            facts.problem(index.name, number, "is no whole entry")
            continue
        filename, offset, _ = parsed.place
        if filename not in files:
            facts.problem(index.name, number, f"names {filename}, which is not there")
            continue
        for what in _differences(facts, files[filename], parsed, kinds):
            facts.problem(index.name, number, f"{what} at {offset} of {filename}")
            wrong.add(filename)
        facts.add("lines", [(index.name, number, files[filename], offset, as_in_warc(parsed.id), line)])
    facts.execute("CREATE INDEX IF NOT EXISTS lines_by_place ON lines(file, offset)")
    twice = "SELECT max(number) FROM lines WHERE list = ? GROUP BY file, offset HAVING count(*) > 1"
    for (number,) in list(facts.rows(twice, index.name)):
        facts.problem(index.name, number, "leads to a record that is indexed already")
    missing = f"""SELECT f.name, r.offset, r.kind FROM records r JOIN files f ON f.file = r.file WHERE r.{indexed}
        AND NOT EXISTS (SELECT 1 FROM lines l WHERE l.file = r.file AND l.offset = r.offset AND l.list = ?)"""
    for name, offset, kind in list(facts.rows(missing, *kinds, index.name)):
        facts.problem(name, offset, f"{kind} is not in {index.name}")
        wrong.add(name)
    _note_older(facts, index, wrong)


def _differences(facts: Facts, file: int, line: IndexLine, kinds: Collection[str]) -> list[str]:
    _, offset, length = line.place
    query = "SELECT kind, length, url, date, digest, status FROM records WHERE file = ? AND offset = ?"
    found = facts.first(query, file, offset)
    if found is None:
        return ["leads to no record"]
    kind, there, url, date, digest, status = found
    if kind not in kinds:
        return [f"leads to a record of another kind ({kind})"]
    document = facts.first(_DOCUMENT, file, offset)
    names = ["length"] * (length != there)
    names += differences(line, url, date, digest, status, document[0] if document else None)
    return [f"has another {name} than the record" for name in names]


def _note_older(facts: Facts, index: Path, wrong: Collection[str]) -> None:
    """Say which files that the index does not fit were changed after it."""
    written = index.stat().st_mtime_ns
    for name, changed in list(facts.rows("SELECT name, changed FROM files ORDER BY file")):
        if name in wrong and changed > written:
            facts.problem(index.name, None, f"is older than {name}, which was changed since")


def check_sorted(dataset: Dataset, facts: Facts) -> None:
    """Note where the sorted index is not sorted, or holds other lines than the index."""
    path = dataset.sorted_index
    if not path.exists():
        return
    before = b""
    sum_of_digests = 0
    for number, line in enumerate(read_lines(path), 1):
        if line <= before:
            facts.problem(path.name, number, "is not in byte order")
            break
        before = line
        sum_of_digests += _number(line)
    else:
        if sum_of_digests != sum(map(_number, read_lines(dataset.index))):
            facts.problem(path.name, None, f"holds other lines than {dataset.index.name}; finish the dataset again")


def _number(line: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(line, digest_size=16).digest(), "little")
