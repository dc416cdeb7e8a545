"""Build: writes any corpus as a file tree in ClueWeb22 format with several processes, and resumes after a kill.

``plan``: which page gets which id. ``passes``: pages are read, then written, then their inlinks.

A build keeps its temporary files in the folder ``.build`` of the tree, and removes them at its end. ``build.json``
names the source of the tree, so that the next run knows whether it can resume. ``manifest.tsv`` has the id of each page
of the source.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import digest_of, json_or_none
from crawl4llm.base.jobs import Told
from crawl4llm.base.pages import Corpus
from crawl4llm.base.pools import LOST, Pool, why_lost
from crawl4llm.base.processes import ChildEnded
from crawl4llm.base.whole_files import replacing, writing
from crawl4llm.base.within import require_all_within
from simulate.build import passes
from simulate.build.passes import Chunk, Entry, Place
from simulate.build.plan import WORK, Build, BuildOptions, make_plan, read_manifest
from simulate.clueweb22.files import write_root_files
from simulate.clueweb22.opt_outs import write_opt_outs
from simulate.clueweb22.records import INLINK, KINDS, NO_DATE

MANIFEST: Final = "manifest.tsv"

_FORMAT: Final = 6  # to be raised with every change of what is written, also into the work folder
_STATE: Final = "build.json"
_README: Final = """\
Pages in the layout of ClueWeb22-A ({kinds}); not ClueWeb22 data.
Made by `scrapy corpus build` of crawl4llm from a {source} corpus: {documents} pages.
manifest.tsv has a line `key<TAB>id` for every id that has been given; opt_outs.tsv what was said of the uses of pages.
"""
_SECONDS_PER_PAGE = 0.25
"""Extra time of a chunk on top of the limit for each of its pages; if that was not enough, they are read one by one."""

R = TypeVar("R")


def build_tree(
    source: Corpus, to: Path, options: BuildOptions, *, manifest: Path | None = None, jobs: int = 1
) -> Mapping[str, int]:
    """Write the pages of ``source`` as a ClueWeb22 tree to ``to``, with ``jobs`` processes and progress bars.

    Return the counts of documents and links, and of failures by reason.

    ``to`` must be absent, empty, or hold a build of the same source with the same options. An unfinished build is
    resumed, a finished one stays as it is. Ids of ``manifest``, which an earlier build wrote, are kept. The bytes are a
    function of source, options and manifest. ``source`` must be cheap to pickle and to open.

    Raises InputError if the folder holds something else or cannot be written, if a process is killed, and for a
    manifest of another format.
    """
    build = Build(source, to.absolute(), options)
    identity = _identity(source, options, manifest)
    with writing(build.root, "the tree"):
        state = _read_state(build.root, identity)
        if not state.get("finished"):
            require_all_within(build.root)
            with _locked(build):
                state = _build(build, manifest, jobs, identity)
        shutil.rmtree(build.work, ignore_errors=True)
    counts: dict[str, int] = state["counts"]
    return counts


def _build(build: Build, manifest: Path | None, jobs: int, identity: str) -> dict[str, Any]:
    """Build, or go on; return the state of the finished build."""
    _write_state(build, {"identity": identity, "finished": False})
    for left_over in build.root.rglob(".*.tmp"):
        left_over.unlink()
    make_plan(build.work / "plan", build.source, read_manifest(manifest, build.source) if manifest else {})
    for name in ("pages", "done", "links", "opt_outs"):
        (build.work / name).mkdir(exist_ok=True)
    try:
        with Pool(partial(_do, build), jobs) as pool:
            _write_tree(build, pool)
    except ChildEnded as error:
        raise InputError(
            "a process of the build was killed; if memory ran out, use fewer --jobs; "
            "what is finished stays, and the same command goes on from there"
        ) from error
    counts = _write_root_files(build)
    shutil.copyfile(build.work / "plan" / MANIFEST, build.work / MANIFEST)
    (build.work / MANIFEST).replace(build.root / MANIFEST)
    state = {"identity": identity, "finished": True, "counts": counts}
    _write_state(build, state)
    return state


def _do(build: Build, do: Callable[[Build, Any], R], item: Any) -> R:
    """Do something in a process of the pool."""
    return do(build, item)


def _write_tree(build: Build, pool: Pool[Any]) -> None:
    """Read the missing chunks of pages, then write the missing data files."""
    files = build.plan.files
    of_pages, of_links = (
        [(kind, file) for file in files for kind in kinds if passes.counts_of(build, kind, file) is None]
        for kinds in (passes.PAGE_KINDS, [INLINK])
    )
    left = Counter(file for _, file in of_pages)
    chunks = [chunk for file in left for chunk in passes.chunks_of(file)]
    unread = [chunk for chunk in chunks if not passes.chunk_path(build, chunk).exists()]
    to_read = sum(len(chunk.records) for chunk in unread)
    pages = sum(file.records for file in files)
    with Told(" pages", label="reading pages").bar(pages, pages - to_read) as bar:
        for chunk in _read(build, pool, unread):
            bar.update(len(chunk.records))
    written = len(KINDS) * len(files) - len(of_pages + of_links)
    with Told(" files", label="writing files").bar(len(KINDS) * len(files), written) as bar:
        for (_, file), done in pool.each(of_pages, passes.write_kind):
            done.result()
            bar.update()
            left[file] -= 1
            if not left[file]:
                for chunk in passes.chunks_of(file):
                    passes.chunk_path(build, chunk).unlink(missing_ok=True)
        for _, done in pool.each(of_links, passes.write_kind):
            done.result()
            bar.update()


def _read(build: Build, pool: Pool[Any], chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Read chunks, and yield each when its file is there."""
    limit = build.options.time_limit
    for chunk, done in pool.each(
        chunks, passes.read_chunk, time_limit=limit + _SECONDS_PER_PAGE * passes.PAGES_PER_CHUNK
    ):
        try:
            done.result()
        except LOST:
            passes.write_chunk(build, chunk, _one_by_one(pool, chunk, limit))
        yield chunk


def _one_by_one(pool: Pool[Any], chunk: Chunk, limit: float) -> list[Entry]:
    """Return the pages of a chunk; one that hangs or kills its process is read again without its text."""
    entries: dict[int, Entry] = {}
    places = [Place(chunk.file, record) for record in chunk.records]
    while places:
        lost = []
        for place, done in pool.each(places, passes.read_page, time_limit=limit):
            try:
                entries[place.record] = done.result()
            except LOST as error:
                entries[place.record] = passes.Unreadable(place.without_text or why_lost(error))
                lost += [] if place.without_text else [place._replace(without_text=why_lost(error))]
        places = lost
    return [entries[record] for record in chunk.records]


def _write_root_files(build: Build) -> dict[str, int]:
    """Write the description of the tree; return the counts of its files."""
    totals: Counter[str] = Counter()
    records: dict[str, dict[str, int]] = {}
    for kind in KINDS:
        for file in build.plan.files:
            counts = passes.counts_of(build, kind, file) or Counter()
            if counts["records"]:
                records.setdefault(kind, {})[file.file_id] = counts.pop("records")
            totals.update(counts)
    source = build.source
    readme = _README.format(kinds=", ".join(records), source=source.name, documents=totals["documents"])
    write_root_files(build.root, readme, records)
    said = [passes.opt_outs_path(build, file) for file in build.plan.files]
    write_opt_outs(build.root, said, known=getattr(source, "knows_opt_outs", False))
    return dict(sorted(totals.items()))


# -- the folder -------------------------------------------------------------------------------------------------------


def _identity(source: Corpus, options: BuildOptions, manifest: Path | None) -> str:
    """Return the digest of the facts that must be equal for a build to be resumed."""
    given = digest_of(manifest) if manifest else None
    texts = options.extractor, options.always_extract
    parts = [source.name, source.identity(), texts, NO_DATE, given]
    if options.slim_links:
        parts.append("slim links")
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _read_state(to: Path, identity: str) -> dict[str, Any]:
    try:
        state = json_or_none((to / _STATE).read_bytes())
    except FileNotFoundError:
        if to.exists() and {path.name for path in to.iterdir()} - {WORK}:
            raise InputError(f"{to}: not an empty folder, and no build to resume; name another --to") from None
        return {}
    except NotADirectoryError:
        raise InputError(f"{to}: not a folder; name another --to") from None
    state = state if isinstance(state, dict) else {}
    make = command("corpus", "build", "--to", "DIR", simulation=True, CORPUS="SOURCE")
    require_format(to / _STATE, state.get("format"), _FORMAT, f"{make} with an empty DIR")
    if state.get("identity") != identity:
        raise InputError(
            f"{to}: holds a build of another corpus, or with other settings or --manifest; name another --to, "
            "or remove it"
        )
    return state


def _write_state(build: Build, state: Mapping[str, Any]) -> None:
    with replacing(build.root / _STATE, build.work / _STATE) as file:
        file.write(f"{json.dumps({'format': _FORMAT, **state}, indent=1)}\n".encode())


@contextmanager
def _locked(build: Build) -> Iterator[None]:
    build.work.mkdir(parents=True, exist_ok=True)
    with (build.work / "lock").open("wb") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{build.root}: another process is building there; wait for it to end") from None
        yield
