"""Numbers of documents on disk: what is sorted and ranked there is what NumPy and SciPy make of it in memory."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest
from crawl_helpers import python
from hypothesis import given, settings, strategies as st
from scipy.stats import spearmanr

from crawl4llm.base import reductions
from crawl4llm.base.errors import InputError
from crawl4llm.base.reductions import reduced
from crawl4llm.tools.evaluate import documents
from crawl4llm.tools.evaluate.correlations import Pair, _plot, rank_correlation
from crawl4llm.tools.evaluate.documents import Documents, Population, oracle_of, slices, stored, stored_rows

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 2.0, 0.1 + 0.2, 0.3, 1e300, -5.0, np.nan, np.inf])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, of which none may be left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_columns_are_what_was_given(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "AT_ONCE", 3)
    numbers, flags = stored(((np.arange(n), np.ones(n + 1)) for n in (3, 0, 2)), np.float64, np.bool_)
    assert (numbers.dtype, numbers.tolist(), flags.tolist()) == (np.float64, [0, 1, 2, 0, 1], [True] * 8)
    assert [numbers[part].tolist() for part in slices(5)] == [[0, 1, 2], [0, 1]]
    first, second = stored_rows(((2**64 - number, number / 4) for number in range(1, 8)), "u8", "f8")
    assert first.tolist() == [2**64 - number for number in range(1, 8)]
    assert second.tolist() == [number / 4 for number in range(1, 8)]
    assert [len(found) for found in stored([], np.int32, np.float64)] == [0, 0]
    assert Documents(f"{number % 10}" for number in range(100)).numbers_of(["9", "x", "3"]).tolist() == [9, -1, 3]
    assert not list(here.iterdir())


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=40))
@settings(max_examples=60, deadline=None)
def test_correlations_are_those_of_scipy(pairs: list[tuple[float, float]]) -> None:
    """With ties, zeros of both signs, and pages that lack a number."""
    x, y = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    found, known = rank_correlation(x, y), np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    assert found.pairs == len(x)
    if len(x) < 3 or len(set(x)) == 1 or len(set(y)) == 1:
        assert found.value is None
    else:
        assert found.value == pytest.approx(spearmanr(x, y).statistic, abs=1e-14)


@pytest.mark.parametrize("size", [10, 2999, 3001, 20_000])
def test_the_points_of_a_plot_are_pairs(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plot shows the pairs at places that are drawn, whatever is in memory at a time."""
    monkeypatch.setattr(documents, "AT_ONCE", 700)
    x = np.where(np.arange(size) % 7 == 3, np.nan, np.arange(size))
    (points,) = _plot(Pair("id", ("x", "y"), (x, x * 2))).series
    known = np.flatnonzero(np.isfinite(x))
    if len(known) > 3000:
        known = np.sort(np.random.default_rng(0).choice(known, 3000, replace=False))
    assert (points.x, points.y) == (known.tolist(), (known * 2).tolist())


@pytest.mark.slow
@given(st.lists(st.tuples(NUMBERS, st.booleans()), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_populations_are_those_of_a_sorted_array(pages: list[tuple[float, bool]]) -> None:
    values, within = np.array([value for value, _ in pages]), np.array([inside for _, inside in pages])
    inside = values[within]
    known = inside[np.isfinite(inside)]
    lowest = known.min() if len(known) else 0.0
    expected = np.sort(np.where(np.isfinite(inside), inside, lowest))[::-1]
    web = Population(values, len(inside), within)
    assert (web.lowest, web.sampled) == (lowest, False)
    assert [web.value_at(rank + 1).value for rank in range(len(inside))] == expected.tolist()
    assert [web.count_from(value).value for value in expected] == [np.sum(expected >= value) for value in expected]


@pytest.mark.slow
def test_more_rows_than_memory(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit goes to the disk; the result is the same with any number of threads."""
    monkeypatch.setattr(reductions, "MEMORY", "32MB")
    x, y = np.random.default_rng(1).random((2, 1 << 20)).round(5)
    cores, values = os.sched_getaffinity(0), set()
    try:
        for some in ({min(cores)}, cores):
            os.sched_setaffinity(0, some)
            values.add(rank_correlation(x, x + y).value)
    finally:
        os.sched_setaffinity(0, cores)
    (value,) = values
    assert value == pytest.approx(spearmanr(x, x + y).statistic, abs=1e-14)
    assert oracle_of(Population(x, len(x))).threshold.value == np.sort(x)[::-1][-(-len(x) // 10) - 1]
    assert not list(here.iterdir())


def test_no_bar_of_duckdb_is_drawn() -> None:
    """It would stand on standard output, among the lines or the JSON of a command."""
    assert list(reduced("SELECT current_setting('enable_progress_bar')", {"value": np.zeros(1)})) == [(False,)]


@pytest.mark.slow
def test_ctrl_c_ends_a_query(here: Path) -> None:
    """DuckDB makes a RuntimeError of what a handler raises, or drops it where it is not at the query yet.

    Its threads may end what they are at, so that the query has an end.
    """
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5, 2)
        with pytest.raises(KeyboardInterrupt):
            list(reduced("SELECT sum(range + value) FROM range(3000000000), given", {"value": np.zeros(1)}))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not list(here.iterdir())


def test_a_disk_that_is_full(here: Path) -> None:
    """Here a file may have 8 kB; then there is no folder."""
    script = """
import numpy as np
from crawl4llm.tools.evaluate.documents import stored
print(len(stored([(np.zeros(500),)] * 2, np.float64)[0]))
stored([(np.zeros(500),)] * 3, np.float64)
"""
    done = python("-c", script, limits={"RLIMIT_FSIZE": 8192})
    assert done.stdout == "1000\n"
    assert "InputError: TMPDIR: the facts of documents cannot be written (File too large)" in done.stderr
    tempfile.tempdir = str(here / "gone")  # until the fixture ends
    with pytest.raises(InputError, match=r"gone/.*: the facts of documents cannot be written \(No such"):
        Documents([])
