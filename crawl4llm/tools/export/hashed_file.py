"""A file that is compressed, hashed and written by a thread, while its content is still being made."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

_AHEAD = 4
"""Pieces that may wait for the thread."""


class Compressor(Protocol):
    """A stream that compresses."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class Plain:
    """A stream that does not."""

    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


class HashedFile:
    """A new file that is only written, with the SHA-256 of what it holds.

    Compressing, hashing and writing need no Python: a thread of its own does them on another core. An error of it, an
    OSError, is raised by a later call, at the latest by :meth:`close`, after which ``size`` and ``digest`` are valid.
    """

    def __init__(self, path: Path, compressor: Compressor) -> None:
        self._file = path.open("wb", buffering=0)
        self._compressor = compressor
        self._sha256 = hashlib.sha256()
        self._taken = 0
        self._thread = ThreadPoolExecutor(1)
        self._pending: deque[Future[None]] = deque()
        self.size = 0
        """Bytes in the file."""

    @property
    def closed(self) -> bool:
        return self._file.closed

    @property
    def digest(self) -> str:
        """In hex."""
        return self._sha256.hexdigest()

    def write(self, data: bytes) -> int:
        """Have data written; many bytes at once."""
        self._pending.append(self._thread.submit(self._compress, data))
        self._taken += len(data)
        while len(self._pending) > _AHEAD:
            self._pending.popleft().result()
        return len(data)

    def tell(self) -> int:
        """Bytes that were given to :meth:`write`."""
        return self._taken

    def flush(self) -> None:
        """Nothing: what was given is written by and by."""

    def close(self) -> None:
        """Close it once all of it is on the disk."""
        if self._file.closed:
            return
        try:
            for piece in self._pending:
                piece.result()
            self._write(self._compressor.flush())
            os.fsync(self._file.fileno())
        finally:
            self._thread.shutdown(cancel_futures=True)
            self._file.close()

    def _compress(self, data: bytes) -> None:
        self._write(self._compressor.compress(data))

    def _write(self, data: bytes) -> None:
        self._sha256.update(data)
        self.size += len(data)
        rest = memoryview(data)
        while rest:  # a full disk first shortens a write and fails the next
            rest = rest[self._file.write(rest) :]
