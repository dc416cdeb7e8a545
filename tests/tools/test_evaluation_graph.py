"""The link graph of the evaluation, on graphs small enough to compute by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from crawl4llm.tools.evaluate.documents import LinkGraph


def graph(size: int, *links: tuple[int, int]) -> LinkGraph:
    sources, targets = (np.array([link[end] for link in sorted(links)], dtype=np.int64) for end in (0, 1))
    return LinkGraph(size, np.bincount(sources, minlength=size), targets)


SMALL = graph(6, (0, 1), (0, 2), (1, 2), (2, 3), (3, 0), (4, 0))
"""A cycle of four documents with a short cut, one document that leads into it, and one by itself."""


def test_degrees() -> None:
    assert SMALL.indegree().tolist() == [2, 1, 2, 1, 0, 0]
    assert SMALL.degrees.tolist() == [2, 1, 1, 1, 1, 0]
    assert len(SMALL) == 6


def test_reachable() -> None:
    assert SMALL.reachable([1]).tolist() == [True, True, True, True, False, False]
    assert SMALL.reachable([4, 5]).tolist() == [True] * 6
    assert SMALL.reachable([]).tolist() == [False] * 6


def test_pagerank_by_hand() -> None:
    """Two pages and d = 0.5. A links to B, B to nothing, which counts as links to A and B: by Cho's equation
    A = 0.5 + 0.5 (B/2) and B = 0.5 + 0.5 (A + B/2), so that A = 0.8 and B = 1.2."""
    assert graph(2, (0, 1)).pagerank(0.5) == pytest.approx([0.8, 1.2])


def test_pagerank_without_links_is_one_everywhere() -> None:
    assert graph(3).pagerank(0.9).tolist() == pytest.approx([1, 1, 1])


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_pagerank_solves_the_papers_equations(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12))
    page = st.integers(0, size - 1)
    links = data.draw(st.sets(st.tuples(page, page).filter(lambda link: link[0] != link[1])))
    damping = data.draw(st.sampled_from([0.5, 0.85, 0.9]))
    rank = graph(size, *sorted(links)).pagerank(damping)
    linked = {
        source: {target for begin, target in links if begin == source} or set(range(size)) for source in range(size)
    }
    for target in range(size):
        passed = sum(rank[source] / len(targets) for source, targets in linked.items() if target in targets)
        assert rank[target] == pytest.approx(1 - damping + damping * passed, abs=1e-7)


def test_mean_of_neighbours() -> None:
    means = SMALL.mean_of_neighbours(np.array([0.0, 0.2, 0.6, np.nan, 0.8, 0.9]))
    assert means[:2].tolist() == pytest.approx([0.4, 0.6])
    assert np.isnan(means[2])  # it links only to a document without a value
    assert means[3:5].tolist() == [0.0, 0.0]
    assert np.isnan(means[5])


def test_second_neighbours_are_two_links_away_and_no_fewer() -> None:
    """From 0 the documents 1 and 2 are one link away, so that of the two links' ends 2 and 3 only 3 counts."""
    values = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    means = SMALL.mean_of_second_neighbours(values, np.array([0, 2, 4, 5]))
    assert means[:3].tolist() == pytest.approx([0.4, 0.1, (0.2 + 0.3) / 2])
    assert np.isnan(means[3])


def test_a_document_is_not_its_own_second_neighbour() -> None:
    back_and_forth = graph(2, (0, 1), (1, 0))
    assert np.isnan(back_and_forth.mean_of_second_neighbours(np.array([0.1, 0.2]), np.array([0, 1]))).all()
