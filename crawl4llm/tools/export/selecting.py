"""The selecting stage: the choice and order of the exported documents; the others are counted by reason."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from crawl4llm.base.errors import InputError
from crawl4llm.base.installed import to_install
from crawl4llm.base.jobs import UNDIVIDED, Executor
from crawl4llm.base.terminal import harmless
from crawl4llm.engine import take_over
from crawl4llm.tools.evaluate.documents import Fingerprints, Flags, Integers
from crawl4llm.tools.export.rows import Rows, Table

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


CRAWL, INFLUENCE = "crawl", "influence"
DUPLICATE_ID, DUPLICATE, NEAR_DUPLICATE = "duplicate_id", "duplicate_text", "near_duplicate"
KNOWN_TEXT, LANGUAGE, TOO_SHORT, TOO_LONG = "known_text", "language", "too_short", "too_long"
_MOST_NAMED = 10
_FILES = ("tokenizer", "language_model")
NO_INFLUENCE, BELOW, NOT_ORACLE, NOT_TOP = "no_influence", "below_min_influence", "not_oracle", "not_top"
_ROOM: Final = 4
"""Slots per text in the search for near duplicates: in a full table later texts overwrite earlier ones."""
_LEAST_ROOM, _MOST_ROOM = 1 << 12, 1 << 22


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The choice of documents, their order, and the files' format and size."""

    format: str = "jsonl.zst"
    order: str = CRAWL
    """CRAWL: as they were crawled, sources one after the other. INFLUENCE: the best first."""
    min_influence: float | None = None
    top: int | None = None
    """Number of best documents to take."""
    top_share: float | None = None
    """This share, rounded up, of the best documents that the other rules leave."""
    oracle: bool = False
    """Only pages of the oracle set of the crawls' corpus."""
    languages: tuple[str, ...] = ()
    min_words: int | None = None
    max_words: int | None = None
    keep_duplicates: bool = False
    keep_near_duplicates: bool = False
    known: str | None = None
    """Path of a file of known texts, which are left out."""
    shard_documents: int = 100_000
    shard_bytes: int | None = None
    """Bytes of text in a file, at most; a text that is longer has a file to itself."""
    tokenizer: str | None = None
    """File of a tokenizer that counts tokens."""
    language_model: str | None = None
    """File of a fastText classifier for the language of pages whose archive names none."""

    def check(self) -> None:
        """Raise InputError if no document can fit the selection."""
        least, most = self.min_words, self.max_words
        if least is not None and most is not None and least > most:
            raise InputError(f"--min-words {least} is more than --max-words {most}; no text fits both")

    @property
    def selects_by_influence(self) -> bool:
        """True if the choice of pages depends on influence, apart from the choice between duplicates."""
        return self.min_influence is not None or bool(self.top or self.top_share or self.oracle)

    @property
    def compares_texts(self) -> bool:
        """True if texts that are nearly those of others are left out. Equal ones are nearly equal too."""
        return not (self.keep_duplicates or self.keep_near_duplicates)

    def refuses(self, influence: float | None) -> str | None:
        """Return the reason for which a page of this influence is left out, whatever the others are; else None."""
        if influence is None:
            return NO_INFLUENCE if self.selects_by_influence else None
        return BELOW if self.min_influence is not None and influence < self.min_influence else None

    def settings(self) -> Mapping[str, Any]:
        """Return all of it, for the manifest; known texts by the content of their file, not by its path."""
        given = {name: value for name, value in asdict(self).items() if name not in _FILES or value is not None}
        del given["known"]
        return {**given, "languages": list(self.languages)}


class Selection(NamedTuple):
    """The documents that are exported."""

    documents: int
    parts: Iterable[Integers]
    """Numbers of the documents of each file; can be gone through once, before the next selection."""
    left_out: Counter[str]
    """Counts of the others, by the first reason that holds, in the order of this module."""


class TableInMemory(Table):
    """A table that documents can be chosen by."""

    def select(self, rows: Rows, wanted: Wanted, oracle: float | None, damaged: Mapping[int, str]) -> Selection:
        """Choose documents.

        ``oracle`` is the influence from which pages belong to the oracle set, if that is wanted; ``damaged`` are
        documents that turned out to be so, with the reason.
        """
        chosen = _Chosen(self, {**self.reasons, **damaged})
        chosen.keep_first(self.ids, self.crawl_order, DUPLICATE_ID)
        if wanted.languages:
            numbers = [number for name, number in self.languages.items() if matches(name, wanted.languages)]
            chosen.drop(~np.isin(self.language, numbers), LANGUAGE)
        if wanted.min_words is not None:
            chosen.drop(self.words < wanted.min_words, TOO_SHORT)
        if wanted.max_words is not None:
            chosen.drop(self.words > wanted.max_words, TOO_LONG)
        if oracle is not None:
            chosen.drop(self.influence < oracle, NOT_ORACLE)
        best_first = self.best_first
        if not wanted.keep_duplicates:
            chosen.keep_first(self.digests, best_first, DUPLICATE)
        if wanted.compares_texts:
            best = chosen.among(best_first)
            found = np.fromiter(near_duplicates(rows, map(int, best), len(best)), dtype=np.int64)
            chosen.drop_numbers(found, NEAR_DUPLICATE)
        best = chosen.among(best_first)
        if wanted.top_share is not None:
            share = Fraction(str(wanted.top_share))  # as it was given: in floats 0.07 * 100 is more than 7
            chosen.drop_numbers(best[math.ceil(share * len(best)) :], NOT_TOP)
        if wanted.top is not None:
            chosen.drop_numbers(best[wanted.top :], NOT_TOP)
        order = chosen.among(best_first if wanted.order == INFLUENCE else self.crawl_order)
        return Selection(len(order), plan_shards(order, self.text_bytes, wanted), chosen.left_out)


class _Chosen:
    """The documents that have not been left out yet."""

    def __init__(self, table: Table, reasons: Mapping[int, str]) -> None:
        self.left_out = Counter(reasons.values())
        self._kept: Flags = np.ones(len(table), dtype=np.bool_)
        self._kept[np.fromiter(reasons, dtype=np.int64)] = False

    def drop(self, flags: Flags, reason: str) -> None:
        """Leave out the documents that are marked."""
        self.left_out[reason] += int(np.count_nonzero(self._kept & flags))
        self._kept &= ~flags

    def drop_numbers(self, numbers: Integers, reason: str) -> None:
        """Leave out some documents."""
        flags = np.zeros(len(self._kept), dtype=np.bool_)
        flags[numbers] = True
        self.drop(flags, reason)

    def keep_first(
        self, values: Fingerprints | np.ndarray[tuple[int], np.dtype[np.bytes_]], order: Integers, reason: str
    ) -> None:
        """Leave out all but the first, in an order, of documents with the same value."""
        among = self.among(order)
        _, first = np.unique(values[among], return_index=True)
        self.drop_numbers(np.delete(among, first), reason)

    def among(self, order: Integers) -> Integers:
        """Return those of some documents that have not been left out, in the same order."""
        return order[self._kept[order]]


def unknown_language(languages: Iterable[str | None], wanted: Sequence[str]) -> str | None:
    """Return an error message if languages are wanted and no document is of one, or of any; else None."""
    held = set(languages)
    if not wanted or not held or any(matches(name, wanted) for name in held):
        return None
    known = sorted(filter(None, held))
    if not known:
        return "--language: no page has a known language; export without --language"
    listed = harmless(", ".join(known[:_MOST_NAMED])) + (" ..." if len(known) > _MOST_NAMED else "")
    return f"--language {' '.join(wanted)}: no page is in it; languages of the pages: {listed}"


def matches(language: str | None, wanted: Sequence[str]) -> bool:
    """Return whether a language tag, or the first of several, is wanted or a variety of one (``en-GB``)."""
    tag = (language or "").split(",")[0].strip().lower().replace("_", "-")
    return any(tag == name or tag.startswith(f"{name}-") for name in (name.lower() for name in wanted))


def plan_shards(order: Integers, text_bytes: Integers, wanted: Wanted) -> Iterator[Integers]:
    """Divide documents among files, in their order."""
    if wanted.shard_bytes is None:
        for start in range(0, len(order), wanted.shard_documents):
            yield order[start : start + wanted.shard_documents]
        return
    start = 0
    ends = np.cumsum(text_bytes[order])
    while start < len(order):
        before = int(ends[start - 1]) if start else 0
        full = int(np.searchsorted(ends, before + wanted.shard_bytes, side="right"))
        end = min(max(full, start + 1), start + wanted.shard_documents)
        yield order[start:end]
        start = end


def near_duplicates(rows: Rows, numbers: Iterable[int], count: int) -> Iterator[int]:
    """Yield the documents whose text is like that of one before which stays; ``numbers`` are ``count`` documents, in
    the order in which they are preferred.

    Texts are alike by :mod:`crawl4llm.scoring.signatures`, as in a crawl. Each is compared with the last 4,194,304 that
    stay; that takes 350 bytes a document, and 370 MB at most.
    """
    # exports that keep them need none of it
    from crawl4llm.parts import NearDuplicates

    staying = NearDuplicates(min(max(_ROOM * count, _LEAST_ROOM), _MOST_ROOM))
    for number in numbers:
        if staying.add(number, bytes.fromhex(rows[number].signature or "")) is not None:
            yield number


def oracle_threshold(settings: BaseSettings, runs: Sequence[Path], executor: Executor = UNDIVIDED) -> float:
    """Compute the influence from which a page belongs to the oracle set.

    Settings on the command line count, then those of the first run. The corpus is scored once, and the scores are kept
    for ``scrapy evaluate`` too. The tasks of ``executor`` score it. Raises InputError if the runs are not of one
    corpus and model, or it is not here.
    """
    try:
        import duckdb  # noqa: F401 - it sorts the scores

        from crawl4llm.tools.evaluate.evaluate import check_same
        from crawl4llm.tools.evaluate.measures import Population, oracle_of
        from crawl4llm.tools.evaluate.runs import read_runs
        from crawl4llm.tools.evaluate.survey import Survey
    except ImportError:
        raise InputError(f"--oracle needs DuckDB and SciPy; {to_install('evaluate')}") from None
    # few exports ask for the oracle's threshold
    from crawl4llm.options import read_options
    from simulate import open_rater

    first = read_runs(runs)[0]
    settings = settings.copy()
    take_over(settings, first.facts, first.path)
    corpus, rater = open_rater(settings)
    try:
        corpus.check()
        check_same(first, corpus, rater)
        options = read_options(settings)
        survey = Survey(corpus, options, executor=executor)
        scores = survey.scores(rater, options.scorer)
        return oracle_of(Population(scores.influence, len(corpus))).threshold.value
    finally:
        corpus.close()
