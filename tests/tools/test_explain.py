"""``scrapy explain`` tells what became of a page, and is right."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, crawl_log, error_of, scrapy
from finished_runs import FinishedRuns

from simulate.clueweb22.corpus import ClueWeb22Corpus


@pytest.fixture(scope="module")
def run(finished_runs: FinishedRuns) -> Path:
    return finished_runs.output("influence")


def explained(run: Path, key: str) -> str:
    result = scrapy("explain", key, "--run", str(run))
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_crawled_page(run: Path) -> None:
    line = crawl_log(run)[50]
    told = explained(run, line["id"])
    assert f"crawled    order 50, iteration {line['iteration']}" in told
    assert f"found      on {line['parent']}, {line['depth']} links from a seed" in told
    assert f"influence  {line['influence']:.6f}" in told
    assert line["url"] in told


def test_seed(run: Path) -> None:
    assert "it is a seed" in explained(run, crawl_log(run)[0]["id"])


def test_page_that_waits_in_the_frontier(run: Path, demo_web: Web, tmp_path: Path) -> None:
    log = crawl_log(run)
    corpus = ClueWeb22Corpus(demo_web.corpus)
    crawled = {line["id"] for line in log}
    early = [line for line in log if line["iteration"] < log[-1]["iteration"]]
    place, waiting = next(
        (line["order"], link.key)
        for line in early
        for link in corpus.outlinks(line["id"])
        if link.key is not None and link.key not in crawled
    )
    told = explained(run, waiting)
    assert f"queued     found at page {place}, {log[place]['id']}" in told
    assert f"the last page that was crawled had priority {log[-1]['priority']:.6f}" in told
    shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("warc"))
    with (tmp_path / "run/crawl.jsonl").open("a") as file:
        file.write(json.dumps({**log[-1], "order": len(log), "id": "of-a-start-request", "priority": None}) + "\n")
    assert "the last page that was crawled had priority none" in explained(tmp_path / "run", waiting)


def test_page_that_was_never_seen(run: Path, demo_web: Web) -> None:
    corpus = ClueWeb22Corpus(demo_web.corpus)
    log = crawl_log(run)
    seen = {link.key for line in log for link in corpus.outlinks(line["id"])} | {line["id"] for line in log}
    unseen = next(key for key in corpus.keys() if key not in seen)
    assert "no crawled page links to it" in explained(run, unseen)


def test_page_that_failed(shared: Callable[[str], Path], demo_web: Web, tmp_path: Path) -> None:
    """Document 40 of the sample links to documents that the tree does not hold."""
    web = demo_web._replace(corpus=shared("clueweb22-sample"))
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("clueweb22-en0000-00-00040\n")
    assert crawl(web, tmp_path / "run", seeds, CRAWL_MAX_PAGES=50, CRAWL_BATCH_SIZE=5).returncode == 0
    failures = [json.loads(line) for line in (tmp_path / "run/failures.jsonl").read_text().splitlines()]
    assert {failure["reason"] for failure in failures} == {"http_404"}
    assert {failure["parent"] for failure in failures} >= {"clueweb22-en0000-00-00040"}
    assert "clueweb22-en0000-00-00041" not in {failure["id"] for failure in failures}
    of_page = next(failure for failure in failures if failure["parent"] == "clueweb22-en0000-00-00040")
    told = explained(tmp_path / "run", of_page["id"])
    assert "\nfailed     http_404\nfound      on clueweb22-en0000-00-00040, 1 links from a seed\n" in told


def test_without_a_run_it_tells_of_the_page(demo_web: Web) -> None:
    settings = ["-s", f"CORPUS={demo_web.corpus}", "-s", f"SCORER_MODEL={demo_web.model}"]
    result = scrapy("explain", "clueweb22-en0000-00-00007", *settings)
    assert result.returncode == 0, result.stderr
    assert "influence  0." in result.stdout
    assert "crawled" not in result.stdout


def test_bad_input(demo_web: Web, tmp_path: Path, run: Path) -> None:
    assert "settings.json" in error_of(scrapy("explain", "clueweb22-en0000-00-00007", "--run", str(tmp_path)))
    assert "clueweb22-en0099-00-00000" in error_of(scrapy("explain", "clueweb22-en0099-00-00000", "--run", str(run)))
    assert scrapy("explain").returncode == 2
    mistyped = error_of(scrapy("explain", "clueweb22-en0000-0-00007", "--run", str(run)))
    assert "at clueweb22-en0000-0-00007; did you mean clueweb22-en0000-00-00007 or " in mistyped
    for content in ("[]", "{}", "{", "[" * 10**5):
        (tmp_path / "settings.json").write_text(content)
        message = error_of(scrapy("explain", "clueweb22-en0000-00-00007", "--run", str(tmp_path)))
        assert "settings.json is damaged" in message
    shutil.copy(run / "settings.json", tmp_path)
    line = crawl_log(run)[0]
    for damaged in ([], {"id": line["id"]}, line | {"priority": "1"}, line | {"order": 10**400}):
        (tmp_path / "crawl.jsonl").write_text(json.dumps(damaged) + "\n")
        assert "crawl.jsonl is damaged: " in error_of(scrapy("explain", line["id"], "--run", str(tmp_path)))
