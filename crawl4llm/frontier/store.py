"""The durable store: named tables in one LMDB file, changed by one transaction at a time.

LMDB never overwrites a page in use, so a transaction is complete or absent, whatever kills the process. LMDB has no
checksums, so each value carries one, over its key and itself.

Changes are visible at once through the same :class:`Store`, and on the disk after :meth:`Store.commit`. Other processes
may read the last commit meanwhile.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

import lmdb

from crawl4llm.base.compression import crc32
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import sync_path
from crawl4llm.base.input_files import json_or_none
from crawl4llm.base.shapes import fits, misfit

NAME = "store.mdb"
TABLES = ("state", "frontier", "leases", "current", "hosts", "visited", "owned", "aside", "scores")

_CRC_BYTES = 4
_LOCK_FILE_BYTES = 8192
_BETWEEN_COMMIT_AND_TRUNCATE = 0.05
"""Seconds; a running crawl lengthens its file just after a commit."""
_NEXT_TO_NOTHING = 1 << 16
_MAP_SIZE = 1 << (40 if sys.maxsize > 1 << 32 else 30)
"""Address space, not disk or memory. If less is allowed, the map is small and grows at commits."""
_LEAST, _MOST = 64 << 20, 1 << 30
"""Bounds of the bytes that a small map leaves free for the next transaction: a quarter of the limit, within them."""


class StoreError(InputError):
    """The store of a JOBDIR cannot be read or written: damaged, disk full, no permission."""


class NoTables(StoreError):
    """The store was begun, but nothing was ever committed to it."""


class Store:
    """The tables of one JOBDIR; keys and values are bytes.

    ``fsync``: whether :meth:`commit` waits for the disk; otherwise a commit survives the process, but not a power cut.
    A writable store belongs to one process: its forked children must not touch it.
    """

    def __init__(self, path: Path, *, fsync: bool = True, readonly: bool = False) -> None:
        """Open or make the file. Raises StoreError."""
        self.path = path
        self.readonly = readonly
        self.fsync = fsync
        try:
            while not self._begin():
                pass
        except lmdb.NotFoundError:
            raise NoTables(
                f"{path} is damaged: it holds no tables; restore JOBDIR from a backup, or begin a new crawl"
            ) from None
        except lmdb.Error as error:
            raise self._error(error) from None

    def _begin(self) -> bool:
        """Open file, tables and a transaction; return False if a crawl has meanwhile written beyond the map."""
        self._env = self._open()
        try:
            self.check_size()
            self._check_lock_file()
            self._tables = {name: self._env.open_db(name.encode(), create=not self.readonly) for name in TABLES}
            self._txn = self._env.begin(write=not self.readonly)
        except lmdb.MapResizedError:
            self._env.close()
            return False
        except (lmdb.Error, StoreError):
            self._env.close()
            raise
        return True

    def _open(self) -> lmdb.Environment:
        """Open the file with more address space than it will ever need; if that is refused, with a map that fits."""
        self._allocate_lock_file()
        open_file = partial(
            lmdb.open,
            os.fsencode(self.path),
            subdir=False,
            max_dbs=len(TABLES),
            sync=self.fsync,
            metasync=self.fsync,
            readonly=self.readonly,
            readahead=False,
            create=not self.readonly,
            mode=0o600,
        )
        try:
            return open_file(map_size=_MAP_SIZE)
        except lmdb.MemoryError:
            return open_file(map_size=self.path.stat().st_size + _free_space(readonly=self.readonly))

    def _allocate_lock_file(self) -> None:
        """Allocate LMDB's lock file, because LMDB writes to it through a map, which ends the process on a full disk."""
        with suppress(OSError):  # a place where nothing can be written; LMDB says so, or reads without
            lock = os.open(f"{self.path}-lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(lock, 0, _LOCK_FILE_BYTES)
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    raise self._no_space() from None
            finally:
                os.close(lock)

    @property
    def size(self) -> int:
        """Bytes of the file that are in use."""
        info, page = self._env.info(), self._env.stat()["psize"]
        return int(info["last_pgno"] + 1) * int(page)

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return a value. Raises StoreError if its checksum shows that it, or its key, was changed."""
        try:
            value = self._txn.get(key, db=self._tables[table])
        except lmdb.Error as error:
            raise self._error(error) from None
        return None if value is None else self._checked(table, key, value)

    def stated(self, key: bytes, shape: Any) -> dict[str, Any]:
        """Return a JSON object from the table of states; empty if it is missing. Raises StoreError if it has another
        shape."""
        stored = self.get("state", key)
        if not stored:
            return {}
        state = json_or_none(stored)
        if not fits([state], shape):
            raise self.damaged(f"its state is not that of a crawl: in {key.decode()}, {misfit(state, shape)}")
        return cast("dict[str, Any]", state)

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Set a value."""
        checksum = crc32(value, crc32(key, 0)).to_bytes(_CRC_BYTES, "little")
        try:
            self._txn.put(key, checksum + value, db=self._tables[table])
        except lmdb.Error as error:
            raise self._error(error) from None

    def delete(self, table: str, key: bytes) -> bool:
        """Remove a value; return whether there was one."""
        try:
            return bool(self._txn.delete(key, db=self._tables[table]))
        except lmdb.Error as error:
            raise self._error(error) from None

    def clear(self, table: str) -> None:
        """Remove all values of a table."""
        try:
            self._txn.drop(self._tables[table], delete=False)
        except lmdb.Error as error:
            raise self._error(error) from None

    def items(self, table: str, start: bytes = b"", *, backwards: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values in order of keys, from ``start`` on. ``backwards``: from the last key that begins with
        ``start``, or precedes it."""
        try:
            with self._txn.cursor(db=self._tables[table]) as cursor:
                if not backwards:
                    found = cursor.set_range(start)
                elif start and cursor.set_range(start[:-1] + bytes((start[-1] + 1,))):
                    found = cursor.prev()
                else:
                    found = cursor.last()
                if found:
                    for key, value in cursor.iterprev() if backwards else cursor.iternext():
                        yield key, self._checked(table, key, value)
        except lmdb.Error as error:
            raise self._error(error) from None

    def behind(self, table: str, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values whose keys begin with a prefix, in order."""
        return takewhile(lambda item: item[0].startswith(prefix), self.items(table, prefix))

    def last(self, table: str, prefix: bytes, end: bytes) -> bytes | None:
        """Return the value of the greatest key that begins with ``prefix`` and is smaller than ``end``."""
        try:
            with self._txn.cursor(db=self._tables[table]) as cursor:
                found = cursor.prev() if cursor.set_range(end) else cursor.last()
                key, value = cursor.item() if found else (b"", b"")
        except lmdb.Error as error:
            raise self._error(error) from None
        return self._checked(table, key, value) if found and key.startswith(prefix) else None

    def count(self, table: str) -> int:
        """Return the number of values."""
        return int(self._txn.stat(self._tables[table])["entries"])

    def commit(self) -> None:
        """Make all changes since the last commit permanent. Raises StoreError; then none is."""
        try:
            self._txn.commit()
            self._grow()
            self._txn = self._env.begin(write=True)
            # Pages at the end may have been taken and given back in one transaction.
            if self.path.stat().st_size < self.size:
                os.truncate(self.path, self.size)
        except (lmdb.Error, OSError) as error:
            raise self._error(error) from None

    def _grow(self) -> None:
        """Make room for the next transaction in a small map; no transaction may be open in this process."""
        map_size, free = self._env.info()["map_size"], _free_space()
        if map_size < _MAP_SIZE and map_size - self.size < free // 2:
            self._env.set_mapsize(self.size + free)

    def check_size(self) -> None:
        """Raise StoreError if the file is shorter than its content, because reading beyond its end would end the
        process."""
        if self.path.stat().st_size < self.size:
            time.sleep(_BETWEEN_COMMIT_AND_TRUNCATE)
        if self.path.stat().st_size < self.size:
            raise self.damaged(f"it holds {self.path.stat().st_size:,} bytes of {self.size:,}")

    def _check_lock_file(self) -> None:
        """Raise StoreError if LMDB's lock file counts the transactions of another file: see :func:`put_in_place`. LMDB
        would believe it, and could take the store for an empty one."""
        with self._env.begin() as txn:
            if txn.id() > self._env.info()["last_txnid"]:
                raise StoreError(f"{self.path} is still read as it was before it was compacted; wait until that ends")

    def copy_to(self, path: Path) -> None:
        """Write the last commit to another file, without free pages."""
        try:
            copy = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                self._env.copyfd(copy, compact=True)
            finally:
                os.close(copy)
        except lmdb.Error as error:
            raise self._error(error) from None

    def close(self) -> None:
        """Discard uncommitted changes, and close the file."""
        self._txn.abort()
        self._env.close()

    def _checked(self, table: str, key: bytes, value: bytes) -> bytes:
        content = value[_CRC_BYTES:]
        if crc32(content, crc32(key, 0)) != int.from_bytes(value[:_CRC_BYTES], "little"):
            raise self.damaged(f"{table} {key.hex()} fails its checksum")
        return content

    def damaged(self, how: str) -> StoreError:
        """Return the error for a store with impossible content."""
        return StoreError(f"{self.path} is damaged: {how}; restore JOBDIR from a backup, or begin a new crawl")

    def _no_space(self) -> StoreError:
        return StoreError(
            f"cannot write {self.path}: {os.strerror(errno.ENOSPC)}; make room and start again: it goes on from the "
            "last commit"
        )

    def _error(self, error: Any) -> StoreError:
        if isinstance(error, lmdb.CorruptedError | lmdb.PageNotFoundError | lmdb.InvalidError | lmdb.ProblemError):
            return self.damaged(str(error))
        if isinstance(error, lmdb.MemoryError | lmdb.MapFullError):
            limit = resource.getrlimit(resource.RLIMIT_AS)[0]
            allowed = f"{limit >> 20:,} MB" if limit > 0 else "no limit"
            return StoreError(
                f"{self.path} has no more room in the address space of this process; raise the limit on it (now "
                f"{allowed}), best with `ulimit -v unlimited`, and start again: it resumes from the last commit"
            )
        cut_short = os.strerror(errno.EIO) in str(error)  # what LMDB says of a write that a full disk shortened
        is_full = cut_short and shutil.disk_usage(self.path.parent).free < _NEXT_TO_NOTHING
        if isinstance(error, lmdb.DiskError) or is_full:
            return self._no_space()
        return StoreError(f"{self.path}: {str(error).removeprefix(f'{self.path}: ')}")


def _free_space(*, readonly: bool = False) -> int:
    """Return the bytes by which a growing map exceeds the stored bytes."""
    allowed: int = resource.getrlimit(resource.RLIMIT_AS)[0]
    return 0 if readonly else max(_LEAST, min(allowed // 4, _MOST))


def put_in_place(copy: Path, path: Path) -> None:
    """Replace a store that no process writes to by a copy that :meth:`Store.copy_to` made.

    Readers of the old store continue with it. They share LMDB's lock file, which counts its transactions, so the copy
    needs another one.
    """
    sync_path(copy)
    copy.replace(path)
    path.with_name(f"{path.name}-lock").unlink(missing_ok=True)
    sync_path(path.parent)
