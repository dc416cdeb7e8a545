"""Rewrites WARC files with the ``kept`` records, and the files that list them: indexes, MD5 and count files.

A revisit whose original is removed becomes a full record: its page may belong to an owner that did not opt out. The
payload is stored with the HTTP head that the revisit kept (ISO 28500:2017, 6.7.2), or else with the original's head.
The record's id stays, so references to it still hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from crawl4llm.base.bars import Progress
from crawl4llm.base.compression import COMPRESSIONS
from crawl4llm.base.errors import InputError
from crawl4llm.tools.archive.changes import Changes, writing
from crawl4llm.tools.archive.clueweb12 import TREC_ID, field_length, with_counts, with_field
from crawl4llm.tools.archive.facts import CONTENT, IN_CONTENT, TEXT, Facts
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.tools.archive.lines import as_in_warc, differences, read_lines, sort_lines
from crawl4llm.tools.archive.survey import LINE_ENDS, md5_of
from crawl4llm.warc import (
    CONTENT_TYPE,
    DATE,
    Entry,
    WarcReader,
    index_mime,
    one_line,
    parse_index_line,
    parse_stored,
    record_bytes,
    timestamp,
)

MOVES = """CREATE TABLE moves(
    file INTEGER, offset INTEGER, new_name TEXT, new_offset INTEGER, new_length INTEGER, line BLOB,
    PRIMARY KEY (file, offset)) WITHOUT ROWID"""
"""New places of records, with a line of the index for those that were changed. Those that are not here are gone."""
_LEFT_OUT: Final = re.compile(
    rb"(?im)^(?:WARC-Profile|WARC-Refers-To(?:-Target-URI|-Date)?|WARC-Truncated|WARC-Block-Digest|WARC-Payload-Digest|"
    rb"Content-Type|Content-Length|WARC-Type):[^\n]*\n"
)


def keep_others(facts: Facts, rewritten: Iterable[int]) -> None:
    """Note in the table of moves that the records of all other files stay where they are."""
    facts.execute("CREATE TEMP TABLE rewritten(file INTEGER PRIMARY KEY)")
    facts.add("rewritten", [(file,) for file in rewritten])
    facts.execute("""INSERT INTO moves SELECT r.file, r.offset, f.name, r.offset, r.length, NULL
        FROM records r JOIN files f ON f.file = r.file WHERE r.file NOT IN (SELECT file FROM rewritten)""")


def write_index(dataset: Dataset, facts: Facts, new: Path, index: str) -> tuple[int, int]:
    """Write an index of the records that the table of moves holds, in file order.

    Their lines are those of the old index (table ``lines``), at their new place, or are made if it has none, or one
    that says otherwise than the record. Returns how many were made, and how many records there are no lines for because
    it is not known whose they are.
    """
    kinds = (TEXT,) if index == dataset.text_index.name else CONTENT
    marks = ",".join("?" * len(kinds))
    query = f"""SELECT m.new_name, m.new_offset, m.new_length, m.line, l.raw, r.url, r.date, r.mime, r.status, r.digest,
            coalesce(d.doc, (SELECT t.doc FROM documents t JOIN records s ON t.file = s.file AND t.offset = s.offset
                WHERE s.rid = r.refers LIMIT 1),
                (SELECT '' FROM documents p WHERE p.file = r.file AND p.page = r.page LIMIT 1),
                (SELECT '' FROM no_pages e WHERE e.file = r.file AND e.page = r.page)),
            coalesce((SELECT a.about FROM records a WHERE a.file = d.m_file AND a.offset = d.m_offset),
                (SELECT a.about FROM no_pages e JOIN records a ON a.file = e.file AND a.offset = e.m_offset
                    WHERE e.file = r.file AND e.page = r.page))
        FROM records r JOIN moves m ON m.file = r.file AND m.offset = r.offset
        LEFT JOIN (SELECT file, offset, max(raw) AS raw FROM lines WHERE list = ? GROUP BY file, offset) l
            ON l.file = r.file AND l.offset = r.offset
        LEFT JOIN documents d ON d.file = r.file AND d.offset = r.offset
        WHERE r.kind IN ({marks}) GROUP BY r.file, r.offset ORDER BY r.file, r.offset"""
    made = unknown = 0
    with new.open("wb") as out:
        for name, offset, length, line, raw, *stated in facts.rows(query, index, *kinds):
            url, date, mime, status, digest, doc, about = stated
            old = parse_index_line(line or raw or b"")
            if old is not None and (line or doc is None or not differences(old, url, date, digest, status, doc)):
                out.write(old.at(name, offset, length))
            elif doc is None:
                unknown += 1
            else:
                made += 1
                of_metadata = json.loads(about) if about else None
                place = length, offset, name
                entry = Entry(url, timestamp(date), mime, status, digest, *place, doc, about=of_metadata)
                out.write(entry.line())
    return made, unknown


def stage_rewrite(
    dataset: Dataset, facts: Facts, changes: Changes, files: Iterable[int], refill: Refill | None = None
) -> list[str]:
    """Stage some files with those of their records that are ``kept``, then indexes, MD5 and count files.

    Returns lines about the indexes. Raises InputError if a file is no longer the one that was surveyed: it is being
    copied, or written by something that cannot be told.
    """
    names: dict[int, str] = dict(facts.rows("SELECT file, name FROM files"))
    paths = dataset.warc_files()
    rewritten = sorted(files)
    facts.execute(MOVES)
    values: dict[str, tuple[str, int] | None] = {}
    with writing(dataset.root):
        for file in Progress(rewritten, "Rewriting", unit=" files"):
            name, path = names[file], paths[names[file]]
            if facts.first("SELECT 1 FROM kept WHERE file = ?", file) is None:
                changes.remove(path)
                values[name] = None
                continue
            new = changes.stage(path)
            stated = facts.first("SELECT 1 FROM files WHERE file = ? AND stated_bytes != ''", file) is not None
            with new.open("wb") as out:
                documents = write_kept(facts, file, path, name, out, refill, counted=stated)
            values[name] = md5_of(new), documents
        keep_others(facts, rewritten)
        told = _stage_indexes(dataset, facts, changes)
        _stage_lists(dataset, changes, values)
        for name, changed in list(facts.rows("SELECT name, changed FROM files")):
            if paths[name].stat().st_mtime_ns != changed:
                raise InputError(f"{paths[name]} changed while it was read; try again later")
    return told


def write_kept(
    facts: Facts,
    file: int,
    source: Path,
    name: str,
    out: BinaryIO,
    refill: Refill | None,
    *,
    counted: bool,
    filename: str | None = None,
    id_prefix: str | None = None,
) -> int:
    """Write the ``kept`` records of a file, and record their new places; returns the number of documents.

    The warcinfo record stays as it is, except ``filename`` and, if they are ``counted``, ClueWeb12's counts. With
    ``id_prefix`` documents are numbered. A Zstandard dictionary before the first record is written too.
    """
    reader = WarcReader(source)
    query = """SELECT r.offset, r.length, r.kind, r.size, k.number FROM records r JOIN kept k
        ON k.file = r.file AND k.offset = r.offset WHERE r.file = ? ORDER BY r.offset"""
    rows = list(facts.rows(query, file))
    documents = sum(number is not None for *_, number in rows)
    pack = next((one.compress for one in COMPRESSIONS.values() if name.endswith(one.suffix)), bytes)

    def filled_in(offset: int) -> tuple[bytes | None, bytes | None]:
        """Return a record that takes the place of the one there, and its line in the index."""
        return (refill and refill(reader, file, offset)) or (None, None)

    def document_id(number: int | None) -> bytes | None:
        return f"{id_prefix}{number:05d}".encode("ascii") if number is not None and id_prefix else None

    def size(offset: int, size: int, number: int | None) -> int:
        """Return the bytes that a record takes, decompressed."""
        record, _ = filled_in(offset)
        added = document_id(number)
        return (len(record) if record else size + LINE_ENDS) + (field_length(TREC_ID, added) if added else 0)

    others = sum(size(row[0], *row[3:]) for row in rows if row[2] != "warcinfo") if counted else 0
    before = """SELECT min(offset) FROM (SELECT offset FROM records WHERE file = ?1
        UNION ALL SELECT offset FROM damage WHERE file = ?1)"""
    at = out.write(reader.raw(0, facts.count(before, file)))
    for offset, length, kind, _, number in rows:
        record, line = filled_in(offset)
        if key := document_id(number):
            record = with_field(record or reader.read(offset, length), TREC_ID, key)
        if kind == "warcinfo" and filename:
            record = with_field(reader.read(offset, length), b"WARC-Filename", one_line(filename).encode())
        if kind == "warcinfo" and counted:
            record = with_counts(record or reader.read(offset, length), documents, others)
        data = reader.raw(offset, length) if record is None else pack(record)
        out.write(data)
        facts.add("moves", [(file, offset, name, at, len(data), line)])
        at += len(data)
    return documents


def _stage_indexes(dataset: Dataset, facts: Facts, changes: Changes) -> list[str]:
    if not dataset.index.exists() and facts.first("SELECT 1 FROM documents") is None:
        return []  # WARC files of others, without an index
    new = changes.stage(dataset.index)
    told = [*_told(dataset.index.name, *write_index(dataset, facts, new, dataset.index.name))]
    if dataset.sorted_index.exists() and facts.folder is not None:
        with changes.stage(dataset.sorted_index).open("wb") as out:
            sort_lines(read_lines(new), out, facts.folder)
    if dataset.text_index.exists() or facts.first("SELECT 1 FROM records WHERE kind = ? LIMIT 1", TEXT):
        name = dataset.text_index.name
        told += _told(name, *write_index(dataset, facts, changes.stage(dataset.text_index), name))
    return told


def _told(index: str, made: int, unknown: int) -> Iterator[str]:
    if made:
        yield f"{index}: {made:,} entries are made from their records"
    if unknown:
        yield f"{index}: {unknown:,} records have no entry, because their pages are unknown"


def _stage_lists(dataset: Dataset, changes: Changes, values: dict[str, tuple[str, int] | None]) -> None:
    """Stage MD5 and count files with other values for some files, None for those that are gone."""
    for path in (*dataset.lists("*.md5"), *dataset.lists("*_counts.txt")):
        lines = [_changed(line, values, is_md5=path.suffix == ".md5") for line in read_lines(path)]
        changes.stage(path).write_bytes(b"".join(lines))


def _changed(line: bytes, values: dict[str, tuple[str, int] | None], *, is_md5: bool) -> bytes:
    fields = line.decode("utf-8", "replace").split()
    name = fields[-1 if is_md5 else 0].removeprefix("./") if fields else ""
    found = next((known for known in values if known == name or known.endswith(f"/{name}")), None) if name else None
    if found is None:
        return line
    value = values[found]
    if value is None:
        return b""
    if is_md5:
        return line.replace(fields[0].encode(), value[0].encode(), 1)
    before, _, after = line.rpartition(fields[-1].encode())
    return before + f"{value[1]:>{len(fields[-1])}}".encode() + after


def new_kept(facts: Facts) -> None:
    """Create the table ``kept``, with the warcinfo records."""
    facts.execute("""CREATE TABLE kept(
        file INTEGER, offset INTEGER, number INTEGER, PRIMARY KEY (file, offset)) WITHOUT ROWID""")
    facts.execute("INSERT INTO kept SELECT file, offset, NULL FROM records WHERE kind = 'warcinfo'")


def load_lines(dataset: Dataset, facts: Facts) -> None:
    """Take the whole lines of both indexes into the facts."""
    files = {name: file for file, name in facts.rows("SELECT file, name FROM files")}
    for index in (dataset.index, dataset.text_index):
        for number, line in enumerate(read_lines(index), 1):
            parsed = parse_index_line(line)
            if parsed is not None and parsed.place[0] in files:
                name, offset, _ = parsed.place
                facts.add("lines", [(index.name, number, files[name], offset, as_in_warc(parsed.id), line)])
    facts.execute("CREATE INDEX lines_by_place ON lines(file, offset)")


def select_sample(facts: Facts, every: int) -> None:
    """Keep every kth document of each file, all records of its page, and its text. A document has its old number.

    If no crawl has described the pages, each record with content is a document.
    """
    facts.execute(f"""CREATE TEMP TABLE numbered AS
        SELECT file, offset, page, row_number() OVER (PARTITION BY file ORDER BY offset) - 1 AS number FROM records r
        WHERE kind {IN_CONTENT} AND (EXISTS (SELECT 1 FROM documents d WHERE d.file = r.file AND d.offset = r.offset)
            OR NOT EXISTS (SELECT 1 FROM documents))""")
    facts.execute(f"INSERT INTO kept SELECT file, offset, number FROM numbered WHERE number % {every} = {every - 1}")
    facts.execute("""INSERT OR IGNORE INTO kept SELECT r.file, r.offset, NULL FROM records r
        WHERE (r.file, r.page) IN (SELECT n.file, n.page FROM numbered n JOIN kept k USING (file, offset))
        AND EXISTS (SELECT 1 FROM documents d WHERE d.file = r.file AND d.page = r.page)""")
    keep_texts(facts)


def keep_texts(facts: Facts) -> None:
    """Keep the texts of the kept records; they are documents if the file holds nothing else."""
    facts.execute(f"""INSERT OR IGNORE INTO kept
        SELECT t.file, t.offset, row_number() OVER (PARTITION BY t.file ORDER BY t.offset) - 1
        FROM records t JOIN records c ON c.rid = t.refers JOIN kept k ON k.file = c.file AND k.offset = c.offset
        WHERE t.kind = '{TEXT}' AND c.kind {IN_CONTENT}""")


def find_refilled(facts: Facts) -> None:
    """Fill the table ``refilled``: revisits that are ``kept`` and whose original is not, but is there still."""
    facts.execute(f"""CREATE TEMP TABLE refilled AS
        SELECT r.file AS file, r.offset AS offset, o.file AS o_file, o.offset AS o_offset, o.length AS o_length
        FROM kept k JOIN records r ON r.file = k.file AND r.offset = k.offset AND r.kind = 'revisit'
        JOIN records o ON o.rid = r.refers AND o.kind {IN_CONTENT} AND o.kind != 'revisit'
        WHERE NOT EXISTS (SELECT 1 FROM kept l WHERE l.file = o.file AND l.offset = o.offset)""")
    facts.execute("CREATE INDEX refilled_by_place ON refilled(file, offset)")


class Refill:
    """The source of records that take the place of revisits; see :func:`filled`."""

    def __init__(self, dataset: Dataset, facts: Facts) -> None:
        self._paths = dataset.warc_files()
        self._facts = facts

    def __call__(self, reader: WarcReader, file: int, offset: int) -> tuple[bytes, bytes] | None:
        """Return the record instead of that at an offset of a file, and its line; None if that one stays."""
        row = self._facts.first(
            """SELECT f.name, o_offset, o_length, r.length, r.digest, d.doc FROM refilled t
            JOIN records r ON r.file = t.file AND r.offset = t.offset JOIN files f ON f.file = t.o_file
            LEFT JOIN documents d ON d.file = r.file AND d.offset = r.offset WHERE t.file = ? AND t.offset = ?""",
            file,
            offset,
        )
        if row is None:
            return None
        name, original_at, original_length, length, digest, document = row
        original = WarcReader(self._paths[name]).read(original_at, original_length)
        return filled(reader.read(offset, length), original, digest, document or "")


def filled(revisit: bytes, original: bytes, digest: str, document: str) -> tuple[bytes, bytes]:
    """Make the record that takes a revisit's place, and its line in the index, without its place.

    ``digest`` is that of the payload. Raises CorruptRecord.
    """
    record, http = parse_stored(revisit, "the revisit")[:2]
    source, source_http = parse_stored(original, "the original")[:2]
    content_type = source.fields.text(CONTENT_TYPE)
    payload = original[source_http.body_at if source_http else source.block_at : source.size]
    http_head = None
    if source_http is not None:
        http_head = revisit[record.block_at : http.body_at] if http else original[source.block_at : source_http.body_at]
    kept = _LEFT_OUT.sub(b"", revisit[revisit.index(b"\n") + 1 : record.block_at]).strip().decode("utf-8", "replace")
    fields = [(name, value.strip()) for name, _, value in (line.partition(":") for line in kept.split("\n"))]
    data = record_bytes(source.kind, fields, content_type, payload, digest, http_head)
    answered = http or source_http
    media_type = answered.fields.text(CONTENT_TYPE) if answered else content_type
    line = Entry(
        url=record.url,
        timestamp=timestamp(record.fields.text(DATE)),
        mime=index_mime(media_type),
        status=str(answered.status) if answered else None,
        digest=digest,
        length=1,
        offset=0,
        filename="unset",
        id=document,
    ).line()
    return data, line
