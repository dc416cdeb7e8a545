"""``scrapy archive repair``: removes everything that is no complete page, and rewrites the indexes.

A page stays if all its records exist, if a payload that it repeats exists, and if the crawl log has it. A killed crawl
may have archived pages that it had not logged; when resumed, it treats them as not crawled. The first copy of a
repeated record stays.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError
from crawl4llm.base.processes import cores
from crawl4llm.tools._action import Action
from crawl4llm.tools.archive.facts import IN_CONTENT, Facts, load_lines, load_lost, parse_log_line, read_lines
from crawl4llm.tools.archive.folder import LOST, Changes, Dataset, idle_dataset, now, resumable, writing
from crawl4llm.tools.archive.rewrite import keep_texts, stage_rewrite
from crawl4llm.tools.archive.survey import surveyed
from crawl4llm.warc import WarcReader, parse_index_line

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


_CUT = ".cut"
_COPIED = 1 << 20


def repair(dataset: Dataset, processes: int, *, discard: bool) -> Iterator[str]:
    """Repair a dataset; yields lines about the changes once all are in place. Raises InputError."""
    with ExitStack() as opened:
        changes = opened.enter_context(Changes(dataset.base))
        facts = opened.enter_context(surveyed(dataset, processes, digests=True, label="reading"))
        _refuse_foreign(dataset, facts)
        load_lines(dataset, facts)
        told = [*_mend_log(dataset, facts, changes)]
        _select_whole_pages(dataset, facts)
        files = facts.column("""SELECT file FROM damage UNION SELECT r.file FROM records r
            WHERE NOT EXISTS (SELECT 1 FROM kept k WHERE k.file = r.file AND k.offset = r.offset)""")
        told += [_cut(dataset, facts, changes, file, discard=discard) for file in files]
        of_indexes = stage_rewrite(dataset, facts, changes, files)
        told += [*_index_changes(dataset, changes), *of_indexes, *_lost_pages(dataset, facts, changes)]
        if told:
            changes.commit()
    yield from told or ["nothing to repair"]


def _refuse_foreign(dataset: Dataset, facts: Facts) -> None:
    foreign = facts.rows("""SELECT f.name, p.what FROM files f JOIN problems p ON p.file = f.name
        WHERE f.bytes = 0 AND p.offset = 0 AND NOT EXISTS (SELECT 1 FROM records r WHERE r.file = f.file)""")
    for name, what in list(foreign):
        path = dataset.warc_files()[name]
        if path.stat().st_size:
            raise InputError(f"{path}: {what}; no record of it can be read: move it away, then repair the rest")


def _mend_log(dataset: Dataset, facts: Facts, changes: Changes) -> Iterator[str]:
    """Read the log into the facts, without its last line if that is incomplete."""
    whole, rest = 0, 0
    for number, line in enumerate(read_lines(dataset.log), 1):
        if rest:
            raise InputError(f"{dataset.log} line {number - 1} is no whole entry; restore the file from a backup")
        parsed = parse_log_line(line)
        if parsed is None:
            rest = len(line)
        else:
            facts.add("log", [(number, parsed["id"])])
            whole += len(line)
    facts.execute("CREATE INDEX log_by_doc ON log(doc)")
    if rest:
        with writing(dataset.log):
            new = shutil.copyfile(dataset.log, changes.stage(dataset.log))
            os.truncate(new, whole)
        yield f"{dataset.log.name}: its last line was cut short, {rest:,} bytes are removed"


def _select_whole_pages(dataset: Dataset, facts: Facts) -> None:
    if facts.first("SELECT 1 FROM documents") is None:  # not of a crawl of ours: each record is by itself
        facts.execute("INSERT OR IGNORE INTO kept SELECT file, offset, NULL FROM records WHERE kind != 'unreadable'")
        return
    logged = "AND d.doc IN (SELECT doc FROM log)" if dataset.log.exists() else ""
    facts.execute(f"""CREATE TEMP TABLE whole AS SELECT d.file AS file, d.page AS page, d.offset AS offset
        FROM documents d JOIN records c ON c.file = d.file AND c.offset = d.offset
        WHERE d.m_file = d.file AND d.m_page = d.page {logged}
        AND (c.kind != 'revisit' OR EXISTS (SELECT 1 FROM records o JOIN documents e
            ON e.file = o.file AND e.offset = o.offset AND e.m_page = e.page
            WHERE o.rid = c.refers AND o.kind {IN_CONTENT} AND o.kind != 'revisit'))""")
    facts.execute("""INSERT OR IGNORE INTO kept SELECT r.file, r.offset, CASE WHEN r.offset = w.offset THEN 1 END
        FROM whole w JOIN records r ON r.file = w.file AND r.page = w.page""")
    facts.execute("""INSERT OR IGNORE INTO kept SELECT r.file, r.offset, NULL
        FROM no_pages e JOIN records r ON r.file = e.file AND r.page = e.page""")
    keep_texts(facts)
    facts.execute("""DELETE FROM kept WHERE (file, offset) IN (SELECT r.file, r.offset FROM records r
            WHERE r.rid IN (SELECT rid FROM records WHERE name != '' GROUP BY rid HAVING count(*) > 1)
            AND EXISTS (SELECT 1 FROM records e JOIN kept k ON k.file = e.file AND k.offset = e.offset
                WHERE e.rid = r.rid AND (e.file, e.offset) < (r.file, r.offset)))""")


def _cut(dataset: Dataset, facts: Facts, changes: Changes, file: int, *, discard: bool) -> str:
    """Keep aside the stretches that a file loses, and describe them."""
    path = dataset.warc_files()[facts.names()[file]]
    query = """SELECT r.offset, r.length, 1 FROM records r WHERE r.file = ?1
            AND NOT EXISTS (SELECT 1 FROM kept k WHERE k.file = r.file AND k.offset = r.offset)
        UNION ALL SELECT offset, length, 0 FROM damage WHERE file = ?1 ORDER BY 1"""
    stretches = list(facts.rows(query, file))
    size = sum(length for _, length, _ in stretches)
    records = sum(whole for _, _, whole in stretches)
    said = f"{path.name}: {size:,} bytes from offset {stretches[0][0] if stretches else 0} on are cut"
    said += f", {records:,} records among them" if records else ""
    if discard or not size:
        return said
    aside = _free_name(path)
    reader = WarcReader(path)
    with writing(aside), changes.stage(aside, like=path).open("wb") as out:
        for offset, length, _ in stretches:
            for at in range(offset, offset + length, _COPIED):
                out.write(reader.raw(at, min(_COPIED, offset + length - at)))
    return f"{said}; they are kept in {aside.name}"


def _free_name(path: Path) -> Path:
    aside, number = path.with_name(path.name + _CUT), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.{number}{_CUT}")
    return aside


def _index_changes(dataset: Dataset, changes: Changes) -> Iterator[str]:
    """Yield the changes of the indexes; those that have none are left alone."""
    for index in (dataset.index, dataset.text_index, dataset.sorted_index):
        new = changes.staged(index)
        if new is None:
            continue
        if index.exists() and filecmp.cmp(index, new, shallow=False):
            changes.leave(index)
            continue
        now = sum(1 for _ in read_lines(new))
        whole = sum(parse_index_line(line) is not None for line in read_lines(index))
        yield f"{index.name}: {now:,} entries, there were {whole:,}"


def _lost_pages(dataset: Dataset, facts: Facts, changes: Changes) -> list[str]:
    """Note the pages of the log that are gone."""
    path = dataset.base / LOST
    load_lost(dataset, facts)
    gone = facts.column("""SELECT doc FROM log WHERE doc NOT IN (SELECT doc FROM lost) AND doc NOT IN
        (SELECT d.doc FROM documents d JOIN kept k ON k.file = d.file AND k.offset = d.offset) ORDER BY number""")
    if not gone:
        return []
    date = now()
    lines = (f"{json.dumps({'date': date, 'id': doc})}\n".encode() for doc in gone)
    changes.write(path, chain(read_lines(path), lines))
    return [f"{dataset.log.name}: {len(gone):,} of its pages are gone; they are listed in {LOST}"]


def _add_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument("--discard", action="store_true", help="do not keep the removed bytes")


def _run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    dataset = idle_dataset(opts.arguments[0], settings)
    with resumable(dataset, settings):
        yield from repair(dataset, opts.jobs or cores(), discard=opts.discard)


REPAIR = Action(
    "Cut files back to their last whole page, remove damaged pages, and repair the indexes; removed bytes are kept in "
    "FILE.cut (also takes --jobs).",
    _run,
    "DIR",
    _add_options,
)
