"""Algorithm 1 on random graphs, against an implementation that anyone can check against the paper."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any

import pytest
from driven_crawl import Driven, Graph, pages_at_once
from graph_corpus import GraphCorpus
from hypothesis import given, settings, strategies as st

from crawl4llm.crawl.ends import MAX_PAGES

DOCUMENTS, MISSING = "abcdefgh", "xyz"


def graphs() -> st.SearchStrategy[GraphCorpus]:
    """Graphs of few documents with many ties, some missing, some that are found damaged when they are fetched."""
    links = st.lists(st.sampled_from([*DOCUMENTS, *MISSING, None]), max_size=6)
    texts = st.fixed_dictionaries({key: st.sampled_from(["0", "0.25", "0.5", "0.75", "1"]) for key in DOCUMENTS})
    damaged = st.lists(st.sampled_from(DOCUMENTS), max_size=3)
    return st.builds(
        GraphCorpus, st.dictionaries(st.sampled_from(DOCUMENTS), links, min_size=1), texts, corrupt=damaged
    )


def seed_lists() -> st.SearchStrategy[list[str]]:
    """Seeds of such a graph, some missing, some given twice."""
    return st.lists(st.sampled_from(DOCUMENTS + MISSING[0]), min_size=1, max_size=5)


def algorithm_1(
    graph: Graph, damaged: Container[str], score: Callable[[str], float], seeds: Sequence[str], n: int, pages: int
) -> tuple[list[list[str]], dict[str, str | None]]:
    """Algorithm 1 of the paper, without a thought for speed.

    Returns the pages crawled, by iteration, and the documents visited, each with the page on which it was first seen.
    ``n`` = 0 takes the best document next.
    """
    visited: dict[str, str | None] = dict.fromkeys(seeds)
    frontier = {key for key in seeds if key in graph}
    crawled: list[list[str]] = []
    batch_size = len(frontier) if n else 1
    while frontier:
        missing = pages - sum(map(len, crawled))
        batch = sorted(frontier, key=lambda key: (-score(key), key))[: min(batch_size, missing)]
        frontier -= set(batch)
        batch_size = n or 1
        crawled.append([key for key in batch if key not in damaged])
        if len(crawled[-1]) == missing:
            break
        for key in crawled[-1]:
            for target in graph[key]:
                if target is not None and target not in visited:
                    visited[target] = key
                    frontier |= {target} & graph.keys()
    return crawled, visited


@pytest.mark.parametrize("policy", ["influence", "indegree"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_naive_implementation_agrees(policy: str, data: st.DataObject) -> None:
    corpus, seeds = data.draw(graphs()), data.draw(seed_lists())
    n, pages, order = data.draw(st.integers(0, 5)), data.draw(st.integers(1, 9)), data.draw(st.integers(0, 99))
    slices = data.draw(st.integers(1, 4))
    damaged = set() if policy == "influence" else corpus.corrupt  # one that looks ahead finds damage before it crawls
    graph = {key: corpus.targets(key) for key in corpus.keys() if policy == "indegree" or key not in corpus.corrupt}

    def score(key: str) -> float:
        return float(corpus.texts[key]) if policy == "influence" else len(corpus.inlinks(key))

    batches, visited = algorithm_1(graph, damaged, score, seeds, n, pages)
    with tempfile.TemporaryDirectory() as folder, pages_at_once(slices):
        options: dict[str, Any] = {"crawl_batch_size": n, "crawl_max_pages": pages, "url_policy": policy}
        driven = Driven(corpus, Path(folder), **options).run(*seeds, shuffled_by=order)
        driven.close()
        assert driven.ids == list(itertools.chain(*batches))
        assert n == 0 or driven.batches == [batch for batch in batches if batch]
        assert [line["priority"] for line in driven.lines] == [score(key) for key in driven.ids]
        assert [line["parent"] for line in driven.lines] == [visited[key] for key in driven.ids]
        assert {key for key in [*DOCUMENTS, *MISSING] if key in driven.crawl.visited} == visited.keys()
        assert len(driven.crawl.visited) == len(visited)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_log_and_leases_agree_in_continuous_order(data: st.DataObject) -> None:
    corpus, seeds = data.draw(graphs()), data.draw(seed_lists())
    pages, leases, order = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 4)), data.draw(st.integers(0, 99))
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"crawl_batch_size": 0, "crawl_max_pages": pages, "leases": leases}
        driven = Driven(corpus, Path(folder), **options).run(*seeds, shuffled_by=order)
        driven.close()
        assert driven.ids == [key for key in driven.dequeued if key in corpus]
        assert len(driven.ids) == len(set(driven.ids)) <= pages
        assert [line["order"] for line in driven.lines] == list(range(len(driven.ids)))
        assert (len(driven.ids) == pages) == (driven.crawl.finished == MAX_PAGES)
