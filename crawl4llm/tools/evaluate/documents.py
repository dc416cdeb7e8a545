"""The numbered documents of an evaluation: numbers of all of them in temporary files, their values in order with the
oracle set, and the links between them.

64-bit fingerprints stand for the documents' keys. Two of a hundred million documents have one fingerprint with a
probability of 3 in 10,000.

Memory has the parts of a column that are looked at: the system keeps pages of its file as long as nobody needs that
memory for something else. A file is gone when its array is, and when the process is killed too: it has no name. Links
are read in blocks; memory has a few numbers per document if all of them change at once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from crawl4llm.base.reductions import reduced
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


def stored_values(values: NDArray[Any], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Write one column, given whole, to a file as :func:`stored` does."""
    (found,) = stored([(values,)], dtype)
    return found


ABSENT = -1
"""The number of a key without a document."""


def fingerprints(keys: Iterable[str]) -> Fingerprints:
    """Return the fingerprints of keys."""
    data = b"".join(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest() for key in keys)
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)


class Documents:
    """Documents in a fixed order; a key that comes twice has the number of its first place."""

    def __init__(self, keys: Iterable[str]) -> None:
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
        return self.numbers(fingerprints(keys))


def _numbered(keys: Iterator[str]) -> Iterator[tuple[Fingerprints, Integers]]:
    start = 0
    while len(some := fingerprints(islice(keys, AT_ONCE))):
        yield some, np.arange(start, start + len(some))
        start += len(some)


# -- the values of all pages -------------------------------------------------------------------------------------------

CONFIDENCE: Final = 0.95
_ORDERED = """
SELECT if(isfinite(value), value, coalesce(lowest, 0)) AS known
FROM given, (SELECT min(value) AS lowest FROM given WHERE counts AND isfinite(value))
WHERE counts ORDER BY known
"""


class Estimate(NamedTuple):
    """A number with its 95% confidence interval, which is the number itself if it is known."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """Return a number that is known."""
        return cls(value, value, value)


class Population:
    """The values of all ``size`` pages, or of a sample of them. A page without a value (NaN) has the lowest one.

    They are those of documents; with ``within``, of those that it marks. They are sorted on disk.
    """

    def __init__(self, values: Floats, size: int, within: Flags | None = None) -> None:
        given = {"value": values, "counts": np.broadcast_to(True, len(values)) if within is None else within}
        self.size = size
        self._ascending: Floats = stored_rows(reduced(_ORDERED, given), "f8")[0]
        self.lowest = float(self._ascending[0]) if len(self._ascending) else 0.0
        self.sampled = len(self._ascending) < size

    def value_at(self, rank: int) -> Estimate:
        """Return the value of the page with a rank, from 1 for the highest value to ``size``.

        In a sample, the quantile; its interval is that of the order statistics (David and Nagaraja 2003, 7.1).
        """
        n = len(self._ascending)
        if not self.sampled:
            return Estimate.exact(float(self._ascending[n - rank]))
        from scipy.stats import binom  # 45 MB, which only samples need

        share = rank / self.size
        tail = (1 - CONFIDENCE) / 2
        places = [np.ceil(share * n), binom.ppf(1 - tail, n, share) + 1, binom.ppf(tail, n, share)]
        value, low, high = (float(self._ascending[n - int(np.clip(place, 1, n))]) for place in places)
        return Estimate(value, low, high)

    def count_from(self, value: float) -> Estimate:
        """Return how many pages have at least a value; of a sample, with the interval of Wilson 1927."""
        n = len(self._ascending)
        found = n - int(np.searchsorted(self._ascending, value))
        if not self.sampled:
            return Estimate.exact(found)
        from scipy.stats import binomtest  # as above

        interval = binomtest(found, n).proportion_ci(CONFIDENCE, method="wilson")
        return Estimate(*(share * self.size for share in (found / n, interval.low, interval.high)))


class Oracle(NamedTuple):
    """The oracle set: the best tenth of all pages by influence (Craw4LLM, section 3)."""

    threshold: Estimate
    """The influence score from which a page belongs to it; all of equal score belong or do not."""
    size: Estimate
    """Its number of pages."""


def oracle_of(influence: Population) -> Oracle:
    """Return the oracle set of a web: a tenth of its pages, rounded up."""
    threshold = influence.value_at(-(-influence.size // 10))
    return Oracle(threshold, influence.count_from(threshold.value))


# -- the links between documents: degrees, reach, PageRank, means over neighbours --------------------------------------

_PAGERANK_TOLERANCE = 1e-10


class LinkGraph:
    """Links between the documents of a corpus: each once, none from a document to itself.

    ``degrees`` are the numbers of links from each document, ``targets`` the numbers of the documents that they lead to,
    in the order of those that they come from.
    """

    def __init__(self, size: int, degrees: Integers, targets: Integers) -> None:
        self.size = size
        self.degrees, self._targets = degrees, targets
        starts = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(degrees, out=starts[1:])
        self._starts: Integers = stored_values(starts, np.int64)

    def __len__(self) -> int:
        return len(self._targets)

    def indegree(self) -> Floats:
        """Return the number of links to each document."""
        degrees = np.zeros(self.size)
        for _, _, targets in self._blocks():
            np.add.at(degrees, targets, 1)
        return stored_values(degrees)

    def reachable(self, seeds: Integers) -> Flags:
        """Return which documents can be reached over links from any of some documents, those included."""
        reached = np.zeros(self.size, dtype=np.bool_)
        newest = _distinct(seeds)
        while len(newest):
            reached[newest] = True
            linked = [np.zeros(0, dtype=np.int64)]
            for part in slices(len(newest)):
                _, targets = self._links_of(newest[part])
                linked.append(_distinct(targets[~reached[targets]]))
            newest = _distinct(np.concatenate(linked))
        return reached

    def pagerank(self, damping: float) -> Floats:
        """Compute IR of Cho et al. 1998, section 2: IR(P) = (1 - d) + d (IR(T1)/c1 + ... + IR(Tn)/cn); its mean is 1.

        A page without links counts as one that links to every page. The equations are solved by the paper's iteration,
        whose error shrinks by the factor d with each step; faster solvers, such as SciPy's bicgstab, break down on some
        small graphs. Memory has two numbers a document.
        """
        rank, step = np.ones(self.size), np.inf
        while step > _PAGERANK_TOLERANCE:
            following = np.zeros(self.size)
            for rows, degrees, targets in self._blocks():
                shares = damping / np.maximum(degrees, 1) * rank[rows]
                np.add.at(following, targets, np.repeat(shares, degrees))
            to_everyone = damping * rank[self.degrees == 0].sum() / self.size
            following += 1 - damping + to_everyone
            rank -= following
            step = np.abs(rank, out=rank).max()
            rank = following
        return stored_values(rank)

    def mean_of_neighbours(self, values: Floats) -> Floats:
        """Return for each document the mean value of those it links to; NaN if none of them has a value."""
        blocks = ((_means(degrees, targets, values),) for _, degrees, targets in self._blocks())
        return stored(blocks, np.float64)[0]

    def mean_of_second_neighbours(self, values: Floats, documents: Integers) -> Floats:
        """Return the same over the documents two links away, and no fewer, for each of some documents."""
        means = np.zeros(len(documents))
        for place in range(len(documents)):
            document = documents[place : place + 1]
            _, near = self._links_of(document)
            _, far = self._links_of(near)
            second = _distinct(far)
            second = second[~np.isin(second, np.concatenate([document, near]))]
            (means[place],) = _means(np.array([len(second)]), second, values)
        return means

    def _blocks(self) -> Iterator[tuple[slice, Integers, Integers]]:
        """Yield which documents, their degrees, and the documents that they link to, for some after the other."""
        for rows in slices(self.size):
            yield rows, self.degrees[rows], self._targets[self._starts[rows.start] : self._starts[rows.stop]]

    def _links_of(self, documents: Integers) -> tuple[Integers, Integers]:
        """Return the degrees of some documents, and the documents that they link to."""
        degrees = self.degrees[documents]
        before = np.cumsum(degrees) - degrees
        return degrees, self._targets[np.repeat(self._starts[documents] - before, degrees) + np.arange(degrees.sum())]


def _distinct(numbers: Integers) -> Integers:
    """Return numbers in ascending order, each once: np.unique() hashes them, which takes several times as long."""
    ordered = np.sort(numbers)
    distinct: Integers = ordered[np.diff(ordered, prepend=-1) != 0]
    return distinct


def _means(degrees: Integers, targets: Integers, values: Floats) -> Floats:
    """Return the means of the values that are known of the targets of each document."""
    found, of = values[targets], np.repeat(np.arange(len(degrees)), degrees)
    known = np.isfinite(found)
    sums = np.bincount(of[known], weights=found[known], minlength=len(degrees))
    counts = np.bincount(of[known], minlength=len(degrees))
    means: Floats = np.divide(sums, counts, out=np.full(len(degrees), np.nan), where=counts > 0)
    return means
