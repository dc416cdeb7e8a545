"""Policies in real crawls of the demo web: a process of its own, worker processes, the command's settings."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, crawl, crawl_log, error_of, stats

from crawl4llm.base.domains import domain_of
from crawl4llm.base.urls import host_of


def run(web: Web, output: Path, **settings: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Lines of a small crawl's log, and its settings."""
    small = {"CRAWL_MAX_PAGES": 150, "CRAWL_SEEDS": 10, "CRAWL_BATCH_SIZE": 20, "WARC_ENABLED": 0}
    result = crawl(web, output, **{**small, **settings})
    assert result.returncode == 0, result.stderr
    return crawl_log(output), json.loads((output / "settings.json").read_text())


def test_hot_queue_around_pagerank(demo_web: Web, tmp_path: Path) -> None:
    settings = {"URL_POLICY": "pagerank", "PAGERANK_INTERVAL": 20, "HOT_QUEUE_TOPIC": "comet, telescope"}
    lines, facts = run(demo_web, tmp_path / "run", **settings)
    assert len(lines) == 150
    assert facts["policy"] == "hot_queue(pagerank)"
    assert facts["policy_settings"] == {
        "pagerank_damping": 0.9,
        "pagerank_interval": 20,
        "hot_queue_topic": ["comet", "telescope"],
    }
    assert stats(tmp_path / "run")["frontier/reranked"] > 100
    hot = [line for line in lines if line["priority"] > 1e30]
    assert hot
    assert all(line["parent"] is not None for line in hot), "seeds are not"
    for one, next_one in pairwise(lines):
        assert one["iteration"] < next_one["iteration"] or one["priority"] >= next_one["priority"]


def test_an_ensemble_within_the_seeds_domains_lowest_first(demo_web: Web, tmp_path: Path) -> None:
    settings = {
        **{"URL_POLICY": "ensemble", "ENSEMBLE_WEIGHTS": "fasttext:1,length:0.5", "ENSEMBLE_NORMALISER": "minmax"},
        **{"ORDER": "asc", "CRAWL_SCOPE": "domain"},
    }
    lines, facts = run(demo_web, tmp_path / "run", **settings)
    assert facts["policy"] == "asc(ensemble)"
    assert facts["scope"] == "domain"
    assert facts["policy_settings"]["policy_scorers"].keys() == {"fasttext", "length"}
    domains = {domain_of(host_of(line["url"])) for line in lines if line["parent"] is None}
    assert {domain_of(host_of(line["url"])) for line in lines} == domains
    assert len(domains) < 11
    figures = stats(tmp_path / "run")
    assert figures["links/off_scope"] > 0
    assert figures["pages/fetched"] == figures["pages/visited"], "it looks ahead"
    assert all(-1.5 <= line["priority"] <= 0 <= line["influence"] <= 1 for line in lines)


@pytest.mark.parametrize("policy", ["scorer:length", "host"])
def test_worker_processes_leave_no_mark(policy: str, demo_web: Web, tmp_path: Path) -> None:
    none, _ = run(demo_web, tmp_path / "none", URL_POLICY=policy, SCORING_WORKERS=0)
    two, _ = run(demo_web, tmp_path / "two", URL_POLICY=policy, SCORING_WORKERS=2)
    assert none == two
    assert all(0 <= line["influence"] <= 1 for line in two)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"URL_POLICY": "harmonic"}, "HARMONIC_RANKS is not set"),
        ({"URL_POLICY": "ensemble"}, "ENSEMBLE_WEIGHTS is not set"),
        (
            {"URL_POLICY": "scorer:no.such.Scorer"},
            "URL_POLICY = 'scorer:no.such.Scorer': SCORER = 'no.such.Scorer' cannot be loaded",
        ),
    ],
    ids=str,
)
def test_what_a_policy_lacks_is_said_before_anything_is_written(
    settings: dict[str, Any], words: str, demo_web: Web, tmp_path: Path
) -> None:
    assert words in error_of(crawl(demo_web, tmp_path / "run", **settings))
    assert not (tmp_path / "run").exists()
