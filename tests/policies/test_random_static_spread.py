"""Crawls by the policy ``random_static`` against ten crawls of the published implementation by its random scores."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from driven_crawl import Driven
from graph_corpus import GraphCorpus
from scipy.stats import mannwhitneyu

from simulate.clueweb22.corpus import ClueWeb22Corpus

AT = np.array([1100, 2200, 4400, 6500])
LEAST_ORACLE_SCORE = 0.9741
THEIRS, OURS = 10, 6


@pytest.mark.slow
def test_crawls_lie_within_the_spread_of_ten(shared: Callable[[str], Path], tmp_path: Path) -> None:
    runs = shared("reference-runs")
    oracle = {row["docid"] for row in _rows(runs / "scores.tsv.gz") if float(row["score"]) >= LEAST_ORACLE_SCORE}
    seeds = [line for line in (runs / "seeds-100.txt").read_text().splitlines() if line.startswith("clueweb22")]
    corpus = ClueWeb22Corpus(shared("clueweb22-real"))
    links = {key: [link.key for link in corpus.outlinks(key)] for key in corpus.keys()}
    web = GraphCorpus(links, dict.fromkeys(links, "0.5"))

    def found(keys: Iterable[str]) -> list[int]:
        return [int(count) for count in np.cumsum([key in oracle for key in keys])[AT - 1]]

    theirs = np.array(
        [found(row["id"] for row in _rows(runs / f"random-{run}-n100.tsv.gz")) for run in range(1, THEIRS + 1)]
    )
    crawls = []
    for run in range(OURS):
        (folder := tmp_path / str(run)).mkdir()
        driven = Driven(web, folder, url_policy="random_static", crawl_max_pages=int(AT[-1]), crawl_seed=run)
        crawls.append(found(driven.run(*seeds).ids))
        driven.close()
    ours = np.array(crawls)

    assert len({tuple(crawl) for crawl in crawls}) == OURS
    assert (theirs.min(axis=0) <= ours.mean(axis=0)).all()
    assert (ours.mean(axis=0) <= theirs.max(axis=0)).all()
    for place in range(len(AT)):
        assert mannwhitneyu(ours[:, place], theirs[:, place]).pvalue > 0.01


def _rows(path: Path) -> Iterable[dict[str, str]]:
    with gzip.open(path, "rt") as file:
        yield from csv.DictReader(file, delimiter="\t")
