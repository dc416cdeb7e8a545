"""Tests and ranks of contests, on numbers that were worked out otherwise."""

from __future__ import annotations

import random

import pytest
from scipy.stats import permutation_test

from crawl4llm.tools.evaluate.ranking import AREA, error_of, holm, ranking_of, sets_needed, sign_flip, too_few


def test_exact_test_is_that_of_scipy() -> None:
    draw = random.Random(3)
    for size in (5, 9, 12):
        differences = [draw.gauss(0.3, 1) for _ in range(size)]
        theirs = permutation_test(
            (differences, [0.0] * size), lambda x, y, axis: (x - y).mean(axis=axis),
            permutation_type="samples", vectorized=True, n_resamples=1 << size,
        )  # fmt: skip
        assert sign_flip(differences) == pytest.approx(theirs.pvalue)


def test_drawn_test_is_near_the_exact_one_and_always_the_same() -> None:
    draw = random.Random(4)
    differences = [draw.gauss(0.5, 1) for _ in range(16)]
    theirs = permutation_test(
        (differences, [0.0] * 16), lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples", vectorized=True, n_resamples=1 << 16, batch=1 << 12,
    )  # fmt: skip
    assert sign_flip(differences) == pytest.approx(theirs.pvalue, abs=0.01)
    assert sign_flip(differences) == sign_flip(list(differences))
    assert sign_flip([1.0] * 30) == pytest.approx(1 / 16385)


def test_no_difference_is_no_difference() -> None:
    assert sign_flip([0.0] * 6) == 1.0
    assert sign_flip([0.1, -0.1]) == 1.0


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]


def test_ranks_and_what_is_not_distinguished() -> None:
    noise = [0.001 * (place % 3) for place in range(12)]
    values = {
        "worst": {AREA: [[0.1 + more for more in noise]]},
        "good": {AREA: [[0.5 + more for more in noise]]},
        "as-good": {AREA: [[0.5 + more for more in reversed(noise)]]},
        "bound": {AREA: [[0.4] * 12]},
    }
    found = ranking_of(values, {"bound"}, 12).standings
    assert [(one.rank, one.policy, list(one.not_distinguished)) for one in found] == [
        (1, "as-good", ["good"]),
        (2, "good", ["as-good"]),
        (3, "worst", []),
        (None, "bound", []),
    ]
    assert error_of([[1.0, 3.0], [2.0, 2.0]]) == pytest.approx(0.5)
    assert error_of([[1.0], [2.0]]) is None


def test_too_few_sets_are_said_to_be_so() -> None:
    """Ahead by 0.41±0.005 from 6 of 6 sets: sure of two policies; of three no test could tell, so it is not chance."""
    noise = [0.005, -0.005, 0.0, 0.004, -0.004, 0.001]
    values = {
        "good": {AREA: [[0.9 + more for more in noise]]},
        "other": {AREA: [[0.49 - more for more in noise]]},
        "worst": {AREA: [[0.1 + more / 2 for more in noise]]},
    }

    def told(*names: str) -> tuple[str, list[str | None]]:
        ranking = ranking_of({name: values[name] for name in names}, (), 6)
        _, sure = ranking.verdict("all pages")
        return sure, list(map(ranking.alike, ranking.standings))

    sure, column = told("good", "other")
    assert "from 6 of 6 sets of seeds; p = 0.031 (paired" in sure
    assert sure.endswith("so chance alone does not explain it.")
    assert column == [None, None]
    unsure, column = told("good", "other", "worst")
    assert "from 6 of 6 sets of seeds, which are too few sets to say how much of that is chance" in unsure
    assert "from 7 sets of seeds" in unsure
    assert column == ["too few sets to say"] * 3


@pytest.mark.parametrize("policies", [2, 3, 10, 40])
def test_sets_needed(policies: int) -> None:
    """As many as with which Holm's adjusted p of a pair that is ahead from all of them is at most 0.05."""
    pairs = policies * (policies - 1) // 2
    sets = next(sets for sets in range(1, 20) if holm([sign_flip([1.0] * sets)] + [1.0] * (pairs - 1))[0] <= 0.05)
    assert sets_needed(policies) == sets


def test_no_number_of_sets_is_enough_for_hundreds_of_policies() -> None:
    assert sets_needed(41) is None
    assert too_few(41, 1000)
