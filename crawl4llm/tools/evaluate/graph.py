"""The link graph of a corpus as a sparse matrix: degrees, reach, PageRank and means over neighbours."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy import sparse

from crawl4llm.tools.evaluate.documents import Flags, Floats, Integers

_ROWS_AT_ONCE = 1000
"""Pages whose second neighbours are in memory at a time."""
_PAGERANK_TOLERANCE = 1e-10


class LinkGraph:
    """Links between the documents of a corpus: each once, none from a document to itself.

    ``degrees`` are the numbers of links from each document, ``targets`` the numbers of the documents that they lead to,
    in the order of those that they come from. A link takes 12 bytes.
    """

    def __init__(self, size: int, degrees: Integers, targets: Integers) -> None:
        self.size = size
        starts = np.concatenate([[0], np.cumsum(degrees)])
        self._links = sparse.csr_matrix((np.ones(len(targets)), targets, starts), shape=(size, size))
        self._links.sort_indices()

    def __len__(self) -> int:
        return int(self._links.nnz)

    def outdegree(self) -> Floats:
        """Return the number of links from each document."""
        degrees: Floats = np.diff(self._links.indptr).astype(np.float64)
        return degrees

    def indegree(self) -> Floats:
        """Return the number of links to each document."""
        return np.bincount(self._links.indices, minlength=self.size).astype(np.float64)

    def reachable(self, seeds: Iterable[int]) -> Flags:
        """Return which documents can be reached over links from any of some documents, those included."""
        reached = np.zeros(self.size, dtype=np.bool_)
        newest = np.unique(np.fromiter(seeds, dtype=np.int64))
        while len(newest):
            reached[newest] = True
            linked = np.unique(self._links[newest].indices)
            newest = linked[~reached[linked]]
        return reached

    def pagerank(self, damping: float) -> Floats:
        """Compute IR of Cho et al. 1998, section 2: IR(P) = (1 - d) + d (IR(T1)/c1 + ... + IR(Tn)/cn); its mean is 1.

        A page without links counts as one that links to every page. The equations are solved by the paper's iteration,
        whose error shrinks by the factor d with each step; faster solvers, such as SciPy's bicgstab, break down on some
        small graphs.
        """
        outdegree = self.outdegree()
        shares = damping / np.maximum(outdegree, 1)
        incoming = self._links.T
        rank, step = np.ones(self.size), np.inf
        while step > _PAGERANK_TOLERANCE:
            to_everyone = damping * rank[outdegree == 0].sum() / self.size
            following: Floats = 1 - damping + to_everyone + incoming @ (shares * rank)
            step = np.abs(following - rank).max()
            rank = following
        return rank

    def mean_of_neighbours(self, values: Floats) -> Floats:
        """Return for each document the mean value of those it links to; NaN where none of them has a value."""
        return self._means(self._links, values)

    def mean_of_second_neighbours(self, values: Floats, documents: Integers) -> Floats:
        """Return the same over the documents two links away, and no fewer, for each of some documents."""
        means = [np.zeros(0)]
        for start in range(0, len(documents), _ROWS_AT_ONCE):
            rows = documents[start : start + _ROWS_AT_ONCE]
            first = self._links[rows]
            own = sparse.csr_matrix((np.ones(len(rows)), (np.arange(len(rows)), rows)), shape=first.shape)
            second = first @ self._links
            second.data[:] = 1
            nearer = first + own
            nearer.data[:] = 1
            second = (second - second.multiply(nearer)).tocsr()
            second.eliminate_zeros()
            means.append(self._means(second, values))
        return np.concatenate(means)

    @staticmethod
    def _means(links: sparse.csr_matrix, values: Floats) -> Floats:
        known = np.isfinite(values)
        sums = links @ np.where(known, values, 0.0)
        counts = links @ known.astype(np.float64)
        means: Floats = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        return means
