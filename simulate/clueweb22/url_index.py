"""The URL index: finds the document at a URL, for any corpus that can list its URLs, in memory that does not grow.

The index is a folder: ``index.json``, and shards of sorted 16-byte entries: 8 bytes of hash of the URL's lookup form,
3 bytes part number, 5 bytes item number, all big-endian. A *part* is a file of the corpus, an *item* whatever number
finds a document in it: a record number, a byte offset. A shard holds the entries whose hash begins with certain bits,
and is searched on disk. Entries with one hash stand in corpus order.

It is built of one sorted file for each part, made in parallel and put in place whole, with the part's signature: after
a kill, or a change to some of the corpus's files, only the parts that are missing or stale are read.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.files import PreadFile, keep_open, locked, remove_temporary, write_whole, writing
from crawl4llm.base.formats import require_format
from crawl4llm.base.processes import KILLED_INDEXING
from crawl4llm.base.shard_tasks import UNDIVIDED, Executor, Shards, run_shards
from crawl4llm.base.urls import lookup_form, normalise_url
from crawl4llm.base.within import is_within, within

FORMAT: Final = 3
"""Version of the index's files; an index of another one is built again."""
MANIFEST: Final = "index.json"
HASH_BYTES, PART_BYTES, ITEM_BYTES = 8, 3, 5
ENTRY_BYTES: Final = HASH_BYTES + PART_BYTES + ITEM_BYTES

_OPEN_SHARDS = 64
_SHARD_ENTRIES = 1 << 20  # entries of a shard, about: it is sorted in memory, where a million entries take some 80 MB
_MAX_SHARD_BITS = 12
_BUFFERED_ENTRIES = 1 << 22
_PART_ENTRY_BYTES = HASH_BYTES + 8
"""An entry in a part's file: hash and item number; the part number is only known among all parts."""


class UrlSource(Protocol):
    """A corpus as the index needs it."""

    def url_parts(self) -> list[tuple[str, str]]:
        """Return name and signature of each part, in corpus order; the signature changes when its URLs may have."""

    def urls_in(self, part: str) -> Iterator[tuple[int, str | None]]:
        """Yield item number and URL of each document of a part; None for one that cannot be read."""

    def key_at(self, part: str, item: int) -> str:
        """Return the document key of a part's item."""

    def url(self, key: str) -> str:
        """Return the URL of a document. Raises PageError where it cannot be read."""


def filed_form(url: str) -> str:
    """Return the lookup form of the normalised URL, with http for a missing scheme: equal for two URLs of one page."""
    return lookup_form(normalise_url(url if "://" in url else f"http://{url}"))


def url_hash(form: str) -> bytes:
    """Return the 8 bytes under which a lookup form is filed."""
    return hashlib.blake2b(form.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES).digest()


def shard_of(hashed: bytes, shard_bits: int) -> int:
    """Return the number of the shard of an entry that begins with ``hashed``."""
    return int.from_bytes(hashed[:HASH_BYTES], "big") >> (8 * HASH_BYTES - shard_bits)


def shard_path(folder: Path, shard: int) -> Path:
    """Return where a shard lies."""
    return folder / f"{shard:04x}"


def source_digest(parts: Sequence[tuple[str, str]]) -> str:
    """Return what an index notes of the corpus state that it was made from."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read_manifest(folder: Path, make: str = "scrapy corpus index") -> dict[str, Any]:
    """Read ``index.json``. Raises InputError if the folder holds no index of this format; it names the command to
    ``make`` one."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path}: there is no URL index of the corpus; make it: {make}") from None
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict):
        manifest = {}
    require_format(path, manifest.get("format"), FORMAT, make)
    return manifest


class UrlIndex:
    """The URL index of a corpus, opened for look-ups.

    Raises InputError where the folder holds none, or one of another format or another corpus.
    """

    def __init__(self, folder: Path, source: UrlSource, make: str = "scrapy corpus index") -> None:
        """``make``: the command that makes it, for errors."""
        self._make = make
        manifest = read_manifest(folder, make)
        parts = source.url_parts()
        if manifest["digest"] != source_digest(parts):
            raise InputError(f"{folder}: the URL index is of another state of the corpus; run {make}")
        self._source = source
        self._parts = [name for name, _ in parts]
        self._shards = within(folder, manifest["shards"], folder / MANIFEST)
        self._shard_bits: int = manifest["shard_bits"]
        self._opened = lru_cache(maxsize=keep_open(_OPEN_SHARDS))(PreadFile)

    def find(self, url: str) -> str | None:
        """Return the key of the first document, in corpus order, whose URL has the same lookup form."""
        form = filed_form(url)
        for part, item in self._candidates(url_hash(form)):
            key = self._source.key_at(self._parts[part], item)
            try:
                if filed_form(self._source.url(key)) == form:  # another form may have the same hash
                    return key
            except PageError:
                continue
        return None

    def _candidates(self, wanted: bytes) -> Iterator[tuple[int, int]]:
        path = shard_path(self._shards, shard_of(wanted, self._shard_bits))
        try:
            shard = self._opened(path)
        except FileNotFoundError:
            raise InputError(f"{path}: missing from the URL index; run {self._make}") from None
        entries = range(shard.size // ENTRY_BYTES)
        first = bisect_left(entries, wanted, key=lambda entry: shard.read(HASH_BYTES, entry * ENTRY_BYTES))
        for entry in entries[first:]:
            found = shard.read(ENTRY_BYTES, entry * ENTRY_BYTES)
            if not found.startswith(wanted):
                return
            item = found[HASH_BYTES + PART_BYTES :]
            yield int.from_bytes(found[HASH_BYTES : HASH_BYTES + PART_BYTES], "big"), int.from_bytes(item, "big")


# -- making it --------------------------------------------------------------------------------------------------------


class IndexSummary(NamedTuple):
    """Counts of what an index holds, and of what making it took."""

    documents: int
    unreadable: int  # documents left out because their records are damaged or name no URL
    duplicates: int  # documents whose URL an earlier document has
    parts_read: int
    parts_kept: int  # parts that an earlier build has read


def build_url_index(source: UrlSource, folder: Path, jobs: int = 1, executor: Executor = UNDIVIDED) -> IndexSummary:
    """Bring the index in ``folder`` up to the state of ``source``, with ``jobs`` processes and a progress bar.

    Parts are read in the tasks of ``executor``. ``source`` must be cheap to pickle and to open. Raises InputError where
    the folder cannot be written.
    """
    named = source.url_parts()
    digest = source_digest(named)
    with locked(folder), writing(folder):
        (folder / "parts").mkdir(exist_ok=True)
        remove_temporary(folder)
        names = [hashlib.sha256(name.encode()).hexdigest()[:32] for name, _ in named]
        parts = [_Part(*part, folder / "parts" / name) for part, name in zip(named, names, strict=True)]
        missing = [part for part in parts if part.read_head() is None]
        manifest = _current_manifest(folder, digest)
        if missing or manifest is None:
            of_parts = [_PartJob(source, part) for part in parts]
            shards = Shards(partial(map, _write_part), of_parts, _PartJob.is_done, folder / "tasks" / digest[:16])
            for _ in run_shards(shards, executor, jobs, " files", killed=KILLED_INDEXING):
                pass
            manifest = _write_index(folder, parts, digest)
        _remove_stale(folder, parts, manifest)
    counts = [manifest[name] for name in ("documents", "unreadable", "duplicates")]
    return IndexSummary._make([*counts, len(missing), len(parts) - len(missing)])


# -- parts ------------------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A part of the corpus and the file of its entries: a line of JSON, then the entries in ascending order."""

    name: str
    signature: str
    path: Path

    def identity(self) -> dict[str, Any]:
        return {"format": FORMAT, "part": self.name, "signature": self.signature}

    def read_head(self) -> dict[str, Any] | None:
        """Return the line of JSON; None where the file is missing, stale or cut short."""
        try:
            with self.path.open("rb") as file:
                line = file.readline()
                head: dict[str, Any] = json.loads(line)
                size = os.fstat(file.fileno()).st_size - len(line)
        except (FileNotFoundError, ValueError):
            return None
        whole = head.items() >= self.identity().items() and size == head["documents"] * _PART_ENTRY_BYTES
        return head if whole else None

    def read_entries(self) -> Iterator[bytes]:
        body = self.path.read_bytes().partition(b"\n")[2]
        return (body[at : at + _PART_ENTRY_BYTES] for at in range(0, len(body), _PART_ENTRY_BYTES))


class _PartJob(NamedTuple):
    """A job: to make a part's file."""

    source: UrlSource
    part: _Part
    size: int = 1

    def is_done(self) -> bool:
        return self.part.read_head() is not None


def _write_part(job: _PartJob) -> None:
    source, part, _ = job
    entries, unreadable = [], 0
    for item, url in source.urls_in(part.name):
        if url is None:
            unreadable += 1
        else:
            entries.append(url_hash(filed_form(url)) + item.to_bytes(_PART_ENTRY_BYTES - HASH_BYTES, "big"))
    entries.sort()
    head = part.identity() | {"documents": len(entries), "unreadable": unreadable}
    write_whole(part.path, b"".join([json.dumps(head).encode(), b"\n", *entries]))


# -- the index over all parts -----------------------------------------------------------------------------------------


def _current_manifest(folder: Path, digest: str) -> dict[str, Any] | None:
    """Return the manifest of the index as it stands, if it is of this state of the corpus and whole."""
    try:
        manifest = read_manifest(folder)
    except InputError:
        return None
    if manifest["digest"] != digest or not is_within(manifest["shards"]):
        return None
    size = sum(shard.stat().st_size for shard in (folder / manifest["shards"]).glob("*"))
    return manifest if size == manifest["documents"] * ENTRY_BYTES else None


def _write_index(folder: Path, parts: Sequence[_Part], digest: str) -> dict[str, Any]:
    heads = [part.read_head() or {} for part in parts]
    documents = sum(head["documents"] for head in heads)
    shards = folder / f"shards-{digest[:16]}"
    shard_bits = min((documents // _SHARD_ENTRIES).bit_length(), _MAX_SHARD_BITS)
    with writing(shards):
        (folder / MANIFEST).unlink(missing_ok=True)  # shards of this name are not whole until the end
        shutil.rmtree(shards, ignore_errors=True)
        shards.mkdir()
        _distribute(parts, shards, shard_bits)
        numbers = Progress(range(1 << shard_bits), "sorting URLs", unit=" files")
        duplicates = sum(_sort_shard(shard_path(shards, number)) for number in numbers)
    manifest = {
        "format": FORMAT,
        "digest": digest,
        "shards": shards.name,
        "shard_bits": shard_bits,
        "documents": documents,
        "unreadable": sum(head["unreadable"] for head in heads),
        "duplicates": duplicates,
    }
    write_whole(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
    return manifest


def _distribute(parts: Sequence[_Part], shards: Path, shard_bits: int) -> None:
    """Append the entries of all parts to the shards they belong to, in corpus order."""
    buffers = [bytearray() for _ in range(1 << shard_bits)]
    buffered = 0
    for number, part in enumerate(Progress(parts, "merging URLs", unit=" files")):
        part_bytes = number.to_bytes(PART_BYTES, "big")
        for entry in part.read_entries():
            buffers[shard_of(entry, shard_bits)] += entry[:HASH_BYTES] + part_bytes + entry[-ITEM_BYTES:]
            buffered += 1
        if buffered >= _BUFFERED_ENTRIES:
            _append(buffers, shards)
            buffered = 0
    _append(buffers, shards)


def _append(buffers: Sequence[bytearray], shards: Path) -> None:
    for shard, buffer in enumerate(buffers):
        with shard_path(shards, shard).open("ab") as file:
            file.write(buffer)
        buffer.clear()


def _sort_shard(path: Path) -> int:
    """Sort a shard's entries in place, and count those whose hash an earlier one has."""
    body = path.read_bytes()
    entries = sorted(body[at : at + ENTRY_BYTES] for at in range(0, len(body), ENTRY_BYTES))
    write_whole(path, b"".join(entries))
    return sum(a[:HASH_BYTES] == b[:HASH_BYTES] for a, b in pairwise(entries))


# -- the folder -------------------------------------------------------------------------------------------------------


def _remove_stale(folder: Path, parts: Sequence[_Part], manifest: dict[str, Any]) -> None:
    """Remove what belongs to earlier states of the corpus."""
    wanted = {part.path for part in parts}
    for path in (folder / "parts").iterdir():
        if path not in wanted:
            path.unlink()
    for path in folder.glob("shards-*"):
        if path.name != manifest["shards"]:
            shutil.rmtree(path)
