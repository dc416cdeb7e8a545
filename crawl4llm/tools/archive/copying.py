"""Copies of a dataset: in ClueWeb12's layout with its document ids, and as a sample like its B13.

A file of the dataset becomes a file of the copy. In ClueWeb12's layout it is the file ``0000wb-00`` of the directory
``0000wb`` of the segment ``NAME_00``, with two digits each for segment, directory and file. Its documents have ids from
``name-0000wb-00-00000`` on. A sample holds every kth document of each file, counted from the first, and keeps the ids.
A file with fewer than k documents has none in the sample, as the size of B13 implies (52,343,021 of 733,019,372
documents in 33,447 files).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import Fact, Part
from crawl4llm.base.whole_files import check_free, check_new_file
from crawl4llm.tools.archive.changes import writing
from crawl4llm.tools.archive.clueweb12 import COUNTS, MD5, document_counts, write_counts, write_md5
from crawl4llm.tools.archive.facts import TEXT, Facts
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.tools.archive.rewrite import (
    MOVES,
    Refill,
    find_refilled,
    load_lines,
    new_kept,
    select_sample,
    write_index,
    write_kept,
)
from crawl4llm.tools.archive.survey import md5_of

_PER_FOLDER: Final = 100
"""Most files of a directory, directories of a segment, and segments, with two digits."""


class CopyOptions(NamedTuple):
    """The kind of a copy."""

    name: str | None = None
    """Name of the dataset, for ids and ClueWeb12's layout; None: names stay, and there are no ids."""
    every: int | None = None
    """k: every kth document is kept; None: all."""


class _File(NamedTuple):
    """A file of the copy."""

    number: int
    source: Path
    name: str
    id_prefix: str | None


def copy_dataset(dataset: Dataset, facts: Facts, out: Path, options: CopyOptions) -> Iterator[Part]:
    """Copy a dataset into a new folder; yields a line for the user. Raises InputError."""
    check_target(dataset, out)
    check_copy(dataset, facts, options)
    load_lines(dataset, facts)
    new_kept(facts)
    select_sample(facts, options.every or 1)
    find_refilled(facts)
    refill = Refill(dataset, facts)
    facts.execute(MOVES)
    digests, counts = [], []
    with writing(out):
        for file in Progress(list(_files(dataset, facts, options)), "Copying", unit=" files"):
            documents = _copy_file(facts, out, file, refill, numbered=options.name is not None)
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
    paths = dataset.warc_files()
    texts = set(facts.column("SELECT DISTINCT file FROM records WHERE kind = ?", TEXT))
    serial = 0
    for number, name in list(facts.rows("SELECT file, name FROM files ORDER BY file")):
        if options.name is None:
            yield _File(number, paths[name], name, None)
        elif number in texts:  # ClueWeb12 has none: beside the segments, under their own names
            yield _File(number, paths[name], f"text/{name}", None)
        else:
            segment, rest = divmod(serial, _PER_FOLDER**2)
            directory, file = divmod(rest, _PER_FOLDER)
            serial += 1
            if segment >= _PER_FOLDER:
                raise InputError(f"{dataset.root} holds more files than ClueWeb12's names can number")
            place = f"{segment:02d}{directory:02d}wb"
            suffix = name[name.rindex(".warc") :]
            path = f"{options.name}_{segment:02d}/{place}/{place}-{file:02d}{suffix}"
            yield _File(number, paths[name], path, f"{options.name.lower()}-{place}-{file:02d}-")


def _copy_file(facts: Facts, out: Path, file: _File, refill: Refill, *, numbered: bool) -> int:
    """Copy the kept records of a file, if documents are among them; returns the number of documents."""
    if facts.first("SELECT 1 FROM kept WHERE file = ? AND number IS NOT NULL", file.number) is None:
        return 0
    path = out / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as target:
        shutil.copymode(file.source, path)
        number, source, name, prefix = file
        return write_kept(
            facts, number, source, name, target, refill, counted=numbered, filename=path.name, id_prefix=prefix
        )


def _write_lists(out: Path, name: str | None, digests: list[tuple[str, str]], counts: list[tuple[str, int]]) -> None:
    """Write MD5 and count files; in ClueWeb12's layout for each segment, the latter with names below it."""
    if name is None:
        write_md5(out / MD5, digests)
        write_counts(out / COUNTS, counts)
        return
    for segment in sorted({file.partition("/")[0] for file, _ in digests}):
        within = f"{segment}/"
        write_md5(out / f"{segment}.md5", [entry for entry in digests if entry[0].startswith(within)])
        with writing(out):
            (out / "recordcounts").mkdir(exist_ok=True)
        held = [(file.removeprefix(within), count) for file, count in counts if file.startswith(within)]
        write_counts(out / "recordcounts" / f"{segment}_counts.txt", held)
