"""The build as a whole: writes a corpus in the ClueWeb22 layout with several processes, and resumes after a kill.

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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.bars import Progress
from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import json_or_none, open_input
from crawl4llm.base.pages import Corpus
from crawl4llm.base.whole_files import replacing
from crawl4llm.base.within import require_all_within
from simulate.build.chunks import BuildOptions, ChunkStore, chunks_of
from simulate.build.data_files import PAGE_KINDS, DataFiles
from simulate.build.plan import Plan, make_plan, read_manifest
from simulate.build.pool import BuildPool, Paths
from simulate.clueweb22.opt_outs import write_opt_outs
from simulate.clueweb22.records import INLINK, KINDS
from simulate.clueweb22.tree_writer import write_root_files

MANIFEST: Final = "manifest.tsv"

_FORMAT: Final = 5  # to be raised with every change of what is written, also into the work folder
_STATE: Final = "build.json"
_WORK: Final = ".build"
_README: Final = """\
Pages in the layout of ClueWeb22-A ({kinds}); not ClueWeb22 data.
Made by `scrapy corpus build` of crawl4llm from a {source} corpus: {documents} pages.
manifest.tsv has a line `key<TAB>id` for every id that has been given; opt_outs.tsv what was said of the uses of pages.
"""


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
    to = to.absolute()
    paths = Paths(to, to / _WORK)
    identity = _identity(source, options, manifest)
    with _writing(to):
        state = _read_state(to, identity)
        if not state.get("finished"):
            require_all_within(to)
            with _locked(paths):
                state = _build(source, paths, options, manifest, jobs, identity)
        shutil.rmtree(paths.work, ignore_errors=True)
    counts: dict[str, int] = state["counts"]
    return counts


def _build(
    source: Corpus, paths: Paths, options: BuildOptions, manifest: Path | None, jobs: int, identity: str
) -> dict[str, Any]:
    """Build, or go on; return the state of the finished build."""
    _write_state(paths, {"identity": identity, "finished": False})
    for left_over in paths.root.rglob(".*.tmp"):
        left_over.unlink()
    make_plan(paths.plan, source, read_manifest(manifest, source) if manifest else {})
    counts = _write_tree(source, paths, options, jobs)
    shutil.copyfile(paths.plan / MANIFEST, paths.work / MANIFEST)
    (paths.work / MANIFEST).replace(paths.root / MANIFEST)
    state = {"identity": identity, "finished": True, "counts": counts}
    _write_state(paths, state)
    return state


def _write_tree(source: Corpus, paths: Paths, options: BuildOptions, jobs: int) -> dict[str, int]:
    plan = Plan(paths.plan)
    store = ChunkStore(paths.work / "pages")
    files = DataFiles(paths.root, paths.work, plan, source, options)
    pending = {file: [kind for kind in PAGE_KINDS if files.counts(kind, file) is None] for file in plan.files}
    chunks = [chunk for file, kinds in pending.items() if kinds for chunk in chunks_of(file)]
    unread = [chunk for chunk in chunks if not store.holds(chunk)]
    inlinks = [(INLINK, file) for file in plan.files if files.counts(INLINK, file) is None]
    with BuildPool(source, paths, options, jobs) as pool:
        to_read = sum(len(chunk.records) for chunk in unread)
        with _bar("reading pages", "pages", to_read, sum(file.records for file in plan.files)) as bar:
            for chunk in pool.read(unread):
                bar.update(len(chunk.records))
        to_write = sum(map(len, pending.values())) + len(inlinks)
        with _bar("writing files", "files", to_write, len(KINDS) * len(plan.files)) as bar:
            for kind, file in pool.write([(kind, file) for file, kinds in pending.items() for kind in kinds]):
                bar.update()
                pending[file].remove(kind)
                if not pending[file]:
                    store.drop(file)
            for _ in pool.write(inlinks):
                bar.update()
    return _write_root_files(source, paths.root, plan, files)


def _write_root_files(source: Corpus, root: Path, plan: Plan, files: DataFiles) -> dict[str, int]:
    """Write the description of the tree; return the counts of its files."""
    totals: Counter[str] = Counter()
    records: dict[str, dict[str, int]] = {}
    for kind in KINDS:
        for file in plan.files:
            counts = files.counts(kind, file) or Counter()
            if counts["records"]:
                records.setdefault(kind, {})[file.file_id] = counts.pop("records")
            totals.update(counts)
    readme = _README.format(kinds=", ".join(records), source=source.name, documents=totals["documents"])
    write_root_files(root, readme, records)
    write_opt_outs(root, files.opt_outs, known=getattr(source, "knows_opt_outs", False))
    return dict(sorted(totals.items()))


def _bar(what: str, unit: str, to_do: int, total: int) -> Progress[Any]:
    return Progress(None, what, total, initial=total - to_do, unit=f" {unit}")


# -- the folder -------------------------------------------------------------------------------------------------------


def _identity(source: Corpus, options: BuildOptions, manifest: Path | None) -> str:
    """Return the digest of the facts that must be equal for a build to be resumed."""
    given = _digest(manifest) if manifest else None
    texts = options.extractor, options.always_extract
    parts = [source.name, source.identity(), texts, options.default_date, given]
    if options.slim_links:
        parts.append("slim links")
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _digest(manifest: Path) -> str:
    digest = hashlib.sha256()
    with as_input_error(f"--manifest {manifest}: cannot be read", form="{} ({})"), open_input(manifest) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _read_state(to: Path, identity: str) -> dict[str, Any]:
    try:
        state = json_or_none((to / _STATE).read_bytes())
    except FileNotFoundError:
        if to.exists() and {path.name for path in to.iterdir()} - {_WORK}:
            raise InputError(f"{to}: not an empty folder, and no build to resume; name another --to") from None
        return {}
    except NotADirectoryError:
        raise InputError(f"{to}: not a folder; name another --to") from None
    if isinstance(state, dict):
        make = command("corpus", "build", "--to", "DIR", simulation=True, CORPUS="SOURCE")
        require_format(to / _STATE, state.get("format"), _FORMAT, f"{make} with an empty DIR")
    if not isinstance(state, dict) or state.get("identity") != identity:
        raise InputError(
            f"{to}: holds a build of another corpus, or with other settings or --manifest; name another --to, "
            "or remove it"
        )
    return state


def _write_state(paths: Paths, state: Mapping[str, Any]) -> None:
    with replacing(paths.root / _STATE, paths.work / _STATE) as file:
        file.write(f"{json.dumps({'format': _FORMAT, **state}, indent=1)}\n".encode())


@contextmanager
def _locked(paths: Paths) -> Iterator[None]:
    paths.work.mkdir(parents=True, exist_ok=True)
    with (paths.work / "lock").open("wb") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{paths.root}: another process is building there; wait for it to end") from None
        yield


@contextmanager
def _writing(to: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{error.filename or to}: {error.strerror}; what is finished stays, and the same command goes on from there"
        ) from error
