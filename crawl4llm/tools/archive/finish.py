"""``scrapy archive finish``: final names of the files, MD5 and count files, a sorted index, and copies.

A copy is in ClueWeb12's layout with its document ids, or a sample like its B13. A file of the dataset becomes a file of
the copy. In ClueWeb12's layout it is the file ``0000wb-00`` of the directory ``0000wb`` of the segment ``NAME_00``,
with two digits each for segment, directory and file. Its documents have ids from ``name-0000wb-00-00000`` on. A sample
holds every kth document of each file, counted from the first, and keeps the ids. A file with fewer than k documents has
none in the sample, as the size of B13 implies (52,343,021 of 733,019,372 documents in 33,447 files).
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import rename, sync_path
from crawl4llm.base.processes import cores
from crawl4llm.base.tables import Fact, Part
from crawl4llm.base.terminal import positive_integer
from crawl4llm.base.whole_files import check_free, check_new_file
from crawl4llm.tools._action import Action
from crawl4llm.tools.archive.facts import (
    IN_CONTENT,
    IN_TEXTS,
    TEXT,
    Facts,
    document_counts,
    index_lines,
    load_lines,
    read_lines,
)
from crawl4llm.tools.archive.folder import Dataset, complete, exclusive, idle_dataset, whole_file, writing
from crawl4llm.tools.archive.rewrite import RecordWriter, find_refilled, keep_texts, write_index, write_list
from crawl4llm.tools.archive.survey import md5_of, surveyed
from crawl4llm.tools.archive.wacz import check_name, check_packable, write_wacz

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

MD5, COUNTS = "archive.md5", "archive_counts.txt"
_PER_FOLDER: Final = 100
"""Most files of a directory, directories of a segment, and segments, with two digits."""


def finish(dataset: Dataset, facts: Facts) -> Iterator[Part]:
    """Finish a dataset after a survey with MD5 digests; yields a line for each step.

    Raises InputError before any change if a WARC file is damaged or the index does not fit.
    """
    _require_sound(dataset, facts)
    renamed = _rename_open_files(dataset)
    if renamed:
        yield Fact("renamed", renamed, f"{renamed:,} files that a crawl had left open")
    write_list(dataset.root / MD5, facts.rows("SELECT name, md5 FROM files ORDER BY file"))
    yield Fact("digests", dataset.root / MD5)
    counts = document_counts(facts)
    write_list(dataset.root / COUNTS, counts.items())
    total, path = sum(counts.values()), dataset.root / COUNTS
    value = {"path": path, "documents_and_texts": total, "files": len(counts)}
    yield Fact("counts", value, f"{path}: {total:,} documents and texts in {len(counts):,} files")
    if dataset.index.exists():
        with whole_file(dataset.sorted_index) as new:
            new.writelines(facts.in_order(read_lines(dataset.index)))
        yield Fact("index", dataset.sorted_index)


def _require_sound(dataset: Dataset, facts: Facts) -> None:
    problem = facts.first("SELECT file, offset, what FROM problems ORDER BY file, offset")
    if problem is not None:
        name, offset, what = problem
        if offset is None:
            raise InputError(f"{dataset.root / name} {what}; try again later")
        raise InputError(f"{dataset.root / name}: record at {offset}: {what}; repair the dataset, then finish it")
    for index, kinds in ((dataset.index, IN_CONTENT), (dataset.text_index, IN_TEXTS)):
        if index.exists():
            _require_fitting(index, facts, kinds)


def _require_fitting(index: Path, facts: Facts, kinds: str) -> None:
    """Raise InputError if lines of an index lead to no record, or there are not as many as records of some kinds."""
    indexed = dict.fromkeys(facts.names(), 0)
    for number, _, line, file in index_lines(facts, index):
        if line is None:
            raise InputError(f"{index} line {number} is no whole entry; repair the dataset, then finish it")
        _, offset, length = line.place
        there = facts.first("SELECT length FROM records WHERE file = ? AND offset = ?", file, offset)
        if file is None or there != (length,):
            raise InputError(f"{index} line {number} leads to no record; repair the dataset, then finish it")
        indexed[file] += 1
    for file, name in sorted(facts.names().items(), key=lambda item: item[1]):
        held = facts.count(f"SELECT count(*) FROM records WHERE file = ? AND kind {kinds}", file)
        if held != indexed[file]:
            raise InputError(
                f"{index} has {indexed[file]:,} entries for {name}, which holds {held:,} records with content; repair "
                "the dataset, then finish it"
            )


def _rename_open_files(dataset: Dataset) -> int:
    still_open = dataset.open_files()
    for name, path in still_open.items():
        sync_path(path)
        sync_path(rename(path, Path(name).name).parent)
    return len(still_open)


# -- copies ------------------------------------------------------------------------------------------------------------


class CopyOptions(NamedTuple):
    """The kind of a copy."""

    name: str | None = None
    """Name of the dataset, for ids and ClueWeb12's layout; None: names stay, and there are no ids."""
    every: int | None = None
    """k: every kth document is kept; None: all."""


class _File(NamedTuple):
    """A file of the copy."""

    number: int
    name: str
    id_prefix: str | None
    """None: ClueWeb12's fields are left out; empty: there are no ids."""


def copy_dataset(dataset: Dataset, facts: Facts, out: Path, options: CopyOptions) -> Iterator[Part]:
    """Copy a dataset, which :func:`check_copy` has checked, into a new folder; yields a line for the user."""
    load_lines(dataset, facts)
    _select_sample(facts, options.every or 1)
    find_refilled(facts)
    writer = RecordWriter(dataset, facts)
    digests, counts = [], []
    with writing(out):
        for file in Progress(list(_files(dataset, facts, options)), "Copying", unit=" files"):
            documents = _copy_file(facts, out, file, writer)
            if documents:
                digests.append((file.name, md5_of(out / file.name)))
                counts.append((file.name, documents))
        if not counts:
            raise InputError(f"no file of {dataset.root} has {options.every} documents; give a smaller --sample")
        for index in (dataset.index, dataset.text_index):
            if index.exists():
                write_index(dataset, facts, out / index.name, index.name)
    _write_lists(out, options.name, digests, counts)
    total = sum(count for _, count in counts)
    value = {"path": out, "documents_and_texts": total, "files": len(counts)}
    yield Fact("copy", value, f"{out}: {total:,} documents and texts in {len(counts):,} files")


def check_target(dataset: Dataset, out: Path) -> None:
    """Raise InputError if a copy of a dataset cannot be made in ``out``; else the folder is there."""
    if out.resolve().is_relative_to(dataset.root.resolve()):
        raise InputError(
            f"{out} is inside the dataset, which would then hold each document twice; give a folder elsewhere"
        )
    check_free(out)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    check_new_file(out / MD5)


def check_copy(dataset: Dataset, facts: Facts, options: CopyOptions) -> None:
    """Raise InputError, before anything is changed, if a dataset has no such copy."""
    if options.every is not None and max(document_counts(facts).values(), default=0) < options.every:
        raise InputError(f"no file of {dataset.root} has {options.every} documents; give a smaller --sample")
    for _ in _files(dataset, facts, options):  # can they be numbered?
        pass


def _files(dataset: Dataset, facts: Facts, options: CopyOptions) -> Iterator[_File]:
    texts = set(facts.column("SELECT DISTINCT file FROM records WHERE kind = ?", TEXT))
    serial = 0
    for number, name in facts.names().items():
        if options.name is None:
            yield _File(number, name, None)
        elif number in texts:  # ClueWeb12 has none: beside the segments, under their own names
            yield _File(number, f"text/{name}", "")
        else:
            segment, rest = divmod(serial, _PER_FOLDER**2)
            directory, file = divmod(rest, _PER_FOLDER)
            serial += 1
            if segment >= _PER_FOLDER:
                raise InputError(f"{dataset.root} holds more files than ClueWeb12's names can number")
            place = f"{segment:02d}{directory:02d}wb"
            suffix = name[name.rindex(".warc") :]
            path = f"{options.name}_{segment:02d}/{place}/{place}-{file:02d}{suffix}"
            yield _File(number, path, f"{options.name.lower()}-{place}-{file:02d}-")


def _copy_file(facts: Facts, out: Path, file: _File, writer: RecordWriter) -> int:
    """Copy the kept records of a file, if documents are among them; returns the number of documents."""
    if facts.first("SELECT 1 FROM kept WHERE file = ? AND number IS NOT NULL", file.number) is None:
        return 0
    path = out / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as target:
        shutil.copymode(writer.paths[file.number], path)
        counted = file.id_prefix is not None
        return writer.write(
            file.number, target, file.name, counted=counted, filename=path.name, id_prefix=file.id_prefix
        )


def _select_sample(facts: Facts, every: int) -> None:
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


def _write_lists(out: Path, name: str | None, digests: list[tuple[str, str]], counts: list[tuple[str, int]]) -> None:
    """Write MD5 and count files; in ClueWeb12's layout for each segment, the latter with names below it."""
    if name is None:
        write_list(out / MD5, digests)
        write_list(out / COUNTS, counts)
        return
    for segment in sorted({file.partition("/")[0] for file, _ in digests}):
        within = f"{segment}/"
        write_list(out / f"{segment}.md5", [entry for entry in digests if entry[0].startswith(within)])
        with writing(out):
            (out / "recordcounts").mkdir(exist_ok=True)
        held = [(file.removeprefix(within), count) for file, count in counts if file.startswith(within)]
        write_list(out / "recordcounts" / f"{segment}_counts.txt", held)


# -- the command -------------------------------------------------------------------------------------------------------


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
