"""The indexes of corpora: a part for each file of the corpus, then one sorted file over all parts.

Parts are sorted files too (:mod:`crawl4llm.base.sorted_file`). They are put in place whole and say what they were made
from. So after a kill, or a change to some of the files, only the parts that are missing or stale are made. Neither the
number of documents nor that of processes costs memory of its own. ``index.json`` describes the index.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from crawl4llm.base.errors import InputError
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import json_or_none
from crawl4llm.base.jobs import Jobs
from crawl4llm.base.sorted_file import Kind, SortedFile, fingerprint
from crawl4llm.base.sorted_writer import SortedWriter
from crawl4llm.base.whole_files import locked, remove_temporary, replacing, write_whole, writing
from crawl4llm.base.within import within

if TYPE_CHECKING:
    from numpy.typing import NDArray

MANIFEST: Final = "index.json"
MAKE: Final = "scrapy corpus index"
"""The command that makes an index, for callers that do not know its corpus."""
FORMAT: Final = 5
"""Version of all files of an index; files of another version are made again."""
_FACTS: Final = "facts"
"""The column of a part with JSON."""

T = TypeVar("T")
Numbers: TypeAlias = "Sequence[int] | NDArray[Any]"


def file_name(name: str) -> str:
    """Return the name of the file of an index that is about a file of the corpus."""
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:32]


def text_hash(text: str) -> int:
    """Return the hash of a key, or of a URL's lookup form."""
    return fingerprint(text.encode("utf-8", "surrogatepass"))


# -- parts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartJob(Generic[T]):
    """A file of the corpus that is to be a part of the index. Can be pickled."""

    of: T
    """The arguments of the function that makes the part."""
    folder: Path
    """Folder of the index."""
    name: str
    """Name of the file."""
    signature: str
    """Changes when the files of the part may have: a part of another one is stale."""
    size: int = 1

    @property
    def path(self) -> Path:
        """Path of the part."""
        return self.folder / "parts" / file_name(self.name)

    @property
    def _identity(self) -> str:
        return hashlib.sha256(json.dumps([FORMAT, self.name, self.signature]).encode()).hexdigest()

    def write(self, columns: Mapping[str, array[int]], **facts: Any) -> None:
        """Put the part in place. Raises InputError."""
        file = BytesIO()
        writer = SortedWriter(file)
        for name, column in columns.items():
            writer.column(name, column.typecode, [column.tobytes()])
        writer.column(_FACTS, "B", [json.dumps(facts).encode()])
        writer.finish(_kind("part"), self._identity, 0)
        write_whole(self.path, file.getvalue())

    def stored(self) -> SortedFile:
        """Return the part. Raises InputError unless it has been made and is not stale."""
        return SortedFile(self.path, _kind("part"), self._identity, whole=False)

    def is_done(self) -> bool:
        """Return whether the part has been made and is not stale."""
        with suppress(InputError):
            self.stored()
            return True
        return False

    def facts(self) -> dict[str, Any]:
        """Return what the part says beside its columns."""
        facts: dict[str, Any] = json.loads(bytes(self.stored().numbers(_FACTS)))
        return facts


def _kind(name: str, make: str = MAKE) -> Kind:
    return Kind(f"index {name}", f"{name} of an index", make, f"make the index again: {make}")


# -- columns ----------------------------------------------------------------------------------------------------------


def open_columns(folder: Path, manifest: Mapping[str, Any], make: str) -> SortedFile:
    """Open the columns of an index. Raises InputError if they are missing or cut short, or if the manifest names
    another file than one of its own."""
    path = within(folder, manifest["columns"], folder / MANIFEST)
    if not path.exists():
        raise InputError(f"{path}: missing from the index; make it again: {make}")
    return SortedFile(path, _kind("columns", make), manifest["digest"], whole=False)


@contextmanager
def new_columns(folder: Path, digest: str, name: str = "") -> Iterator[tuple[SortedWriter, Path]]:
    """Yield the writer of new columns and a folder for temporary files. The columns become those of a state of the
    corpus when the block ends well. ``name``: further facts on which they depend."""
    path = folder / columns_name(digest, name)
    scratch = path.with_name(f"{path.name}.scratch.tmp")
    with writing(path), replacing(path, path.with_name(f"{path.name}.tmp"), fsync=True) as file:
        scratch.mkdir()
        writer = SortedWriter(file)
        yield writer, scratch
        writer.finish(_kind("columns"), digest, 0)
        shutil.rmtree(scratch)


def columns_name(digest: str, name: str = "") -> str:
    """Return the name of the file of the columns for a state of the corpus."""
    return f"columns-{hashlib.sha256(f'{digest} {name}'.encode()).hexdigest()[:16]}"


class TableWriter:
    """A table of hashes with a number each, sorted in bounded memory."""

    def __init__(self, scratch: Path, count: int, what: str = "the index") -> None:
        """``scratch``: a folder for temporary files. ``count``: about how many entries there will be."""
        import numpy as np  # here: it takes time to load, and few crawls make an index

        from crawl4llm.base.spread import Spread, spread_bits  # likewise

        kind = np.dtype([("hash", "<u8"), ("number", "<u8")])
        self._rows: Callable[[int], NDArray[Any]] = partial(np.empty, dtype=kind)
        self._spread = Spread(scratch, kind, spread_bits(count), what=what)
        self._count = 0

    def add(self, hashes: Numbers, numbers: Numbers, first: int = 0) -> None:
        """Add entries, whose numbers begin at ``first``; those of one hash in the order of their numbers."""
        rows = self._rows(len(hashes))
        rows["hash"], rows["number"] = hashes, numbers
        rows["number"] += first
        self._spread.add(rows)
        self._count += len(rows)

    def write(self, writer: SortedWriter, name: str) -> int:
        """Write the table; return how many entries have the hash of an earlier one."""
        duplicates = 0

        def ordered() -> Iterator[Sequence[NDArray[Any]]]:
            nonlocal duplicates
            for part in self._spread.parts():
                rows = part[part["hash"].argsort(kind="stable")]
                duplicates += int((rows["hash"][1:] == rows["hash"][:-1]).sum())
                yield rows["hash"], rows["number"]

        writer.table(name, "QQ", self._count, ordered())
        return duplicates


# -- the manifest -----------------------------------------------------------------------------------------------------


def read_manifest(folder: Path, make: str = MAKE, what: str = "index") -> dict[str, Any]:
    """Read ``index.json``. Raises InputError if the folder holds no index of this format; it names the command to
    ``make`` one."""
    path = folder / MANIFEST
    try:
        manifest = json_or_none(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path}: there is no {what} of the corpus; make it: {make}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if not isinstance(manifest, dict):
        manifest = {}
    require_format(path, manifest.get("format"), FORMAT, make)
    return manifest


def current_manifest(folder: Path, digest: str) -> dict[str, Any] | None:
    """Return the manifest of an index, if it is of this state of the corpus and has its columns."""
    with suppress(InputError):
        manifest = read_manifest(folder)
        open_columns(folder, manifest, MAKE)
        return manifest if manifest["digest"] == digest else None
    return None


class IndexSummary(NamedTuple):
    """Counts of an index and of its build."""

    documents: int
    duplicates: int
    """Documents left out because another one has their key or URL."""
    files_read: int
    files_kept: int
    """Files that an earlier build has read."""
    counts: Mapping[str, int]
    """Records by kind, or by the reason why they are left out (see :mod:`simulate.warcs.scan`)."""
    unreadable: Sequence[str] = ()
    """For each file of which nothing can be read, a line that says why."""
    damaged: Sequence[str] = ()
    """Files with records that are damaged, or with a last one that is cut short."""


# -- making an index --------------------------------------------------------------------------------------------------


def build_index(
    folder: Path,
    jobs: Sequence[PartJob[T]],
    make_part: Callable[[PartJob[T]], str | None],
    digest: str,
    write: Callable[[Mapping[Path, str]], dict[str, Any]],
    run: Callable[[Jobs[PartJob[T], str | None]], Iterator[tuple[PartJob[T], str | None]]],
    beside: Collection[Path] = (),
    current: Callable[[], dict[str, Any] | None] | None = None,
) -> tuple[dict[str, Any], int]:
    """Bring the index in a folder up to a state of its corpus, which ``digest`` stands for. Return its manifest, and
    how many parts were made.

    ``make_part`` makes a part, or returns the fault of a file of which nothing can be read; ``run`` does so for those
    that are missing. ``current`` gives the manifest of an index that is whole. ``write`` writes the columns and returns
    a new manifest; it is given the faults by the paths of the parts. Entry points of ``beside`` stay. Raises InputError
    if the folder cannot be written.
    """
    with locked(folder), writing(folder):
        (folder / "parts").mkdir(exist_ok=True)
        remove_temporary(folder)
        missing = sum(not job.is_done() for job in jobs)
        work = Jobs(partial(map, make_part), jobs, folder / "tasks" / digest[:16])
        faults = {job.path: fault for job, fault in run(work) if fault}
        manifest = current() if current else current_manifest(folder, digest)
        if manifest is None or len(faults) < missing:
            manifest = {"format": FORMAT, "digest": digest, **write(faults)}
            write_whole(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
        wanted = {job.path for job in jobs}.union(beside)
        for path in (*(folder / "parts").iterdir(), *(folder / "points").glob("*")):
            if path not in wanted:
                path.unlink()
        for path in folder.glob("columns-*"):
            if path.name != manifest["columns"]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return manifest, missing
