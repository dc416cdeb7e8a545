"""The change that repair and purge make: WARC files without some of their records, and all that names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.tools.archive.changes import Changes, writing
from crawl4llm.tools.archive.facts import TEXT, Facts
from crawl4llm.tools.archive.finishing import write_sorted
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.tools.archive.lines import read_lines
from crawl4llm.tools.archive.rewriting import MOVES, Place, copy_records, first_offset, keep_others, write_index
from crawl4llm.tools.archive.survey import LINE_ENDS, md5_of
from crawl4llm.tools.archive.warcinfo import with_counts
from crawl4llm.warc.reader import WarcReader

Replace = Callable[[WarcReader, int, int], tuple[bytes, bytes] | None]
"""Gives, of the record at an offset of a file (reader, file, offset), another one that takes its place with its line in
the index; None where it stays."""


def stage_rewrite(
    dataset: Dataset, facts: Facts, changes: Changes, files: Iterable[int], replace: Replace | None = None
) -> list[str]:
    """Stage some files with those of their records that are ``kept``, then indexes, MD5 and count files.

    Returns what is to be said of the indexes. Raises InputError where a file is no longer the one that was
    surveyed: it is being copied, or written by something that cannot be told.
    """
    names: dict[int, str] = dict(facts.rows("SELECT file, name FROM files"))
    paths = dataset.warc_files()
    rewritten = sorted(files)
    facts.execute(MOVES)
    values: dict[str, tuple[str, int] | None] = {}
    with writing(dataset.root):
        for file in Progress(rewritten, "Rewriting", unit=" files"):
            name, path = names[file], paths[names[file]]
            if facts.first("SELECT 1 FROM kept WHERE file = ?", file) is None:
                changes.remove(path)
                values[name] = None
                continue
            new = changes.stage(path)
            documents = _rewrite(facts, file, name, path, new, replace)
            values[name] = md5_of(new), documents
        keep_others(facts, rewritten)
        told = _stage_indexes(dataset, facts, changes)
        _stage_lists(dataset, changes, values)
        for name, changed in list(facts.rows("SELECT name, changed FROM files")):
            if paths[name].stat().st_mtime_ns != changed:
                raise InputError(f"{paths[name]} changed while it was read; try again when it is finished")
    return told


def _rewrite(facts: Facts, file: int, name: str, path: Path, new: Path, replace: Replace | None) -> int:
    """Write a file anew; returns how many documents it holds."""
    reader = WarcReader(path)
    rows = list(
        facts.rows(
            """SELECT r.offset, r.length, r.kind, r.size, k.number FROM records r JOIN kept k
            ON k.file = r.file AND k.offset = r.offset WHERE r.file = ? ORDER BY r.offset""",
            file,
        )
    )
    replaced = {row[0]: replace(reader, file, row[0]) for row in rows} if replace else {}
    stated = facts.first("SELECT stated_bytes FROM files WHERE file = ?", file)
    documents = sum(row[4] is not None for row in rows)
    places = []
    for offset, length, kind, _, _ in rows:
        data = replaced.get(offset)
        record = data[0] if data else None
        if kind == "warcinfo" and stated and stated[0]:
            others = sum(
                len(data[0]) if (data := replaced.get(row[0])) else row[3] + LINE_ENDS
                for row in rows
                if row[2] != "warcinfo"
            )
            record = with_counts(reader.read(offset, length), documents, others)
        places.append(Place(offset, length, record))
    with new.open("wb") as out:
        for place, offset, length in copy_records(reader, name, places, out, first=first_offset(facts, file)):
            data = replaced.get(place.offset)
            facts.add("moves", [(file, place.offset, name, offset, length, data[1] if data else None)])
    return documents


def _stage_indexes(dataset: Dataset, facts: Facts, changes: Changes) -> list[str]:
    if not dataset.index.exists() and facts.first("SELECT 1 FROM documents") is None:
        return []  # WARC files of others, without an index
    new = changes.stage(dataset.index)
    told = [*_told(dataset.index.name, *write_index(dataset, facts, new, dataset.index.name))]
    if dataset.sorted_index.exists() and facts.folder is not None:
        write_sorted(new, changes.stage(dataset.sorted_index), facts.folder)
    if dataset.text_index.exists() or facts.first("SELECT 1 FROM records WHERE kind = ? LIMIT 1", TEXT):
        name = dataset.text_index.name
        told += _told(name, *write_index(dataset, facts, changes.stage(dataset.text_index), name))
    return told


def _told(index: str, made: int, unknown: int) -> Iterator[str]:
    if made:
        yield f"{index}: {made:,} entries are made from their records"
    if unknown:
        yield f"{index}: {unknown:,} records have no entry, for nothing tells whose they are"


def _stage_lists(dataset: Dataset, changes: Changes, values: dict[str, tuple[str, int] | None]) -> None:
    """Stage MD5 and count files with other values for some files, None for those that are gone."""
    for path in (*dataset.lists("*.md5"), *dataset.lists("*_counts.txt")):
        lines = [_changed(line, values, is_md5=path.suffix == ".md5") for line in read_lines(path)]
        changes.stage(path).write_bytes(b"".join(lines))


def _changed(line: bytes, values: dict[str, tuple[str, int] | None], *, is_md5: bool) -> bytes:
    fields = line.decode("utf-8", "replace").split()
    name = fields[-1 if is_md5 else 0].removeprefix("./") if fields else ""
    found = next((known for known in values if known == name or known.endswith(f"/{name}")), None) if name else None
    if found is None:
        return line
    value = values[found]
    if value is None:
        return b""
    if is_md5:
        return line.replace(fields[0].encode(), value[0].encode(), 1)
    before, _, after = line.rpartition(fields[-1].encode())
    return before + f"{value[1]:>{len(fields[-1])}}".encode() + after
