"""The link graph of a corpus: degrees, reach, PageRank and means over neighbours.

Links are read in blocks from a file; memory has a few numbers per document if all of them change at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from crawl4llm.tools.evaluate.documents import Flags, Floats, Integers, slices, starts_of, stored

_ROWS_AT_ONCE = 1000
"""Pages whose second neighbours are in memory at a time."""
_PAGERANK_TOLERANCE = 1e-10


class LinkGraph:
    """Links between the documents of a corpus: each once, none from a document to itself.

    ``degrees`` are the numbers of links from each document, ``targets`` the numbers of the documents that they lead to,
    in the order of those that they come from.
    """

    def __init__(self, size: int, degrees: Integers, targets: Integers) -> None:
        self.size = size
        self._degrees, self._targets = degrees, targets
        self._starts: Integers = starts_of(degrees)

    def __len__(self) -> int:
        return len(self._targets)

    def outdegree(self) -> Floats:
        """Return the number of links from each document."""
        return self._degrees.astype(np.float64)

    def indegree(self) -> Floats:
        """Return the number of links to each document."""
        degrees = np.zeros(self.size)
        for _, _, targets in self._blocks():
            np.add.at(degrees, targets, 1)
        return _stored(degrees)

    def reachable(self, seeds: Iterable[int]) -> Flags:
        """Return which documents can be reached over links from any of some documents, those included."""
        reached = np.zeros(self.size, dtype=np.bool_)
        newest = _distinct(np.fromiter(seeds, dtype=np.int64))
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
            to_everyone = damping * rank[self._degrees == 0].sum() / self.size
            following += 1 - damping + to_everyone
            rank -= following
            step = np.abs(rank, out=rank).max()
            rank = following
        return _stored(rank)

    def mean_of_neighbours(self, values: Floats) -> Floats:
        """Return for each document the mean value of those it links to; NaN if none of them has a value."""
        means: Floats
        (means,) = stored(((_means(degrees, targets, values),) for _, degrees, targets in self._blocks()), np.float64)
        return means

    def mean_of_second_neighbours(self, values: Floats, documents: Integers) -> Floats:
        """Return the same over the documents two links away, and no fewer, for each of some documents."""
        means = [np.zeros(0)]
        for start in range(0, len(documents), _ROWS_AT_ONCE):
            rows = documents[start : start + _ROWS_AT_ONCE]
            degrees, near = self._links_of(rows)
            between = _distinct(near)
            degrees_between, far = self._links_of(between)
            met = _distinct(np.concatenate([rows, near, far]))
            first = _matrix(degrees, np.searchsorted(met, near), len(met))
            own = _matrix(np.ones_like(rows), np.searchsorted(met, rows), len(met))
            links = _matrix(degrees_between, np.searchsorted(met, far), len(met))
            second = _matrix(degrees, np.searchsorted(between, near), len(between)) @ links
            second.data[:] = 1
            nearer = first + own
            nearer.data[:] = 1
            second = (second - second.multiply(nearer)).tocsr()
            second.eliminate_zeros()
            means.append(_means(np.diff(second.indptr), met[second.indices], values))
        return np.concatenate(means)

    def _blocks(self) -> Iterator[tuple[slice, Integers, Integers]]:
        """Yield which documents, their degrees, and the documents that they link to, for some after the other."""
        for rows in slices(self.size):
            yield rows, self._degrees[rows], self._targets[self._starts[rows.start] : self._starts[rows.stop]]

    def _links_of(self, documents: Integers) -> tuple[Integers, Integers]:
        """Return the degrees of some documents, and the documents that they link to."""
        degrees = self._degrees[documents]
        before = np.cumsum(degrees) - degrees
        return degrees, self._targets[np.repeat(self._starts[documents] - before, degrees) + np.arange(degrees.sum())]


def _stored(values: Floats) -> Floats:
    found: Floats
    (found,) = stored(((values,),), np.float64)
    return found


def _distinct(numbers: Integers) -> Integers:
    """Return numbers in ascending order, each once: np.unique() hashes them, which takes several times as long."""
    ordered = np.sort(numbers)
    distinct: Integers = ordered[np.diff(ordered, prepend=-1) != 0]
    return distinct


def _matrix(degrees: Integers, columns: NDArray[np.signedinteger], width: int) -> sparse.csr_matrix:
    starts = np.concatenate([[0], np.cumsum(degrees)])
    return sparse.csr_matrix((np.ones(len(columns)), columns, starts), shape=(len(degrees), width))


def _means(degrees: Integers, targets: Integers, values: Floats) -> Floats:
    """Return the means of the values that are known of the targets of each document."""
    found, of = values[targets], np.repeat(np.arange(len(degrees)), degrees)
    known = np.isfinite(found)
    sums = np.bincount(of[known], weights=found[known], minlength=len(degrees))
    counts = np.bincount(of[known], minlength=len(degrees))
    means: Floats = np.divide(sums, counts, out=np.full(len(degrees), np.nan), where=counts > 0)
    return means
