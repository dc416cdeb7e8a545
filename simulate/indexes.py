"""The indexes of corpora: a part for each file, then columns over all parts, as plain arrays.

Parts are put in place whole and say what they were made from. So after a kill, or a change to some of the files, only
the parts that are missing or stale are made. Columns are mapped into memory, so that neither the number of documents
nor that of processes costs memory of their own. ``index.json`` describes the index.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import shutil
import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from crawl4llm.base.errors import InputError
from crawl4llm.base.files import sync_path
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import json_or_none, open_input
from crawl4llm.base.jobs import Jobs
from crawl4llm.base.whole_files import locked, remove_temporary, write_whole, writing
from crawl4llm.base.within import is_within, within

MANIFEST: Final = "index.json"
MAKE: Final = "scrapy corpus index"
"""The command that makes an index, for callers that do not know its corpus."""

Code = Literal["B", "I", "Q"]
"""An item's type: unsigned, of 1, 4 and 8 bytes, as :mod:`array` has it."""


def file_name(name: str) -> str:
    """Return the name of the file of an index that is about a file of the corpus."""
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:32]


# -- parts ------------------------------------------------------------------------------------------------------------


class PartIdentity(NamedTuple):
    """The files that a part was made from; a part of another identity is stale."""

    name: str
    signature: str
    """Changes when the files of the part may have."""
    format: int
    byteorder: str = sys.byteorder


def part_bytes(identity: PartIdentity, columns: Mapping[str, array[int]], **facts: Any) -> bytes:
    """Return the file of a part: a line of JSON (what it was made from, facts, each column's length), then columns."""
    head = {**identity._asdict(), **facts, "items": {name: len(column) for name, column in columns.items()}}
    return b"".join([json.dumps(head).encode(), b"\n", *(column.tobytes() for column in columns.values())])


class StoredPart:
    """A part in its file, whose columns are read at their first use.

    Raises ValueError if the file is cut short or of another part, FileNotFoundError if it is missing.
    """

    def __init__(self, path: Path, identity: PartIdentity, codes: Mapping[str, Code]) -> None:
        self._path, self._codes = path, codes
        with path.open("rb") as file:
            line = file.readline()
            head = json.loads(line)
            size = os.fstat(file.fileno()).st_size
        if not isinstance(head, dict) or not head.items() >= identity._asdict().items():
            raise ValueError("another part")
        self.facts: dict[str, Any] = head
        self.items: dict[str, int] = head["items"]
        """The length of each column."""
        self._places: dict[str, int] = {}
        end = len(line)
        for name, items in self.items.items():
            self._places[name] = end
            end += items * array(codes[name]).itemsize
        if end != size:
            raise ValueError("cut short")

    def column(self, name: str) -> array[int]:
        """Return a column."""
        column = array(self._codes[name])
        with self._path.open("rb") as file:
            file.seek(self._places[name])
            column.fromfile(file, self.items[name])
        return column


# -- columns ----------------------------------------------------------------------------------------------------------


class Columns:
    """A folder of columns, each mapped when it is first asked for."""

    def __init__(self, folder: Path, codes: Mapping[str, Code], make: str = MAKE) -> None:
        self._folder, self._codes, self._make = folder, codes, make
        self._mapped: dict[str, memoryview[int]] = {}

    def __getitem__(self, name: str) -> memoryview[int]:
        if name not in self._mapped:
            path = self._folder / name
            try:
                with open_input(path) as file:
                    # A mapping cannot be empty.
                    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
            except FileNotFoundError:
                raise InputError(f"{path}: missing from the index; make it again: {self._make}") from None
            self._mapped[name] = memoryview(data).cast(self._codes[name])
        return self._mapped[name]

    def close(self) -> None:
        """Release all mappings; a column that is asked for is mapped again."""
        self._mapped.clear()

    def text(self, texts: str, ends: str, number: int) -> str:
        """Return an item of a column of texts that lie one after the other."""
        start = self[ends][number - 1] if number else 0
        return bytes(self[texts][start : self[ends][number]]).decode()

    def found(self, hashes: str, numbers: str, wanted: int) -> Iterator[int]:
        """Yield the numbers under a hash in a table, in ascending order."""
        table = self[hashes]
        for at in range(bisect_left(table, wanted), len(table)):
            if table[at] != wanted:
                return
            yield self[numbers][at]


def open_columns(folder: Path, manifest: Mapping[str, Any], codes: Mapping[str, Code], make: str) -> Columns:
    """Open the columns of an index. Raises InputError if its manifest names another folder than one of its own."""
    return Columns(within(folder, manifest["columns"], folder / MANIFEST), codes, make)


@contextmanager
def new_columns(folder: Path, digest: str) -> Iterator[Path]:
    """Yield a folder for new columns, which becomes that of a state of the corpus when the block ends well."""
    columns = folder / f"columns-{digest[:16]}"
    temporary = columns.with_suffix(".tmp")
    with writing(columns):
        temporary.mkdir()
        yield temporary
        for path in temporary.iterdir():
            sync_path(path)
        shutil.rmtree(columns, ignore_errors=True)
        temporary.replace(columns)


# -- the manifest -----------------------------------------------------------------------------------------------------


def read_manifest(folder: Path, form: int, make: str = MAKE, what: str = "index") -> dict[str, Any]:
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
    require_format(path, manifest.get("format"), form, make)
    if manifest.get("byteorder") != sys.byteorder:
        raise InputError(f"{path}: an index of a machine with another byte order; run {make}")
    return manifest


def current_manifest(folder: Path, form: int, digest: str) -> dict[str, Any] | None:
    """Return the manifest of an index, if it is of this state of the corpus and has its columns."""
    try:
        manifest = read_manifest(folder, form)
    except InputError:
        return None
    is_whole = (
        manifest["digest"] == digest and is_within(manifest["columns"]) and (folder / manifest["columns"]).is_dir()
    )
    return manifest if is_whole else None


# -- making an index --------------------------------------------------------------------------------------------------


T = TypeVar("T")


@dataclass(frozen=True)
class PartJob(Generic[T]):
    """A file of the corpus that is to be a part of the index. Can be pickled."""

    of: T
    """The arguments of the function that makes the part."""
    path: Path
    """Path of the part."""
    identity: PartIdentity
    codes: Mapping[str, Code]
    size: int = 1

    def stored(self) -> StoredPart | None:
        """Return the part, if it has been made and is not stale."""
        try:
            return StoredPart(self.path, self.identity, self.codes)
        except (FileNotFoundError, ValueError):
            return None

    def is_done(self) -> bool:
        return self.stored() is not None


def build_index(
    folder: Path,
    jobs: Sequence[PartJob[T]],
    make_part: Callable[[PartJob[T]], str | None],
    digest: str,
    current: Callable[[], dict[str, Any] | None],
    write: Callable[[Mapping[Path, str]], dict[str, Any]],
    run: Callable[[Jobs[PartJob[T], str | None]], Iterator[tuple[PartJob[T], str | None]]],
    beside: Collection[Path] = (),
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
        manifest = current()
        if manifest is None or len(faults) < missing:
            manifest = {"byteorder": sys.byteorder, "digest": digest, **write(faults)}
            write_whole(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
        wanted = {job.path for job in jobs}.union(beside)
        for path in (*(folder / "parts").iterdir(), *(folder / "points").glob("*")):
            if path not in wanted:
                path.unlink()
        for path in folder.glob("columns-*"):
            if path.name != manifest["columns"]:
                shutil.rmtree(path)
    return manifest, missing
