"""The database of a dataset: its records' kinds, headers and places, the lines of its indexes and logs.

They may be more than fit in memory: it is SQLite, in a temporary file (``TMPDIR``), some 400 bytes a record. Each file
is surveyed into a database of its own, which is then merged. Indexes and logs may be cut short or damaged.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from crawl4llm.base.bars import Lines
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import from_json, json_or_none, open_input
from crawl4llm.tools.archive.folder import LOST, Dataset
from crawl4llm.warc import ABOUT, IndexLine, one_line, parse_index_line, timestamp, urlkey

TEXT = "text"
"""Our kind for a conversion record with text that was extracted from another record."""
UNREADABLE = "unreadable"
"""Our kind for a record whose head can be read, and whose content cannot."""
OF_NO_PAGE = "of no page"
"""Our kind for a metadata record about exchanges that are no page's of the crawl that archived them: redirects
to no page, and robots.txt."""

_TABLES = """
CREATE TABLE files(
    file INTEGER PRIMARY KEY, name TEXT, changed INTEGER, md5 TEXT, bytes INTEGER, stated_documents TEXT,
    stated_bytes TEXT);
CREATE TABLE records(
    file INTEGER, offset INTEGER, length INTEGER, kind TEXT, name TEXT, refers BLOB, url TEXT, date TEXT, digest TEXT,
    mime TEXT, status TEXT, doc TEXT, page INTEGER, size INTEGER, rid BLOB,
    about TEXT, PRIMARY KEY (file, offset)) WITHOUT ROWID;
CREATE TABLE refs(file INTEGER, offset INTEGER, target BLOB);
CREATE TABLE damage(file INTEGER, offset INTEGER, length INTEGER);
CREATE TABLE problems(file TEXT, offset INTEGER, what TEXT);
"""
_STEPS = 100_000
"""Steps of SQLite's virtual machine between two looks whether it is time for a line: some milliseconds."""
_MERGED = ("files", "records", "refs", "damage", "problems")
_INDEXES = f"""
CREATE INDEX by_rid ON records(rid);
CREATE VIEW contents AS SELECT * FROM records WHERE kind IN ('response', 'resource', 'conversion', 'revisit');
CREATE VIEW texts AS SELECT * FROM records WHERE kind = '{TEXT}';
CREATE VIEW originals AS SELECT * FROM contents WHERE kind != 'revisit';
CREATE TABLE documents AS
    SELECT DISTINCT m.doc AS doc, c.file AS file, c.offset AS offset, c.url AS url, c.page AS page, m.file AS m_file,
        m.offset AS m_offset, m.page AS m_page
    FROM records m JOIN refs r ON r.file = m.file AND r.offset = m.offset JOIN contents c ON c.rid = r.target
    WHERE m.kind = 'metadata' AND m.doc IS NOT NULL;
CREATE INDEX by_doc ON documents(doc);
CREATE INDEX by_place ON documents(file, offset);
CREATE INDEX by_page ON documents(file, page);
CREATE TABLE no_pages AS
    SELECT DISTINCT m.file AS file, m.page AS page, c.offset AS offset, m.offset AS m_offset
    FROM records m JOIN refs r ON r.file = m.file AND r.offset = m.offset JOIN contents c ON c.rid = r.target
    WHERE m.kind = '{OF_NO_PAGE}' AND c.file = m.file AND c.page = m.page;
CREATE INDEX no_pages_by_page ON no_pages(file, page);
CREATE TABLE numbered AS
    SELECT r.file AS file, r.offset AS offset, r.page AS page, r.kind AS kind,
        row_number() OVER (PARTITION BY r.file, r.kind = '{TEXT}' ORDER BY r.offset) - 1 AS number
    FROM records r LEFT JOIN contents c ON c.file = r.file AND c.offset = r.offset WHERE r.kind = '{TEXT}'
        OR EXISTS (SELECT 1 FROM documents d WHERE d.file = r.file AND d.offset = r.offset)
        OR c.file IS NOT NULL AND NOT EXISTS (SELECT 1 FROM documents UNION ALL SELECT 1 FROM no_pages);
CREATE INDEX numbered_by_place ON numbered(file, offset);
CREATE TABLE lines(list TEXT, number INTEGER, file INTEGER, offset INTEGER, raw BLOB);
CREATE INDEX lines_by_place ON lines(file, offset);
CREATE TABLE log(number INTEGER PRIMARY KEY, doc TEXT, influence TEXT);
CREATE INDEX log_by_doc ON log(doc);
CREATE TABLE lost(doc TEXT);
CREATE INDEX lost_by_doc ON lost(doc);
CREATE TABLE kept(file INTEGER, offset INTEGER, PRIMARY KEY (file, offset)) WITHOUT ROWID;
INSERT INTO kept SELECT file, offset FROM records WHERE kind = 'warcinfo';
CREATE VIEW gone AS SELECT * FROM records r
    WHERE NOT EXISTS (SELECT 1 FROM kept k WHERE k.file = r.file AND k.offset = r.offset);
CREATE TABLE refilled(
    file INTEGER, offset INTEGER, o_file INTEGER, o_offset INTEGER, o_length INTEGER, PRIMARY KEY (file, offset))
    WITHOUT ROWID;
CREATE TABLE moves(
    file INTEGER, offset INTEGER, new_name TEXT, new_offset INTEGER, new_length INTEGER, mime TEXT, status TEXT,
    PRIMARY KEY (file, offset)) WITHOUT ROWID;
"""
"""Made once all records are in.

``contents``: records with a page's content, which are in the index. ``texts``: those in the index of texts.
``originals``: contents that are no revisits. ``documents``: pages, by the records that describe them. ``no_pages``:
exchanges that are no page's. ``numbered``: the documents and texts of each file, numbered from 0; without a crawl's
description each record with content is a document. ``lines``, ``log`` and ``lost``: lines of the indexes and of the
logs. ``kept``, ``gone``: records that stay, and all others. ``refilled``: revisits that become full records, with the
place of the original. ``moves``: new places of records, with media type and status of those that were refilled.
"""
DESCRIBED: Final = f"""coalesce(
        (SELECT d.doc FROM documents d WHERE d.file = r.file AND d.offset = r.offset),
        (SELECT d.doc FROM contents c JOIN documents d USING (file, offset)
            WHERE r.kind = '{TEXT}' AND c.rid = r.refers),
        (SELECT '' FROM documents d WHERE d.file = r.file AND d.page = r.page),
        (SELECT '' FROM no_pages e WHERE e.file = r.file AND e.page = r.page)),
    coalesce(
        (SELECT m.about FROM documents d JOIN records m ON m.file = d.m_file AND m.offset = d.m_offset
            WHERE d.file = r.file AND d.offset = r.offset),
        (SELECT m.about FROM contents c JOIN documents d USING (file, offset)
            JOIN records m ON m.file = d.m_file AND m.offset = d.m_offset WHERE r.kind = '{TEXT}' AND c.rid = r.refers),
        (SELECT m.about FROM no_pages e JOIN records m ON m.file = e.file AND m.offset = e.m_offset
            WHERE e.file = r.file AND e.page = r.page AND e.offset = r.offset))"""
"""Two columns about a record ``r`` in an index: its document key, and the ``about`` of the metadata record that
describes it. The key is empty for a record without one, and NULL if the page is not known."""
_LONGEST_LINE: Final = 1 << 24


class Row(NamedTuple):
    """A record."""

    file: int
    offset: int
    length: int
    """Bytes that it takes in the file."""
    kind: str
    """WARC-Type, or TEXT, or UNREADABLE."""
    name: str
    """WARC-Record-ID."""
    refers: bytes | None
    """The hash of WARC-Refers-To."""
    url: str
    date: str
    digest: str
    """WARC-Payload-Digest."""
    mime: str
    """As the index has it."""
    status: str | None
    doc: str | None
    """Of the metadata record that a crawl writes of a page: the document key."""
    page: int
    """A number that the records of a page have in common, which stand together and end with the crawl's metadata; so do
    exchanges that are no page's."""
    size: int
    """Bytes of it, decompressed, without the line ends behind it."""
    rid: bytes
    """The hash of its name."""
    about: str | None = None
    """For a metadata record of ours: its fields that indexes and log repeat, as JSON; None without any."""


class Facts:
    """The database, in a file of its own, or in a temporary one that SQLite removes."""

    def __init__(self, path: Path | str = "") -> None:
        with _full_disk():
            self._db = sqlite3.connect(path)
            self._db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = FILE;")
            self._db.executescript(_TABLES)
            self._db.create_function("one_line", 1, one_line, deterministic=True)

    def __enter__(self) -> Facts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with _full_disk():
            self._db.commit()
            self._db.close()

    def merge(self, part: Path) -> None:
        """Take over the rows of another database, and remove it."""
        with _full_disk():
            self._db.commit()
            self._db.execute("ATTACH ? AS part", (str(part),))
            for table in _MERGED:
                self._db.execute(f"INSERT INTO main.{table} SELECT * FROM part.{table}")
            self._db.commit()
            self._db.execute("DETACH part")
        part.unlink()

    def index(self) -> None:
        """Build the indexes and the table of documents, once all records are in.

        From then on a line is printed now and then if standard error is no terminal, because queries may take long.
        """
        if not sys.stderr.isatty():
            self._db.set_progress_handler(Lines("comparing records").say_time, _STEPS)
        with _full_disk():
            self._db.executescript(_INDEXES)

    def add(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows to a table."""
        with _full_disk():
            for row in rows:
                marks = ",".join("?" * len(row))
                self._db.execute(f"INSERT INTO {table} VALUES ({marks})", row)

    def problem(self, file: str, offset: int | None, what: str) -> None:
        """Note a problem."""
        self.add("problems", [(file, offset, one_line(what))])

    def note(self, query: str) -> None:
        """Record the rows of a query as problems: number or name of a file, offset, fault."""
        self.execute(f"""WITH found(file, offset, what) AS ({query}) INSERT INTO problems
            SELECT coalesce((SELECT name FROM files WHERE files.file = found.file), found.file), offset, one_line(what)
            FROM found""")

    def execute(self, statement: str, *values: object) -> None:
        """Execute a statement that changes tables."""
        with _full_disk():
            self._db.execute(statement, values)

    def rows(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a query finds."""
        with _full_disk():
            # not from the cursor, which would be closed last, and fails at that if an interruption has closed all else
            yield from iter(self._db.execute(query, values).fetchone, None)

    def column(self, query: str, *values: object) -> list[Any]:
        """Return the only column that a query selects."""
        return [value for (value,) in self.rows(query, *values)]

    def first(self, query: str, *values: object) -> tuple[Any, ...] | None:
        """Return the first row that a query finds."""
        return next(self.rows(query, *values), None)

    def count(self, query: str, *values: object) -> int:
        """Return the number that a query gives."""
        row = self.first(query, *values)
        return int(row[0]) if row else 0

    def in_order(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield lines in byte order, each once; they wait in the database."""
        self.execute("CREATE TEMP TABLE unsorted(line BLOB)")
        self.add("unsorted", ((line,) for line in lines))
        for (line,) in self.rows("SELECT DISTINCT line FROM unsorted ORDER BY line"):
            yield line
        self.execute("DROP TABLE unsorted")

    def names(self) -> dict[int, str]:
        """Return the names of the WARC files by their numbers."""
        return dict(self.rows("SELECT file, name FROM files ORDER BY file"))

    def document_counts(self) -> dict[str, int]:
        """Count documents and texts in each file."""
        query = "SELECT name, count(number) FROM files LEFT JOIN numbered USING (file) GROUP BY file ORDER BY file"
        return dict(self.rows(query))

    def load_index(self, index: Path) -> None:
        """Add the whole lines of an index to the table ``lines``, and note the others as problems."""
        files = {name: file for file, name in self.names().items()}
        for number, line in enumerate(read_lines(index), 1):
            parsed = parse_index_line(line)
            if parsed is None:
                self.problem(index.name, number, "is no whole entry")
                continue
            name, offset, _ = parsed.place
            if name in files:
                self.add("lines", [(index.name, number, files[name], offset, line)])
            else:
                self.problem(index.name, number, f"names {name}, which is not there")

    def load_lost(self, dataset: Dataset) -> None:
        """Fill the table ``lost``: pages of the log that are known to be gone."""
        parsed = map(parse_log_line, read_lines(dataset.base / LOST))
        self.add("lost", ((line["id"],) for line in parsed if line))

    def define(self, name: str, function: Any) -> None:
        """Define a function of one argument for queries."""
        self._db.create_function(name, 1, function, deterministic=True)


@contextmanager
def _full_disk() -> Iterator[None]:
    """Turn a full disk into InputError."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" not in str(error):
            raise
        advice = "set TMPDIR to a larger disk, or make room in the project's .scrapy"
        raise InputError(f"no room for the database of records; {advice}") from error


def hashed(name: str | bytes) -> bytes:
    """Return the hash by which a record's name is looked up."""
    return hashlib.blake2b(name if isinstance(name, bytes) else name.encode(), digest_size=16).digest()


# -- lines of indexes and logs -----------------------------------------------------------------------------------------


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, with their ends; none if there is no file. Raises InputError."""
    with as_input_error(f"{path} cannot be read"), suppress(FileNotFoundError), open_input(path) as file:
        while line := file.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE:
                raise InputError(f"{path} is damaged: a line has {_LONGEST_LINE:,} bytes or more")
            yield line


def parse_log_line(line: bytes) -> dict[str, Any] | None:
    """Parse a line of a crawl log, if it is a whole one; its id is as metadata records have it."""
    parsed = json_or_none(line)
    whole = line.endswith(b"\n") and isinstance(parsed, dict) and isinstance(parsed.get("id"), str)
    return parsed | {"id": as_in_warc(parsed["id"])} if whole else None


def as_in_warc(key: str) -> str:
    """Return a document key as a metadata record has it."""
    return re.sub(r"\s+$", "", one_line(key).strip())


def index_fields(about: str | None, view: str) -> dict[str, str]:
    """Return the fields of a metadata record, given its ``about``, that the index of a view repeats."""
    found: dict[str, str] = from_json((about or "{}").encode())
    if view == "texts":
        return {"language": found.get("language", "")}
    return {name: found[name] for name in ABOUT if name in found}


def differences(
    line: IndexLine,
    url: str,
    date: str,
    mime: str,
    status: str | None,
    digest: str,
    document: str | None,
    repeated: Mapping[str, str],
) -> list[str]:
    """Return the names of the values in which a line and its record differ; ``document``: its key, None if not known.

    Indexes of others may have keys of another form, no status, no id and no language.
    """
    stated: list[tuple[str, Any, str | None]] = [
        ("URL", line.fields.get("url"), url),
        ("date", line.timestamp, timestamp(date)),
        ("digest", line.fields.get("digest"), digest),
    ]
    if line.fields.get("status") is not None:
        stated.append(("status", line.fields["status"], status))
    if document is not None:
        stated += [("key", line.key, urlkey(url)), ("media type", line.fields.get("mime"), mime)]
        for name in (*ABOUT, *{"language"}.intersection(line.fields)):
            stated.append((name, as_in_warc(str(line.fields.get(name, ""))), as_in_warc(repeated.get(name, ""))))
        if "id" in line.fields:
            stated.append(("id", as_in_warc(line.id), document))
    return [name for name, one, other in stated if one != other]
