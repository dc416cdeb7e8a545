"""``scrapy evaluate`` on real crawls of a small demo web."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from crawl_helpers import Web, begin, crawl, crawl_args, crawl_log, error_of, scrapy, stats
from evaluation_helpers import evaluated, rows, table
from finished_runs import FinishedRuns

from crawl4llm.base.errors import InputError
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.scoring.rating import PageRater, influence
from crawl4llm.tools.evaluate.evaluate import Wanted
from crawl4llm.tools.evaluate.figures import Figure
from simulate.clueweb22.corpus import ClueWeb22Corpus

PAGES = 200


@pytest.fixture(scope="module")
def runs(finished_runs: FinishedRuns) -> dict[str, Path]:
    """Crawls by three policies."""
    return {policy: finished_runs.output(policy) for policy in ("influence", "random", "pagerank")}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the command is run: its cache lies below, not in the project."""
    return tmp_path_factory.mktemp("place")


def evaluate(place: Path, *args: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the command with this project's settings, outside of its folder."""
    env = {"SCRAPY_SETTINGS_MODULE": "settings.simulation"}
    return scrapy("evaluate", *map(str, args), cwd=place, env=env, **more)


@pytest.fixture(scope="module")
def report(runs: dict[str, Path], place: Path) -> Path:
    out = place / "report"
    scorers = "fasttext,evaluation_helpers.ConstantScorer"
    result = evaluate(place, *runs.values(), "--out", out, "--topic", "river market", "--scorers", scorers, "--json")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("\n") == 1
    assert json.loads(result.stdout) == json.loads((out / "report.json").read_text())
    return out


@pytest.fixture(scope="module")
def scores(demo_web: Web) -> dict[str, float]:
    rater = PageRater(ClueWeb22Corpus(demo_web.corpus), FastTextScorer(demo_web.model, "__label__hq"), None)
    return {key: influence(rater, key).score or 0.0 for key in rater.corpus.keys()}


def test_a_page_and_its_numbers(report: Path) -> None:
    assert "<html" in (report / "report.html").read_text()
    sections = {section["id"] for section in json.loads((report / "report.json").read_text())["sections"]}
    assert sections >= {
        *("runs", "corpus", "reach", "precision", "recall", "visited", "harvest-rate", "mean-influence", "domains"),
        "new-quality",
        *("crawl-then-select", "selected", "match", "importance", "correlations"),
        *(f"{model}-{metric}" for model in ("crawl-and-stop", "threshold", "limited-buffer")
          for metric in ("influence", "ib", "ir", "is", "is-ib")),
    }  # fmt: skip
    assert (report / "figures/recall.svg").exists()


def test_numbers_are_those_of_the_crawl(report: Path, runs: dict[str, Path], scores: dict[str, float]) -> None:
    threshold = sorted(scores.values(), reverse=True)[len(scores) // 10 - 1]
    oracle = {key for key, score in scores.items() if score >= threshold}
    for row in table(report, "runs"):
        log, counts = crawl_log(runs[row["Run"]]), stats(runs[row["Run"]])
        found = sum(line["id"] in oracle for line in log)
        assert int(row["Crawled"]) == len(log) == PAGES
        assert int(row["Visited"]) == counts["pages/visited"]
        assert int(row["Fetched"]) == counts["pages/fetched"]
        assert float(row["Mean influence"]) == pytest.approx(counts["influence/mean"])
        assert float(row["Precision"]) == pytest.approx(found / PAGES)
        assert float(row["Recall"]) == pytest.approx(found / len(oracle))
        assert float(row["Harvest rate"]) == pytest.approx(found / counts["pages/fetched"])
        assert float(row["New quality per 1,000 fetches"]) == pytest.approx(1000 * found / counts["pages/fetched"])


def test_precision_along_the_crawl(report: Path, runs: dict[str, Path], scores: dict[str, float]) -> None:
    threshold = sorted(scores.values(), reverse=True)[len(scores) // 10 - 1]
    log = crawl_log(runs["random"])
    points = [row for row in table(report, "precision") if row["series"] == "random"]
    assert len(points) == PAGES
    for row in points:
        pages = int(float(row["x"]))
        assert float(row["y"]) == pytest.approx(fmean(scores[line["id"]] >= threshold for line in log[:pages]))


def test_what_the_seeds_reach(report: Path, runs: dict[str, Path], demo_web: Web) -> None:
    corpus = ClueWeb22Corpus(demo_web.corpus)
    reached = set((runs["influence"] / "seeds.txt").read_text().split())
    assert len(reached) == 20
    newest = list(reached)
    while newest:
        links = {link.key for key in newest for link in corpus.outlinks(key) if link.key in corpus}
        newest = [key for key in links - reached if key is not None]
        reached.update(newest)
    assert {int(row["Reachable"]) for row in table(report, "reach")} == {len(reached)}


def test_an_undefined_correlation_is_reported(report: Path) -> None:
    found = {row["Of"]: row for row in table(report, "correlations")}
    row = found["evaluation_helpers.ConstantScorer with fasttext"]
    assert row["Spearman"] == ""
    assert "the same for all pages" in row["Undefined because"]
    assert 0.3 < float(found["mean influence of 1-hop outlinks with influence"]["Spearman"]) < 1


def test_the_corpus_is_scored_once(report: Path, runs: dict[str, Path], place: Path) -> None:
    blocks = {path: path.stat().st_mtime_ns for path in place.rglob("*.block")}
    assert blocks
    (again,) = rows(evaluated(place, runs["random"]), "runs")
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*.block")} == blocks
    mean = {row["Run"]: float(row["Mean influence"]) for row in table(report, "runs")}
    assert again["Mean influence"] == mean["random"]


def test_sample(report: Path, runs: dict[str, Path], place: Path) -> None:
    sampled = evaluated(place, runs["influence"], wanted=Wanted(sample=400))
    assert any("A sample of 400 of 1,500 documents" in note for note in sampled.notes)
    (row,), whole = rows(sampled, "runs"), table(report, "runs")[0]
    assert row["Recall, low"] <= float(whole["Recall"]) <= row["Recall, high"]
    (recall,) = [section for section in sampled.sections if section.id == "recall"]
    assert isinstance(recall, Figure)
    curve = recall.series[0]
    assert curve.low is not None
    assert curve.high is not None
    assert any(low < (y or 0) < high for low, y, high in zip(curve.low, curve.y, curve.high, strict=True))
    assert "reach" not in {section.id for section in sampled.sections}


def test_a_killed_crawl(demo_web: Web, place: Path) -> None:
    args = crawl_args(demo_web, place / "killed", CRAWL_MAX_PAGES=1400, CRAWL_BATCH_SIZE=5, WARC_ENABLED=0)
    process = begin(args, silent=["out", "err"])
    log = place / "killed/crawl.jsonl"
    while not (log.exists() and log.stat().st_size > 50_000):
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    told = evaluated(place, place / "killed")
    assert "was not finished: it is running or was killed" in told.notes[0]
    (row,) = rows(told, "runs")
    assert 0 < row["Crawled"] == len(crawl_log(place / "killed")) < row["Wanted"] == 1400


def test_runs_of_two_models_are_refused(demo_web: Web, runs: dict[str, Path], place: Path) -> None:
    other = place / "by-length"
    assert crawl(demo_web, other, CRAWL_MAX_PAGES=20, SCORER="length", WARC_ENABLED=0).returncode == 0
    told = error_of(evaluate(place, runs["influence"], other, "--out", place / "refused"))
    for path in (runs["influence"], other):
        assert json.loads((path / "settings.json").read_text())["model_digest"] in told
    assert not (place / "refused").exists()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"SCORER": "length"}, "model_digest"),
        ({"CLUEWEB22_TARGET_PREFIX": "clueweb22-de"}, "corpus_digest"),
        ({"CORPUS": "/nowhere"}, "/nowhere"),
    ],
)
def test_corpus_and_model_must_be_those_of_the_run(
    settings: dict[str, str], named: str, runs: dict[str, Path], place: Path
) -> None:
    with pytest.raises(InputError, match=named):
        evaluated(place, runs["influence"], settings=settings)


def test_a_page_that_the_corpus_does_not_hold(runs: dict[str, Path], place: Path) -> None:
    path = place / "foreign"
    shutil.copytree(runs["random"], path)
    with (path / "crawl.jsonl").open("a") as file:
        file.write(json.dumps({**crawl_log(path)[0], "id": "clueweb22-en0099-99-00000"}) + "\n")
    with pytest.raises(InputError, match=r"crawl\.jsonl: names clueweb22-en0099-99-00000"):
        evaluated(place, path)


def test_a_page_that_a_log_has_twice(runs: dict[str, Path], place: Path) -> None:
    doubled = place / "doubled"
    doubled.mkdir()
    lines = (runs["influence"] / "crawl.jsonl").read_text().splitlines(keepends=True)
    (doubled / "crawl.jsonl").write_text("".join([*lines, lines[3]]))
    (doubled / "settings.json").write_bytes((runs["influence"] / "settings.json").read_bytes())
    told = error_of(evaluate(place, doubled, "--out", place / "refused"))
    assert f"crawl.jsonl is damaged: it has {json.loads(lines[3])['id']} twice" in told
    assert not (place / "refused").exists()


def test_scorers_that_do_not_exist(runs: dict[str, Path], place: Path) -> None:
    for scorer, named in (("none", "cannot be loaded"), ("/nowhere/model.bin", "/nowhere/model.bin")):
        with pytest.raises(InputError, match=named):
            evaluated(place, runs["random"], wanted=Wanted(scorers=["fasttext", scorer]))


def test_another_report_is_not_overwritten(report: Path, runs: dict[str, Path], place: Path) -> None:
    before = {path: path.read_bytes() for path in report.rglob("*") if path.is_file()}
    told = error_of(evaluate(place, runs["random"], "--out", report))
    assert told == f"--out {report}: exists already; give another folder, or remove it"
    assert {path: path.read_bytes() for path in report.rglob("*") if path.is_file()} == before


def test_a_full_disk_leaves_no_part_of_a_report(report: Path, runs: dict[str, Path], place: Path) -> None:
    """So that the same command can be given again."""
    given = (runs["influence"], "--out", place / "full/report")
    told = error_of(evaluate(place, *given, limits={"RLIMIT_FSIZE": 100_000}))
    assert "report.html cannot be written: File too large" in told
    assert not list((place / "full").iterdir())
    assert evaluate(place, *given).returncode == 0


def test_bad_usage(runs: dict[str, Path], place: Path) -> None:
    run = runs["influence"]
    for args in ([run], [run, "--out", "x", "--sample", "0"], [run, "--out", "x", "--scorers", "length"]):
        assert evaluate(place, *args).returncode == 2


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_no_line_of_help_becomes_a_heading(columns: int) -> None:
    lines = scrapy("evaluate", "--help", env={"COLUMNS": str(columns)}).stdout.splitlines()
    underlined = [line for line, below in pairwise(lines) if below and not below.strip("=-")]
    assert underlined == ["Usage", "Options", "Global Options", "Contest"]
