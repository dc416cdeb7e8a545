"""Compares what the records of a dataset say of each other, and with the crawl log."""

from __future__ import annotations

from typing import Final

from crawl4llm.tools.archive.checking_index import check_index, check_sorted
from crawl4llm.tools.archive.checksums import check_lists, document_counts
from crawl4llm.tools.archive.facts import CONTENT, TEXT, Facts
from crawl4llm.tools.archive.folder import LOST, Dataset
from crawl4llm.tools.archive.lines import as_in_warc, parse_log_line, read_lines

_CONTENT: Final = f"({', '.join(map(repr, CONTENT))})"
_NAMES: Final = "SELECT name FROM files WHERE files.file = "


def check(dataset: Dataset, facts: Facts) -> None:
    """Note in the facts, which a survey with digests found, all that does not fit together."""
    _check_open_files(dataset, facts)
    check_index(facts, dataset.index, CONTENT)
    check_index(facts, dataset.text_index, (TEXT,))
    check_sorted(dataset, facts)
    _check_names(facts)
    _check_revisits(facts)
    _check_texts(facts)
    _check_documents(facts)
    if dataset.log.exists():
        _check_log(dataset, facts)
    _check_stated(facts)
    check_lists(dataset, facts)


def _check_open_files(dataset: Dataset, facts: Facts) -> None:
    for name, path in dataset.warc_files().items():
        if path.name != name.rpartition("/")[2]:
            facts.problem(name, None, f"is still {path.name}: the crawl did not end well; finish it")


def _note(facts: Facts, query: str) -> None:
    """Note as problems what a query finds: file, offset, what."""
    for file, offset, what in list(facts.rows(query)):
        facts.problem(file, offset, what)


def _check_names(facts: Facts) -> None:
    """Each record has a name of its own (ISO 28500:2017, 5.2)."""
    _note(
        facts,
        f"""SELECT ({_NAMES} r.file), r.offset, r.kind || ' has the WARC-Record-ID of another record: ' || r.name
        FROM records r WHERE r.rid IN (SELECT rid FROM records WHERE name != '' GROUP BY rid HAVING count(*) > 1)
        AND EXISTS (SELECT 1 FROM records e WHERE e.rid = r.rid AND (e.file, e.offset) < (r.file, r.offset))""",
    )
    _note(
        facts,
        f"""SELECT ({_NAMES} r.file), r.offset, 'metadata of ' || r.doc || ' belongs to no record with content'
        FROM records r WHERE r.kind = 'metadata' AND r.doc IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM documents d
            WHERE d.m_file = r.file AND d.m_offset = r.offset AND d.doc = r.doc)""",
    )


def _check_revisits(facts: Facts) -> None:
    """A revisit stands for the payload of another record, which is in the dataset (6.7)."""
    _note(
        facts,
        f"""SELECT ({_NAMES} r.file), r.offset, 'revisit of a record that is not there' FROM records r
        WHERE r.kind = 'revisit' AND NOT EXISTS
            (SELECT 1 FROM records o WHERE o.rid = r.refers AND o.kind IN {_CONTENT} AND o.kind != 'revisit')""",
    )
    _note(
        facts,
        f"""SELECT ({_NAMES} r.file), r.offset, 'revisit has another payload digest than the record that it repeats'
        FROM records r JOIN records o ON o.rid = r.refers
        WHERE r.kind = 'revisit' AND o.kind != 'revisit' AND o.digest != r.digest""",
    )


def _check_texts(facts: Facts) -> None:
    _note(
        facts,
        f"""SELECT ({_NAMES} t.file), t.offset, 'text of a record that is not there' FROM records t
        WHERE t.kind = '{TEXT}' AND NOT EXISTS
            (SELECT 1 FROM records c WHERE c.rid = t.refers AND c.kind IN {_CONTENT})""",
    )
    _note(
        facts,
        f"""SELECT ({_NAMES} t.file), t.offset, 'text of ' || t.url || ' refers to a record of ' || c.url
        FROM records t JOIN records c ON c.rid = t.refers WHERE t.kind = '{TEXT}' AND c.url != t.url""",
    )
    _note(
        facts,
        f"""SELECT ({_NAMES} t.file), t.offset, 'a second text of ' || t.url FROM (
            SELECT file, offset, url, row_number() OVER (PARTITION BY refers ORDER BY file, offset) AS number
            FROM records WHERE kind = '{TEXT}') t
        WHERE t.number > 1""",
    )


def _check_documents(facts: Facts) -> None:
    """A document is in the dataset once."""
    _note(
        facts,
        f"""SELECT ({_NAMES} d.file), d.offset, 'document ' || d.doc || ' is also in ' || ({_NAMES} o.file)
            || ', record at ' || o.offset
        FROM (SELECT doc FROM documents GROUP BY doc HAVING count(*) > 1) twice
        JOIN documents d ON d.doc = twice.doc JOIN documents o ON o.doc = twice.doc
        WHERE (o.file, o.offset) = (SELECT file, offset FROM documents f WHERE f.doc = twice.doc ORDER BY 1, 2 LIMIT 1)
        AND (d.file, d.offset) != (o.file, o.offset)""",
    )


def _check_log(dataset: Dataset, facts: Facts) -> None:
    """Every crawled page has its content record, and the reverse; both are in the same order."""
    name = dataset.log.name
    last = -1
    for number, line in enumerate(read_lines(dataset.log), 1):
        parsed = parse_log_line(line)
        if parsed is None:
            facts.problem(name, number, "is no whole entry")
            continue
        order = parsed.get("order")
        if not isinstance(order, int) or order <= last:
            facts.problem(name, number, f"has the order {order} after {last}")
        else:
            last = order
        facts.add("log", [(number, as_in_warc(parsed["id"]))])
    for line in read_lines(dataset.base / LOST):
        parsed = parse_log_line(line)
        if parsed is not None:
            facts.add("lost", [(as_in_warc(parsed["id"]),)])
    facts.execute("CREATE INDEX log_by_doc ON log(doc)")
    facts.execute("CREATE INDEX lost_by_doc ON lost(doc)")
    _note(
        facts,
        f"""SELECT '{name}', number, 'page ' || doc || ' has no record with content' FROM log
        WHERE doc NOT IN (SELECT doc FROM documents) AND doc NOT IN (SELECT doc FROM lost)""",
    )
    _note(
        facts,
        f"SELECT '{name}', max(number), 'page ' || doc || ' is there twice' FROM log GROUP BY doc HAVING count(*) > 1",
    )
    _note(
        facts,
        f"""SELECT ({_NAMES} file), offset, 'document ' || doc || ' is not in {name}' FROM documents
        WHERE doc NOT IN (SELECT doc FROM log)""",
    )
    _note(
        facts,
        f"""SELECT ({_NAMES} r.file), r.offset, r.kind || ' belongs to no crawled page' FROM records r
        WHERE r.kind IN {_CONTENT} AND NOT EXISTS (SELECT 1 FROM documents d
            WHERE d.file = r.file AND (d.offset = r.offset OR d.page = r.page))""",
    )
    _check_order(dataset, facts)


def _check_order(dataset: Dataset, facts: Facts) -> None:
    """Note the first page that the index has in another place than the log."""
    before = 0
    for line, doc, number in facts.rows(
        """SELECT l.number, d.doc, g.number FROM lines l JOIN documents d ON d.file = l.file AND d.offset = l.offset
        JOIN log g ON g.doc = d.doc WHERE l.list = ? ORDER BY l.number""",
        dataset.index.name,
    ):
        if number < before:
            what = f"{doc} (line {number} of {dataset.log.name}) comes after a page that was crawled later"
            facts.problem(dataset.index.name, line, what)
            return
        before = number


def _check_stated(facts: Facts) -> None:
    """Counts in warcinfo records, as ClueWeb12's files have them."""
    counts = document_counts(facts)
    for name, read, documents, length in list(
        facts.rows("SELECT name, bytes, stated_documents, stated_bytes FROM files WHERE stated_bytes != ''")
    ):
        if documents != str(counts[name]):
            facts.problem(name, 0, f"warcinfo says {documents} documents, but there are {counts[name]}")
        if length != str(read):
            facts.problem(name, 0, f"warcinfo says {length} bytes, but there are {read}")
