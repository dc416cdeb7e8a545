"""Which records stay: the table ``kept`` of the facts, with the number of each document in its file."""

from __future__ import annotations

from crawl4llm.tools.archive.facts import CONTENT, TEXT, Facts
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.tools.archive.lines import as_in_warc, read_lines
from crawl4llm.warc.cdxj import parse_index_line

_CONTENT = f"({', '.join(map(repr, CONTENT))})"
_OF_KEPT_CONTENT = """SELECT t.file, t.offset, {number} FROM records t JOIN records c ON c.rid = t.refers
    JOIN kept k ON k.file = c.file AND k.offset = c.offset WHERE t.kind = '{kind}' AND c.kind IN {content}"""


def new_kept(facts: Facts) -> None:
    """Begin with a table that has the records that say what a file is."""
    facts.execute(
        "CREATE TABLE kept(file INTEGER, offset INTEGER, number INTEGER, PRIMARY KEY (file, offset)) WITHOUT ROWID"
    )
    facts.execute("INSERT INTO kept SELECT file, offset, NULL FROM records WHERE kind = 'warcinfo'")


def load_lines(dataset: Dataset, facts: Facts) -> None:
    """Take the lines of both indexes into the facts, those that are whole."""
    files = {name: file for file, name in facts.rows("SELECT file, name FROM files")}
    for index in (dataset.index, dataset.text_index):
        for number, line in enumerate(read_lines(index), 1):
            parsed = parse_index_line(line)
            if parsed is not None and parsed.place[0] in files:
                name, offset, _ = parsed.place
                document = as_in_warc(parsed.id)
                facts.add("lines", [(index.name, number, files[name], offset, document, line)])
    facts.execute("CREATE INDEX lines_by_place ON lines(file, offset)")


def select_sample(facts: Facts, every: int) -> None:
    """Keep every kth document of each file, all records of its page, and its text. A document has its old number.

    Where no crawl has described its pages each record with content is a document.
    """
    facts.execute(
        f"""CREATE TEMP TABLE numbered AS
        SELECT file, offset, page, row_number() OVER (PARTITION BY file ORDER BY offset) - 1 AS number FROM records r
        WHERE kind IN {_CONTENT} AND (EXISTS (SELECT 1 FROM documents d WHERE d.file = r.file AND d.offset = r.offset)
            OR NOT EXISTS (SELECT 1 FROM documents))"""
    )
    facts.execute(f"INSERT INTO kept SELECT file, offset, number FROM numbered WHERE number % {every} = {every - 1}")
    facts.execute(
        """INSERT OR IGNORE INTO kept SELECT r.file, r.offset, NULL FROM records r
        WHERE (r.file, r.page) IN (SELECT n.file, n.page FROM numbered n JOIN kept k USING (file, offset))
        AND EXISTS (SELECT 1 FROM documents d WHERE d.file = r.file AND d.page = r.page)"""
    )
    keep_texts(facts)


def keep_texts(facts: Facts) -> None:
    """Keep the texts of the records that are kept; as documents, where they are all that a file holds."""
    number = "row_number() OVER (PARTITION BY t.file ORDER BY t.offset) - 1"
    facts.execute(f"INSERT OR IGNORE INTO kept {_OF_KEPT_CONTENT.format(number=number, kind=TEXT, content=_CONTENT)}")
