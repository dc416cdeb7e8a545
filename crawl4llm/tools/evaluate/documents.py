"""The numbered documents of an evaluation, and numbers of all of them in temporary files.

64-bit fingerprints stand for the documents' keys. Two of a hundred million documents have one fingerprint with a
probability of 3 in 10,000.

Memory has the parts of a column that are looked at: the system keeps pages of its file as long as nobody needs that
memory for something else. A file is gone when its array is, and when the process is killed too: it has no name.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from hashlib import blake2b
from itertools import count, islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from crawl4llm.base.whole_files import writing

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Fingerprints: TypeAlias = NDArray[np.uint64]
"""Fingerprints of document keys."""


AT_ONCE = 1 << 14
"""Documents whose numbers are in memory at a time."""


def stored(blocks: Iterable[Sequence[NDArray[Any]]], *types: DTypeLike) -> list[NDArray[Any]]:
    """Write columns, of which each block has a part, to files in TMPDIR; return them as arrays that cannot be changed.

    Raises InputError if they cannot be written.
    """
    with ExitStack() as stack:
        with _writing():
            files = [stack.enter_context(tempfile.TemporaryFile()) for _ in types]
        for block in blocks:
            with _writing():
                for file, part, dtype in zip(files, block, types, strict=True):
                    file.write(np.ascontiguousarray(part, dtype).data)
                    file.flush()
        # A view, as slices of memmap objects are slow to make; an empty file cannot be mapped.
        return [
            np.asarray(np.memmap(file, dtype, "r")) if file.tell() else np.zeros(0, dtype)
            for file, dtype in zip(files, types, strict=True)
        ]


def _writing() -> AbstractContextManager[None]:
    return writing(Path("TMPDIR"), "the facts of documents")


def stored_rows(rows: Iterable[tuple[Any, ...]], *types: str) -> list[NDArray[Any]]:
    """Store rows as columns."""
    kind = np.dtype([(f"column{place}", dtype) for place, dtype in enumerate(types)])
    return stored(_parts(iter(rows), kind), *types)


def _parts(rows: Iterator[tuple[Any, ...]], kind: np.dtype[Any]) -> Iterator[list[NDArray[Any]]]:
    while len(part := np.fromiter(islice(rows, AT_ONCE), kind)):
        yield [part[name] for name in kind.names or ()]


def slices(count: int) -> Iterator[slice]:
    """Yield the parts of a column of ``count`` numbers, in order."""
    for start in range(0, count, AT_ONCE):
        yield slice(start, min(start + AT_ONCE, count))


def starts_of(lengths: NDArray[np.signedinteger]) -> NDArray[np.int64]:
    """Return where each of some parts, which lie one after the other, starts, and where the last ends."""

    def blocks() -> Iterator[tuple[NDArray[np.int64]]]:
        ends = np.zeros(1, dtype=np.int64)
        yield (ends,)
        for part in slices(len(lengths)):
            ends = ends[-1] + np.cumsum(lengths[part], dtype=np.int64)
            yield (ends,)

    (starts,) = stored(blocks(), np.int64)
    return starts


ABSENT = -1
"""The number of a key without a document."""

_SIZE = 8


def fingerprints(keys: Iterable[str]) -> bytes:
    """Return the fingerprints of keys, one after the other, little-endian."""
    data = bytearray()
    for key in keys:
        data += blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()
    return bytes(data)


def as_array(data: bytes) -> Fingerprints:
    """Return the result of :func:`fingerprints` as numbers."""
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)


class Documents:
    """Documents in a fixed order; a key that comes twice has the number of its first place."""

    def __init__(self, keys: Iterable[str]) -> None:
        from crawl4llm.base.reductions import reduced  # an extra

        given, places = stored(_numbered(iter(keys)), np.uint64, np.int64)
        columns = {"fingerprint": given, "place": places}
        ordered = reduced("SELECT fingerprint, place FROM given ORDER BY fingerprint, place", columns)
        self._sorted: Fingerprints
        self._places: Integers
        self._sorted, self._places = stored_rows(ordered, "u8", "i8")

    def __len__(self) -> int:
        return len(self._sorted)

    def numbers(self, wanted: Fingerprints) -> Integers:
        """Return the number of each document wanted, ABSENT if it is not among these."""
        if not len(self):
            return np.full(len(wanted), ABSENT, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self) - 1)
        return np.where(self._sorted[at] == wanted, self._places[at], ABSENT)

    def numbers_of(self, keys: Iterable[str]) -> Integers:
        """Return the number of each key."""
        return self.numbers(as_array(fingerprints(keys)))


def _numbered(keys: Iterator[str]) -> Iterator[tuple[Fingerprints, Integers]]:
    for start in count(0, AT_ONCE):
        some = as_array(fingerprints(islice(keys, AT_ONCE)))
        if not len(some):
            return
        yield some, np.arange(start, start + len(some))
