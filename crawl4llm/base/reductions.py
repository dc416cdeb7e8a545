"""Tables of one row for each document, in DuckDB: in memory that does not grow with the rows, and on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
from numpy.typing import NDArray

from crawl4llm.base.errors import InputError

MEMORY: Final = "512MB"
"""Most memory of DuckDB before it writes to the disk."""
THREADS: Final = 2
"""Threads of DuckDB: each needs memory of its own."""
_AT_ONCE: Final = 8192


class Database:
    """Tables that last until it is closed. Rows beyond MEMORY are in temporary files in a folder.

    Raises InputError if the disk is full, or if a file that a statement names cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        config = {
            "memory_limit": MEMORY,
            "threads": THREADS,
            "temp_directory": str(folder / "tables.tmp"),
            "autoinstall_known_extensions": False,  # nothing is downloaded
        }
        with _faults(folder):
            self._db = duckdb.connect(":memory:", config=config)
            self._db.execute("SET enable_progress_bar = false")  # it would be drawn on standard output

    def change(self, statement: str, *values: object, **given: Mapping[str, NDArray[Any]]) -> None:
        """Execute a statement that changes tables. It finds each of ``given``, columns by name, as a table; NaN is NULL
        in it."""
        with _faults(self._folder):
            cursor = self._with(given)
            cursor.execute(statement, values)

    def rows(self, query: str, *values: object, **given: Mapping[str, NDArray[Any]]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a query finds; ``given`` is as for :meth:`change`."""
        with _faults(self._folder):
            cursor = self._with(given).execute(query, values)
            while found := cursor.fetchmany(_AT_ONCE):
                yield from found

    def close(self) -> None:
        """Remove the tables, and their temporary files."""
        self._db.close()

    def _with(self, given: Mapping[str, Mapping[str, NDArray[Any]]]) -> Any:
        cursor = self._db.cursor()
        for name, columns in given.items():
            cursor.register(name, dict(columns))
        return cursor


def reduced(query: str, given: Mapping[str, NDArray[Any]], *values: object) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that a query finds in the table ``given``, which has these columns; NaN is NULL in it.

    Raises InputError if sorting needs more than the disk of TMPDIR has.
    """
    with tempfile.TemporaryDirectory(prefix="crawl4llm-") as folder:
        database = Database(Path(folder))
        try:
            yield from database.rows(query, *values, given=given)
        finally:
            database.close()


@contextmanager
def _faults(folder: Path) -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise InputError(f"{folder}: {str(error).splitlines()[0]}") from None
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # by a handler of ours, whose exception DuckDB drops
            raise KeyboardInterrupt from None
        raise
