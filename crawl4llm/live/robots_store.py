"""Answers to requests for robots.txt and tdmrep.json on disk, so that a resumed crawl does not repeat them all.

An SQLite file in JOBDIR. It is a cache: entries that are damaged or of another form are dropped and requested again.
JOBDIR may come from anybody, so the file counts as hostile. Its schema must be exactly ours, and its values are checked
and limited.
"""

from __future__ import annotations

import logging
import math
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.compression import InflateError, inflate_start
from crawl4llm.base.files import sync_path
from crawl4llm.base.shapes import Maybe, Where, fits, whole
from crawl4llm.crawl import ROBOTS
from crawl4llm.optouts import LIMIT

logger = logging.getLogger(__name__)

_TABLE: Final = (
    "CREATE TABLE copies (authority TEXT NOT NULL UNIQUE, fetched REAL, body BLOB, failures INTEGER NOT NULL, "
    "failed REAL NOT NULL, wait REAL NOT NULL, reason TEXT NOT NULL, source TEXT NOT NULL)"
)
_SCHEMA: Final = {("table", "copies", _TABLE), ("index", "sqlite_autoindex_copies_1", None)}
_MOST: Final = 1 << 30
"""Bytes on disk; beyond, the oldest answers are removed."""
_A_ROW: Final = 200
"""Bytes on disk of a row, besides the body."""
_LONGEST_COPY: Final = LIMIT + 4096
"""Bytes of a compressed body: zlib adds less to incompressible data."""
_NUMBER: Final = Where({float}, lambda number: 0 <= number < math.inf)
_ROW: Final = (Maybe(_NUMBER), Maybe({bytes}), whole(), _NUMBER, _NUMBER, {str}, {str})
"""The shape of a row without the authority."""


class Stored(NamedTuple):
    """The stored answer of a site's robots.txt."""

    fetched: float | None
    """Time of the last conclusive answer, in seconds since 1970; None before the first."""
    body: bytes | None
    """The parsed part of the file; None if there is no file."""
    failures: int = 0
    """Requests that have failed since."""
    failed: float = 0.0
    """When the last one did."""
    wait: float = 0.0
    """Seconds to wait from then on."""
    reason: str = ""
    """Why it did."""
    source: str = ""
    """The record of the last answer in the archive: digest and date; empty without a record."""


class RobotsStore:
    """The latest answers by authority, those of tdmrep.json by URL. Never raises for a damaged file or a full disk."""

    def __init__(self, folder: Path | None, most: int = _MOST) -> None:
        """Open the file in a JOBDIR, or make a new one. Without a ``folder`` nothing is kept."""
        self._most = most
        self._size = 0
        self._waiting: dict[str, str] | None = None
        """Records of answers, by authority, that are written at the next commit; None if they are at once."""
        self._db: sqlite3.Connection | None = None
        if folder is None:
            return
        self._path = folder / ROBOTS
        with self._given_up_after_errors():
            try:
                self._open()
            except (sqlite3.DatabaseError, ValueError) as error:
                if not self._path.exists():
                    raise
                logger.warning("%s is damaged (%s); each robots.txt is requested again", self._path, error)
                self.close()
                for ending in ("", "-wal", "-shm", "-journal"):
                    self._path.with_name(ROBOTS + ending).unlink(missing_ok=True)
                self._open()

    def wait_for_commits(self) -> None:
        """Keep the records of answers with the commits of a crawl: a record of the archive that was not committed may
        be lost. An answer without one is known by the next process, but not proven, so that it asks again."""
        self._waiting = {}

    @property
    def proves(self) -> bool:
        """True if an answer without a record is not proven."""
        return self._waiting is not None

    def committed(self) -> None:
        """Write down the records of the answers that came before a commit."""
        if self._waiting and self._db is not None:
            sources = [(source, authority) for authority, source in self._waiting.items()]
            with self._given_up_after_errors(), self._db:
                self._db.executemany("UPDATE copies SET source = ? WHERE authority = ?", sources)
            self._waiting.clear()

    def get(self, authority: str) -> Stored | None:
        """Return the stored answer of an authority; None without a sound one."""
        query = (
            "SELECT fetched, body, failures, failed, wait, reason, source FROM copies WHERE authority = ? "
            "AND ifnull(length(body), 0) <= ? AND length(reason) <= 50 AND length(source) <= 100"
        )
        stored = _checked(self._row(query, authority, _LONGEST_COPY))
        if stored is not None and self._waiting and (source := self._waiting.get(authority)):
            return stored._replace(source=source)
        return stored

    def latest(self) -> str | None:
        """Return the authority whose robots.txt came last, or None."""
        row = self._row(
            "SELECT authority FROM copies WHERE fetched IS NOT NULL AND length(authority) <= 300 "
            "AND authority NOT LIKE '%/.well-known/%' ORDER BY rowid DESC LIMIT 1"
        )
        return None if row is None else str(row[0])

    def put(self, authority: str, fetched: float, body: bytes | None, source: str = "") -> None:
        """Replace the stored answer, wholly or not at all, even if the process ends now. ``source``: its record in the
        archive, if it has one."""
        if self._db is None:
            return
        if self._waiting is not None:
            self._waiting[authority], source = source, ""
        copy = None if body is None else zlib.compress(body)
        statement = "INSERT OR REPLACE INTO copies VALUES (?, ?, ?, 0, 0.0, 0.0, '', ?)"
        self._write(statement, (authority, fetched, copy, source), len(copy or b""))

    def put_failure(self, authority: str, failures: int, failed: float, wait: float, reason: str) -> None:
        """Keep that requests have failed, beside the last answer."""
        self._write(
            "INSERT INTO copies VALUES (?, NULL, NULL, ?, ?, ?, ?, '') ON CONFLICT (authority) DO UPDATE SET "
            "failures = excluded.failures, failed = excluded.failed, wait = excluded.wait, reason = excluded.reason",
            (authority, failures, failed, wait, reason),
        )

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
            self._db = None

    def _open(self) -> None:
        """Open or make the file. Raises sqlite3.Error, and ValueError where it has another schema."""
        is_new = not self._path.exists()
        if is_new:
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # SQLite's others are as it is
        self._db = db = sqlite3.connect(self._path)
        safe = ("trusted_schema = OFF", "cell_size_check = ON", "locking_mode = EXCLUSIVE")
        # Written like a file: it survives the end of the process, and a power cut costs no more than a cache.
        for pragma in (*safe, "journal_mode = WAL", "synchronous = OFF"):
            db.execute(f"PRAGMA {pragma}")
        if is_new:
            with db:
                db.execute(_TABLE)
            with suppress(OSError):
                sync_path(self._path.parent)
        elif set(db.execute("SELECT type, name, sql FROM sqlite_master LIMIT 10").fetchall()) != _SCHEMA:
            raise ValueError("it has another schema")
        self._measure(db)

    def _row(self, query: str, *values: object) -> Sequence[Any] | None:
        """Return the first row that a query finds; None if it finds none."""
        row: Sequence[Any] | None = None
        if self._db is not None:
            with self._given_up_after_errors():
                row = self._db.execute(query, values).fetchone()
        return row

    def _write(self, statement: str, values: Sequence[object], size: int = 0) -> None:
        """Execute a statement that writes a row as a transaction of its own, and make room if there are too many.
        ``size``: bytes of the body."""
        if self._db is None:
            return
        with self._given_up_after_errors(), self._db:
            self._db.execute(statement, values)
        self._size += _A_ROW + size
        if self._size > self._most and self._db is not None:
            with self._given_up_after_errors():
                self._make_room(self._db)

    def _measure(self, db: sqlite3.Connection) -> None:
        query = "SELECT count(*) * ? + ifnull(sum(length(body)), 0) FROM copies"
        self._size = db.execute(query, (_A_ROW,)).fetchone()[0]

    def _make_room(self, db: sqlite3.Connection) -> None:
        """Remove the oldest rows, down to nine tenths of the limit. A row that replaced another was counted twice, so
        the count is taken again. Raises sqlite3.Error."""
        self._measure(db)
        rows = db.execute("SELECT rowid, ifnull(length(body), 0) FROM copies ORDER BY rowid")
        last = 0
        while self._size > 0.9 * self._most:
            last, size = rows.fetchone()
            self._size -= _A_ROW + size
        rows.close()
        with db:
            db.execute("DELETE FROM copies WHERE rowid <= ?", (last,))

    @contextmanager
    def _given_up_after_errors(self) -> Iterator[None]:
        """Use the file no more after an error in the block, and go on."""
        try:
            yield
        except (sqlite3.Error, OSError, ValueError) as error:
            logger.warning("%s is no longer used (%s); answers stay in memory", self._path, error)
            self.close()


def _checked(row: Sequence[Any] | None) -> Stored | None:
    """Return a row as the type that it should have; None if it is something else."""
    if row is None or not fits([list(row)], _ROW):
        return None
    stored = Stored(*row)
    if stored.body is None:
        return stored
    try:
        return stored._replace(body=inflate_start(stored.body, "deflate", LIMIT + 1))
    except InflateError:
        return None
