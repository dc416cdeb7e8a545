"""Final names, MD5 file, record-count file, and an index in byte order."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from crawl4llm.base.errors import InputError
from crawl4llm.base.files import rename, sync_path
from crawl4llm.tools.archive.changes import whole_file
from crawl4llm.tools.archive.checksums import COUNTS, MD5, document_counts, write_counts, write_md5
from crawl4llm.tools.archive.facts import CONTENT, TEXT, Facts
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.tools.archive.lines import read_lines, sort_lines
from crawl4llm.warc.cdxj import parse_index_line


def finish(dataset: Dataset, facts: Facts) -> Iterator[str]:
    """Finish a dataset of which a survey with MD5 digests was made; yields what was done.

    Raises InputError, before anything is changed, where a WARC file is damaged or the index does not fit.
    """
    _require_sound(dataset, facts)
    renamed = _rename_open_files(dataset)
    if renamed:
        yield f"renamed    {renamed:,} files that a crawl had left open"
    write_md5(dataset.root / MD5, facts.rows("SELECT name, md5 FROM files ORDER BY file"))
    yield f"digests    {dataset.root / MD5}"
    counts = document_counts(facts)
    write_counts(dataset.root / COUNTS, counts.items())
    yield f"counts     {dataset.root / COUNTS}: {sum(counts.values()):,} documents and texts in {len(counts):,} files"
    if dataset.index.exists():
        assert facts.folder is not None
        with whole_file(dataset.sorted_index) as new:
            write_sorted(dataset.index, new, facts.folder)
        yield f"index      {dataset.sorted_index}"


def write_sorted(index: Path, new: Path, folder: Path) -> None:
    """Write the lines of an index in byte order; what does not fit in memory goes through files in ``folder``."""
    with new.open("wb") as out:
        sort_lines(read_lines(index), out, folder)


def _require_sound(dataset: Dataset, facts: Facts) -> None:
    problem = facts.first("SELECT file, offset, what FROM problems ORDER BY file, offset")
    if problem is not None:
        name, offset, what = problem
        if offset is None:
            raise InputError(f"{dataset.root / name} {what}; try again when it is finished")
        raise InputError(f"{dataset.root / name}: record at {offset}: {what}; repair the dataset, then finish it")
    for index, kinds in ((dataset.index, CONTENT), (dataset.text_index, (TEXT,))):
        if index.exists():
            _require_fitting(index, facts, kinds)


def _require_fitting(index: Path, facts: Facts, kinds: Collection[str]) -> None:
    """Raise InputError where lines of an index lead to no record, or there are not as many as records of some kinds."""
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
