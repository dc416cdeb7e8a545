"""The figures of ../shared/reference-runs/README.md, from the crawls of the published implementation itself."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from evaluation_helpers import line, write_run

from crawl4llm.options import Options
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.scoring.rating import PageRater
from crawl4llm.tools.evaluate.correlations import pairs_of
from crawl4llm.tools.evaluate.runs import read_runs
from crawl4llm.tools.evaluate.survey import Subject, Survey
from simulate.clueweb22.corpus import ClueWeb22Corpus

NAMES = ("influence-n100", "indegree-n100", "random-1-n100")
AT = np.array([1100, 2200, 4400, 6500])


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    from crawl_helpers import SHARED

    if not SHARED.exists():
        pytest.skip(f"needs {SHARED}, which is not here")
    folder = tmp_path_factory.mktemp("reference")
    paths = []
    for name in NAMES:
        with gzip.open(SHARED / f"reference-runs/{name}.tsv.gz", "rt") as file:
            keys = [row["id"] for row in csv.DictReader(file, delimiter="\t")]
        paths.append(write_run(folder / name, [line(order, id=key) for order, key in enumerate(keys)], policy=name))
        (paths[-1] / "seeds.txt").write_text((SHARED / "reference-runs/seeds-100.txt").read_text())
    corpus = ClueWeb22Corpus(SHARED / "clueweb22-real")
    rater = PageRater(corpus, FastTextScorer(SHARED / "scorers/prose.bin", "__label__hq"), None)
    options = Options(scoring_workers=2, progress_bar="off")
    return Subject(read_runs(paths), Survey(corpus, options, cache=folder / "cache"), rater)


@pytest.mark.slow
def test_oracle_set(subject: Subject) -> None:
    assert subject.oracle.size.value == 2160
    assert subject.oracle.threshold.value == pytest.approx(0.9741, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "precisions", "recalls"),
    [
        ("influence-n100", [0.604, 0.357, 0.210, 0.154], [0.307, 0.363, 0.427, 0.464]),
        ("indegree-n100", [0.155, 0.131, 0.101, 0.093], [0.079, 0.133, 0.207, 0.280]),
    ],
)
def test_precision_and_recall(name: str, precisions: list[float], recalls: list[float], subject: Subject) -> None:
    (run,) = [pages for pages in subject.runs if pages.run.name == name]
    assert run.precision(AT).value.tolist() == pytest.approx(precisions, abs=0.01)
    assert run.recall(AT).value.tolist() == pytest.approx(recalls, abs=0.01)


def test_random_lies_within_its_spread(subject: Subject) -> None:
    shares = subject.runs[2].precision(AT).value
    for share, low, high in zip(shares, (0.054, 0.053, 0.061, 0.064), (0.092, 0.079, 0.081, 0.086), strict=True):
        assert low - 0.0005 <= share <= high + 0.0005


@pytest.mark.slow
def test_what_the_seeds_reach(subject: Subject) -> None:
    reachable = subject.reachable(subject.runs[0])
    assert reachable is not None
    oracle = subject.scores.influence >= subject.oracle.threshold.value
    assert reachable.mean() == pytest.approx(0.663, abs=0.001)
    assert reachable[oracle].mean() == pytest.approx(0.533, abs=0.001)


@pytest.mark.slow
def test_correlations(subject: Subject) -> None:
    found = {pair.id: pair.correlation.value for pair in pairs_of(subject)}
    assert found == pytest.approx(
        {
            "influence-indegree": 0.120,
            "influence-pagerank": 0.159,
            "pagerank-indegree": 0.793,
            "influence-1-hop": 0.513,
            "influence-2-hop": 0.577,
        },
        abs=0.01,
    )


def test_scores_are_those_of_the_published_implementation(subject: Subject, shared: Callable[[str], Path]) -> None:
    """But for the clip to 0..1, and pages without text, of which fastText says something too."""
    with gzip.open(shared("reference-runs/scores.tsv.gz"), "rt") as file:
        theirs = np.array([float(row["score"]) for row in csv.DictReader(file, delimiter="\t")])
    assert np.abs(subject.scores.influence - theirs).max() < 1e-4
