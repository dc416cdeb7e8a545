"""The selecting step: the choice and order of the exported documents, by rules that compare them.

DuckDB holds the facts that the rules need. Each rule leaves fewer rows to the next one.
"""

from __future__ import annotations

import glob
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.errors import InputError
from crawl4llm.base.installed import to_install
from crawl4llm.base.jobs import UNDIVIDED, Executor
from crawl4llm.base.reductions import Database
from crawl4llm.base.terminal import harmless
from crawl4llm.tools.export.documents import PREPARED, Block, Row, rows_path
from crawl4llm.tools.export.filters import DUPLICATE_ID, INFLUENCE, Wanted

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


DUPLICATE, NEAR_DUPLICATE = "duplicate_text", "near_duplicate"
LANGUAGE, TOO_SHORT, TOO_LONG = "language", "too_short", "too_long"
NOT_ORACLE, NOT_TOP = "not_oracle", "not_top"
_MOST_NAMED: Final = 10
_ROOM: Final = 4
"""Slots per text in the search for near duplicates: in a full table later texts overwrite earlier ones."""
_LEAST_ROOM, _MOST_ROOM = 1 << 12, 1 << 22

_FIELDS: Final = {
    "words": "{}::BIGINT",
    "text_bytes": "{}::BIGINT",
    "influence": "{}::DOUBLE",
    "id": "unhex(md5({}))",
    "text_digest": "unhex({})",
    "signature": "unhex({})",
    "language": "{}",
    "reason": "{}",
}
"""Fields of rows that are columns, and how each is made of the field as text."""
_PATHS: Final = [f"$[{Row._fields.index(name)}]" for name in _FIELDS]
_VALUES: Final = ", ".join(made.format(f"fields[{place}]") for place, made in enumerate(_FIELDS.values(), 1))
_TABLE: Final = """
CREATE TABLE documents(number BIGINT, block BIGINT, place BIGINT, length BIGINT,
    words BIGINT, text_bytes BIGINT, influence DOUBLE,
    id BLOB, digest BLOB, signature BLOB, language VARCHAR, reason VARCHAR)
"""
_LOAD: Final = f"""
INSERT INTO documents
SELECT ? + row_number() OVER () - 1, ?, sum(length + 1) OVER (ROWS UNBOUNDED PRECEDING) - length - 1, length, {_VALUES}
FROM (SELECT strlen(json) AS length, json_extract_string(json, {_PATHS}) AS fields FROM read_ndjson_objects(?))
"""
"""Beside its number stand the block of a row, and its place and length in the file of that."""
_CRAWLED: Final = "number"
_BEST: Final = f"influence DESC NULLS LAST, {_CRAWLED}"
_NOT_DROPPED: Final = "number NOT IN (SELECT number FROM dropped)"


Place = tuple[int, int, int, int]
"""The number of a document; the block of its row, and place and length there."""


class Selection(NamedTuple):
    """The documents that are exported."""

    documents: int
    parts: Iterable[Sequence[Place]]
    """The documents of each file; can be gone through once, while the table is open."""
    left_out: Counter[str]
    """Counts of the others, by the first reason that holds."""


class Table:
    """The prepared documents of an export, to choose from. Rows beyond its memory go to files in the work folder."""

    def __init__(self, work: Path, blocks: Iterable[Block]) -> None:
        self._db = Database(work)
        self._db.change(_TABLE)
        for block in blocks:
            path = rows_path(work, PREPARED, block.number).absolute()
            self._db.change(_LOAD, block.start, block.number, glob.escape(str(path)))

    @property
    def languages(self) -> list[str | None]:
        """The languages of documents."""
        return [name for (name,) in self._db.rows("SELECT DISTINCT language FROM documents")]

    @property
    def has_influence(self) -> bool:
        """True if any document has an influence score."""
        return any(True for _ in self._db.rows("SELECT 1 FROM documents WHERE influence IS NOT NULL LIMIT 1"))

    def select(self, wanted: Wanted, oracle: float | None, damaged: Mapping[int, str]) -> Selection:
        """Choose documents.

        ``oracle`` is the influence from which pages belong to the oracle set, if that is wanted; ``damaged`` are
        documents that turned out to be so, with the reason.
        """
        self._begin(damaged)
        self._keep(_first("id", _CRAWLED), DUPLICATE_ID)
        if wanted.languages:
            names = [name or "" for name in self.languages if matches(name, wanted.languages)]
            self._keep("WHERE list_contains(?::VARCHAR[], coalesce(language, ''))", LANGUAGE, names)
        if wanted.min_words is not None:
            self._keep("WHERE words >= ?", TOO_SHORT, wanted.min_words)
        if wanted.max_words is not None:
            self._keep("WHERE words <= ?", TOO_LONG, wanted.max_words)
        if oracle is not None:
            self._keep("WHERE influence >= ?", NOT_ORACLE, oracle)
        if not wanted.keep_duplicates:
            self._keep(_first("digest", _BEST), DUPLICATE)
        if wanted.compares_texts:
            signatures = self._db.rows(f"SELECT number, signature FROM kept ORDER BY {_BEST}")
            found = near_duplicates(signatures, self._documents)
            self._keep(f"WHERE {_NOT_DROPPED}", NEAR_DUPLICATE, dropped=_column(found))
        if wanted.top_share is not None:
            share = Fraction(str(wanted.top_share))  # as it was given: in floats 0.07 * 100 is more than 7
            self._keep_best(math.ceil(share * self._documents))
        if wanted.top is not None:
            self._keep_best(wanted.top)
        return Selection(self._documents, self._parts(wanted), self._left_out)

    def close(self) -> None:
        """Remove the table."""
        self._db.close()

    def _begin(self, damaged: Mapping[int, str]) -> None:
        """Keep the documents that no rule on single ones has left out, and that are not damaged."""
        counts = self._db.rows("SELECT reason, count(*) FROM documents WHERE reason IS NOT NULL GROUP BY reason")
        self._left_out = Counter(dict(counts))
        self._left_out.update(damaged.values())
        kept = f"SELECT * FROM documents WHERE reason IS NULL AND {_NOT_DROPPED}"
        self._db.change(f"CREATE OR REPLACE TABLE kept AS {kept}", dropped=_column(damaged))
        self._count()

    def _count(self) -> None:
        ((self._documents,),) = self._db.rows("SELECT count(*) FROM kept")

    def _keep(self, which: str, reason: str, *values: object, **given: Mapping[str, NDArray[Any]]) -> None:
        """Keep some documents; count the others under a reason."""
        before = self._documents
        self._db.change(f"CREATE OR REPLACE TABLE kept AS SELECT * FROM kept {which}", *values, **given)
        self._count()
        self._left_out[reason] += before - self._documents

    def _keep_best(self, most: int) -> None:
        self._keep(f"ORDER BY {_BEST} LIMIT ?", NOT_TOP, most)

    def _parts(self, wanted: Wanted) -> Iterator[Sequence[Place]]:
        """Divide the documents among files, in their order."""
        order = _BEST if wanted.order == INFLUENCE else _CRAWLED
        part: list[Place] = []
        size, most = 0, math.inf if wanted.shard_bytes is None else wanted.shard_bytes
        found = self._db.rows(f"SELECT number, block, place, length, text_bytes FROM kept ORDER BY {order}")
        for number, block, place, length, text_bytes in found:
            if part and (len(part) == wanted.shard_documents or size + text_bytes > most):
                yield part
                part, size = [], 0
            part.append((number, block, place, length))
            size += text_bytes
        if part:
            yield part


def _first(column: str, order: str) -> str:
    """Return a clause that keeps the first, in an order, of documents with the same value."""
    firsts = f"SELECT number FROM kept QUALIFY row_number() OVER (PARTITION BY {column} ORDER BY {order}) = 1"
    return f"WHERE number IN ({firsts})"


def _column(numbers: Iterable[int]) -> dict[str, NDArray[Any]]:
    return {"number": np.fromiter(numbers, dtype=np.int64)}


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


def near_duplicates(signatures: Iterable[tuple[int, bytes]], count: int) -> Iterator[int]:
    """Return the documents whose text is like that of one before which stays. ``signatures`` are those of ``count``
    documents, with their numbers, in the order in which they are preferred.

    Texts are alike by :mod:`crawl4llm.scoring.signatures`, as in a crawl. Each is compared with the last 4,194,304 that
    stay; that takes 350 bytes a document, and 370 MB at most.
    """
    # exports that keep them need none of it
    from crawl4llm.parts import NearDuplicates

    staying = NearDuplicates(min(max(_ROOM * count, _LEAST_ROOM), _MOST_ROOM))
    return (number for number, signature in signatures if staying.add(number, signature) is not None)


def oracle_threshold(settings: BaseSettings, runs: Sequence[Path], executor: Executor = UNDIVIDED) -> float:
    """Compute the influence from which a page belongs to the oracle set.

    Settings on the command line count, then those of the first run. The corpus is scored once, and the scores are kept
    for ``scrapy evaluate`` too. The tasks of ``executor`` score it. Raises InputError if the runs are not of one
    corpus and model, or it is not here.
    """
    try:
        # few exports ask for the oracle's threshold
        from crawl4llm.tools.evaluate.documents import Population, oracle_of
        from crawl4llm.tools.evaluate.evaluate import opened
        from crawl4llm.tools.evaluate.runs import read_runs
        from crawl4llm.tools.evaluate.survey import Survey
    except ImportError:
        raise InputError(f"--oracle needs SciPy; {to_install('evaluate')}") from None
    with opened(read_runs(runs)[0], settings.copy()) as (corpus, rater, options):
        scores = Survey(corpus, options, executor=executor).scores(rater, options.scorer)
        return oracle_of(Population(scores.influence, len(corpus))).threshold.value
