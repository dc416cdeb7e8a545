"""The build of a collection's index: a part for each archive file, in parallel, then columns over all of them.

Parts are put in place whole and say what they were made from. So after a kill, or a change to some of the files, only
the parts that are missing or stale are made. See :mod:`simulate.warcs.index` for the result.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.command_lines import index_command
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import locked, remove_temporary, write_whole, writing
from crawl4llm.base.shard_tasks import UNDIVIDED, Executor, Shards, run_shards
from crawl4llm.base.within import is_within
from crawl4llm.optouts.heard import LARGEST_FILE, Heard, OfPage, OfSite
from crawl4llm.warc.reader import RecordReader, UnreadableFile
from simulate.warcs.files import Collection, WarcFile, is_failures, scan_failures
from simulate.warcs.index import MANIFEST, read_manifest
from simulate.warcs.opt_outs import heard_of
from simulate.warcs.part import FORMAT, PartIdentity, StoredPart
from simulate.warcs.scan import DAMAGED, PAGE, Source, scan_part


class IndexOptions(NamedTuple):
    """The options that decide, beside the files, on the content of an index."""

    canonical_links: bool = False
    """Whether a page is also found under the URL that its canonical link names; indexing then takes half as long again.

    Only links in the first 16 KiB of a page that is not compressed are seen.
    """

    def identity(self) -> tuple[str, bool]:
        """Return what digests of a collection have of it: of several pages with one URL, the first is held."""
        return "first", self.canonical_links

    def differing(self) -> dict[str, Any]:
        """Return the settings of options that are not as usual."""
        settings = zip(("CORPUS_CANONICAL_LINKS",), self, strict=True)
        return {name: value for (name, value), usual in zip(settings, DEFAULTS, strict=True) if value != usual}


DEFAULTS: Final = IndexOptions()


class IndexSummary(NamedTuple):
    """Counts of an index and of its build."""

    documents: int
    duplicates: int
    """Documents left out because another one has their key."""
    counts: Mapping[str, int]
    """Records by kind, or by the reason why they are left out (see :mod:`simulate.warcs.scan`)."""
    files_read: int
    files_kept: int
    """Files that an earlier build has read."""
    unreadable: Sequence[str]
    """For each file of which nothing can be read, a line that says why."""
    damaged: Sequence[str] = ()
    """Files with records that are damaged, or with a last one that is cut short."""


def _killed(collection: Collection, options: IndexOptions) -> str:
    """Return what is said of a process that was killed. Other commands than ``corpus index`` make indexes too."""
    command = index_command(collection.given, "--jobs", 1, **options.differing())
    return f"an indexing process was killed; if memory ran out, index with fewer processes: {command}"


def build_warc_index(
    collection: Collection,
    folder: Path,
    options: IndexOptions = DEFAULTS,
    processes: int = 1,
    executor: Executor = UNDIVIDED,
) -> IndexSummary:
    """Bring the index in ``folder`` up to the state of the collection, with a progress bar.

    Files are read in the tasks of ``executor``. Raises InputError where the folder cannot be written, a file cannot be
    read, or no document is found.
    """
    with locked(folder):
        with writing(folder):
            remove_temporary(folder)
            (folder / "parts").mkdir(exist_ok=True)
        jobs = [_PartJob(collection.root, file, folder, options.canonical_links) for file in collection.files]
        missing = [job for job in jobs if job.stored() is None]
        digest = state_digest(collection, options)
        shards = Shards(partial(map, _make_part), jobs, _PartJob.is_done, folder / "tasks" / digest[:16])
        done = run_shards(shards, executor, processes, "B", _killed(collection, options))
        unreadable = {job.file.name: fault for job, fault in done if fault}
        manifest = _current_manifest(folder, collection, digest)
        if manifest is None or len(unreadable) < len(missing):
            made = [job for job in jobs if job.file.name not in unreadable]
            manifest = _write_index(folder, made, digest) | {
                "replay": collection.replay,
                "unreadable": [unreadable[name] for name in sorted(unreadable)],
            }
            if not manifest["documents"]:
                raise InputError(_no_documents(collection, manifest))
            write_whole(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
        _remove_stale(folder, jobs, manifest)
    return IndexSummary(
        manifest["documents"],
        manifest["duplicates"],
        manifest["counts"],
        files_read=len(missing),
        files_kept=len(jobs) - len(missing),
        unreadable=manifest["unreadable"],
        damaged=[job.file.name for job in jobs if manifest["counts"].get(DAMAGED) and job.is_damaged()],
    )


def is_current(collection: Collection, folder: Path, options: IndexOptions) -> bool:
    """Return whether the index in ``folder`` is of this state of the collection."""
    return _current_manifest(folder, collection, state_digest(collection, options)) is not None


def state_digest(collection: Collection, options: IndexOptions) -> str:
    """Return the digest by which an index knows the state of the collection that it was made from."""
    return hashlib.sha256(
        json.dumps([collection.files, options.identity()]).encode("utf-8", "surrogatepass")
    ).hexdigest()


def points_path(folder: Path, name: str) -> Path:
    """Return the path of the entry points into a file that is compressed as a whole."""
    return folder / "points" / _file_name(name)


# -- parts ------------------------------------------------------------------------------------------------------------


class _PartJob(NamedTuple):
    """An archive file that is to be a part of the index."""

    root: Path
    file: WarcFile
    folder: Path
    canonical_links: bool

    @property
    def size(self) -> int:
        return self.file.size

    @property
    def path(self) -> Path:
        return self.folder / "parts" / _file_name(self.file.name)

    @property
    def identity(self) -> PartIdentity:
        return PartIdentity(self.file.name, f"{self.file.signature} {self.canonical_links}")

    def source(self, name: str) -> Source:
        """Return a file of the part, without entry points from an earlier state of it."""
        points = points_path(self.folder, name)
        with writing(points):
            points.parent.mkdir(exist_ok=True)
            points.unlink(missing_ok=True)
        return Source(self.root / name, points)

    def is_done(self) -> bool:
        return self.stored() is not None

    def is_damaged(self) -> bool:
        """Return whether records of the file are left out as damaged."""
        return bool((part := self.stored()) and part.counts.get(DAMAGED))

    def stored(self) -> StoredPart | None:
        """Return the part, if it has been made and is not stale."""
        try:
            return StoredPart(self.path, self.identity)
        except (FileNotFoundError, ValueError):
            return None


def _file_name(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:32]


def _make_part(job: _PartJob) -> str | None:
    """Make a part; returns the fault of a file of which nothing can be read."""
    wet, wat = (job.source(name) if name else None for name in (job.file.wet, job.file.wat))
    main = job.source(job.file.name)
    try:
        if is_failures(job.file.name):
            write_whole(job.path, scan_failures(main.path).to_bytes(job.identity))
            return None
        part = scan_part(main, wet, wat, canonical_links=job.canonical_links)
    except UnreadableFile as error:
        return str(error)
    except OSError as error:
        raise InputError(f"{error.filename or main.path}: cannot be read ({error.strerror})") from error
    write_whole(job.path, part.to_bytes(job.identity))
    return None


# -- columns over all parts -------------------------------------------------------------------------------------------


def _current_manifest(folder: Path, collection: Collection, digest: str) -> dict[str, Any] | None:
    """Return the manifest of the index, if it is of this state of the collection and names no other files."""
    try:
        manifest = read_manifest(folder)
    except InputError:
        return None
    if manifest["digest"] != digest or not is_within(manifest["columns"]):
        return None
    ours = {json.dumps([file.name, file.wet, file.wat, file.size]) for file in collection.files}
    whole = ours.issuperset(map(json.dumps, manifest["files"])) and (folder / manifest["columns"]).is_dir()
    return manifest if whole else None


def _write_index(folder: Path, jobs: Sequence[_PartJob], digest: str) -> dict[str, Any]:
    """Write the columns over the parts, and return the manifest."""

    def parts() -> Iterator[StoredPart]:
        return (StoredPart(job.path, job.identity) for job in jobs)

    from simulate.warcs.columns import write_columns  # here: NumPy takes time to load, and few crawls make an index

    files = [(job.file.name, job.file.wet, job.file.wat, job.file.size) for job in jobs]
    columns = folder / f"columns-{hashlib.sha256(json.dumps([digest, files]).encode()).hexdigest()[:16]}"
    temporary = columns.with_suffix(".tmp")
    with writing(columns):
        temporary.mkdir()
        merged = write_columns(temporary, parts, _heard(folder, jobs))
        shutil.rmtree(columns, ignore_errors=True)
        temporary.replace(columns)
    pages = (job.file for job, part in zip(jobs, parts(), strict=True) if part.counts.get(PAGE))
    without_text = (file.name for file in pages if file.wet is None)
    return {
        "format": FORMAT,
        "byteorder": sys.byteorder,
        "digest": digest,
        "columns": columns.name,
        "documents": merged.documents,
        "duplicates": merged.duplicates,
        "counts": dict(sorted(merged.counts.items())),
        "opt_outs_unknown": merged.opt_outs_unknown,
        "without_text": None if merged.texts else next(without_text, None),
        "files": files,
    }


def _heard(folder: Path, jobs: Sequence[_PartJob]) -> Heard:
    """Return what all files have heard of opt-outs."""
    by_name = {job.file.name: job for job in jobs}
    reader = RecordReader[str](lambda name: (by_name[name].root / name, points_path(folder, name)), LARGEST_FILE)

    def noted() -> Iterator[OfPage | OfSite]:
        for job in jobs:
            lines = StoredPart(job.path, job.identity).column("opt_outs").tobytes().splitlines()
            yield from heard_of(job.file.name, lines, reader.read)

    try:
        return Heard(noted())
    finally:
        reader.close()


def _remove_stale(folder: Path, jobs: Sequence[_PartJob], manifest: Mapping[str, Any]) -> None:
    """Remove all that belongs to earlier states of the collection."""
    with writing(folder):
        wanted = {job.path for job in jobs}
        wanted |= {points_path(folder, name) for job in jobs for name in job.file.names}
        for path in (*(folder / "parts").iterdir(), *(folder / "points").glob("*")):
            if path not in wanted:
                path.unlink()
        for path in folder.glob("columns-*"):
            if path.name != manifest["columns"]:
                shutil.rmtree(path)


def _no_documents(collection: Collection, manifest: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{count} {reason}" for reason, count in manifest["counts"].items())
    found = f"records: {counts}" if counts else next(iter(manifest["unreadable"]), "no records")
    return f"CORPUS {collection.given}: no HTML pages and no texts in {len(collection.files)} files ({found})"
