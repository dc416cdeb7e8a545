"""The writing step: each file of an export is a task of its own, done whole or not at all."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from crawl4llm.base.errors import CorruptRecord, InputError, PageError, TooLarge, as_input_error
from crawl4llm.base.files import sync_path
from crawl4llm.base.input_files import given_path, open_input
from crawl4llm.base.reasons import NO_TEXT
from crawl4llm.tools.export.documents import Reader, Row, Rows, SourceFile, as_text
from crawl4llm.tools.export.formats import Document, HashedFile, open_file, open_shard, require_package
from crawl4llm.warc import OPEN_SUFFIX

OTHER_LANGUAGES = "..."
PLAN: Final = "plan"
"""Name of the file in the work folder with the numbers of all documents, in the order of the export."""
NUMBER: Final = np.dtype("<i8")
"""The form of a document's number in that file."""
_LARGEST_TOKENIZER: Final = 1 << 28
"""Bytes of a tokenizer's file."""
_MOST_LANGUAGES, _LONGEST_LANGUAGE = 1000, 100
"""Bounds to the languages that foreign archives can put into a manifest."""


class ShardFacts(NamedTuple):
    """A file's entry of the manifest."""

    name: str
    documents: int
    words: int
    text_bytes: int
    bytes: int
    sha256: str
    languages: Mapping[str, int]
    """Documents by language, sorted by name. Those without one count as the empty string. Invalid language tags, and
    all languages beyond a thousand, count as OTHER_LANGUAGES."""
    tokens: int | None = None
    """By the tokenizer that was given."""

    def entry(self) -> dict[str, Any]:
        """Return all of it, but tokens that were not counted."""
        return {name: value for name, value in self._asdict().items() if name != "tokens" or value is not None}


class Tokenizer(NamedTuple):
    """A ``tokenizer.json`` of the library tokenizers. Nothing is downloaded. Each process loads it once."""

    path: str
    digest: str
    """SHA-256 of the file, in hex."""

    @classmethod
    def of(cls, given: str) -> Tokenizer:
        """Return the tokenizer in a file. Raises InputError if it has none, or if the library is missing."""
        require_package("tokenizers", "--tokenizer")
        path = given_path(given)
        with as_input_error(f"--tokenizer {given} cannot be read"), open_input(path) as file:
            data = file.read(_LARGEST_TOKENIZER + 1)
        if len(data) > _LARGEST_TOKENIZER:
            raise InputError(f"--tokenizer {given} has more than {_LARGEST_TOKENIZER:,} bytes; give a tokenizer.json")
        tokenizer = cls(str(path), hashlib.sha256(data).hexdigest())
        try:
            tokenizer.count("text")
        except Exception as error:  # noqa: BLE001 - the library raises nothing more special
            raise InputError(f"--tokenizer {given} is no tokenizer.json: {error}") from None
        return tokenizer

    def count(self, text: str) -> int:
        """Return the tokens of a text, without those that mark its ends."""
        return len(_load(self).encode(text, add_special_tokens=False).ids)


@cache
def _load(tokenizer: Tokenizer) -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # threads do not survive a fork
    # an extra, which reads the variable when it is imported
    from tokenizers import Tokenizer as Library

    loaded = Library.from_file(tokenizer.path)
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


class ShardWriter:
    """A writer of documents to a file of an export, which counts for the manifest."""

    def __init__(self, file: HashedFile, form: str, *, tokens: bool = False) -> None:
        self._file = file
        self._shard = open_shard(file, form, tokens=tokens)
        self._tokens = 0 if tokens else None
        self._languages: Counter[str] = Counter()
        self._documents = self._words = self._text_bytes = 0

    def add(self, document: Document, text: bytes) -> None:
        """Write a document; ``text`` is its text in UTF-8."""
        self._words += document.words
        self._documents += 1
        self._text_bytes += len(text)
        if self._tokens is not None:
            self._tokens += document.tokens or 0
        language = document.language or ""
        known = language in self._languages or len(self._languages) < _MOST_LANGUAGES
        self._languages[language if known and len(language) <= _LONGEST_LANGUAGE else OTHER_LANGUAGES] += 1
        self._shard.add(document)

    def finish(self, name: str) -> ShardFacts:
        """Write the rest and close the file; returns its entry of the manifest."""
        self._shard.finish()
        self._file.close()
        size, digest, languages = self._file.size, self._file.digest, dict(sorted(self._languages.items()))
        return ShardFacts(name, self._documents, self._words, self._text_bytes, size, digest, languages, self._tokens)


class Written(NamedTuple):
    """The result of a job."""

    facts: ShardFacts | None
    """None if there is no file because some documents are unreadable."""
    unfit: dict[int, str]
    """Unreadable documents, with the reason."""

    @classmethod
    def of(cls, result: Sequence[Any]) -> Written:
        """Return a result, which may come from JSON."""
        facts, unfit = result
        return cls(facts and ShardFacts(*facts), {int(number): reason for number, reason in unfit.items()})


@dataclass(frozen=True)
class ShardJob:
    """A file to write. Pickled for the process that does it."""

    path: Path
    format: str
    start: int
    """Place of its first document in the plan."""
    size: int
    """Documents."""
    work: Path
    """The work folder."""
    files: tuple[SourceFile, ...]
    largest: int | None
    """Bytes that a text may have."""
    tokenizer: Tokenizer | None = None


def write_shard(job: ShardJob) -> Written:
    """Write a file under its name once all of it is on the disk.

    If a document turns out to be damaged or empty, no file is written, but all others are read, to find all such
    documents. Raises InputError if it cannot be written.
    """
    temporary = job.path.with_name(job.path.name + OPEN_SUFFIX)
    try:
        written = _write(job, temporary)
        if written.facts is not None:
            temporary.replace(job.path)
            sync_path(job.path.parent)
        else:
            temporary.unlink()
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        why = os.strerror(error.errno) if error.errno else error
        raise InputError(f"{job.path} cannot be written: {why}") from None
    return written


def _write(job: ShardJob, path: Path) -> Written:
    rows, reader = Rows(job.work), Reader(job.files, job.work, job.largest)
    names = [Path(file.path).name.removesuffix(OPEN_SUFFIX) for file in job.files]
    file = open_file(path, job.format)
    unfit: dict[int, str] = {}
    try:
        shard = ShardWriter(file, job.format, tokens=job.tokenizer is not None)
        numbers = np.fromfile(job.work / PLAN, NUMBER, job.size, offset=job.start * NUMBER.itemsize).tolist()
        for number, row in zip(numbers, rows.several(numbers), strict=True):
            try:
                text, encoded = as_text(reader.text(row))
            except PageError as error:
                unfit[number] = TooLarge.reason if isinstance(error, TooLarge) else CorruptRecord.reason
                continue
            if not text.strip():
                unfit[number] = NO_TEXT
            if unfit:
                continue
            document = _document(row, text, names)
            if job.tokenizer is not None:
                document = document._replace(tokens=job.tokenizer.count(text))
            shard.add(document, encoded)
        facts = shard.finish(job.path.name)
    finally:
        rows.close()
        file.close()
    return Written(None if unfit else facts, unfit)


def _document(row: Row, text: str, names: Sequence[str]) -> Document:
    return Document(
        id=row.id,
        text=text,
        url=row.url,
        date=row.date,
        language=row.language,
        influence=row.influence,
        words=row.words,
        link_share=row.link_share,
        warc_file=names[row.file],
        warc_offset=row.offset,
        warc_length=row.length,
        digest=row.digest,
        opt_out_signals=row.signals or None,
    )
