"""PageRank IR' on the links seen so far (Cho et al. 1998, section 2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.shapes import NUMBER
from crawl4llm.policies._policy import BasePolicy, Candidate, CrawledPage, Rating, saved_state
from crawl4llm.policies._seen_graph import DUMPED, SeenGraph
from crawl4llm.policies._seen_links import targets_of

DAMPING: Final = 0.9
"""d, the part of a page's IR that its links pass on, as of Cho et al."""
INTERVAL: Final = 100
"""Crawled pages after which the equations are solved again."""
_TOLERANCE = 1e-9
"""The equations count as solved when a step changes a document's IR by no more, on average."""


class Policy(BasePolicy):
    """Unnormalised, as the paper has it: IR(P) = (1 - d) + d (IR(T1)/c1 + ... + IR(Tn)/cn).

    d is DAMPING. A crawled page without links counts as one that links to every document seen. The equations are solved
    after each INTERVAL pages, from the last solution on. In between, a crawled page passes its IR on to the documents
    it links to, and no further.
    """

    name = "pagerank"
    reranks = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._graph = SeenGraph()
        self._ranks: list[float] = []
        """IR by the number of the document in the graph."""
        self._changed: dict[int, None] = {}

    def identity(self) -> Mapping[str, object]:
        return {"pagerank_damping": DAMPING, "pagerank_interval": INTERVAL}

    def crawled(self, page: CrawledPage) -> None:
        number = self._graph.add(page.entry.key, targets_of(page.links))
        self._start_ranks()
        targets = self._graph.targets(number)
        passed_on = DAMPING * self._ranks[number] / max(len(targets), 1)
        for target in targets:
            self._ranks[target] += passed_on
            self._changed[target] = None
        if len(self._graph.pages) % INTERVAL == 0:
            self._solve()
            self._changed = dict.fromkeys(range(len(self._graph)))

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        numbers = [self._graph.number(candidate.key) for candidate in candidates]
        self._start_ranks()
        return [Rating(self._ranks[number]) for number in numbers]

    def reranked(self) -> Iterable[tuple[str, float]]:
        changed, self._changed = self._changed, {}
        return [(self._graph.key(number), self._ranks[number]) for number in changed]

    def save(self) -> bytes:
        return json.dumps([self._graph.dump(), self._ranks]).encode()

    def load(self, state: bytes) -> None:
        dumped, ranks = saved_state(state, (DUMPED, [NUMBER]))
        self._graph, self._ranks = SeenGraph.restored(dumped), ranks
        if len(ranks) > len(self._graph):
            raise ValueError("more ranks than documents")

    def _start_ranks(self) -> None:
        """Give documents seen for the first time the IR of one to which no links are known."""
        self._ranks.extend([1 - DAMPING] * (len(self._graph) - len(self._ranks)))

    def _solve(self) -> None:
        """Solve the equations by the paper's iteration, whose steps shrink by the factor d."""
        size = len(self._graph)
        sources, targets = self._graph.links()
        links = np.bincount(sources, minlength=size)
        crawled = np.array(self._graph.pages, dtype=np.int64)
        without_links = crawled[links[crawled] == 0]
        share = DAMPING / np.maximum(links, 1)
        ranks: NDArray[np.float64] = np.array(self._ranks)
        step = np.inf
        while step > _TOLERANCE * size:
            of_everyone = 1 - DAMPING + DAMPING * ranks[without_links].sum() / size
            passed_on = np.bincount(targets, weights=(share * ranks)[sources], minlength=size)
            step = np.abs(of_everyone + passed_on - ranks).sum()
            ranks = of_everyone + passed_on
        self._ranks = ranks.tolist()
