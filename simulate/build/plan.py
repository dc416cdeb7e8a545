"""The plan of a build: which page of the source gets which ClueWeb22-ID.

The plan is a folder of files, so that any number of processes share it and memory does not grow with the corpus:

- ``plan.json``, written last: a plan without it is not whole;
- ``keys/{file id}``: the pages of a data file to be, a line ``{record}<TAB>{key}`` each, in no particular order;
- ``table``: sorted entries of 24 bytes, for a link's target: 16 bytes of BLAKE2b of the key, the number of the data
  file and the record in it, four bytes each, big-endian;
- ``manifest.tsv``: lines ``{key}<TAB>{id}`` in the order of the source, then those of ids whose pages have vanished.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import shutil
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import replacing
from crawl4llm.base.input_files import input_lines, parse_json
from crawl4llm.base.pages import Corpus
from simulate.clueweb22.records import (
    FILES_PER_SUBDIR,
    RECORDS_PER_FILE,
    SUBDIRS_PER_STREAM,
    DocId,
    format_id,
    language_of,
    split_id,
)

FIRST_ID: Final = DocId("en", 0, 0, 0, 0)
_STREAMS: Final = 100


def next_id(document: DocId) -> DocId:
    """Return the id behind an id, in the next file where one is full. Raises InputError behind a language's last."""
    language, stream, subdir, file, record = document
    carry, record = divmod(record + 1, RECORDS_PER_FILE)
    carry, file = divmod(file + carry, FILES_PER_SUBDIR)
    carry, subdir = divmod(subdir + carry, SUBDIRS_PER_STREAM)
    stream += carry
    if stream == _STREAMS:
        raise InputError(f"{document} is the last id that the layout has for language {language}")
    return DocId(language, stream, subdir, file, record)


def read_manifest(path: Path, source: Corpus) -> dict[str, str]:
    """Read the ids of a manifest by the source's keys: all in memory, some 250 bytes a page.

    A line is ``{key or URL}<TAB>{id}``, or a JSON object with ``key`` or ``url`` and ``id``. A URL that is no key of
    the source is looked up there; where it leads nowhere, its id stays taken. Of several lines for one page the first
    counts, the other ids stay unused too.

    Raises InputError, naming the line, for a file of another format, an id that the layout does not have and an id that
    is given twice; and where URLs need an index that the source does not have.
    """
    ids: dict[str, str] = {}
    given: set[str] = set()
    for number, (page, new_id) in _lines(path):
        where = f"--manifest {path}: line {number}"
        if not _is_possible(new_id):
            raise InputError(f"{where}: {new_id!r} is not a ClueWeb22-ID of this layout")
        if new_id in given:
            raise InputError(f"{where}: {new_id} has been given before; an id can belong to one page only")
        given.add(new_id)
        key = page if source.is_key(page) else source.resolve(page) or page
        # What names a page that has an id already keeps its id from being given again, under its own name.
        ids.setdefault(key if key not in ids else f"{page}#{new_id}", new_id)
    return ids


def _lines(path: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    try:
        for number, line in enumerate(input_lines(path, compressed=False, newline="\n"), start=1):
            if not line.strip():
                continue
            fields = _fields(line.rstrip("\r\n"))
            if fields is None:
                raise InputError(
                    f"--manifest {path}: line {number}: expected a key or URL, a tab and a ClueWeb22-ID, "
                    'or JSON like {"url": ..., "id": ...}'
                )
            yield number, fields
    except OSError as error:
        raise InputError(f"--manifest {path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"--manifest {path}: not a text file in UTF-8") from None


def _fields(line: str) -> tuple[str, str] | None:
    if line.startswith("{"):
        try:
            found = parse_json(line)
        except ValueError:
            return None
        page, new_id = found.get("key", found.get("url")), found.get("id")
        return (page, new_id) if isinstance(page, str) and isinstance(new_id, str) else None
    fields = line.split("\t")
    return (fields[0], fields[1]) if len(fields) == 2 and all(fields) else None


def _is_possible(text: str) -> bool:
    document = DocId.parse(text)
    return document is not None and document.subdir < SUBDIRS_PER_STREAM and document.record < RECORDS_PER_FILE


DEFAULT_LANGUAGE: Final = "en"
"""The language folder of pages whose key does not name one."""

_DIGEST_BYTES, _NUMBER_BYTES = 16, 4
_ENTRY_BYTES: Final = _DIGEST_BYTES + 2 * _NUMBER_BYTES
_SHARDS: Final = 256
_BUFFERED: Final = 100_000  # pages held in memory before their lines and entries are written out
_CACHED_TARGETS: Final = 1 << 16


class PlannedFile(NamedTuple):
    """A data file that is planned."""

    file_id: str
    records: int  # one more than the highest record number in use


class Plan:
    """A plan that has been made, opened. Raises FileNotFoundError where it is not whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        stored = json.loads((folder / "plan.json").read_bytes())
        self.files = [PlannedFile(*file) for file in stored["files"]]  # the data files, by file id
        self.documents: int = stored["documents"]
        self._file_ids: list[str] = stored["file_ids"]
        self._numbers = {file_id: number for number, file_id in enumerate(self._file_ids)}
        with (folder / "table").open("rb") as file:
            self._table = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.new_id = lru_cache(maxsize=_CACHED_TARGETS)(self._new_id)
        """The new id of the page with a key of the source, None where the source does not hold it."""

    def file_number(self, file_id: str) -> int:
        """Return the number under which a data file is known to the spilled links."""
        return self._numbers[file_id]

    def keys(self, file: PlannedFile) -> list[str | None]:
        """Return the keys of a data file's pages by record number; None for a record that no page has."""
        keys: list[str | None] = [None] * file.records
        with (self._folder / "keys" / file.file_id).open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                record, _, key = line[:-1].partition("\t")
                keys[int(record)] = key
        return keys

    def _new_id(self, key: str) -> str | None:
        wanted, table = _digest(key), self._table
        entries = range(len(table) // _ENTRY_BYTES)
        found = bisect_left(
            entries, wanted, key=lambda at: table[at * _ENTRY_BYTES : at * _ENTRY_BYTES + _DIGEST_BYTES]
        )
        entry = table[found * _ENTRY_BYTES : (found + 1) * _ENTRY_BYTES]
        if not entry.startswith(wanted):
            return None
        numbers = entry[_DIGEST_BYTES:]
        file, record = (int.from_bytes(part, "big") for part in (numbers[:_NUMBER_BYTES], numbers[_NUMBER_BYTES:]))
        return format_id(self._file_ids[file], record)


def make_plan(folder: Path, source: Corpus, previous: Mapping[str, str]) -> None:
    """Give each page of the source an id and write the plan, unless it is there and whole.

    ``previous`` has ids to be kept, by key. Other pages are numbered behind the highest of those, in the order of the
    source's keys, each language for itself: a page whose key is a ClueWeb22-ID stays in its language, all others are
    filed as English. Raises InputError where the layout has no more ids, and for a source without pages.
    """
    if (folder / "plan.json").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    writer = _PlanWriter(folder)
    missing = dict(previous)
    with (folder / "manifest.tsv").open("w", encoding="utf-8", newline="\n") as manifest:
        keys = Progress(source.keys(), "planning", len(source), unit=" pages")
        for key, new_id in _assigned(keys, previous):
            writer.add(key, new_id)
            manifest.write(f"{key}\t{new_id}\n")
            missing.pop(key, None)
        manifest.writelines(f"{key}\t{gone}\n" for key, gone in sorted(missing.items(), key=lambda item: item[1]))
    if not writer.documents:
        raise InputError(f"the {source.name} corpus holds no pages to build from")
    writer.finish()


def _assigned(keys: Iterable[str], previous: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    last: dict[str, DocId] = {}
    for document in filter(None, map(DocId.parse, previous.values())):
        last[document.language] = max(document, last.get(document.language, document))
    for key in keys:
        kept = previous.get(key)
        if kept is None:
            language = language_of(key) if split_id(key) else DEFAULT_LANGUAGE
            before = last.get(language)
            last[language] = next_id(before) if before else FIRST_ID._replace(language=language)
            kept = str(last[language])
        yield key, kept


class _PlanWriter:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shards = folder / "shards"
        for made in (folder / "keys", self._shards):
            made.mkdir()
        self._numbers: dict[str, int] = {}
        self._records: list[int] = []
        self.documents = 0
        self._lines: defaultdict[str, list[str]] = defaultdict(list)
        self._entries = [bytearray() for _ in range(_SHARDS)]

    def add(self, key: str, new_id: str) -> None:
        place = split_id(new_id)
        assert place is not None
        file_id, record = place
        number = self._numbers.setdefault(file_id, len(self._numbers))
        if number == len(self._records):
            self._records.append(0)
        self._records[number] = max(self._records[number], record + 1)
        digest = _digest(key)
        self._lines[file_id].append(f"{record}\t{key}\n")
        self._entries[digest[0]] += digest + b"".join(n.to_bytes(_NUMBER_BYTES, "big") for n in (number, record))
        self.documents += 1
        if not self.documents % _BUFFERED:
            self._flush()

    def finish(self) -> None:
        self._flush()
        with (self._folder / "table").open("wb") as table:
            for shard in sorted(self._shards.iterdir()):
                body = shard.read_bytes()
                table.writelines(sorted(body[at : at + _ENTRY_BYTES] for at in range(0, len(body), _ENTRY_BYTES)))
        shutil.rmtree(self._shards)
        files = sorted((file_id, self._records[number]) for file_id, number in self._numbers.items())
        stored = {"documents": self.documents, "files": files, "file_ids": list(self._numbers)}
        with replacing(self._folder / "plan.json") as file:
            file.write(json.dumps(stored).encode())

    def _flush(self) -> None:
        for file_id, lines in self._lines.items():
            with (self._folder / "keys" / file_id).open("a", encoding="utf-8", newline="\n") as file:
                file.writelines(lines)
        self._lines.clear()
        for shard, entries in enumerate(self._entries):
            with (self._shards / f"{shard:02x}").open("ab") as file:
                file.write(entries)
            entries.clear()


def _digest(key: str) -> bytes:
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
