"""Numbers of all documents, one a document, in temporary files: memory has the parts that are looked at.

The system keeps pages of these files in memory as long as nobody needs it for something else. A file is gone when its
array is, and when the process is killed too: it has no name.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from crawl4llm.base.whole_files import writing

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


TEXTS = (np.uint8, np.int64)
"""Types of the columns that texts are stored in."""


def packed(texts: Sequence[bytes]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return texts, in UTF-8, as parts of two columns: their bytes, and how many each has."""
    return np.frombuffer(b"".join(texts), dtype=np.uint8), np.array(list(map(len, texts)), dtype=np.int64)


class Texts(Sequence[str]):
    """Texts in two columns, see packed()."""

    def __init__(self, data: NDArray[np.uint8], lengths: NDArray[np.int64]) -> None:
        self._data, self._starts = data, starts_of(lengths)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[one] for one in range(len(self))[place]]
        start, end = self._starts[range(len(self))[place]], self._starts[range(1, len(self) + 1)[place]]
        return self._data[start:end].tobytes().decode("utf-8", "surrogatepass")
