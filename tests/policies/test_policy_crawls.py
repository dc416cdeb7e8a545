"""Policies in real crawls of the demo web: a process of its own, worker processes, the command's settings."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, crawl, crawl_log, error_of, stats
from scrapy.settings import Settings

from crawl4llm.base.domains import domain_of
from crawl4llm.base.errors import InputError
from crawl4llm.base.urls import host_of
from crawl4llm.engine.settings import misspelt, take_over
from crawl4llm.options import read_options


def run(web: Web, output: Path, **settings: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Lines of a small crawl's log, and its settings."""
    small = {"CRAWL_MAX_PAGES": 150, "CRAWL_SEEDS": 10, "CRAWL_BATCH_SIZE": 20, "WARC_ENABLED": 0}
    result = crawl(web, output, **{**small, **settings})
    assert result.returncode == 0, result.stderr
    return crawl_log(output), json.loads((output / "settings.json").read_text())


def test_hot_queue_around_pagerank(demo_web: Web, tmp_path: Path) -> None:
    settings = {"URL_POLICY": "pagerank", "HOT_QUEUE_TOPIC": "comet, telescope"}
    lines, facts = run(demo_web, tmp_path / "run", **settings)
    assert len(lines) == 150
    assert facts["policy"] == "hot_queue(pagerank)"
    assert facts["policy_settings"] == {
        "pagerank_damping": 0.9,
        "pagerank_interval": 100,
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
        **{"URL_POLICY": "ensemble", "ENSEMBLE_WEIGHTS": "fasttext:1,length:0.5"},
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
    assert min(line["priority"] for line in lines) < 0 < max(line["priority"] for line in lines), "above and below"
    assert all(0 <= line["influence"] <= 1 for line in lines)


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
        ({"URL_POLICY": "bound"}, "BOUND_SCORES is not set"),
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


# -- settings of somebody else's policy and scorer --------------------------------------------------------------------


OWN = {"URL_POLICY": "own_settings.Weighted", "SCORER": "own_settings.Constant"}


def test_others_have_settings_of_their_own(demo_web: Web, tmp_path: Path) -> None:
    own = {**OWN, "WEIGHTED_BY_DEPTH": "2.5", "CONSTANT_SCORE": "7"}
    lines, facts = run(demo_web, tmp_path / "run", **own)
    assert {line["priority"] / 2.5 == line["depth"] for line in lines} == {True}
    assert {line["influence"] for line in lines} - {0.0} == {7.0}, "but for pages without text"
    taken = {"CONSTANT_SCORE": 7, "WEIGHTED_BY_DEPTH": 2.5, "WEIGHTED_LABEL": "", "WEIGHTED_SHUFFLE": False}
    assert facts["settings"]["OWN_SETTINGS"] == facts["own_settings"] == taken
    assert "OWN_SETTINGS" not in run(demo_web, tmp_path / "without")[1]["settings"]
    settings = Settings({**OWN, "CONSTANT_SCORE": "1"})
    take_over(settings, facts, "the run")
    assert read_options(settings).own == taken, "who looks at a run has its settings"
    settings.set("CONSTANT_SCORE", "5", priority="cmdline")
    assert read_options(settings).own == {**taken, "CONSTANT_SCORE": 5}


def test_a_resumed_crawl_keeps_them(demo_web: Web, tmp_path: Path) -> None:
    run(demo_web, tmp_path / "run", **OWN, JOBDIR=tmp_path / "job")
    more = {**OWN, "CRAWL_MAX_PAGES": 200, "CRAWL_SEEDS": 10, "CRAWL_BATCH_SIZE": 20, "WARC_ENABLED": 0}
    refused = crawl(demo_web, tmp_path / "run", **more, JOBDIR=tmp_path / "job", CONSTANT_SCORE=4)
    assert "was begun with other settings" in error_of(refused)
    assert "'CONSTANT_SCORE': 3" in refused.stderr
    assert crawl(demo_web, tmp_path / "run", **more, JOBDIR=tmp_path / "job").returncode == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"WEIGHTED_BY_DEPTH": "deep"}, "WEIGHTED_BY_DEPTH = 'deep' must be a number"),
        ({"CONSTANT_SCORE": "0.5"}, "CONSTANT_SCORE = '0.5' must be an integer"),
        ({"WEIGHTED_SHUFFLE": "perhaps"}, "WEIGHTED_SHUFFLE = 'perhaps' must be True or False"),
        ({"URL_POLICY": "own_settings.Clashing"}, "own_settings.Clashing: SETTINGS has CRAWL_MAX_PAGES, which is"),
        ({"URL_POLICY": "own_settings.Odd"}, "own_settings.Odd: SETTINGS has 'ODD_LIST': []; it takes NAME: a bool"),
        ({"OWN_SETTINGS": "[1]"}, "OWN_SETTINGS = '[1]' must be a JSON object"),
    ],
    ids=str,
)
def test_wrong_values_of_theirs_are_named(settings: dict[str, str], words: str) -> None:
    with pytest.raises(InputError) as refused:
        read_options(Settings({**OWN, **settings}))
    assert words in str(refused.value)


def test_slips_of_the_pen_in_theirs_are_named() -> None:
    settings = Settings({**OWN, "WEIGHTED_BY_DEPHT": "1"})
    assert misspelt(settings, read_options(settings).own) == {"WEIGHTED_BY_DEPHT": ["WEIGHTED_BY_DEPTH"]}
