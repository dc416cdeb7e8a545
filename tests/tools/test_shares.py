"""The share of a gap that a policy closes, and its spread over sets of seeds."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from crawl4llm.tools.evaluate.shares import Closed, closed, closed_cells


def test_it_is_of_means_over_sets_then_of_webs_whose_gap_is_wide() -> None:
    base = [[0.2, 0.4], [0.5, 0.5], [0.1, 0.1]]
    bound = [[0.6, 0.8], [0.52, 0.56], [0.3, 0.3]]
    ours = [[0.4, 0.4], [0.9, 0.9], [0.2, 0.4]]
    found = closed(ours, base, bound)
    assert found.webs == [pytest.approx(0.25), None, pytest.approx(1.0)], "the second gap is 0.04"
    assert found.share == pytest.approx((0.1 + 0.2) / (0.4 + 0.2))


def test_the_interval_is_that_of_resampled_sets_and_always_the_same() -> None:
    draw = random.Random(3)
    base = [[draw.gauss(0.3, 0.02) for _ in range(12)]]
    bound = [[draw.gauss(0.7, 0.02) for _ in range(12)]]
    ours = [[draw.gauss(0.5, 0.05) for _ in range(12)]]
    found = closed(ours, base, bound)
    assert found == closed(ours, base, bound)
    drawn = random.Random(0)
    shares = []
    for _ in range(1000):
        sets = drawn.choices(range(12), k=12)
        one, two, three = (fmean(values[0][number] for number in sets) for values in (ours, base, bound))
        shares.append((one - two) / (three - two))
    shares.sort()
    assert (found.low, found.high) == (pytest.approx(shares[25]), pytest.approx(shares[975]))


@pytest.mark.parametrize(
    ("ours", "bound", "told"),
    [
        ([[0.4]], [[0.7]], "0.25"),
        ([[0.4]], [[0.34]], None),
        ([[0.4]], [[0.1]], None),
        ([[0.4, 0.4]], [[0.7, 0.7]], "0.25 (0.25 to 0.25)"),
        ([[0.2, 0.2]], [[0.7, 0.7]], "-0.25 (-0.25 to -0.25)"),
    ],
)
def test_how_it_is_told(ours: list[list[float]], bound: list[list[float]], told: str | None) -> None:
    base = [[0.3] * len(ours[0])]
    assert closed(ours, base, bound).told() == told


def test_the_worst_web_is_named() -> None:
    marks = {10: Closed(None, None, None, [None, None]), 25: Closed(0.5, 0.4, 0.6, [0.9, 0.1])}
    assert closed_cells(marks, ["good", "bad"]) == [None, "0.50 (0.40 to 0.60)", "bad: 0.10"]
    assert closed_cells({10: marks[10], 25: marks[10]}, ["good", "bad"]) == [None, None, None]
    assert closed_cells(None, ["good", "bad"]) == [None, None, None]
