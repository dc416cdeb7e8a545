"""Takes the documents of a domain out of an export, and out of its manifest and dataset card."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from crawl4llm.base.bars import Progress
from crawl4llm.base.compression import zstd
from crawl4llm.base.domains import Domain
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import open_input
from crawl4llm.base.run_folder import read_json
from crawl4llm.base.within import require_all_within
from crawl4llm.tools.archive.changes import Changes, writing
from crawl4llm.tools.export.card import CARD, card, damaged
from crawl4llm.tools.export.folder import DOCUMENTS, MANIFEST, listed_shards
from crawl4llm.tools.export.formats import PARQUET, Document, open_file, open_shard
from crawl4llm.tools.export.json_lines import load
from crawl4llm.tools.export.shards import Languages
from crawl4llm.tools.export.words import WordCount


def purge_export(folder: Path, domain: Domain, ask: Callable[[str], None] | None = None) -> Iterator[str]:
    """Purge a domain from a finished export; yields how many documents went. Raises InputError.

    ``ask`` is told before how many will go, and may raise InputError.
    """
    require_all_within(folder)
    with Changes(folder) as changes:
        manifest = read_json(folder / MANIFEST)
        kept, gone = [], 0
        for shard in Progress(listed_shards(folder, manifest), "Purging", unit=" files"):
            path = folder / DOCUMENTS / shard["name"]
            facts = _purge_shard(path, changes.stage(path), domain)
            gone += shard["documents"] - facts["documents"]
            if facts["documents"] == shard["documents"]:
                changes.leave(path)
                kept.append(shard)
            elif facts["documents"]:
                kept.append({**shard, **facts})
            else:
                changes.leave(path)
                changes.remove(path)
        if gone:
            if ask is not None:
                ask(f"purge {domain.name} and all below it from {folder}: {gone:,} documents")
            _stage_manifest(folder, changes, {**manifest, "shards": kept}, domain, gone)
            changes.commit()
    yield f"{folder}: {gone:,} documents"


def _stage_manifest(folder: Path, changes: Changes, manifest: dict[str, Any], domain: Domain, gone: int) -> None:
    """Stage a manifest and a card whose totals fit the files, and that say what went."""
    date = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def total(name: str) -> int:
        return sum(shard[name] for shard in manifest["shards"])

    manifest["documents"], manifest["text_bytes"] = total("documents"), total("text_bytes")
    try:
        manifest["tokens"] = {**manifest.get("tokens", {}), "words": total("words")}
        manifest["purged"] = [
            *manifest.get("purged", []),
            {"date": date, "domain": domain.name, "documents": gone},
        ]
    except TypeError:
        raise damaged(folder / MANIFEST) from None
    text = card(manifest, folder / MANIFEST)
    with writing(folder / CARD):
        changes.stage(folder / CARD).write_text(text, encoding="utf-8")
    with writing(folder / MANIFEST):
        changes.stage(folder / MANIFEST).write_text(f"{json.dumps(manifest, indent=2)}\n", encoding="utf-8")


def _purge_shard(path: Path, new: Path, domain: Domain) -> dict[str, Any]:
    """Write a file without the domain's documents; returns what a manifest says of it."""
    words, languages, documents, text_bytes = WordCount(), Languages(), 0, 0
    with writing(path):
        form = path.name.partition(".")[2]
        file = open_file(new, form)
        try:
            shard = open_shard(file, form)
            for document in _documents(path):
                if domain.holds(document.url):
                    continue
                text = document.text.encode()
                words.add(text)
                documents += 1
                text_bytes += len(text)
                languages.add(document.language)
                shard.add(document)
            shard.finish()
        finally:
            file.close()
    return {
        "documents": documents,
        "words": words.total,
        "text_bytes": text_bytes,
        "bytes": file.size,
        "sha256": file.digest,
        "languages": languages.counts,
    }


def _documents(path: Path) -> Iterator[Document]:
    """The documents in a file of an export. Raises InputError where it cannot be read."""
    try:
        rows = _parquet_rows(path) if path.name.endswith(PARQUET) else map(load, _lines(path))
        for row in rows:
            yield Document(**{name: row[name] for name in Document._fields})
    except (OSError, EOFError, KeyError, TypeError, ValueError, zlib.error, zstd.ZstdError) as error:
        raise InputError(f"{path} cannot be read as a file of an export: {error!r}") from None


def _lines(path: Path) -> Iterator[bytes]:
    if path.suffix == ".gz":
        with open_input(path) as file, gzip.open(file) as lines:
            yield from lines
    elif path.suffix == ".zst":
        with open_input(path) as file, zstd.open(file) as frames, io.BufferedReader(frames) as buffered:
            yield from buffered
    else:
        with open_input(path) as plain:
            yield from plain


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise InputError(f"{path}: reading it needs pyarrow; pip install 'crawl4llm[export]'") from None
    with open_input(path) as opened, parquet.ParquetFile(opened) as file:
        for batch in file.iter_batches():
            yield from batch.to_pylist()
