"""Texts to learn from or to compare with: of JSON Lines, Parquet, archive files, documents of the corpus."""

from __future__ import annotations

import glob
import logging
import os
import re
import zlib
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import simulate
from crawl4llm.base.command_lines import quoted
from crawl4llm.base.compression import zstd
from crawl4llm.base.errors import InputError, MissingRecord, NoPage, as_input_error
from crawl4llm.base.input_files import LONGEST_ROW, digest_of, given_path, input_lines, open_input, parse_json
from crawl4llm.base.installed import to_install
from crawl4llm.base.pages import Corpus
from crawl4llm.base.terminal import harmless
from crawl4llm.crawl import read_seeds
from crawl4llm.options import Options, read_options
from crawl4llm.optouts import from_text, reason_against_training, said_in_html
from crawl4llm.scoring import EXTRACTORS, PageWorkers, Rating, extract_text, load_extractor
from crawl4llm.warc import begins_like_archive

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from simulate import IndexSummary


logger = logging.getLogger(__name__)

_PAGES_AT_ONCE = 1024
_ROWS_AT_ONCE: Final = 1024
ARCHIVE_NAME: Final = re.compile(r".+\.w?arc(?:\.wet|\.wat)?(?:\.gz|\.zst)?", re.IGNORECASE)
_FAULTS: Final = (simulate.DAMAGED, simulate.NO_LENGTH, simulate.NO_URL, simulate.UNTYPED)
"""Why records are left out that may have held texts."""
_JSONL, _PARQUET, _ARCHIVES, _DOCUMENTS = "JSON Lines", "Parquet", "archive files", "documents of the corpus"
_KINDS: Final = {"jsonl": _JSONL, "ndjson": _JSONL, "json": _JSONL, "parquet": _PARQUET}
_ROWS: Final = re.compile(r".+\.(?:(jsonl|ndjson|json|cdxj)(?:\.gz|\.zst)?|(parquet))", re.IGNORECASE)


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
        with as_input_error(f"{given}: cannot be read"):
            return Source(given, _kind(given_path(given)))

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
            source.digests["file"] = digest_of(path)
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
        taker = TextTaker(corpus, self._options.text_extractor, clean_text=not found.counts.get(simulate.PAGE))
        with closing(corpus):
            yield from self._of_pages(source, taker, corpus.keys())

    def _of_documents(self, source: Source, path: Path) -> Iterator[str]:
        corpus = simulate.open_corpus(self._settings)
        with closing(corpus):
            corpus.check()
            clean = self._options.simulation_text == "corpus"
            corpus.require("text" if clean else "html")
            taken_for = "read as a list of ids, because it is no JSON Lines (.jsonl), Parquet or WARC file"
            with as_input_error(f"{path}: {taken_for}", errors=InputError):
                seeds = read_seeds(path, corpus)
            source.digests["file"] = digest_of(path)
            faults = {name: seeds.counts[f"seeds/{name}"] for name in ("malformed", "unknown", "duplicate")}
            source.counts.update({f"{name} ids": count for name, count in faults.items() if count})
            yield from self._of_pages(source, TextTaker(corpus, self._options.text_extractor, clean), iter(seeds.keys))

    def _of_pages(self, source: Source, taker: TextTaker, keys: Iterator[str]) -> Iterator[str]:
        source.digests["corpus"] = taker.corpus.identity()
        source.extractor = None if taker.clean_text else taker.extractor
        for text in texts_to_learn(taker, keys, self._options.workers):
            if isinstance(text, str):
                source.counts["texts"] += 1
                yield text
            else:
                source.counts[str(text.reason)] += 1


def _kind(path: Path) -> str:
    if simulate.is_clueweb22(path):
        (corpus,) = quoted([f"CORPUS={path}"])
        raise InputError(f"{path}: is a ClueWeb22 tree; give a file with ids of its documents, and -s {corpus}")
    if path.is_dir() or (not path.exists() and glob.has_magic(str(path))):
        return _ARCHIVES
    with open_input(path):  # says why it cannot be read
        pass
    if kind := _KINDS.get(row_kind(path)):
        return kind
    return _ARCHIVES if ARCHIVE_NAME.fullmatch(path.name) or begins_like_archive(path) else _DOCUMENTS


def _holds_texts(path: Path) -> bool:
    """Return whether a folder or pattern has files that are read only if they are named."""
    found = path.iterdir() if path.is_dir() else map(Path, glob.glob(str(path)))  # noqa: PTH207 - it may be absolute
    return any(row_kind(file) in _KINDS for file in found)


def _state(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


# -- files -------------------------------------------------------------------------------------------------------------


def row_kind(path: Path) -> str:
    """Return the kind of rows by a file's name: ``parquet``, ``cdxj``, a name of JSON Lines; empty if it has none."""
    named = _ROWS.fullmatch(path.name)
    return "" if named is None else (named[1] or named[2]).lower()


def jsonl_texts(path: Path, field: str) -> Iterator[str]:
    """Yield the field of each line of a JSON Lines file; blank lines are passed over.

    Raises InputError, naming file and line, if a line is no JSON object, or if its field is missing or no text. Raises
    InputError too if the file cannot be read to its end.
    """
    for number, line in lines_of_rows(path):
        place = f"{path}, line {number}"
        try:
            content = parse_json(line.encode())
        except ValueError:
            raise InputError(f"{place}: is not JSON; give one JSON object a line") from None
        if not isinstance(content, dict):
            raise InputError(f"{place}: is no JSON object; give objects with a field {field!r}")
        if field not in content:
            raise InputError(f"{place}: has no field {field!r}; name the one with the text: --text-field NAME")
        yield _checked(content[field], field, place)


def parquet_texts(path: Path, field: str) -> Iterator[str]:
    """Yield the column of that name of a Parquet file. Raises InputError as :func:`jsonl_texts` does."""
    for number, (value,) in parquet_rows(path, [field], "name the column of texts: --text-field NAME"):
        yield _checked(value, field, f"{path}, row {number}")


def _checked(value: Any, field: str, place: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{place}: its field {field!r} is no text, but {type(value).__name__}")
    return value


def lines_of_rows(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with a row a line, compressed or not, that are not blank; each with its number.

    Bytes that are no UTF-8 are lone surrogates in it. Raises InputError if the file cannot be read to its end.
    """
    number = 0
    try:
        lines = input_lines(path, errors="surrogateescape", newline="\n", longest=LONGEST_ROW)
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number, line.removeprefix("\ufeff")  # files with byte order marks, put together
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read after line {number}: {reason}") from None


def parquet_rows(path: Path, fields: Sequence[str], advice: str) -> Iterator[tuple[int, list[Any]]]:
    """Yield number and values of each row of a Parquet file: None for a field without a column.

    Raises InputError, with ``advice``, if no field has one, and if the file cannot be read to its end.
    """
    require_package("pyarrow", f"{path}: reading Parquet", "parquet")
    # an extra
    import pyarrow as pa
    from pyarrow import parquet

    row = 0
    try:
        with open_input(path) as opened, parquet.ParquetFile(opened) as file:
            names = file.schema_arrow.names
            if not (wanted := [name for name in fields if name in names]):
                missing, there = " or ".join(map(repr, fields)), harmless(", ".join(names))[:200]
                raise InputError(f"{path}: has no column {missing}, but {there}; {advice}")
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=wanted):
                for values in batch.to_pylist():
                    row += 1
                    yield row, [values.get(name) for name in fields]
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: cannot be read after row {row}: {reason}") from None


def require_package(name: str, what: str, extra: str = "export") -> None:
    """Raise InputError if ``what`` needs a missing package of an extra."""
    try:
        import_module(name)
    except ImportError:
        raise InputError(f"{what} needs {name}; {to_install(extra)}") from None


def tokenizers_library(what: str, extra: str = "export") -> Any:
    """Return the library tokenizers. Raises InputError if ``what`` needs it, and it is missing."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # threads do not survive a fork
    require_package("tokenizers", what, extra)
    # an extra, which reads the variable when it is imported
    import tokenizers

    return tokenizers


def load_tokenizer(library: Any, data: bytes, named: str) -> Any:
    """Return the tokenizer in a ``tokenizer.json``, which cuts and pads nothing. Raises InputError."""
    try:
        loaded = library.Tokenizer.from_str(data.decode())
        loaded.no_truncation()
        loaded.no_padding()
    except Exception as error:  # noqa: BLE001 - the library raises nothing more special
        raise InputError(f"{named} is no tokenizer.json: {' '.join(str(error).split())}") from None
    return loaded


# -- archives ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextTaker:
    """Settings of a worker process: pickled if processes are spawned, inherited if they are forked."""

    corpus: Corpus
    extractor: str
    clean_text: bool
    """True to take the corpus's own text; False to take the HTML, and the text only of pages without HTML."""


def page_text(taker: TextTaker, key: str) -> str:
    """Return the text of a page. Raises PageError."""
    if taker.clean_text:
        return taker.corpus.text(key)
    with suppress(MissingRecord):
        return extract_text(taker.corpus.html(key), EXTRACTORS[taker.extractor])
    return taker.corpus.text(key)


def texts_to_learn(taker: TextTaker, keys: Iterator[str], processes: int) -> Generator[str | Rating]:
    """Yield the texts of pages that may be trained on, and of the others why they may not."""
    if not taker.clean_text:
        load_extractor(taker.extractor)
    with PageWorkers(taker, processes) as workers:
        workers.start()
        while some := list(islice(keys, _PAGES_AT_ONCE)):
            yield from workers.run_all(_text_to_learn, some)


def _text_to_learn(taker: TextTaker, key: str) -> str:
    """Return the text of a page that may be trained on. Raises PageError, for others with the signal that decides."""
    page = taker.corpus.page(key)
    said = [*from_text(page.opt_outs), *said_in_html(page.html or b"", "")]
    if reason := reason_against_training(said):
        raise NoPage(f"{key}: {reason}", reason, wanted=False)
    return page_text(taker, key)


def open_archives(path: Path, settings: BaseSettings) -> tuple[simulate.WarcCorpus, IndexSummary]:
    """Open archive files, given as a folder or a pattern, and index them if needed. Returns the counts of the indexing
    too. Raises InputError."""
    index = simulate.index_folder(path)
    try:
        found = simulate.build_warc_index(simulate.list_files(path), index)
        return simulate.WarcCorpus(path, index, largest=simulate.largest_page(settings)), found
    except InputError as error:
        raise InputError(str(error).removeprefix("CORPUS ")) from None
