"""``scrapy archive finish``: final names of the files, MD5 and count files, and a sorted index."""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError
from crawl4llm.base.files import rename, sync_path
from crawl4llm.base.processes import cores
from crawl4llm.base.tables import Fact, Part
from crawl4llm.base.terminal import positive_integer
from crawl4llm.tools._action import Action
from crawl4llm.tools.archive.changes import complete, exclusive, whole_file
from crawl4llm.tools.archive.clueweb12 import COUNTS, MD5, document_counts, write_counts, write_md5
from crawl4llm.tools.archive.copying import CopyOptions, check_copy, check_target, copy_dataset
from crawl4llm.tools.archive.facts import CONTENT, TEXT, Facts
from crawl4llm.tools.archive.folder import Dataset, idle_dataset
from crawl4llm.tools.archive.lines import read_lines, sort_lines
from crawl4llm.tools.archive.survey import surveyed
from crawl4llm.tools.archive.wacz import check_name, check_packable, write_wacz
from crawl4llm.warc import parse_index_line

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def finish(dataset: Dataset, facts: Facts) -> Iterator[Part]:
    """Finish a dataset after a survey with MD5 digests; yields a line for each step.

    Raises InputError before any change if a WARC file is damaged or the index does not fit.
    """
    _require_sound(dataset, facts)
    renamed = _rename_open_files(dataset)
    if renamed:
        yield Fact("renamed", renamed, f"{renamed:,} files that a crawl had left open")
    write_md5(dataset.root / MD5, facts.rows("SELECT name, md5 FROM files ORDER BY file"))
    yield Fact("digests", dataset.root / MD5)
    counts = document_counts(facts)
    write_counts(dataset.root / COUNTS, counts.items())
    total, path = sum(counts.values()), dataset.root / COUNTS
    value = {"path": path, "documents_and_texts": total, "files": len(counts)}
    yield Fact("counts", value, f"{path}: {total:,} documents and texts in {len(counts):,} files")
    if dataset.index.exists():
        assert facts.folder is not None
        with whole_file(dataset.sorted_index) as new:
            sort_lines(read_lines(dataset.index), new, facts.folder)
        yield Fact("index", dataset.sorted_index)


def _require_sound(dataset: Dataset, facts: Facts) -> None:
    problem = facts.first("SELECT file, offset, what FROM problems ORDER BY file, offset")
    if problem is not None:
        name, offset, what = problem
        if offset is None:
            raise InputError(f"{dataset.root / name} {what}; try again later")
        raise InputError(f"{dataset.root / name}: record at {offset}: {what}; repair the dataset, then finish it")
    for index, kinds in ((dataset.index, CONTENT), (dataset.text_index, (TEXT,))):
        if index.exists():
            _require_fitting(index, facts, kinds)


def _require_fitting(index: Path, facts: Facts, kinds: Collection[str]) -> None:
    """Raise InputError if lines of an index lead to no record, or there are not as many as records of some kinds."""
    numbers = {name: file for file, name in facts.rows("SELECT file, name FROM files ORDER BY name")}
    indexed = dict.fromkeys(numbers, 0)
    for number, line in enumerate(read_lines(index), 1):
        parsed = parse_index_line(line)
        if parsed is None:
            raise InputError(f"{index} line {number} is no whole entry; repair the dataset, then finish it")
        name, offset, length = parsed.place
        there = facts.first("SELECT length FROM records WHERE file = ? AND offset = ?", numbers.get(name), offset)
        if there != (length,):
            raise InputError(f"{index} line {number} leads to no record; repair the dataset, then finish it")
        indexed[name] += 1
    query = f"SELECT count(*) FROM records WHERE file = ? AND kind IN ({','.join('?' * len(kinds))})"
    for name, count in indexed.items():
        held = facts.count(query, numbers[name], *kinds)
        if held != count:
            raise InputError(
                f"{index} has {count:,} entries for {name}, which holds {held:,} records with content; repair the "
                "dataset, then finish it"
            )


def _rename_open_files(dataset: Dataset) -> int:
    renamed = 0
    for name, path in dataset.warc_files().items():
        final = name.rpartition("/")[2]
        if path.name != final:
            sync_path(path)
            sync_path(rename(path, final).parent)
            renamed += 1
    return renamed


def _add_options(parser: argparse._ArgumentGroup) -> None:
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


def _run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    copy = CopyOptions(opts.trec_ids, opts.sample)
    if (opts.out is None) == (copy != CopyOptions()):
        raise InputError("--trec-ids and --sample need --out DIR, and --out needs one of them")
    dataset = idle_dataset(opts.arguments[0], settings)
    if opts.wacz is not None:
        check_name(opts.wacz)
    if opts.out is not None:
        check_target(dataset, opts.out)
    with exclusive(dataset.base):
        complete(dataset.base)
        if opts.wacz is not None:
            check_packable(dataset)
        with surveyed(dataset, opts.jobs or cores(), md5=True, label="reading") as facts:
            if opts.out is not None:
                check_copy(dataset, facts, copy)
            yield from finish(dataset, facts)
            if opts.out is not None:
                yield from copy_dataset(dataset, facts, opts.out, copy)
        if opts.wacz is not None:
            with tempfile.TemporaryDirectory(prefix="crawl4llm-") as folder:
                yield from write_wacz(dataset, opts.wacz, Path(folder))


FINISH = Action(
    "Give files their final names; write MD5 file, record-count file and sorted index; on request a copy with TREC "
    "ids or a sample, and a WACZ (also takes --jobs).",
    _run,
    "DIR",
    _add_options,
)
