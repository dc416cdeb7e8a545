"""What a policy thinks later of pages it has crawled: logged on request, and without a trace in the crawl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from driven_crawl import Driven, scored

WEB = scored(
    {
        "1": ["2", "3"],
        "2": ["1", "4"],
        "3": ["1", "2", "5"],
        "4": ["2", "3"],
        "5": ["1", "1", "6"],
        "6": ["2"],
        "7": ["1"],
    }
)
POLICIES = ("backlink", "pagerank", "parent_first", "parent_min", "parent_mean", "influence", "host")


def crawl(folder: Path, policy: str, *, log: bool, batch_size: int = 1) -> Driven:
    folder.mkdir()
    driven = Driven(
        WEB, folder, url_policy=policy, crawl_batch_size=batch_size, evaluation_log=log, pagerank_interval=2
    )
    return driven.run("1", "7")


def estimates(folder: Path) -> list[tuple[int, dict[str, float]]]:
    lines = (folder / "estimates.jsonl").read_text().splitlines()
    return [(line["crawled"], line["scores"]) for line in map(json.loads, lines)]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_crawl_is_the_same_with_the_log(policy: str, tmp_path: Path) -> None:
    without = crawl(tmp_path / "without", policy, log=False)
    logged = crawl(tmp_path / "logged", policy, log=True)
    assert logged.lines == without.lines
    assert logged.figures == without.figures
    assert not (tmp_path / "without/estimates.jsonl").exists()


@pytest.mark.parametrize("policy", POLICIES)
def test_only_pages_that_were_crawled_have_estimates(policy: str, tmp_path: Path) -> None:
    driven = crawl(tmp_path / "run", policy, log=True)
    found = estimates(tmp_path / "run")
    assert all(set(scores) <= set(driven.ids[:crawled]) for crawled, scores in found)
    assert bool(found) is (policy not in {"influence", "host", "parent_first"})


@pytest.mark.parametrize("batch_size", [0, 1, 3])
def test_estimated_backlinks_are_those_seen_by_then(batch_size: int, tmp_path: Path) -> None:
    driven = crawl(tmp_path / "run", "backlink", log=True, batch_size=batch_size)
    for crawled, scores in estimates(tmp_path / "run"):
        for key, score in scores.items():
            assert score == sum(key in WEB.targets(page) for page in driven.ids[:crawled])
