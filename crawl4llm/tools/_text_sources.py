"""Sources of texts: JSON Lines, Parquet, archive files and run folders, lists of documents of the corpus."""

from __future__ import annotations

import glob
import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from crawl4llm.base.command_lines import quoted
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path, open_input
from crawl4llm.crawl import read_seeds
from crawl4llm.options import Options, read_options
from crawl4llm.scoring import PageWorkers, load_extractor
from crawl4llm.tools._archive_texts import TextTaker, open_archives, text_to_learn
from crawl4llm.tools._text_files import is_jsonl, is_parquet, jsonl_texts, parquet_texts
from crawl4llm.warc import begins_like_archive
from simulate import DAMAGED, NO_LENGTH, NO_URL, PAGE, UNTYPED, is_clueweb22, open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


logger = logging.getLogger(__name__)

_PAGES_AT_ONCE = 1024
_ARCHIVE_NAME: Final = re.compile(r".+\.w?arc(?:\.wet|\.wat)?(?:\.gz|\.zst)?", re.IGNORECASE)
_FAULTS: Final = (DAMAGED, NO_LENGTH, NO_URL, UNTYPED)
"""Why records are left out that may have held texts."""
_JSONL, _PARQUET, _ARCHIVES, _DOCUMENTS = "JSON Lines", "Parquet", "archive files", "documents of the corpus"


@dataclass
class Source:
    """A file, folder or pattern to take texts from, with counts and digests once they are taken."""

    given: str
    kind: str
    digests: dict[str, str] = field(default_factory=dict)
    """SHA-256 in hex: of the ``file``; of the ``corpus`` that was looked up, by its files' names and sizes."""
    extractor: str | None = None
    """The extractor that took texts from HTML; None without HTML."""
    counts: Counter[str] = field(default_factory=Counter)
    """``texts``, and the reasons why others were left out."""


class Sources:
    """Reads sources, as the settings say. Raises InputError if one is not there."""

    def __init__(self, settings: BaseSettings, text_field: str) -> None:
        self._settings = settings
        self._options: Options = read_options(settings)
        self._field = text_field

    def find(self, given: str) -> Source:
        """Return the source that a path or pattern names. Raises InputError if there is no such file or folder."""
        path = given_path(given)
        try:
            return Source(given, _kind(path))
        except OSError as error:
            raise InputError(f"{given}: cannot be read: {error.strerror}") from None

    def texts(self, source: Source) -> Iterator[str]:
        """Yield the texts of a source, in its order; counts and digests are noted in it.

        Raises InputError if it cannot be read, or not to its end.
        """
        path = given_path(source.given)
        if source.kind == _ARCHIVES:
            yield from self._of_archives(source, path)
        elif source.kind == _DOCUMENTS:
            yield from self._of_documents(source, path)
        else:
            before = _state(path)
            texts = jsonl_texts if source.kind == _JSONL else parquet_texts
            for text in texts(path, self._field):
                source.counts["texts"] += 1
                yield text
            source.digests["file"] = _digest(path)
            if _state(path) != before:
                raise InputError(f"{path}: has changed while it was read; wait until it is complete")

    def _of_archives(self, source: Source, path: Path) -> Iterator[str]:
        try:
            corpus, found = open_archives(path, self._settings)
        except InputError:
            if _holds_texts(path):
                raise InputError(
                    f"{path}: holds no archive files; name JSON Lines and Parquet files one by one"
                ) from None
            raise
        source.counts.update({fault: found.counts[fault] for fault in _FAULTS if found.counts.get(fault)})
        for fault in found.unreadable:
            source.counts["unreadable files"] += 1
            logger.warning("Left out: %s", fault)
        taker = TextTaker(corpus, self._options.text_extractor, clean_text=not found.counts.get(PAGE))
        with closing(corpus):
            yield from self._of_pages(source, taker, corpus.keys())

    def _of_documents(self, source: Source, path: Path) -> Iterator[str]:
        corpus = open_corpus(self._settings)
        with closing(corpus):
            corpus.check()
            clean = self._options.simulation_text == "corpus"
            corpus.require("text" if clean else "html")
            try:
                seeds = read_seeds(path, corpus)
            except InputError as error:
                raise InputError(
                    f"{path}: read as a list of ids, because it is no JSON Lines (.jsonl), Parquet or WARC file: "
                    f"{error}"
                ) from None
            source.digests["file"] = _digest(path)
            faults = {name: seeds.counts[f"seeds/{name}"] for name in ("malformed", "unknown", "duplicate")}
            source.counts.update({f"{name} ids": count for name, count in faults.items() if count})
            yield from self._of_pages(source, TextTaker(corpus, self._options.text_extractor, clean), iter(seeds.keys))

    def _of_pages(self, source: Source, taker: TextTaker, keys: Iterator[str]) -> Iterator[str]:
        source.digests["corpus"] = taker.corpus.identity()
        if not taker.clean_text:
            load_extractor(taker.extractor)
            source.extractor = taker.extractor
        with PageWorkers(taker, self._options.workers) as workers:
            workers.start()
            while some := list(islice(keys, _PAGES_AT_ONCE)):
                for text in workers.run_all(text_to_learn, some):
                    if isinstance(text, str):
                        source.counts["texts"] += 1
                        yield text
                    else:
                        source.counts[str(text.reason)] += 1


def _kind(path: Path) -> str:
    if is_clueweb22(path):
        (corpus,) = quoted([f"CORPUS={path}"])
        raise InputError(f"{path}: is a ClueWeb22 tree; give a file with ids of its documents, and -s {corpus}")
    if path.is_dir() or (not path.exists() and glob.has_magic(str(path))):
        return _ARCHIVES
    with open_input(path):  # says why it cannot be read
        pass
    if is_jsonl(path):
        return _JSONL
    if is_parquet(path):
        return _PARQUET
    return _ARCHIVES if _ARCHIVE_NAME.fullmatch(path.name) or begins_like_archive(path) else _DOCUMENTS


def _holds_texts(path: Path) -> bool:
    """Return whether a folder or pattern has files that are read only if they are named."""
    found = path.iterdir() if path.is_dir() else map(Path, glob.glob(str(path)))  # noqa: PTH207 - it may be absolute
    return any(is_jsonl(file) or is_parquet(file) for file in found)


def _state(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
