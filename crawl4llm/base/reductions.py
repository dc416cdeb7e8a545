"""Reductions over one row for each document, in DuckDB: on disk, in memory that does not grow with the rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import duckdb
from numpy.typing import NDArray

from crawl4llm.base.errors import InputError

MEMORY: Final = "512MB"
"""Most memory of DuckDB before it writes to the disk."""
_AT_ONCE: Final = 8192


class Database:
    """A database of tables, in a file that is removed when it is closed. Raises InputError if the disk is full."""

    def __init__(self, path: Path, tables: str) -> None:
        self._path = path
        self._remove()
        with _faults(path):
            self._db = _connected(str(path), f"{path}.tmp")
            self._db.execute(tables)

    def add(self, table: str, rows: Mapping[str, NDArray[Any]]) -> None:
        """Add rows, given as columns in the table's order; NaN becomes NULL."""
        with _faults(self._path):
            cursor = self._db.cursor().register("added", dict(rows))
            cursor.execute(f"INSERT INTO {table} SELECT * FROM added")  # noqa: S608 - names in the code

    def change(self, statement: str, *values: object) -> None:
        """Execute a statement that changes rows."""
        with _faults(self._path):
            self._db.execute(statement, values)

    def rows(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a query finds."""
        with _faults(self._path):
            cursor = self._db.cursor().execute(query, values)
            while found := cursor.fetchmany(_AT_ONCE):
                yield from found

    def close(self) -> None:
        """Remove the database."""
        self._db.close()
        self._remove()

    def _remove(self) -> None:
        for suffix in ("", ".wal"):
            with suppress(FileNotFoundError):
                Path(f"{self._path}{suffix}").unlink()


def reduced(query: str, given: Mapping[str, NDArray[Any]], *values: object) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that a query finds in the table ``given``, which has these columns; NaN is NULL in it.

    Raises InputError if sorting needs more than the disk of TMPDIR has.
    """
    with (
        tempfile.TemporaryDirectory(prefix="crawl4llm-") as folder,
        _faults(Path(folder)),
        _connected(":memory:", folder).register("given", dict(given)) as database,
    ):
        cursor = database.execute(query, values)
        while found := cursor.fetchmany(_AT_ONCE):
            yield from found


def _connected(path: str, temporary: str) -> Any:
    database = duckdb.connect(path, config={"memory_limit": MEMORY, "temp_directory": temporary})
    return database.execute("SET enable_progress_bar = false")  # it would be drawn on standard output


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from None
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # by a handler of ours, whose exception DuckDB drops
            raise KeyboardInterrupt from None
        raise
