"""The URL scores that a policy would have given later to pages that it had crawled, found by replaying the crawl."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from driven_crawl import Driven, pages_at_once, scored
from evaluation_helpers import FACTS
from graph_corpus import NumberScorer

from crawl4llm.policies import pagerank
from crawl4llm.scoring.rating import PageRater
from crawl4llm.tools.evaluate import ordering
from crawl4llm.tools.evaluate.ordering import Change, later_estimates
from crawl4llm.tools.evaluate.runs import Run, read_runs

WEB = scored(
    {
        "1": ["2", "3"],
        "2": ["1", "4"],
        "3": ["1", "2", "5"],
        "4": ["2", "3", "gone"],
        "5": ["1", "1", "6", "5"],
        "6": ["2"],
        "7": ["1", "none"],
    }
)


def replayed(folder: Path, **options: Any) -> tuple[Driven, Run, list[Change]]:
    folder.mkdir()
    driven = Driven(WEB, folder, **options).run("1", "7")
    settings = {name.upper(): value for name, value in {"crawl_max_pages": 100, **options}.items()}
    (folder / "settings.json").write_text(json.dumps({**FACTS, "settings": settings}))
    (folder / "seeds.txt").write_text("1\n7\n")
    (run,) = read_runs([folder])
    return driven, run, list(later_estimates(run, PageRater(WEB, NumberScorer(), extractor=None)))


@pytest.mark.parametrize("policy", ["parent_first", "influence", "host"])
def test_other_policies_do_not_change_their_mind(policy: str, tmp_path: Path) -> None:
    assert replayed(tmp_path / "run", url_policy=policy, crawl_batch_size=1)[2] == []


def test_behind_a_hot_queue_there_are_none(tmp_path: Path) -> None:
    options = {"url_policy": "backlink", "hot_queue_topic": ("text",)}
    assert replayed(tmp_path / "run", crawl_batch_size=1, **options)[2] == []


@pytest.mark.parametrize("order", ["desc", "asc"])
@pytest.mark.parametrize("batch_size", [0, 1, 3])
@pytest.mark.parametrize("policy", ["backlink", "parent_min", "parent_mean"])
def test_estimates_follow_from_the_pages_crawled_by_then(
    policy: str, batch_size: int, order: str, tmp_path: Path
) -> None:
    driven, run, changes = replayed(tmp_path / "run", url_policy=policy, crawl_batch_size=batch_size, order=order)
    estimate = {"backlink": len, "parent_min": min, "parent_mean": fmean}[policy]
    assert changes
    for crawled, place, found in changes:
        assert place < crawled < len(run)
        linking = [key for key in driven.ids[:crawled] if driven.ids[place] in WEB.targets(key)]
        expected = estimate([int(key) / 10 for key in linking])
        assert found == pytest.approx(-expected if order == "asc" else expected)


def test_estimated_ranks_are_those_of_the_links_seen_by_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagerank, "DAMPING", 0.5)
    monkeypatch.setattr(pagerank, "INTERVAL", 2)
    _, _, changes = replayed(tmp_path / "run", url_policy="pagerank", crawl_batch_size=1)
    assert changes[0] == Change(2, 0, 0.5 + 0.5 * 0.5 / 2), "nothing links to 7, which links to 1 and none"


def test_links_are_followed_in_the_slices_of_the_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents without a page count; of a batch that may be the last, no links are followed before its end."""
    monkeypatch.setattr(ordering, "_PAGES_AT_ONCE", 2)
    with pages_at_once(2):
        driven, _, changes = replayed(tmp_path / "run", url_policy="backlink", crawl_batch_size=4)
    assert driven.batches == [["1", "7"], ["2", "3"], ["4", "5"], ["6"]]
    assert {change.crawled for change in changes} == {2, 4, 6}
