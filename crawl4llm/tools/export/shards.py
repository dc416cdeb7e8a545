"""The writing step: each file of an export is a task of its own, done whole or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np

from crawl4llm.base.errors import CorruptRecord, InputError, PageError, TooLarge, as_input_error
from crawl4llm.base.input_files import given_path, read_input
from crawl4llm.base.reasons import NO_TEXT
from crawl4llm.base.received import WRITTEN
from crawl4llm.base.run_folder import read_json, write_json
from crawl4llm.base.shapes import fits
from crawl4llm.base.whole_files import replacing
from crawl4llm.tools._text_sources import load_tokenizer, tokenizers_library
from crawl4llm.tools.export.documents import Reader, Row, as_text
from crawl4llm.tools.export.formats import Document, ShardFacts, ShardWriter
from crawl4llm.tools.export.selecting import Place
from crawl4llm.warc import OPEN_SUFFIX

SHARDS: Final = "shards"
"""Name of the folder in the work folder with the notes of files that were written."""
PLAN: Final = "plan"
"""Name of the file in the work folder with all documents, in the order of the export."""
PLACE: Final = np.dtype([(name, "<i8") for name in ("number", "block", "place", "length")])
"""The form of a document in that file: its number; the block of its row, and place and length there."""
_LARGEST_TOKENIZER: Final = 1 << 28
"""Bytes of a tokenizer's file."""
_OF_ROW: Final = ("id", "url", "date", "language", "influence", "words", "link_share", "digest")
"""Fields that documents have of their rows."""


class Tokenizer(NamedTuple):
    """A ``tokenizer.json`` of the library tokenizers. Nothing is downloaded. Each process loads it once."""

    path: str
    digest: str
    """SHA-256 of the file, in hex."""

    @classmethod
    def of(cls, given: str) -> Tokenizer:
        """Return the tokenizer in a file. Raises InputError if it has none, or if the library is missing."""
        path = given_path(given)
        with as_input_error(f"--tokenizer {given} cannot be read"):
            data = read_input(path, _LARGEST_TOKENIZER)
        tokenizer = cls(str(path), hashlib.sha256(data).hexdigest())
        _load(tokenizer)
        return tokenizer

    def count(self, text: str) -> int:
        """Return the tokens of a text, without those that mark its ends."""
        return len(_load(self).encode(text, add_special_tokens=False).ids)


@cache
def _load(tokenizer: Tokenizer) -> Any:
    data = Path(tokenizer.path).read_bytes()
    return load_tokenizer(tokenizers_library("--tokenizer"), data, f"--tokenizer {tokenizer.path}")


class _Unfit(Exception):
    """Some documents of a file are unreadable: ``documents``, by number with the reason."""

    def __init__(self, documents: dict[int, str]) -> None:
        self.documents = documents


@dataclass(frozen=True)
class ShardJob:
    """A file to write. Pickled for the process that does it."""

    path: Path
    format: str
    start: int
    """Place of its first document in the plan."""
    size: int
    """Documents."""
    digest: str
    """Distinguishes the file from another one of that name."""
    reader: Reader
    tokenizer: Tokenizer | None = None

    @property
    def _note(self) -> Path:
        return self.reader.work / SHARDS / f"{self.path.name}.json"

    def written(self) -> ShardFacts | None:
        """Return the file's entry of the manifest if it was written as planned; None if it is to be written."""
        noted = read_json(self._note)
        if not fits([noted], WRITTEN) or noted["plan"] != self.digest or not self.path.exists():
            return None
        facts = ShardFacts(*noted["facts"])
        return facts if (facts.name, facts.bytes) == (self.path.name, self.path.stat().st_size) else None

    def is_done(self) -> bool:
        """Return whether the file is written."""
        return self.written() is not None

    def facts(self) -> ShardFacts:
        """Return the entry of a file that was just written. Raises InputError if somebody has removed it."""
        if (facts := self.written()) is None:
            raise InputError(f"{self.path}, or the note {self._note}, was changed; run the export again")
        return facts

    def note(self, facts: ShardFacts) -> None:
        """Note that the file was written."""
        write_json(self._note, {"plan": self.digest, "facts": facts})


def write_plan(work: Path, parts: Iterable[Sequence[Place]], form: str) -> list[tuple[int, int, str]]:
    """Write the documents of all files; return the place, size and digest of each file's."""
    plans, start = [], 0
    with replacing(work / PLAN) as plan:
        for part in parts:
            places = np.array(part, PLACE).tobytes()
            plan.write(places)
            plans.append((start, len(part), plan_digest(places, form)))
            start += len(part)
    return plans


def plan_digest(places: bytes, form: str) -> str:
    """Return a digest that distinguishes a file from another one of that name."""
    return hashlib.sha256(form.encode() + b"\0" + places).hexdigest()


def write_shard(job: ShardJob) -> dict[int, str]:
    """Write a file under its name once all of it is on the disk.

    If a document turns out to be damaged or empty, no file is written. All others are read then, to find all such
    documents. They are returned by number, with the reason. Raises InputError if it cannot be written.
    """
    failing = as_input_error(f"{job.path} cannot be written")
    try:
        with failing, replacing(job.path, fsync=True) as file:
            facts = _write(job, file)
    except _Unfit as unfit:
        return unfit.documents
    job.note(facts)
    return {}


def _write(job: ShardJob, file: BinaryIO) -> ShardFacts:
    """Write all documents of a file. Raises _Unfit."""
    files = (Path(source.path).name.removesuffix(OPEN_SUFFIX) for source in job.reader.files)
    names = [as_text(os.fsencode(name)) for name in files]
    places = np.fromfile(job.reader.work / PLAN, PLACE, job.size, offset=job.start * PLACE.itemsize).tolist()
    unfit: dict[int, str] = {}
    with closing(ShardWriter(file, job.format, tokens=job.tokenizer is not None)) as shard:
        for number, *place in places:
            row = job.reader.prepared(*place)
            try:
                text = as_text(job.reader.text(row))
            except PageError as error:
                unfit[number] = TooLarge.reason if isinstance(error, TooLarge) else CorruptRecord.reason
                continue
            if not text.strip():
                unfit[number] = NO_TEXT
            if not unfit:
                tokens = None if job.tokenizer is None else job.tokenizer.count(text)
                shard.add(_document(row, text, names, tokens))
        if unfit:
            raise _Unfit(unfit)
        return shard.finish(job.path.name)


def _document(row: Row, text: str, names: Sequence[str], tokens: int | None) -> Document:
    given = row._asdict()
    return Document(
        text=text,
        warc_file=names[row.file],
        warc_offset=row.offset,
        warc_length=row.length,
        opt_out_signals=row.signals or None,
        tokens=tokens,
        **{name: given[name] for name in _OF_ROW},
    )
