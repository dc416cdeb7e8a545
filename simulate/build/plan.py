"""A build and its plan: which page of the source gets which ClueWeb22-ID.

The plan is a folder of files, so that any number of processes share it and memory does not grow with the corpus:

- ``plan.json``, written last: a plan without it is not whole;
- ``keys/{file id}``: the pages of a data file to be, a line ``{record}<TAB>{key}`` each, in no particular order;
- ``hashes``, ``places``: a table for a link's target, by hashes of keys: the record, all records of all data files
  being numbered;
- ``manifest.tsv``: lines ``{key}<TAB>{id}`` in the order of the source, then those of ids whose pages have vanished.
"""

from __future__ import annotations

import json
import shutil
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import json_or_none, named_lines
from crawl4llm.base.pages import Corpus
from crawl4llm.base.sorted_file import HashTable, Kind, SortedFile
from crawl4llm.base.sorted_writer import SortedWriter
from crawl4llm.base.whole_files import replacing
from crawl4llm.scoring import PAGE_SECONDS
from simulate.clueweb22.files import NewIds
from simulate.clueweb22.records import RECORDS_PER_FILE, format_id, language_of, number_of, split_id
from simulate.indexes import TableWriter, text_hash


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
        if number_of(new_id) is None:
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

_PLACES, _SCHEME = "places", "blake2b-64 of keys"
_KIND: Final = Kind("plan", "plan of a build", "scrapy corpus build", "build in an empty folder")
_AT_ONCE: Final = 100_000  # pages whose lines and entries are written at once
_CACHED_TARGETS: Final = 1 << 16


class PlannedFile(NamedTuple):
    """A data file that is planned."""

    file_id: str
    records: int  # one more than the highest record number in use


class Plan:
    """A plan that has been made, opened. Raises FileNotFoundError if it is not whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        stored = json.loads((folder / "plan.json").read_bytes())
        self.files = [PlannedFile(*file) for file in stored["files"]]  # the data files, by file id
        self._file_ids: list[str] = stored["file_ids"]
        self.numbers = {file_id: number for number, file_id in enumerate(self._file_ids)}
        """The numbers under which data files are known to the spilled links."""
        self._table = HashTable(SortedFile(folder / _PLACES, _KIND, _SCHEME, whole=False), _PLACES)
        self.keys = lru_cache(maxsize=1)(self._keys)  # successive chunks share them
        """The keys of a data file's pages by record number; None for a record that no page has."""
        self.new_id = lru_cache(maxsize=_CACHED_TARGETS)(self._new_id)
        """The new id of the page with a key of the source, None if the source does not hold it."""

    def _keys(self, file: PlannedFile) -> list[str | None]:
        keys: list[str | None] = [None] * file.records
        with (self._folder / "keys" / file.file_id).open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                record, _, key = line[:-1].partition("\t")
                keys[int(record)] = key
        return keys

    def _new_id(self, key: str) -> str | None:
        place = next((place for _, place in self._table.under(text_hash(key))), None)
        if place is None:
            return None
        file, record = divmod(place, RECORDS_PER_FILE)
        return format_id(self._file_ids[file], record)


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
    if (folder / "plan.json").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    writer = _PlanWriter(folder, len(source))
    missing, new = dict(previous), NewIds(previous.values())

    def id_of(key: str) -> str:
        return previous.get(key) or new.next(language_of(key) if split_id(key) else DEFAULT_LANGUAGE)

    with (folder / "manifest.tsv").open("w", encoding="utf-8", newline="\n") as manifest:
        keys = Progress(source.keys(), "planning", len(source), unit=" pages")
        assigned = ((key, id_of(key)) for key in keys)
        while pages := list(islice(assigned, _AT_ONCE)):
            writer.add(pages)
            for key, new_id in pages:
                manifest.write(f"{key}\t{new_id}\n")
                missing.pop(key, None)
        manifest.writelines(f"{key}\t{gone}\n" for key, gone in sorted(missing.items(), key=lambda item: item[1]))
    if not writer.documents:
        raise InputError(f"the {source.name} corpus holds no pages to build from")
    writer.finish()


class _PlanWriter:
    def __init__(self, folder: Path, pages: int) -> None:
        self._folder = folder
        (folder / "keys").mkdir()
        self._numbers: dict[str, int] = {}
        self._records: dict[str, int] = {}
        self.documents = 0
        self._table = TableWriter(folder / "scratch", pages, "the plan")

    def add(self, pages: Sequence[tuple[str, str]]) -> None:
        """Add pages, each by key and new id."""
        lines: defaultdict[str, list[str]] = defaultdict(list)
        places = array("Q")
        for key, new_id in pages:
            place = split_id(new_id)
            assert place is not None
            file_id, record = place
            number = self._numbers.setdefault(file_id, len(self._numbers))
            self._records[file_id] = max(record + 1, self._records.get(file_id, 0))
            lines[file_id].append(f"{record}\t{key}\n")
            places.append(number * RECORDS_PER_FILE + record)
        for file_id, some in lines.items():
            with (self._folder / "keys" / file_id).open("a", encoding="utf-8", newline="\n") as file:
                file.writelines(some)
        self._table.add(array("Q", (text_hash(key) for key, _ in pages)), places)
        self.documents += len(pages)

    def finish(self) -> None:
        with (self._folder / _PLACES).open("wb") as places:
            writer = SortedWriter(places)
            self._table.write(writer, _PLACES)
            writer.finish(_KIND, _SCHEME, self.documents)
        (self._folder / "scratch").rmdir()
        files = sorted(self._records.items())
        stored = {"documents": self.documents, "files": files, "file_ids": list(self._numbers)}
        with replacing(self._folder / "plan.json") as file:
            file.write(json.dumps(stored).encode())
