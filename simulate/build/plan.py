"""A build and its plan: which page of the source gets which ClueWeb22-ID.

The plan is a folder, so that any number of processes share it and memory does not grow with the corpus:

- ``plan.db``, put in place last: a SQLite file with the data files, and the keys of pages by their places. A place is
  the number of a record, all records of all data files being numbered;
- ``manifest.tsv``: lines ``{key}<TAB>{id}`` in the order of the source, then those of ids whose pages have vanished.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import json_or_none, named_lines
from crawl4llm.base.pages import Corpus
from crawl4llm.scoring import PAGE_SECONDS
from simulate.clueweb22 import records as tree
from simulate.clueweb22.files import NewIds


def read_manifest(path: Path, source: Corpus) -> dict[str, str]:
    """Read the ids of a manifest by the source's keys: all in memory, some 250 bytes a page.

    A line is ``{key or URL}<TAB>{id}``, or a JSON object with ``key`` or ``url`` and ``id``. A URL that is no key of
    the source is looked up there; if it leads nowhere, its id stays unused. If several lines have one page, the first
    counts, and the other ids stay unused too.

    Raises InputError, naming the line, for a file of another format, an id that the layout does not have, or a repeated
    id. Raises it too if URLs need an index that the source does not have.
    """
    ids: dict[str, str] = {}
    given: set[str] = set()
    for number, line in enumerate(named_lines("--manifest", path), start=1):
        where = f"--manifest {path}: line {number}"
        if not line.strip():
            continue
        if (fields := _fields(line.rstrip("\r\n"))) is None:
            raise InputError(
                f'{where}: expected a key or URL, a tab and a ClueWeb22-ID, or JSON like {{"url": ..., "id": ...}}'
            )
        page, new_id = fields
        if tree.number_of(new_id) is None:
            raise InputError(f"{where}: {new_id!r} is not a ClueWeb22-ID of this layout")
        if new_id in given:
            raise InputError(f"{where}: {new_id} has been given before; an id can belong to one page only")
        given.add(new_id)
        key = page if source.is_key(page) else source.resolve(page) or page
        # What names a page that has an id already keeps its id from being given again, under its own name.
        ids.setdefault(key if key not in ids else f"{page}#{new_id}", new_id)
    return ids


def _fields(line: str) -> tuple[str, str] | None:
    if line.startswith("{"):
        found = json_or_none(line) or {}
        page, new_id = found.get("key", found.get("url")), found.get("id")
        return (page, new_id) if isinstance(page, str) and isinstance(new_id, str) else None
    fields = line.split("\t")
    return (fields[0], fields[1]) if len(fields) == 2 and all(fields) else None


DEFAULT_LANGUAGE: Final = "en"
"""The language folder of pages whose key does not name one."""

_PLAN: Final = "plan.db"
_TABLES: Final = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE pages(place INTEGER PRIMARY KEY, key TEXT);
CREATE TABLE files(number INTEGER PRIMARY KEY, file_id TEXT, records INTEGER);
"""
_ADD_FILE: Final = "INSERT INTO files SELECT ?1, ?2, max(place) % ?3 + 1 FROM pages WHERE place < (?1 + 1) * ?3"
_CACHED_TARGETS: Final = 1 << 16


class PlannedFile(NamedTuple):
    """A data file that is planned."""

    file_id: str
    records: int  # one more than the highest record number in use


class Plan:
    """A plan that has been made, opened."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _PLAN
        with closing(opened(self._path)) as database:
            files = database.execute("SELECT file_id, records FROM files ORDER BY number").fetchall()
        self.files = sorted(PlannedFile(*file) for file in files)
        self._file_ids = [file_id for file_id, _ in files]
        self._numbers = {file_id: number for number, file_id in enumerate(self._file_ids)}
        self.keys = lru_cache(maxsize=1)(self._keys)  # successive chunks share them
        """The keys of a data file's pages by record number; None for a record that no page has."""
        self.new_id = lru_cache(maxsize=_CACHED_TARGETS)(self._new_id)
        """The new id of the page with a key of the source, None if the source does not hold it."""

    @cached_property
    def _database(self) -> sqlite3.Connection:
        """Opened at the first look-up, which is a worker's own: no connection survives a fork."""
        return opened(self._path)

    def place_of(self, new_id: str) -> int:
        """Return the place of the record with an id."""
        return self._numbers[tree.file_id_of(new_id)] * tree.RECORDS_PER_FILE + tree.record_of(new_id)

    def _keys(self, file: PlannedFile) -> list[str | None]:
        keys: list[str | None] = [None] * file.records
        first = self._numbers[file.file_id] * tree.RECORDS_PER_FILE
        query = "SELECT place, key FROM pages WHERE place >= ? AND place < ?"
        for place, key in self._database.execute(query, (first, first + file.records)):
            keys[place - first] = key
        return keys

    def _new_id(self, key: str) -> str | None:
        with suppress(UnicodeEncodeError):  # of a key that is no page's
            for (place,) in self._database.execute(
                "SELECT place FROM pages WHERE key = ? ORDER BY place LIMIT 1", (key,)
            ):
                file, record = divmod(place, tree.RECORDS_PER_FILE)
                return tree.format_id(self._file_ids[file], record)
        return None


def opened(path: Path) -> sqlite3.Connection:
    """Open a SQLite file that nobody changes any more, to be read only."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)


class BuildOptions(NamedTuple):
    """The options of a build, which decide its output together with source and manifest."""

    extractor: str  # name of the extractor that takes text from the HTML
    always_extract: bool  # whether to do so although the source has a clean text
    time_limit: float = PAGE_SECONDS  # seconds that a page may take
    slim_links: bool = False  # whether of a link nothing is written but the id


WORK: Final = ".build"


@dataclass(frozen=True)
class Build:
    """A build: from where, to where and how. It is cheap to pickle."""

    source: Corpus
    root: Path
    """Folder of the tree."""
    options: BuildOptions

    @property
    def work(self) -> Path:
        """Folder of temporary files, which is removed when the tree is complete."""
        return self.root / WORK

    @cached_property
    def plan(self) -> Plan:
        return Plan(self.work / "plan")

    def __reduce__(self) -> tuple[type[Build], tuple[Any, ...]]:
        return Build, (self.source, self.root, self.options)


def make_plan(folder: Path, source: Corpus, previous: Mapping[str, str]) -> None:
    """Give each page of the source an id and write the plan, unless it is there and whole.

    ``previous`` has ids to be kept, by key. Other pages are numbered after the highest of those, in the order of the
    source's keys, separately for each language. A page whose key is a ClueWeb22-ID stays in its language; all others
    are filed as English. Raises InputError if the layout has no more ids, and for a source without pages.
    """
    if (folder / _PLAN).exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    missing, new = dict(previous), NewIds(previous.values())
    numbers: dict[str, int] = {}
    temporary = folder / f"{_PLAN}.open"

    def placed(keys: Iterable[str]) -> Iterator[tuple[int, str]]:
        for key in keys:
            new_id = previous.get(key) or new.next(tree.language_of(key) if tree.split_id(key) else DEFAULT_LANGUAGE)
            manifest.write(f"{key}\t{new_id}\n")
            missing.pop(key, None)
            yield (
                numbers.setdefault(tree.file_id_of(new_id), len(numbers)) * tree.RECORDS_PER_FILE
                + tree.record_of(new_id),
                key,
            )

    failing = as_input_error(f"{temporary} cannot be written", errors=sqlite3.Error)
    with failing, closing(sqlite3.connect(temporary)) as database:
        database.executescript(_TABLES)
        with (folder / "manifest.tsv").open("w", encoding="utf-8", newline="\n") as manifest:
            pages = placed(Progress(source.keys(), "planning", len(source), unit=" pages"))
            database.executemany("INSERT INTO pages VALUES (?, ?)", pages)
            manifest.writelines(f"{key}\t{gone}\n" for key, gone in sorted(missing.items(), key=lambda item: item[1]))
        if not numbers:
            raise InputError(f"the {source.name} corpus holds no pages to build from")
        database.execute("CREATE INDEX by_key ON pages(key)")
        database.executemany(_ADD_FILE, ((number, name, tree.RECORDS_PER_FILE) for name, number in numbers.items()))
        database.commit()
    temporary.replace(folder / _PLAN)
