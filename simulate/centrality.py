"""The harmonic centrality of a corpus's pages, from its own links."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.bars import Progress
from crawl4llm.base.pages import Corpus

Numbers: TypeAlias = NDArray[np.int64]
Bits: TypeAlias = NDArray[np.uint64]

_WORDS = 8  # 64-bit words of sources that are followed at once


def page_ranks(corpus: Corpus, *, progress: bool) -> dict[str, float]:
    """Return exact harmonic centrality by document key, over the links between documents that the corpus holds."""
    numbers = {key: number for number, key in enumerate(corpus.keys())}
    sources, targets = [], []
    for key, number in Progress(numbers.items(), "links", unit=" pages", bar=progress):
        linked = {numbers[link.key] for link in corpus.outlinks(key) if link.key in numbers}
        sources += [number] * len(linked)
        targets += sorted(linked)
    links = np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64)
    values = harmonic_centrality(len(numbers), *links, progress=progress)
    return dict(zip(numbers, values.tolist(), strict=True))


def harmonic_centrality(
    size: int, sources: Numbers, targets: Numbers, *, progress: bool = False
) -> NDArray[np.float64]:
    """Compute for each node the sum of 1/d over all other nodes from which it can be reached, d links away.

    Source: Boldi and Vigna 2014, "Axioms for Centrality", 3.3. Follows the links breadth-first from many nodes at once,
    one bit each, in about a nanosecond a node and link: 10 seconds for 20,000 nodes with 300,000 links.
    """
    order = np.argsort(targets, kind="stable")
    sources, targets = sources[order], targets[order]
    centrality = np.zeros(size)
    for first in Progress(range(0, size, 64 * _WORDS), "centrality", unit=" blocks", bar=progress):
        starts = np.arange(first, min(first + 64 * _WORDS, size))
        reached = np.zeros((size, _WORDS), dtype=np.uint64)
        place = starts - first
        reached[starts, place // 64] = np.uint64(1) << (place % 64).astype(np.uint64)
        newest, distance = reached.copy(), 0
        while newest.any():
            distance += 1
            newest = _step(newest, sources, targets) & ~reached
            reached |= newest
            centrality += np.bitwise_count(newest).sum(axis=1) / distance
    return centrality


def _step(at: Bits, sources: Numbers, targets: Numbers) -> Bits:
    """Follow the links from there; they are given in the order of their targets."""
    taken = np.any(at, axis=1)[sources]
    sources, targets = sources[taken], targets[taken]
    led_to = np.zeros_like(at)
    if len(targets):
        begins = np.flatnonzero(np.diff(targets, prepend=-1))
        led_to[targets[begins]] = np.bitwise_or.reduceat(at[sources], begins, axis=0)
    return led_to
