"""The verdict on several runs of a policy: a ranking at equal N, one series with a band, and a paired test."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import isnan
from pathlib import Path
from random import Random

import pytest
from crawl_helpers import Web
from evaluation_helpers import line, write_run

pytest.importorskip("matplotlib", reason="needs the extra evaluation")
pytest.importorskip("scipy", reason="needs the extra evaluation")

from crawl4llm.options import Options
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.scoring.rating import PageRater
from crawl4llm.tools.evaluate.coverage import figures
from crawl4llm.tools.evaluate.evaluate import _notes
from crawl4llm.tools.evaluate.figures import Figure
from crawl4llm.tools.evaluate.runs import read_runs
from crawl4llm.tools.evaluate.survey import Subject, Survey
from crawl4llm.tools.evaluate.verdict import gap, quarter, ranking, verdict
from simulate.clueweb22.corpus import ClueWeb22Corpus

Evaluated = Callable[..., Subject]


@pytest.fixture(scope="module")
def evaluated(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    """Evaluates made-up crawls of the demo web: ``good`` takes the better of two documents, a bound the best of four,
    others any."""
    cache = tmp_path_factory.mktemp("cache")
    corpus = ClueWeb22Corpus(demo_web.corpus)
    rater = PageRater(corpus, FastTextScorer(demo_web.model, "__label__hq"), None)
    keys = sorted(corpus.keys())
    options = Options(scoring_workers=2, progress_bar="off")
    scores = dict(zip(keys, Survey(corpus, options, cache=cache).scores(rater, "fasttext").influence, strict=True))

    def crawled(policy: str, seed: int, pages: int) -> list[str]:
        draw = Random(f"{policy} {seed}")
        left = draw.sample(keys, len(keys))
        if times := {"good": 2, "bound": 4, "influence": 4}.get(policy):
            left = [max(left[at : at + times], key=scores.__getitem__) for at in range(0, len(left), times)]
        return left[:pages]

    def evaluate(folder: Path, runs: Sequence[tuple[str, int, int]]) -> Subject:
        paths = []
        for policy, seed, pages in runs:
            found = crawled(policy, seed, pages)
            fetched = 3 if policy == "good" else 1
            lines = [line(order, id=key, fetched=fetched * (order + 1)) for order, key in enumerate(found)]
            paths.append(write_run(folder / f"{policy}{seed}", lines, policy=policy, settings={"CRAWL_MAX_PAGES": 300}))
            (paths[-1] / "seeds.txt").write_text(f"{keys[seed]}\n")
        return Subject(read_runs(paths), Survey(corpus, options, cache=cache), rater)

    return evaluate


def notes(subject: Subject) -> list[str]:
    return list(_notes([crawled.run for crawled in subject.runs], subject.survey))


def test_six_sets_of_seeds_tell(evaluated: Evaluated, tmp_path: Path) -> None:
    runs = [(policy, seed, 200 + 10 * seed) for policy in ("other", "good") for seed in range(6)]
    subject = evaluated(tmp_path, runs)
    best, second = ranking(subject).rows
    assert ranking(subject).title == "Ranking at 200 pages"
    assert (best[:3], second[:3]) == ([1, "good", 6], [2, "other", 6])
    assert best[3] > second[3]
    assert best[-1] is None
    crawled, fetched, first, sure = verdict(subject)
    assert crawled.startswith("Share of the oracle set found after ")
    assert crawled.index("good ") < crawled.index("other ")
    assert crawled.count(" in 6 runs)") == 2
    assert fetched.startswith("After as many documents were fetched: other ")
    assert first.startswith("good is best: on average over the first 200 pages crawled it had found ")
    assert "from 6 of 6 sets of seeds; p = 0.031 (paired" in sure
    assert sure.endswith("so chance alone does not explain it.")
    assert any("ranked at 200" in note for note in notes(subject))
    assert any("one line" in note for note in notes(subject))


def test_recall_at_a_quarter_of_the_pages_in_reach_comes_first(evaluated: Evaluated, tmp_path: Path) -> None:
    """Each run's own quarter, as in its log; without a spread for one run alone."""
    subject = evaluated(tmp_path, [("good", 0, 600), ("good", 1, 700), ("other", 0, 600)])
    expected: dict[str, list[float]] = {}
    for one in subject.runs:
        reachable = subject.reachable(one)
        assert reachable is not None
        pages = round(0.25 * reachable.sum())
        assert pages <= 600
        for divisor in (1, 3 if one.run.group == "good" else 1):  # a good page takes three documents
            hits = (one.influence[: pages // divisor] >= subject.oracle.threshold.value).sum()
            expected.setdefault(one.run.group, []).append(hits / subject.oracle.size.value)
    (good, other), table = quarter(subject).rows, quarter(subject)
    assert table.title.startswith("Recall after 25% of the pages in reach (")
    crawled, fetched = expected["good"][::2], expected["good"][1::2]
    assert good[:2] == ["good", 2]
    assert good[2:] == pytest.approx([sum(crawled) / 2, *sorted(crawled), sum(fetched) / 2, *sorted(fetched)])
    assert other == ["other", 1, pytest.approx(expected["other"][0]), None, None, other[2], None, None]
    assert next(iter(verdict(subject))).startswith("Share of the oracle set found after 25% of the pages in reach (")


def test_short_runs_are_compared_where_the_shortest_ends(evaluated: Evaluated, tmp_path: Path) -> None:
    subject = evaluated(tmp_path, [("good", 0, 50), ("other", 0, 80)])
    assert "(50 pages)" in quarter(subject).title
    assert "25%" not in quarter(subject).title


def test_runs_of_a_policy_are_one_series_with_a_band(evaluated: Evaluated, tmp_path: Path) -> None:
    subject = evaluated(tmp_path, [("good", 0, 50), ("good", 1, 60), ("other", 0, 50)])
    for figure in figures(subject):
        assert isinstance(figure, Figure)
        good, other = (one for one in figure.series if one.name in {"good", "other", "good: visited", "other: visited"})
        assert (good.place, other.place) == (0, 1)
        assert other.low is None
        assert good.low is not None
        assert good.high is not None
        assert max(good.x) in {50, 150}, figure.id
        points = zip(good.low, good.y, good.high, strict=True)
        assert all(low <= y <= high for low, y, high in points if y is not None and not isnan(y))


@pytest.mark.parametrize("sets", [2, 5])
def test_few_sets_say_nothing(evaluated: Evaluated, tmp_path: Path, sets: int) -> None:
    """A randomisation test of five pairs cannot give less than 0.06, however far one is ahead."""
    subject = evaluated(tmp_path, [(policy, seed, 200) for policy in ("other", "good") for seed in range(sets)])
    assert list(verdict(subject))[3] == (
        f"It was ahead of other from {sets} of {sets} sets of seeds, which are too few sets to say how much of that is "
        "chance: it takes runs of each policy from 6 sets of seeds, the same for all."
    )
    assert [row[-1] for row in ranking(subject).rows] == ["too few sets to say"] * 2


def test_one_run_each_tells_nothing_of_chance(evaluated: Evaluated, tmp_path: Path) -> None:
    subject = evaluated(tmp_path, [("good", 0, 100), ("other", 1, 100)])
    sure = list(verdict(subject))[3]
    assert "cannot tell how much of that is chance: it takes runs of each policy from 6 sets of seeds" in sure
    assert any("did not start from the same seeds" in note for note in notes(subject))


# -- the gap to a bound -----------------------------------------------------------------------------------------------

ENDS = ("parent_mean", "bound")


@pytest.mark.parametrize("bound", ["bound", "influence"])
def test_the_share_of_the_gap_that_a_policy_closes(bound: str, evaluated: Evaluated, tmp_path: Path) -> None:
    policies = ("parent_mean", bound, "good", "other")
    subject = evaluated(tmp_path, [(policy, seed, 375) for policy in policies for seed in range(4)])
    (table,) = gap(subject)
    assert table.title == f"The gap from parent_mean to {bound}"
    assert table.columns == ["Policy", "Runs", "Closed at 10%", "Closed at 25%"]
    assert [row[:2] for row in table.rows] == [["good", 4], ["other", 4]]
    means = {}
    for group in subject.groups:
        found = []
        for one in group.runs:
            reachable = subject.reachable(one)
            assert reachable is not None
            hits = one.influence[: round(0.25 * reachable.sum())] >= subject.oracle.threshold.value
            found.append(hits.sum() / subject.oracle.size.value)
        means[group.name] = sum(found) / len(found)
    base = means["parent_mean"]
    good, other = (str(row[-1]) for row in table.rows)
    assert good.split(" ")[0] == f"{(means['good'] - base) / (means[bound] - base):.2f}"
    low, high = map(float, good.partition("(")[2].rstrip(")").split(" to "))
    assert low <= float(good.split(" ")[0]) <= high
    assert float(other.split(" ")[0]) < float(good.split(" ")[0])


def test_the_bound_comes_before_looking_ahead(evaluated: Evaluated, tmp_path: Path) -> None:
    subject = evaluated(tmp_path, [(policy, 0, 375) for policy in (*ENDS, "influence", "good")])
    (table,) = gap(subject)
    assert table.title == "The gap from parent_mean to bound"
    assert [row[0] for row in table.rows] == ["influence", "good"]
    assert all(re.fullmatch(r"-?\d\.\d\d", str(cell)) for row in table.rows for cell in row[2:]), "no spread of one run"


def test_runs_from_other_seeds_have_no_interval(evaluated: Evaluated, tmp_path: Path) -> None:
    runs = [("parent_mean", 0, 375), ("parent_mean", 1, 375), ("bound", 2, 375), ("good", 3, 375), ("good", 4, 375)]
    (table,) = gap(evaluated(tmp_path, runs))
    assert re.fullmatch(r"-?\d\.\d\d", str(table.rows[0][-1]))


@pytest.mark.parametrize("policies", [("parent_mean", "good"), ("bound", "good"), ENDS])
def test_no_gap_without_its_ends_or_others(policies: Sequence[str], evaluated: Evaluated, tmp_path: Path) -> None:
    assert list(gap(evaluated(tmp_path, [(policy, 0, 375) for policy in policies]))) == []


def test_marks_that_a_run_does_not_reach_are_left_out(evaluated: Evaluated, tmp_path: Path) -> None:
    """And so is the table if there are none; a gap that is small has a dash."""
    (table,) = gap(evaluated(tmp_path, [(policy, 0, 160) for policy in (*ENDS, "good")]))
    assert table.columns == ["Policy", "Runs", "Closed at 10%"]
    (tmp_path / "short").mkdir()
    assert list(gap(evaluated(tmp_path / "short", [(policy, 0, 20) for policy in (*ENDS, "good")]))) == []
