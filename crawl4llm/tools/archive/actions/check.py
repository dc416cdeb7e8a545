"""``scrapy archive check``: is a dataset whole, and does all of it fit together?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError
from crawl4llm.base.terminal import harmless, positive_integer
from crawl4llm.options import cores
from crawl4llm.tools.archive.changes import is_unfinished
from crawl4llm.tools.archive.checking import check
from crawl4llm.tools.archive.checksums import document_counts
from crawl4llm.tools.archive.facts import TEXT, Facts
from crawl4llm.tools.archive.folder import LOST, Dataset
from crawl4llm.tools.archive.jobs import require_idle
from crawl4llm.tools.archive.survey import surveyed

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

HELP = "Read every record and compare digests, indexes, crawl log, MD5 and count files; say what is wrong."
ARGUMENTS = "DIR"
_BY_LINE = (".cdxj", ".jsonl", ".md5", ".txt")


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add ``--problems`` and ``--jobs``."""
    parser.add_argument(
        "--problems", type=positive_integer, default=100, metavar="N", help="problems that are printed (default: 100)"
    )
    parser.add_argument("--jobs", type=positive_integer, metavar="N", help="processes (default: one for each core)")


def run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each problem, or what was found to be sound. Raises InputError where anything is wrong."""
    dataset = Dataset(Path(opts.arguments[0]))
    require_idle(dataset, settings)
    if is_unfinished(dataset.base):
        raise InputError(f"{dataset.base}: a purge or repair was interrupted; give its command again")
    with surveyed(dataset, opts.jobs or cores(), digests=True, md5=True, label="checking") as facts:
        check(dataset, facts)
        wrong = facts.count("SELECT count(*) FROM problems")
        query = "SELECT file, offset, what FROM problems ORDER BY file, offset, what LIMIT ?"
        for file, place, what in facts.rows(query, opts.problems):
            kind = "line" if file.endswith(_BY_LINE) else "record at"
            yield harmless(f"{file}: {what}" if place is None else f"{file}: {kind} {place}: {what}")
        if wrong > opts.problems:
            yield f"and {wrong - opts.problems:,} more; --problems N prints more of them"
        if wrong:
            raise InputError(f"{dataset.given}: {wrong:,} {'problems' if wrong > 1 else 'problem'}")
        yield _sound(facts)
        lost = facts.count("SELECT count(*) FROM lost")
        if lost:
            yield f"{lost:,} pages are known to be lost ({LOST})"


def _sound(facts: Facts) -> str:
    texts = facts.count("SELECT count(*) FROM records WHERE kind = ?", TEXT)
    documents = sum(document_counts(facts).values()) - texts
    records, files = facts.count("SELECT count(*) FROM records"), facts.count("SELECT count(*) FROM files")
    return f"sound: {files:,} files, {records:,} records, {documents:,} documents, {texts:,} texts"
