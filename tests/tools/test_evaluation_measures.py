"""What the evaluation computes of runs, on numbers small enough to compute by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from evaluation_helpers import line, write_run
from hypothesis import given, settings, strategies as st

from crawl4llm.tools.evaluate.correlations import rank_correlation
from crawl4llm.tools.evaluate.coverage import best, mean_of_best, pages_to_find, pool_to_match
from crawl4llm.tools.evaluate.documents import Floats, Oracle, Population, oracle_of
from crawl4llm.tools.evaluate.ordering import Change, crawl_and_stop_with_threshold, kept, shares_of_hot
from crawl4llm.tools.evaluate.runs import CrawledPages, points_along, read_runs

NAN = math.nan

# -- population and oracle set ----------------------------------------------------------------------------------------


def test_the_oracle_set_is_the_best_tenth() -> None:
    oracle = oracle_of(Population(np.linspace(0, 1, 30), 30))
    assert oracle.size == (3, 3, 3)
    assert oracle.threshold.value == pytest.approx(27 / 29)


def test_a_part_of_a_page_is_rounded_up() -> None:
    """A tenth of 21,599 pages is 2,160 pages, as in the figures of the published implementation."""
    assert oracle_of(Population(np.arange(21_599.0), 21_599)).size.value == 2160


def test_pages_of_one_score_belong_to_the_oracle_set_together() -> None:
    oracle = oracle_of(Population(np.array([1.0, 1.0, 1.0, *[0.0] * 17]), 20))
    assert (oracle.threshold.value, oracle.size.value) == (1.0, 3)


def test_pages_without_a_score_are_no_oracle_pages() -> None:
    population = Population(np.array([NAN] * 5 + [0.3] * 2 + [0.2] * 13), 20)
    oracle = oracle_of(population)
    assert (population.lowest, oracle.threshold.value, oracle.size.value) == (0.2, 0.3, 2)


@pytest.mark.slow
def test_a_sample_has_intervals_that_hold_what_they_promise() -> None:
    """38 in 40 intervals hold the true value; fewer than 33 of 40 seeds would be a chance of one in a thousand."""
    population = np.random.default_rng(7).random(5000)
    truth = oracle_of(Population(population, 5000))
    held = 0
    for seed in range(40):
        sample = np.random.default_rng(seed).choice(population, 400, replace=False)
        threshold, size = oracle_of(Population(sample, 5000))
        held += threshold.low <= truth.threshold.value <= threshold.high
        assert threshold.low < threshold.value < threshold.high
        assert size.low < size.value < size.high
    assert held >= 33


# -- along the crawl --------------------------------------------------------------------------------------------------

ORACLE = oracle_of(Population(np.array([0.9, 0.8, *[0.1] * 18]), 20))
CRAWLED = np.array([0.1, 0.9, NAN, 0.8])
AT = np.array([1, 2, 4])


def crawled(folder: Path, influence: Floats, oracle: Oracle = ORACLE) -> CrawledPages:
    fetched = (2, 4, 5, 10)[: len(influence)]
    (run,) = read_runs([write_run(folder / "run", [line(place, fetched=some) for place, some in enumerate(fetched)])])
    return CrawledPages(run, np.arange(len(run)), influence, np.zeros(len(run), dtype=np.int64), oracle)


def test_precision_recall_and_harvest_rate(tmp_path: Path) -> None:
    found = crawled(tmp_path, CRAWLED)
    assert found.precision(AT).value.tolist() == [0, 0.5, 0.5]
    assert found.recall(AT).value.tolist() == [0, 0.5, 1]
    assert found.harvest_rate(AT).value.tolist() == [0, 0.25, 0.2]


def test_mean_leaves_out_pages_without_a_score(tmp_path: Path) -> None:
    means = crawled(tmp_path, CRAWLED).mean_influence(np.array([1, 2, 3, 4]))
    assert means.tolist() == pytest.approx([0.1, 0.5, 0.5, 0.6])
    (tmp_path / "one").mkdir()
    assert np.isnan(crawled(tmp_path / "one", np.array([NAN])).mean_influence(np.array([1])))


def test_points_end_where_the_crawl_ends() -> None:
    assert points_along(3).tolist() == [1, 2, 3]
    many = points_along(1_000_003, 50)
    assert (len(many), many[0], many[-1]) == (50, 1, 1_000_003)


# -- crawl-then-select ------------------------------------------------------------------------------------------------


def test_best_pages_of_a_pool() -> None:
    influence = np.array([0.2, 0.9, NAN, 0.5, 0.9])
    assert best(influence, 5, 2).tolist() == [1, 4]
    assert best(influence, 4, 1).tolist() == [1]
    assert best(influence, 3, 3).tolist() == [0, 1, 2]
    assert mean_of_best(influence, 4, 2) == pytest.approx(0.7)
    assert mean_of_best(influence, 3, 3) == pytest.approx(1.1 / 3)


def test_pages_needed_to_match() -> None:
    influence = np.array([0.1, 0.2, 0.8, 0.3, 0.6])
    assert pool_to_match(influence, 2, 0.15) == 2
    assert pool_to_match(influence, 2, 0.5) == 3
    assert pool_to_match(influence, 2, 0.6) == 5
    assert pool_to_match(influence, 2, 0.71) is None
    assert pool_to_match(influence, 6, 0.1) is None
    hits = np.array([0, 1, 1, 2])
    assert [pages_to_find(hits, wanted) for wanted in (0, 1, 2, 3)] == [0, 2, 4, None]


# -- the models of Cho et al. -----------------------------------------------------------------------------------------

WEB = Population(np.array([9.0, 7, 7, 3, 1, 0, 0, 0]), 8)
VISITED = np.array([1.0, 9, 0, 7, 7, 3])


def test_crawl_and_stop() -> None:
    """The best pages of the web have 9; 7; 7; 3; 1; 0. After one page none has 9, after three one has 7 ..."""
    shares = shares_of_hot((VISITED[:pages] for pages in range(1, 7)), WEB).value
    assert shares[:5].tolist() == [0, 1 / 2, 1 / 3, 2 / 4, 4 / 5]
    assert np.isnan(shares[5])  # every page has 0


def test_crawl_and_stop_with_threshold() -> None:
    assert crawl_and_stop_with_threshold(VISITED, WEB, 7, np.arange(1, 7)).value.tolist() == pytest.approx(
        [0, 1 / 3, 1 / 3, 2 / 3, 1, 1]
    )
    assert np.isnan(crawl_and_stop_with_threshold(VISITED, WEB, 10, np.array([6])).value).all()


def test_hot_pages_in_a_buffer() -> None:
    assert shares_of_hot([np.array([9.0, 7, 0])], WEB).value == pytest.approx([2 / 3])


def test_of_equal_pages_the_last_is_lost() -> None:
    assert [left.tolist() for left in kept(np.array([0.5, 0.9, 0.5, 0.1]), [2, 3])] == [[0, 1], [0, 1, 2]]
    assert kept(np.array([0.5, 0.9]), [5])[0].tolist() == [0, 1]


def test_a_new_estimate_counts_from_its_moment_on() -> None:
    """Page 0 is about to be lost to page 2 when it is found to be worth more; page 1 is found to be so too late."""
    estimates = np.array([0.1, 0.2, 0.3, 0.4])
    assert kept(estimates, [2])[0].tolist() == [2, 3]
    assert kept(estimates, [2], [Change(2, 0, 0.9), Change(3, 1, 0.9)])[0].tolist() == [0, 3]


def naive_buffer(estimates: list[float], size: int, changes: list[Change]) -> list[int]:
    current, buffer = list(estimates), []
    for place in range(len(estimates)):
        for change in changes:
            if change.crawled == place:
                current[change.place] = change.estimate
        buffer.append(place)
        if len(buffer) > size:
            buffer.remove(min(buffer, key=lambda page: (current[page], -page)))
    return buffer


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_buffer_does_as_the_model_says(data: st.DataObject) -> None:
    score = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
    estimates = data.draw(st.lists(score, min_size=1, max_size=12))
    size = data.draw(st.integers(1, 12))
    changes = [
        Change(crawled, data.draw(st.integers(0, crawled - 1)), data.draw(score))
        for crawled in sorted(data.draw(st.lists(st.integers(1, len(estimates)), max_size=12)))
    ]
    assert kept(np.array(estimates), [1, size], changes)[1].tolist() == naive_buffer(estimates, size, changes)
    assert kept(np.array(estimates), [size])[0].tolist() == naive_buffer(estimates, size, [])


# -- correlation ------------------------------------------------------------------------------------------------------


def test_correlation_is_that_of_ranks() -> None:
    """Ranks 1 2 3 4 against 2 1 4 3: 1 - 6 * 4 / (4 * 15)."""
    found = rank_correlation(np.array([1.0, 2, 3, 100]), np.array([20.0, 10, 40, 30]))
    assert found.value == pytest.approx(0.6)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.6 < found.high
    assert found.pairs == 4


def test_pairs_without_a_number_do_not_count() -> None:
    found = rank_correlation(np.array([1.0, 2, NAN, 3, 4]), np.array([1.0, 2, 3, math.inf, 3]))
    assert (found.value, found.pairs) == (pytest.approx(1.0), 3)


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        ([0.5] * 5, [1.0, 2, 3, 4, 5], "the same for all"),
        ([1.0, 2, 3], [0.0, 0.0, 0.0], "the same for all"),
        ([NAN] * 4, [1.0, 2, 3, 4], "fewer than three"),
        ([], [], "fewer than three"),
        ([1.0, 2], [2.0, 1], "fewer than three"),
    ],
)
def test_undefined_correlations_say_why(x: list[float], y: list[float], why: str) -> None:
    found = rank_correlation(np.array(x), np.array(y))
    assert found.value is None
    assert why in str(found.undefined)
