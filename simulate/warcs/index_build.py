"""The build of a collection's index: a part for each archive file, in parallel, then columns over all of them.

See :mod:`simulate.warcs.index` for the result.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from crawl4llm.base.command_lines import index_command
from crawl4llm.base.errors import InputError
from crawl4llm.base.jobs import UNDIVIDED, Executor, Told, run_missing
from crawl4llm.base.whole_files import writing
from crawl4llm.optouts import LARGEST_FILE, Heard, OfDomain, OptOut
from crawl4llm.warc import RecordReader, UnreadableFile
from simulate.indexes import IndexSummary, PartJob, build_index, columns_name, current_manifest, file_name, new_columns
from simulate.warcs.files import Collection, WarcFile, is_failures, scan_failures
from simulate.warcs.index import WarcIndex
from simulate.warcs.scan import DAMAGED, PAGE, REVISIT, REVISIT_BY_DIGEST, Source, heard_of, scan_part


def settings_of(canonical_links: bool) -> dict[str, Any]:
    """Return the settings by which an index has canonical links, or has none."""
    return {"CORPUS_CANONICAL_LINKS": True} if canonical_links else {}


def build_warc_index(
    collection: Collection,
    folder: Path,
    canonical_links: bool = False,
    processes: int | None = None,
    executor: Executor = UNDIVIDED,
) -> IndexSummary:
    """Bring the index in ``folder`` up to the state of the collection, with a progress bar.

    With ``canonical_links`` a page is found also under the URL of its canonical link; indexing then takes half as long
    again. Only links in the first 16 KiB of a page that is not compressed are seen.

    Files are read in the tasks of ``executor``. Raises InputError if the folder cannot be written, a file cannot be
    read, or no document is found.
    """
    digest = state_digest(collection, canonical_links)
    jobs = _jobs(collection, folder, canonical_links)

    # Other commands than ``corpus index`` make indexes too.
    command = index_command(collection.given, "--jobs", 1, **settings_of(canonical_links))
    killed = f"an indexing process was killed; if memory ran out, index with fewer processes: {command}"

    def write(faults: Mapping[Path, str]) -> dict[str, Any]:
        made = [job for job in jobs if job.path not in faults]
        unreadable = [faults[job.path] for job in jobs if job.path in faults]
        facts = {"replay": collection.replay, "unreadable": unreadable}
        manifest = _write_index(folder, made, collection.blocked, digest) | facts
        if not manifest["documents"]:
            raise InputError(_no_documents(collection, manifest))
        return manifest

    manifest, read = build_index(
        folder,
        jobs,
        _make_part,
        digest,
        write,
        partial(run_missing, executor=executor, processes=processes, told=Told("B", killed)),
        [points_path(folder, name) for file in collection.files for name in (file.name, file.wet, file.wat) if name],
        lambda: _current_manifest(folder, collection, digest),
    )
    return IndexSummary(
        manifest["documents"],
        manifest["duplicates"],
        read,
        len(jobs) - read,
        manifest["counts"],
        manifest["unreadable"],
        [job.name for job in jobs if manifest["counts"].get(DAMAGED) and _is_damaged(job)],
    )


def is_current(collection: Collection, folder: Path, canonical_links: bool = False) -> bool:
    """Return whether the index in ``folder`` is of this state of the collection."""
    return _current_manifest(folder, collection, state_digest(collection, canonical_links)) is not None


def opt_outs_in(collection: Collection, index: WarcIndex) -> Iterator[OptOut]:
    """Yield the opt-outs that are known of a collection, by its current index without canonical links. Raises
    InputError."""
    read = {name for name, *_ in index.manifest["files"]}
    jobs = [job for job in _jobs(collection, index.folder, canonical_links=False) if job.name in read]
    return _heard(index.folder, jobs, collection.blocked)


def state_digest(collection: Collection, canonical_links: bool) -> str:
    """Return the digest by which an index knows the state of the collection that it was made from."""
    state = [collection.files, collection.blocked, "first", canonical_links]  # the first page of a URL is held
    return hashlib.sha256(json.dumps(state).encode("utf-8", "surrogatepass")).hexdigest()


def points_path(folder: Path, name: str) -> Path:
    """Return the path of the entry points into a file that is compressed as a whole."""
    return folder / "points" / file_name(name)


# -- parts ------------------------------------------------------------------------------------------------------------


class _Files(NamedTuple):
    """An archive file that is to be a part of the index, with those beside it."""

    root: Path
    file: WarcFile
    canonical_links: bool


Job: TypeAlias = PartJob[_Files]


def _jobs(collection: Collection, folder: Path, canonical_links: bool) -> list[Job]:
    def job(file: WarcFile) -> Job:
        state = f"{file.signature} {canonical_links}"
        return PartJob(_Files(collection.root, file, canonical_links), folder, file.name, state, file.size)

    return list(map(job, collection.files))


def _is_damaged(job: Job) -> bool:
    """Return whether records of the file are left out as damaged."""
    return job.is_done() and bool(job.facts()["counts"].get(DAMAGED))


def _source(job: Job, name: str) -> Source:
    """Return a file of the part, without entry points from an earlier state of it."""
    points = points_path(job.folder, name)
    with writing(points):
        points.parent.mkdir(exist_ok=True)
        points.unlink(missing_ok=True)
    return Source(job.of.root / name, points)


def _make_part(job: Job) -> str | None:
    """Make a part; returns the fault of a file of which nothing can be read."""
    file = job.of.file
    wet, wat = (_source(job, name) if name else None for name in (file.wet, file.wat))
    main = _source(job, file.name)
    try:
        if is_failures(file.name):
            part = scan_failures(main.path)
        else:
            part = scan_part(main, wet, wat, canonical_links=job.of.canonical_links)
    except UnreadableFile as error:
        return str(error)
    except OSError as error:
        raise InputError(f"{error.filename or main.path}: cannot be read ({error.strerror})") from error
    job.write(part.columns, counts=dict(sorted(part.counts.items())), opt_outs_unknown=part.opt_outs_unknown)
    return None


# -- columns over all parts -------------------------------------------------------------------------------------------


def _current_manifest(folder: Path, collection: Collection, digest: str) -> dict[str, Any] | None:
    """Return the manifest of the index, if it is of this state of the collection and names no other files."""
    manifest = current_manifest(folder, digest)
    ours = {json.dumps([file.name, file.wet, file.wat, file.size]) for file in collection.files}
    return manifest if manifest and ours.issuperset(map(json.dumps, manifest["files"])) else None


def _write_index(folder: Path, jobs: Sequence[Job], blocked: Iterable[str], digest: str) -> dict[str, Any]:
    """Write the columns over the parts, and return the manifest."""
    from simulate.warcs.union import Union  # here: NumPy takes time to load, and few crawls make an index

    files = [(file.name, file.wet, file.wat, file.size) for file in (job.of.file for job in jobs)]
    facts = [job.facts() for job in jobs]
    counts: Counter[str] = sum((Counter(one["counts"]) for one in facts), Counter())
    with new_columns(folder, digest, json.dumps(files)) as (writer, scratch):
        union = Union(scratch, jobs, by_digest=bool(counts[REVISIT_BY_DIGEST] or counts[REVISIT]))
        union.write(writer, Heard(_heard(folder, jobs, blocked)))
    pages = (job.of.file for job, one in zip(jobs, facts, strict=True) if one["counts"].get(PAGE))
    without_text = (file.name for file in pages if file.wet is None)
    return {
        "columns": columns_name(digest, json.dumps(files)),
        "files": files,
        "documents": union.held,
        "left_out": union.documents - union.held,
        "duplicates": union.duplicates,
        "counts": dict(sorted(counts.items())),
        "opt_outs_unknown": sum(one["opt_outs_unknown"] for one in facts),
        "without_text": None if union.texts else next(without_text, None),
    }


def _heard(folder: Path, jobs: Sequence[Job], blocked: Iterable[str]) -> Iterator[OptOut]:
    """Yield blocked domains, and the opt-out signals of all files."""
    yield from map(OfDomain, blocked)
    roots = {job.name: job.of.root for job in jobs}
    with closing(
        RecordReader[str](lambda name: (roots[name] / name, points_path(folder, name)), LARGEST_FILE)
    ) as reader:
        for job in jobs:
            yield from heard_of(job.name, bytes(job.stored().numbers("opt_outs")).splitlines(), reader.read)


def _no_documents(collection: Collection, manifest: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{count} {reason}" for reason, count in manifest["counts"].items())
    found = f"records: {counts}" if counts else next(iter(manifest["unreadable"]), "no records")
    return f"CORPUS {collection.given}: no HTML pages and no texts in {len(collection.files)} files ({found})"
