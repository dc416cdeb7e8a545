"""WARC files written anew with some of their records, others in their place, and the indexes that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from crawl4llm.base.compression import COMPRESSIONS
from crawl4llm.tools.archive.facts import CONTENT, TEXT, Facts
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.tools.archive.lines import differences
from crawl4llm.warc import cdxj
from crawl4llm.warc.cdxj import parse_index_line, timestamp
from crawl4llm.warc.reader import WarcReader


class Place(NamedTuple):
    """A record as it is to be copied."""

    offset: int
    length: int
    replaced: bytes | None = None
    """What is written instead of it, not compressed; None: the record as it stands."""


def compressor(name: str) -> Callable[[bytes], bytes]:
    """What makes a record what it is in a WARC file of a name: a gzip member, a Zstandard frame, or itself."""
    fitting = (one.compress for one in COMPRESSIONS.values() if name.endswith(one.suffix))
    return next(fitting, bytes)


def copy_records(
    reader: WarcReader, name: str, places: Iterable[Place], out: BinaryIO, *, first: int
) -> Iterator[tuple[Place, int, int]]:
    """Write records to a file; yields each with its offset and length there.

    What stands before ``first``, the offset of the file's first record, is written too: a Zstandard dictionary.
    """
    pack = compressor(name)
    at = out.tell() + out.write(reader.raw(0, first))
    for place in places:
        data = reader.raw(place.offset, place.length) if place.replaced is None else pack(place.replaced)
        out.write(data)
        yield place, at, len(data)
        at += len(data)


def first_offset(facts: Facts, file: int) -> int:
    """Where a file's first record begins."""
    row = facts.first("SELECT min(offset) FROM records WHERE file = ?", file)
    damage = facts.first("SELECT min(offset) FROM damage WHERE file = ?", file)
    return min((found[0] for found in (row, damage) if found and found[0] is not None), default=0)


MOVES = """CREATE TABLE moves(
    file INTEGER, offset INTEGER, new_name TEXT, new_offset INTEGER, new_length INTEGER, line BLOB,
    PRIMARY KEY (file, offset)) WITHOUT ROWID"""
"""Where records went; a line of their own where they are other records now. Those that are not here are gone."""


def keep_others(facts: Facts, rewritten: Iterable[int]) -> None:
    """Note in the table of moves that the records of all other files stay where they are."""
    facts.execute("CREATE TEMP TABLE rewritten(file INTEGER PRIMARY KEY)")
    facts.add("rewritten", [(file,) for file in rewritten])
    facts.execute(
        """INSERT INTO moves SELECT r.file, r.offset, f.name, r.offset, r.length, NULL
        FROM records r JOIN files f ON f.file = r.file WHERE r.file NOT IN (SELECT file FROM rewritten)"""
    )


def write_index(dataset: Dataset, facts: Facts, new: Path, index: str) -> tuple[int, int]:
    """Write an index of the records that the table of moves holds, in file order.

    Their lines are those of the old index (table ``lines``), at their new place, or are made where it has none, or one
    that says otherwise than the record. Returns how many were made, and how many records there are no lines for because
    it is not known whose they are.
    """
    kinds = (TEXT,) if index == dataset.text_index.name else CONTENT
    marks = ",".join("?" * len(kinds))
    query = f"""SELECT m.new_name, m.new_offset, m.new_length, m.line, l.raw, r.url, r.date, r.mime, r.status, r.digest,
            coalesce(d.doc, (SELECT t.doc FROM documents t JOIN records s ON t.file = s.file AND t.offset = s.offset
                WHERE s.rid = r.refers LIMIT 1),
                (SELECT '' FROM documents p WHERE p.file = r.file AND p.page = r.page LIMIT 1))
        FROM records r JOIN moves m ON m.file = r.file AND m.offset = r.offset
        LEFT JOIN (SELECT file, offset, max(raw) AS raw FROM lines WHERE list = ? GROUP BY file, offset) l
            ON l.file = r.file AND l.offset = r.offset
        LEFT JOIN documents d ON d.file = r.file AND d.offset = r.offset
        WHERE r.kind IN ({marks}) GROUP BY r.file, r.offset ORDER BY r.file, r.offset"""
    made = unknown = 0
    with new.open("wb") as out:
        for name, offset, length, line, raw, url, date, mime, status, digest, doc in facts.rows(query, index, *kinds):
            old = parse_index_line(line or raw or b"")
            if old is not None and (line or doc is None or not differences(old, url, date, digest, status, doc)):
                out.write(old.at(name, offset, length))
            elif doc is None:
                unknown += 1
            else:
                made += 1
                entry = cdxj.Entry(url, timestamp(date), mime, status, digest, length, offset, name, doc)
                out.write(entry.line())
    return made, unknown
