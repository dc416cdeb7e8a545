"""From a URL to the document at it, for any corpus that can list its URLs; memory does not grow with the corpus.

The index is a folder: ``index.json``, and shards of sorted 16-byte entries: 8 bytes of hash of the URL's lookup form,
3 bytes part number, 5 bytes item number, all big-endian. A *part* is a file of the corpus, an *item* whatever number
finds a document in it: a record number, a byte offset. A shard holds the entries whose hash begins with certain bits,
and is searched on disk. Entries with one hash stand in corpus order. It is written by
:mod:`simulate.clueweb22.url_index_build`.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.input_files import PreadFile, keep_open
from crawl4llm.base.urls import lookup_form, normalise_url
from crawl4llm.base.within import within

FORMAT: Final = 2
"""Version of the index's files; an index of another version is made anew."""
MANIFEST: Final = "index.json"
HASH_BYTES: Final = 8
PART_BYTES: Final = 3
ITEM_BYTES: Final = 5
ENTRY_BYTES: Final = HASH_BYTES + PART_BYTES + ITEM_BYTES

_OPEN_SHARDS = 64


class UrlSource(Protocol):
    """What the index asks of a corpus."""

    def url_parts(self) -> list[tuple[str, str]]:
        """Name and signature of each part, in corpus order; the signature changes when the part's URLs may have."""
        ...

    def urls_in(self, part: str) -> Iterator[tuple[int, str | None]]:
        """Item number and URL of each document of a part; None for one that cannot be read."""
        ...

    def key_at(self, part: str, item: int) -> str:
        """The document key of a part's item."""
        ...

    def url(self, key: str) -> str:
        """The URL of a document. Raises PageError where it cannot be read."""
        ...


def filed_form(url: str) -> str:
    """What two URLs must share to be taken for one page's: the lookup form of the normalised URL, a scheme left out
    being http."""
    return lookup_form(normalise_url(url if "://" in url else f"http://{url}"))


def url_hash(form: str) -> bytes:
    """The 8 bytes under which a lookup form is filed."""
    return hashlib.blake2b(form.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES).digest()


def shard_of(hashed: bytes, shard_bits: int) -> int:
    """The number of the shard of an entry that begins with ``hashed``."""
    return int.from_bytes(hashed[:HASH_BYTES], "big") >> (8 * HASH_BYTES - shard_bits)


def shard_path(folder: Path, shard: int) -> Path:
    """Where a shard lies."""
    return folder / f"{shard:04x}"


def source_digest(parts: Sequence[tuple[str, str]]) -> str:
    """What an index notes of the corpus state that it was made from."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read_manifest(folder: Path) -> dict[str, Any]:
    """What ``index.json`` says. Raises InputError where the folder holds no index of this version."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path}: there is no URL index of the corpus; make it with `scrapy corpus index`") from None
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{path}: a URL index of another version; make it anew with `scrapy corpus index`")
    return manifest


class UrlIndex:
    """The URL index of a corpus, opened for look-ups.

    Raises InputError where the folder holds none, or one of another version or another corpus.
    """

    def __init__(self, folder: Path, source: UrlSource) -> None:
        manifest = read_manifest(folder)
        parts = source.url_parts()
        if manifest["digest"] != source_digest(parts):
            raise InputError(f"{folder}: the URL index is of another state of the corpus; run `scrapy corpus index`")
        self._source = source
        self._parts = [name for name, _ in parts]
        self._shards = within(folder, manifest["shards"], folder / MANIFEST)
        self._shard_bits: int = manifest["shard_bits"]
        self._opened = lru_cache(maxsize=keep_open(_OPEN_SHARDS))(PreadFile)

    def find(self, url: str) -> str | None:
        """The key of the first document, in corpus order, whose URL has the same lookup form."""
        form = filed_form(url)
        for part, item in self._candidates(url_hash(form)):
            key = self._source.key_at(self._parts[part], item)
            try:
                # Two forms may share a hash.
                if filed_form(self._source.url(key)) == form:
                    return key
            except PageError:
                continue
        return None

    def _candidates(self, wanted: bytes) -> Iterator[tuple[int, int]]:
        path = shard_path(self._shards, shard_of(wanted, self._shard_bits))
        try:
            shard = self._opened(path)
        except FileNotFoundError:
            raise InputError(f"{path}: missing from the URL index; run `scrapy corpus index`") from None
        entries = range(shard.size // ENTRY_BYTES)
        first = bisect_left(entries, wanted, key=lambda entry: shard.read(HASH_BYTES, entry * ENTRY_BYTES))
        for entry in entries[first:]:
            found = shard.read(ENTRY_BYTES, entry * ENTRY_BYTES)
            if not found.startswith(wanted):
                return
            item = found[HASH_BYTES + PART_BYTES :]
            yield int.from_bytes(found[HASH_BYTES : HASH_BYTES + PART_BYTES], "big"), int.from_bytes(item, "big")
