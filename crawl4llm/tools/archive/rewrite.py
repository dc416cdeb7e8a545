"""Writes WARC files with the ``kept`` records, and the files that list them: indexes, MD5 and count files.

A revisit whose original is removed becomes a full record: its page may belong to an owner that did not opt out. The
payload is stored with the HTTP head that the revisit kept (ISO 28500:2017, 6.7.2), or else with the original's head.
The record's id stays, so references to it still hold.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from crawl4llm import warc
from crawl4llm.base.bars import Progress
from crawl4llm.base.compression import COMPRESSIONS
from crawl4llm.base.errors import InputError
from crawl4llm.tools.archive.facts import DESCRIBED, Facts, differences, index_fields, read_lines
from crawl4llm.tools.archive.folder import Changes, Dataset, whole_file, writing
from crawl4llm.tools.archive.survey import LINE_ENDS, md5_of

MD5, COUNTS = "archive.md5", "archive_counts.txt"
_COUNT_WIDTH: Final = 16
"""Places behind the name at which the last digit stands, as in ClueWeb12's own lines."""
DOCUMENTS, LENGTH, FILENAME = b"WARC-Number-of-Documents", b"WARC-File-Length", b"WARC-Filename"
TYPE, TREC_ID = b"WARC-Data-Type", b"WARC-TREC-ID"
DATA_TYPE: Final = b"web crawl"
"""ClueWeb12's name for the documents of its directories ``wb``."""
_LEFT_OUT: Final = re.compile(
    rb"(?im)^(?:WARC-Profile|WARC-Refers-To(?:-Target-URI|-Date)?|WARC-Truncated|WARC-Block-Digest|WARC-Payload-Digest|"
    rb"Content-Type|Content-Length|WARC-Type):[^\n]*\n"
)


def write_index(dataset: Dataset, facts: Facts, index: Path, new: Path) -> list[str]:
    """Write an index of the records that the table of moves holds, in file order.

    Their lines are those of the old index (table ``lines``), at their new place. A line is made for a record
    that has none, or a wrong one, or that was refilled. Returns lines about those made for the first two
    reasons, and about records that have none because it is not known whose they are.
    """
    view = dataset.indexes[index]
    query = f"""SELECT m.new_name, m.new_offset, m.new_length, m.mime, l.raw, r.url, r.date, coalesce(m.mime, r.mime),
            coalesce(m.status, r.status), r.digest, {DESCRIBED}
        FROM {view} r JOIN moves m ON m.file = r.file AND m.offset = r.offset
        LEFT JOIN (SELECT file, offset, max(raw) AS raw FROM lines WHERE list = ? GROUP BY file, offset) l
            ON l.file = r.file AND l.offset = r.offset
        ORDER BY r.file, r.offset"""
    rows = facts.rows(query, index.name)
    made = unknown = 0
    with new.open("wb") as out:
        for name, offset, length, refilled, raw, url, date, mime, status, digest, doc, about in rows:
            record = url, date, mime, status, digest, doc
            old, repeated = warc.parse_index_line(raw or b""), index_fields(about, view)
            if old is not None and not refilled and (doc is None or not differences(old, *record, repeated)):
                out.write(old.at(name, offset, length))
            elif doc is None and not refilled:
                unknown += 1
            else:
                made += not refilled
                place = length, offset, name
                entry = warc.Entry(url, warc.timestamp(date), mime, status, digest, *place, doc or "", about=repeated)
                out.write(entry.line())
    told = [f"{index.name}: {made:,} entries are made from their records"] if made else []
    return told + [f"{index.name}: {unknown:,} records have no entry, because their pages are unknown"] * (unknown > 0)


def stage_rewrite(dataset: Dataset, facts: Facts, changes: Changes, files: Collection[int]) -> list[str]:
    """Stage some files with those of their records that are ``kept``, then indexes, MD5 and count files.

    Returns lines about the indexes. Raises InputError if a file is no longer the one that was surveyed: it is being
    copied, or written by something that cannot be told.
    """
    writer = RecordWriter(dataset, facts)
    values: dict[str, tuple[str, int] | None] = {}
    with writing(dataset.root):
        for file in Progress(sorted(files), "Rewriting", unit=" files"):
            name, path = writer.names[file], writer.paths[file]
            if facts.first("SELECT 1 FROM kept WHERE file = ?", file) is None:
                changes.remove(path)
                values[name] = None
                continue
            new = changes.stage(path)
            stated = facts.first("SELECT 1 FROM files WHERE file = ? AND stated_bytes != ''", file) is not None
            with new.open("wb") as out:
                documents = writer.write(file, out, name, counted=stated)
            values[name] = md5_of(new), documents
        facts.execute("""INSERT INTO moves SELECT r.file, r.offset, f.name, r.offset, r.length, NULL, NULL
            FROM kept k JOIN records r USING (file, offset) JOIN files f USING (file)
            WHERE r.file NOT IN (SELECT file FROM moves)""")
        told = _stage_indexes(dataset, facts, changes)
        _stage_lists(dataset, facts, changes, values)
        for file, changed in facts.rows("SELECT file, changed FROM files"):
            if writer.paths[file].stat().st_mtime_ns != changed:
                raise InputError(f"{writer.paths[file]} changed while it was read; try again later")
    return told


_Answered: TypeAlias = "tuple[str | None, str | None]"


class _Kept(NamedTuple):
    """A record that is kept, and the place of the original of a revisit that becomes a full record."""

    offset: int
    length: int
    kind: str
    size: int
    digest: str
    number: int | None
    original_file: int | None
    original_offset: int
    original_length: int


class RecordWriter:
    """Writes the ``kept`` records of files, ``refilled`` ones in full, and notes their new places in ``moves``."""

    def __init__(self, dataset: Dataset, facts: Facts) -> None:
        paths = dataset.warc_files()
        self._facts = facts
        self.names = facts.names()
        self.paths = {file: paths[name] for file, name in self.names.items()}

    def write(
        self, file: int, out: BinaryIO, name: str, *, counted: bool = False, filename: str = "", id_prefix: str = ""
    ) -> int:
        """Write the records of a file, which is ``name`` in the index from now on; returns the number of documents.

        The warcinfo record stays as it is, except ``filename`` and, if they are ``counted``, ClueWeb12's counts. With
        ``id_prefix`` documents are numbered. A Zstandard dictionary before the first record is written too.
        """
        reader, rows = warc.WarcReader(self.paths[file]), self._rows(file)
        documents = sum(row.number is not None for row in rows)
        pack = next((one.compress for one in COMPRESSIONS.values() if name.endswith(one.suffix)), bytes)
        others = 0
        for row in (row for row in rows if counted and row.kind != "warcinfo"):
            record = self._changed(reader, row, id_prefix)[0]
            others += row.size + LINE_ENDS if record is None else len(record)
        before = """SELECT min(offset) FROM (SELECT offset FROM records WHERE file = ?1
            UNION ALL SELECT offset FROM damage WHERE file = ?1)"""
        at = out.write(reader.raw(0, self._facts.count(before, file)))
        for row in rows:
            record, answered = self._changed(reader, row, id_prefix)
            if row.kind == "warcinfo" and (filename or counted):
                record = reader.read(row.offset, row.length)
                record = with_field(record, FILENAME, warc.one_line(filename).encode()) if filename else record
                record = with_counts(record, documents, others) if counted else record
            data = reader.raw(row.offset, row.length) if record is None else pack(record)
            out.write(data)
            self._facts.add("moves", [(file, row.offset, name, at, len(data), *answered)])
            at += len(data)
        return documents

    def _rows(self, file: int) -> list[_Kept]:
        query = """SELECT r.offset, r.length, r.kind, r.size, r.digest, n.number, o_file, o_offset, o_length
            FROM kept k JOIN records r USING (file, offset) LEFT JOIN numbered n USING (file, offset)
            LEFT JOIN refilled USING (file, offset)
            WHERE k.file = ? ORDER BY k.offset"""
        return [_Kept(*row) for row in self._facts.rows(query, file)]

    def _changed(self, reader: warc.WarcReader, row: _Kept, id_prefix: str) -> tuple[bytes | None, _Answered]:
        """Return the record that takes a revisit's place, with its media type and status, or a document with its new
        id; None for what stays."""
        record: bytes | None = None
        answered: _Answered = (None, None)
        if row.original_file is not None:
            original = warc.WarcReader(self.paths[row.original_file]).read(row.original_offset, row.original_length)
            record, answered = filled(reader.read(row.offset, row.length), original, row.digest)
        if id_prefix and row.number is not None:
            key = f"{id_prefix}{row.number:05d}".encode("ascii")
            record = with_field(record or reader.read(row.offset, row.length), TREC_ID, key)
        return record, answered


def _stage_indexes(dataset: Dataset, facts: Facts, changes: Changes) -> list[str]:
    for index in dataset.indexes:
        facts.load_index(index)
    if not dataset.index.exists() and facts.first("SELECT 1 FROM documents") is None:
        return []  # WARC files of others, without an index
    new = changes.stage(dataset.index)
    told = write_index(dataset, facts, dataset.index, new)
    if dataset.sorted_index.exists():
        changes.write(dataset.sorted_index, facts.in_order(read_lines(new)))
    if dataset.text_index.exists() or facts.first("SELECT 1 FROM texts"):
        told += write_index(dataset, facts, dataset.text_index, changes.stage(dataset.text_index))
    return told


def keep_texts(facts: Facts) -> None:
    """Keep the texts of the kept records."""
    facts.execute("""INSERT OR IGNORE INTO kept SELECT t.file, t.offset
        FROM texts t JOIN contents c ON c.rid = t.refers JOIN kept k ON k.file = c.file AND k.offset = c.offset""")


def find_refilled(facts: Facts) -> None:
    """Fill the table ``refilled``: revisits that are ``kept`` and whose original is not, but is there still."""
    facts.execute("""INSERT OR IGNORE INTO refilled SELECT r.file, r.offset, o.file, o.offset, o.length
        FROM kept k JOIN records r ON r.file = k.file AND r.offset = k.offset AND r.kind = 'revisit'
        JOIN originals o ON o.rid = r.refers
        WHERE NOT EXISTS (SELECT 1 FROM kept l WHERE l.file = o.file AND l.offset = o.offset)""")


def filled(revisit: bytes, original: bytes, digest: str) -> tuple[bytes, _Answered]:
    """Make the record that takes a revisit's place; return it with its media type and status for the index.

    ``digest`` is that of the payload. Raises CorruptRecord.
    """
    record, http = warc.parse_stored(revisit, "the revisit")[:2]
    source, source_http = warc.parse_stored(original, "the original")[:2]
    content_type = source.fields.text(warc.CONTENT_TYPE)
    payload = original[source_http.body_at if source_http else source.block_at : source.size]
    http_head = None
    if source_http is not None:
        http_head = revisit[record.block_at : http.body_at] if http else original[source.block_at : source_http.body_at]
    kept = _LEFT_OUT.sub(b"", revisit[revisit.index(b"\n") + 1 : record.block_at]).strip().decode("utf-8", "replace")
    fields = [(name, value.strip()) for name, _, value in (line.partition(":") for line in kept.split("\n"))]
    data = warc.record_bytes(source.kind, fields, content_type, payload, digest, http_head)
    answered = http or source_http
    media_type = answered.fields.text(warc.CONTENT_TYPE) if answered else content_type
    return data, (warc.index_mime(media_type), str(answered.status) if answered else None)


# -- MD5 files, count files and fields of records, as ClueWeb12 has them (lemurproject.org/clueweb12/specs.php) --------


def list_content(path: Path, values: Iterable[tuple[str, object]]) -> bytes:
    """Return the content of the MD5 file ("Checksum Files"), or of the count file ("Record Count Files"), at a path.

    A line of the first is a digest, a space, and the file after ``./``; one of the second the file and its number of
    documents, in columns.
    """
    if path.suffix == ".md5":
        return "".join(f"{value} ./{name}\n" for name, value in values).encode()
    return "".join(f"./{name}{value:>{_COUNT_WIDTH}}\n" for name, value in values).encode()


def write_list(path: Path, values: Iterable[tuple[str, object]]) -> None:
    """Write an MD5 or count file."""
    with whole_file(path) as new:
        new.write(list_content(path, values))


def read_list(path: Path, dataset: Dataset, known: Container[str]) -> Iterator[tuple[int, str, str, str | None]]:
    """Yield number, name and value of each line of an MD5 or count file, and the WARC file of that name; None if it is
    not there. Names are relative to the folder of the list, or of the dataset, or of the segment that a count file is
    named by."""
    bases = [path.parent, dataset.root, dataset.root / path.name.removesuffix("_counts.txt")]
    for number, line in enumerate(read_lines(path), 1):
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if not text.strip():
            continue
        split = text.split if path.suffix == ".md5" else text.rsplit
        first, second = split(None, 1) if " " in text.strip() else (text, "")
        name, value = (second.lstrip("*"), first.lower()) if path.suffix == ".md5" else (first, second)
        names = (os.path.relpath(base / name, dataset.root) for base in bases)
        yield number, name, value, next((one for one in names if one in known), None)


def _stage_lists(
    dataset: Dataset, facts: Facts, changes: Changes, values: Mapping[str, tuple[str, int] | None]
) -> None:
    """Stage MD5 and count files with other values for some files, None for those that are gone."""
    names = set(facts.names().values())
    for path in (*dataset.lists("*.md5"), *dataset.lists("*_counts.txt")):
        left: list[tuple[str, object]] = []
        for _, name, old, file in read_list(path, dataset, names):
            value = values.get(file or "", (old, old))
            if value is not None:
                left.append((name.removeprefix("./"), value[path.suffix != ".md5"]))
        changes.write(path, [list_content(path, left)])


def with_field(record: bytes, name: bytes, value: bytes) -> bytes:
    """Return a record with a field in its head, instead of the one of that name if there is one; the block stays."""
    head, end, block = record.partition(b"\r\n\r\n")
    line = b"%b: %b" % (name, value)
    changed, count = re.subn(rb"(?im)^%b:[^\r\n]*" % re.escape(name), lambda _: line, head, count=1)
    return (changed if count else head + b"\r\n" + line) + end + block


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
