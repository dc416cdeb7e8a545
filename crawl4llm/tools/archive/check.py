"""``scrapy archive check`` and ``finish``: all files of a dataset compared; lists and final names for a sound one."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.files import rename, sync_path
from crawl4llm.base.input_files import from_json
from crawl4llm.base.tables import Fact, Line, Part, Rows
from crawl4llm.base.terminal import positive_integer
from crawl4llm.options import read_options
from crawl4llm.tools._action import Action, add_work_options
from crawl4llm.tools.archive import copies
from crawl4llm.tools.archive.facts import (
    DESCRIBED,
    OF_NO_PAGE,
    Facts,
    differences,
    index_fields,
    parse_log_line,
    read_lines,
)
from crawl4llm.tools.archive.folder import LOST, Dataset, complete, idle_dataset, is_unfinished, whole_file
from crawl4llm.tools.archive.rewrite import COUNTS, MD5, read_list, write_list
from crawl4llm.tools.archive.survey import CHANGED, surveyed
from crawl4llm.tools.export.folder import exclusive
from crawl4llm.tools.opened_run import run_folder
from crawl4llm.warc import IndexLine, parse_index_line

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


_AMONG_NO_PAGES: Final = "(SELECT 1 FROM no_pages e WHERE e.file = r.file AND e.page = r.page)"
_BY_LINE = (".cdxj", ".jsonl", ".md5", ".txt")


def check(dataset: Dataset, facts: Facts) -> None:
    """Note all contradictions in the facts, which a survey with digests found."""
    for name, path in dataset.open_files().items():
        facts.problem(name, None, f"is still {path.name}: the crawl did not end well; finish it")
    for index, view in dataset.indexes.items():
        check_index(facts, index, view)
    check_sorted(dataset, facts)
    for query in CONTRADICTIONS:
        facts.note(query)
    if dataset.log.exists():
        _check_log(dataset, facts)
    _check_lists(dataset, facts)


CONTRADICTIONS: Final = (
    # Each record has a name of its own (ISO 28500:2017, 5.2).
    """SELECT file, offset, kind || ' has the WARC-Record-ID of another record: ' || name FROM (
        SELECT *, row_number() OVER (PARTITION BY rid ORDER BY file, offset) AS copy FROM records WHERE name != '')
        WHERE copy > 1""",
    """SELECT r.file, r.offset, 'metadata of ' || r.doc || ' belongs to no record with content'
        FROM records r WHERE r.kind = 'metadata' AND r.doc IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM documents d WHERE d.m_file = r.file AND d.m_offset = r.offset AND d.doc = r.doc)""",
    f"""SELECT r.file, r.offset, 'metadata of no page belongs to no record with content'
        FROM records r WHERE r.kind = '{OF_NO_PAGE}' AND NOT EXISTS {_AMONG_NO_PAGES}""",
    # A revisit stands for the payload of another record, which is in the dataset (6.7).
    """SELECT r.file, r.offset, 'revisit of a record that is not there' FROM records r
        WHERE r.kind = 'revisit' AND NOT EXISTS (SELECT 1 FROM originals o WHERE o.rid = r.refers)""",
    """SELECT r.file, r.offset, 'revisit has another payload digest than the record that it repeats'
        FROM records r JOIN records o ON o.rid = r.refers
        WHERE r.kind = 'revisit' AND o.kind != 'revisit' AND o.digest != r.digest""",
    """SELECT t.file, t.offset, 'text of a record that is not there' FROM texts t
        WHERE NOT EXISTS (SELECT 1 FROM contents c WHERE c.rid = t.refers)""",
    """SELECT t.file, t.offset, 'text of ' || t.url || ' refers to a record of ' || c.url
        FROM texts t JOIN records c ON c.rid = t.refers WHERE c.url != t.url""",
    """SELECT t.file, t.offset, 'a second text of ' || t.url FROM (
            SELECT file, offset, url, row_number() OVER (PARTITION BY refers ORDER BY file, offset) AS number
            FROM texts) t WHERE t.number > 1""",
    # A document is in the dataset once.
    """SELECT d.file, d.offset, 'document ' || d.doc || ' is also in ' || f.name || ', record at ' || d.first
        FROM (SELECT *, first_value(file) OVER copies AS first_file, first_value(offset) OVER copies AS first
            FROM documents WINDOW copies AS (PARTITION BY doc ORDER BY file, offset)) d
        JOIN files f ON f.file = d.first_file WHERE (d.file, d.offset) != (d.first_file, d.first)""",
    # Counts in warcinfo records, as ClueWeb12's files have them.
    """SELECT file, 0, 'warcinfo says ' || stated_documents || ' documents, but there are ' || count(number)
        FROM files LEFT JOIN numbered USING (file) WHERE stated_bytes != ''
        GROUP BY file HAVING stated_documents != CAST(count(number) AS TEXT)""",
    """SELECT file, 0, 'warcinfo says ' || stated_bytes || ' bytes, but there are ' || bytes
        FROM files WHERE stated_bytes != '' AND stated_bytes != CAST(bytes AS TEXT)""",
)
"""Queries for the records that contradict others, and how."""


def _check_log(dataset: Dataset, facts: Facts) -> None:
    """Check that every crawled page has its content record, and the reverse; both are in the same order."""
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
        influence = parsed.get("influence")
        facts.add("log", [(number, parsed["id"], None if influence is None else str(influence))])
    facts.load_lost(dataset)
    facts.define("influence_of", lambda about: about and from_json(about.encode()).get("influence"))
    facts.note(f"""SELECT '{name}', l.number, 'has another influence than the metadata of ' || l.doc FROM log l
        JOIN documents d USING (doc) JOIN records m ON m.file = d.m_file AND m.offset = d.m_offset
        WHERE influence_of(m.about) IS NOT l.influence""")
    facts.note(f"""SELECT '{name}', number, 'page ' || doc || ' has no record with content' FROM log
        WHERE doc NOT IN (SELECT doc FROM documents) AND doc NOT IN (SELECT doc FROM lost)""")
    facts.note(
        f"SELECT '{name}', max(number), 'page ' || doc || ' is there twice' FROM log GROUP BY doc HAVING count(*) > 1"
    )
    facts.note(f"""SELECT file, offset, 'document ' || doc || ' is not in {name}' FROM documents
        WHERE doc NOT IN (SELECT doc FROM log)""")
    facts.note(f"""SELECT r.file, r.offset, r.kind || ' belongs to no crawled page' FROM contents r
        WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.file = r.file AND d.offset = r.offset)
        AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.file = r.file AND d.page = r.page)
        AND NOT EXISTS {_AMONG_NO_PAGES}""")
    facts.note(f"""SELECT '{dataset.index.name}', line,
            doc || ' (line ' || number || ' of {name}) comes after a page that was crawled later'
        FROM (SELECT l.number AS line, d.doc, g.number, lag(g.number) OVER (ORDER BY l.number) AS before
            FROM lines l JOIN documents d ON d.file = l.file AND d.offset = l.offset JOIN log g ON g.doc = d.doc
            WHERE l.list = '{dataset.index.name}')
        WHERE number < before ORDER BY line LIMIT 1""")


def check_index(facts: Facts, index: Path, view: str) -> None:
    """Note differences between an index and the records of a view, and take its lines into the table ``lines``."""
    if not index.exists():
        if facts.first(f"SELECT 1 FROM {view}"):
            facts.problem(index.name, None, "is missing")
        return
    facts.load_index(index)
    query = f"""SELECT l.number, l.raw, a.kind, r.length, r.url, r.date, r.mime, r.status, r.digest, {DESCRIBED}
        FROM lines l LEFT JOIN records a ON a.file = l.file AND a.offset = l.offset
        LEFT JOIN {view} r ON r.file = a.file AND r.offset = a.offset WHERE l.list = ? ORDER BY l.number"""
    for number, raw, kind, length, *stated, about in facts.rows(query, index.name):
        line = parse_index_line(raw)
        assert line is not None
        name, offset, _ = line.place
        for what in _differences(line, kind, length, *stated, index_fields(about, view)):
            facts.problem(index.name, number, f"{what} at {offset} of {name}")
    facts.note(f"""SELECT '{index.name}', max(number), 'leads to a record that is indexed already' FROM lines
        WHERE list = '{index.name}' GROUP BY file, offset HAVING count(*) > 1""")
    facts.note(f"""SELECT file, offset, kind || ' is not in {index.name}' FROM {view} r WHERE NOT EXISTS
        (SELECT 1 FROM lines l WHERE l.file = r.file AND l.offset = r.offset AND l.list = '{index.name}')""")


def _differences(line: IndexLine, kind: str | None, length: int | None, *stated: Any) -> list[str]:
    """Return how a line differs from a record of that kind; one without a length is in no index like this."""
    if length is None:
        return ["leads to no record" if kind is None else "leads to a record of another kind"]
    names = ["length"] * (line.place[2] != length) + differences(line, *stated)
    return [f"has another {name} than the record" for name in names]


def check_sorted(dataset: Dataset, facts: Facts) -> None:
    """Note if the sorted index is not the index in byte order."""
    path = dataset.sorted_index
    if not path.exists():
        return
    both = zip_longest(read_lines(path), facts.in_order(read_lines(dataset.index)))
    if any(line != wanted for line, wanted in both):
        facts.problem(path.name, None, f"is not {dataset.index.name} in byte order; finish the dataset again")


def _check_lists(dataset: Dataset, facts: Facts) -> None:
    """Compare all MD5 files and record-count files with the files that they name, and note differences."""
    counts = {name: str(count) for name, count in facts.document_counts().items()}
    digests = dict(facts.rows("SELECT name, md5 FROM files"))
    for path in dataset.lists("*.md5"):
        _check_list(path, dataset, facts, digests, "another MD5 digest")
    for path in dataset.lists("*_counts.txt"):
        _check_list(path, dataset, facts, counts, "{} documents")


def _check_list(path: Path, dataset: Dataset, facts: Facts, found: Mapping[str, str], what: str) -> None:
    shown = path.relative_to(dataset.root).as_posix()
    named = set()
    for number, name, value, file in read_list(path, dataset, found):
        if file is None:
            facts.problem(shown, number, f"names {name}, which is not there")
            continue
        named.add(file)
        if found[file] != value:
            facts.problem(shown, number, f"says {value}, but {file} has {what.format(found[file])}")
    folders = {file.rpartition("/")[0] for file in named}
    for left in sorted(found.keys() - named):
        if left.rpartition("/")[0] in folders or not named:
            facts.problem(shown, None, f"does not name {left}")


def _add_check_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--problems", type=positive_integer, default=100, metavar="N", help="number of problems to print (default: 100)"
    )
    add_work_options(parser)


def _check(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Yield a line for each problem, or the sound parts. Raises InputError if anything is wrong."""
    dataset = idle_dataset(str(run_folder(opts.arguments[0], settings)), settings)
    if is_unfinished(dataset.base):
        raise InputError(f"{dataset.base}: a purge or repair was interrupted; run its command again")
    executor = read_options(settings).tasks(opts.tasks)
    with surveyed(dataset, opts.jobs, digests=True, md5=True, executor=executor) as facts:
        check(dataset, facts)
        wrong = facts.count("SELECT count(*) FROM problems")
        query = "SELECT file, offset, what FROM problems ORDER BY file, offset, what LIMIT ?"
        yield Rows("problems", ("file", "place", "what"), facts.rows(query, opts.problems), line=problem)
        if wrong > opts.problems:
            yield f"and {wrong - opts.problems:,} more; --problems N prints more of them"
        if wrong:
            raise InputError(f"{dataset.given}: {wrong:,} {'problems' if wrong > 1 else 'problem'}")
        records, files, texts = (facts.count(f"SELECT count(*) FROM {name}") for name in ("records", "files", "texts"))
        documents = sum(facts.document_counts().values()) - texts
        counts = {"files": files, "records": records, "documents": documents, "texts": texts}
        yield from (Fact(name, count, "") for name, count in counts.items())
        yield Line(f"sound: {', '.join(f'{count:,} {name}' for name, count in counts.items())}")
        lost = facts.count("SELECT count(*) FROM lost")
        yield Fact("lost", lost, "")
        if lost:
            yield Line(f"{lost:,} pages are known to be lost ({LOST})")


def problem(file: str, place: int | None, what: str) -> str:
    """Return the line of a problem."""
    kind = "line" if file.endswith(_BY_LINE) else "record at"
    return f"{file}: {what}" if place is None else f"{file}: {kind} {place}: {what}"


CHECK = Action(
    "Read every record and compare digests, indexes, crawl log, MD5 and count files; list all problems.",
    _check,
    "DIR",
    _add_check_options,
)


# -- finishing ---------------------------------------------------------------------------------------------------------


def finish(dataset: Dataset, facts: Facts) -> Iterator[Part]:
    """Finish a dataset after a survey with MD5 digests; yields a line for each step.

    Raises InputError before any change if a WARC file is damaged or the index does not fit.
    """
    _require_sound(dataset, facts)
    left_open = dataset.open_files()
    for name, path in left_open.items():
        sync_path(path)
        sync_path(rename(path, Path(name).name).parent)
    if left_open:
        yield Fact("renamed", len(left_open), f"{len(left_open):,} files that a crawl had left open")
    write_list(dataset.root / MD5, facts.rows("SELECT name, md5 FROM files ORDER BY file"))
    yield Fact("digests", dataset.root / MD5)
    counts = facts.document_counts()
    write_list(dataset.root / COUNTS, counts.items())
    total, path = sum(counts.values()), dataset.root / COUNTS
    value = {"path": path, "documents_and_texts": total, "files": len(counts)}
    yield Fact("counts", value, f"{path}: {total:,} documents and texts in {len(counts):,} files")
    if dataset.index.exists():
        with whole_file(dataset.sorted_index) as new:
            new.writelines(facts.in_order(read_lines(dataset.index)))
        yield Fact("index", dataset.sorted_index)


def _require_sound(dataset: Dataset, facts: Facts) -> None:
    for index, view in dataset.indexes.items():
        if index.exists() or facts.first("SELECT 1 FROM documents"):  # WARC files of others may have none
            check_index(facts, index, view)
    for name, place, what in facts.rows("SELECT file, offset, what FROM problems ORDER BY rowid"):
        path = dataset.root / name
        if what == CHANGED:
            raise InputError(f"{path} {what}; try again later")
        raise InputError(f"{problem(str(path), place, what)}; repair the dataset, then finish it")


def _add_finish_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--trec-ids",
        type=_dataset_name,
        metavar="NAME",
        help="copy to --out: ids like NAME-0000wb-00-00000, in ClueWeb12's segments, directories and files",
    )
    parser.add_argument(
        "--sample", type=positive_integer, metavar="K", help="copy every Kth document of each file to --out"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the copy, which must not exist")
    parser.add_argument("--wacz", type=Path, metavar="FILE", help="write the whole dataset as a WACZ")


def _dataset_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a dataset; use letters, digits and _ only")
    return text


def _finish(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    copy = opts.trec_ids, opts.sample
    if (opts.out is None) == any(copy):
        raise InputError("--trec-ids and --sample need --out DIR, and --out needs one of them")
    dataset = idle_dataset(opts.arguments[0], settings)
    if opts.wacz is not None:
        copies.check_name(opts.wacz)
    if opts.out is not None:
        copies.check_target(dataset, opts.out)
    with exclusive(dataset.base):
        complete(dataset.base)
        if opts.wacz is not None:
            list(copies.indexed_files(dataset))
        with surveyed(dataset, opts.jobs, md5=True) as facts:
            if opts.out is not None:
                copies.check_copy(dataset, facts, *copy)
            yield from finish(dataset, facts)
            if opts.out is not None:
                yield from copies.copy_dataset(dataset, facts, opts.out, *copy)
        if opts.wacz is not None:
            yield from copies.write_wacz(dataset, opts.wacz)


FINISH = Action(
    "Give files their final names; write MD5 file, record-count file and sorted index; on request a copy with TREC "
    "ids or a sample, and a WACZ (also takes --jobs).",
    _finish,
    "DIR",
    _add_finish_options,
)
