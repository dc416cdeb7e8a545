"""The selecting stage of an export in tasks: as ``selecting`` has it, by a table on disk."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from crawl4llm.base.reductions import Database
from crawl4llm.tools.evaluate.documents import Integers, as_array, fingerprints
from crawl4llm.tools.export.rows import Row, Rows, fitting
from crawl4llm.tools.export.selecting import (
    DUPLICATE,
    DUPLICATE_ID,
    INFLUENCE,
    LANGUAGE,
    NEAR_DUPLICATE,
    NOT_ORACLE,
    NOT_TOP,
    TOO_LONG,
    TOO_SHORT,
    Selection,
    Wanted,
    matches,
    near_duplicates,
)

_TABLES: Final = """
CREATE TABLE documents(number BIGINT, file BIGINT, start BIGINT, words BIGINT, text_bytes BIGINT, influence DOUBLE,
    id UBIGINT, digest VARCHAR, language VARCHAR, reason VARCHAR, left_out VARCHAR);
CREATE TABLE found(number BIGINT);
"""
_CRAWLED: Final = "file, start, number"
_BEST: Final = f"influence DESC NULLS LAST, {_CRAWLED}"
_KEPT: Final = "FROM documents WHERE left_out IS NULL"
_ROWS_AT_ONCE: Final = 1 << 14


class TableOnDisk:
    """The facts of all rows that selecting needs, in a database in a folder."""

    def __init__(self, rows: Iterable[Row], folder: Path) -> None:
        self._db = Database(folder / "selecting", _TABLES)
        self._size, remaining = 0, iter(rows)
        while some := list(islice(remaining, _ROWS_AT_ONCE)):
            self._add(some)

    def _add(self, rows: list[Row]) -> None:
        numbers = np.array([(row.file, row.offset, row.words, row.text_bytes) for row in rows], dtype=np.int64).T
        first, self._size = self._size, self._size + len(rows)
        columns = {
            "number": np.arange(first, self._size),
            **dict(zip(("file", "start", "words", "text_bytes"), map(np.ascontiguousarray, numbers), strict=True)),
            "influence": np.array([math.nan if row.influence is None else row.influence for row in rows]),
            "id": as_array(fingerprints(row.id for row in rows)),
            "digest": np.array([fitting(row.text_digest or "").decode() for row in rows], dtype=object),
            "language": np.array([row.language for row in rows], dtype=object),
            "reason": np.array([row.reason for row in rows], dtype=object),
        }
        self._db.add("documents", {**columns, "left_out": columns["reason"]})

    def __len__(self) -> int:
        return self._size

    @property
    def languages(self) -> list[str | None]:
        """The languages of documents."""
        return [name for (name,) in self._db.rows("SELECT DISTINCT language FROM documents")]

    @property
    def has_influence(self) -> bool:
        """True if any document has an influence score."""
        return any(True for _ in self._db.rows("SELECT 1 FROM documents WHERE influence IS NOT NULL LIMIT 1"))

    def select(self, rows: Rows, wanted: Wanted, oracle: float | None, damaged: Mapping[int, str]) -> Selection:
        """Choose documents, as a table in memory does."""
        self._db.change("UPDATE documents SET left_out = reason")
        for number, reason in damaged.items():
            self._db.change("UPDATE documents SET left_out = ? WHERE number = ?", reason, number)
        self._keep_first("id", _CRAWLED, DUPLICATE_ID)
        if wanted.languages:
            names = [name for name in self.languages if matches(name, wanted.languages)]
            self._drop("list_position(?, language) IS NULL", LANGUAGE, names)
        if wanted.min_words is not None:
            self._drop("words < ?", TOO_SHORT, wanted.min_words)
        if wanted.max_words is not None:
            self._drop("words > ?", TOO_LONG, wanted.max_words)
        if oracle is not None:
            self._drop("influence < ?", NOT_ORACLE, oracle)
        if not wanted.keep_duplicates:
            self._keep_first("digest", _BEST, DUPLICATE)
        if wanted.compares_texts:
            count = self._kept()
            best = (number for (number,) in self._db.rows(f"SELECT number {_KEPT} ORDER BY {_BEST}"))
            found = np.fromiter(near_duplicates(rows, best, count), dtype=np.int64)
            self._db.change("DELETE FROM found")
            self._db.add("found", {"number": found})
            self._drop("number IN (SELECT number FROM found)", NEAR_DUPLICATE)
        if wanted.top_share is not None:
            self._keep_best(math.ceil(Fraction(str(wanted.top_share)) * self._kept()))
        if wanted.top is not None:
            self._keep_best(wanted.top)
        reasons = self._db.rows("SELECT left_out, count(*) FROM documents WHERE left_out IS NOT NULL GROUP BY ALL")
        return Selection(self._kept(), self._parts(wanted), Counter(dict(reasons)))

    def close(self) -> None:
        """Remove the table."""
        self._db.close()

    def _kept(self) -> int:
        """Return how many documents have not been left out yet."""
        ((count,),) = self._db.rows(f"SELECT count(*) {_KEPT}")
        return int(count)

    def _drop(self, condition: str, reason: str, *values: object) -> None:
        self._db.change(f"UPDATE documents SET left_out = ? WHERE left_out IS NULL AND ({condition})", reason, *values)

    def _keep_first(self, column: str, order: str, reason: str) -> None:
        """Leave out all but the first, in an order, of documents with the same value."""
        places = f"SELECT number, row_number() OVER (PARTITION BY {column} ORDER BY {order}) AS place {_KEPT}"
        self._drop(f"number IN (SELECT number FROM ({places}) WHERE place > 1)", reason)

    def _keep_best(self, most: int) -> None:
        self._drop(f"number IN (SELECT number {_KEPT} ORDER BY {_BEST} OFFSET ?)", NOT_TOP, most)

    def _parts(self, wanted: Wanted) -> Iterator[Integers]:
        """Yield the documents of each file, as :func:`crawl4llm.tools.export.selecting.plan_shards` does."""
        order = _BEST if wanted.order == INFLUENCE else _CRAWLED
        part: list[int] = []
        size = 0
        most = math.inf if wanted.shard_bytes is None else wanted.shard_bytes
        for number, text_bytes in self._db.rows(f"SELECT number, text_bytes {_KEPT} ORDER BY {order}"):
            if part and (len(part) == wanted.shard_documents or size + text_bytes > most):
                yield np.array(part, dtype=np.int64)
                part, size = [], 0
            part.append(number)
            size += text_bytes
        if part:
            yield np.array(part, dtype=np.int64)
