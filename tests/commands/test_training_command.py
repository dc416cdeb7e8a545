"""``scrapy trainscorer``: from pages of a web to a crawl by the new model; and what is left when it is stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from crawl_helpers import Web, begin, crawl, crawl_log, error_of, scrapy
from scrapy_server import Process
from training_helpers import GOOD, OTHER, run_training, texts, write_jsonl

from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.tools._fit import POSITIVE
from simulate.clueweb22.corpus import ClueWeb22Corpus

SMALL = ["--dim", "8", "--buckets", "2000", "--rate", "1"]


def test_train_on_pages_and_crawl_by_them(demo_web: Web, tmp_path: Path) -> None:
    corpus = ClueWeb22Corpus(demo_web.corpus)
    keys = corpus.sample(600, 0)
    ranked = sorted(
        zip(FastTextScorer(demo_web.model, POSITIVE).score(list(map(corpus.text, keys))), keys, strict=True)
    )
    ids = {"good": [key for _, key in ranked[-200:]], "other": [key for _, key in ranked[:400]]}
    for name, chosen in ids.items():
        (tmp_path / name).write_text("".join(f"{key}\n" for key in chosen))
    model = tmp_path / "model"
    command = ["trainscorer", "--positive", tmp_path / "good", "--negative", tmp_path / "other", "--out", model, *SMALL]
    result = scrapy(*map(str, command), "-s", f"CORPUS={demo_web.corpus}", "-s", "SCORING_WORKERS=1", "--balance")
    assert result.returncode == 0, result.stderr
    found = json.loads((model / "evaluation.json").read_text())["model.bin"]
    assert found["average_precision"] > 0.8
    assert re.search(r"^Warning: trained on 1\d\d positive texts only", result.stdout, re.MULTILINE)
    assert ("are no probabilities" in result.stdout) == (found["expected_calibration_error"] > 0.1)
    following = f"Next: scrapy crawl influence -s CORPUS={demo_web.corpus} -s SCORING_WORKERS=1"
    assert f"{following} -s SCORER_MODEL={model / 'model.bin'}" in result.stdout

    run = tmp_path / "run"
    crawled = crawl(Web(demo_web.corpus, model / "model.bin"), run, CRAWL_MAX_PAGES=60, CRAWL_BATCH_SIZE=20)
    assert crawled.returncode == 0, crawled.stderr
    facts = json.loads((run / "settings.json").read_text())
    assert facts["model_digest"] == json.loads((model / "model.bin.json").read_text())["model_digest"]
    scorer = FastTextScorer(model / "model.bin", POSITIVE)
    for line in crawl_log(run)[:20]:
        assert line["influence"] == scorer.score([corpus.text(line["id"])])[0]
    # the crawl's own archive is a source in turn
    command = ["trainscorer", "--positive", run, "--negative", tmp_path / "other", "--out", tmp_path / "b", *SMALL]
    again = scrapy(
        *map(str, [*command, "-s", f"CORPUS={demo_web.corpus}", "-s", "SCORING_WORKERS=1"]),
        cwd=tmp_path,  # where the archive's index goes
        env={"SCRAPY_SETTINGS_MODULE": "settings.simulation"},
    )
    assert again.returncode == 0, again.stderr
    assert f"positive  {run} (archive files): 60 texts" in again.stdout
    assert json.loads((tmp_path / "b" / "model.bin.json").read_text())["extractor"] == "trafilatura"


@pytest.fixture
def endless(tmp_path: Path) -> list[str]:
    """A command that trains for very long."""
    good = write_jsonl(tmp_path / "good.jsonl", texts(GOOD, 50))
    other = write_jsonl(tmp_path / "other.jsonl", texts(OTHER, 50))
    sources = ["--positive", str(good), "--negative", str(other), "--held-out", "0.3"]
    return ["trainscorer", *sources, "--out", str(tmp_path / "model"), *SMALL, "--epochs", "100000000"]


def started(command: list[str]) -> tuple[Process | subprocess.Popen[str], psutil.Process]:
    """The command when fastText is at work, and the process in which it is."""
    process = begin(command)
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        for child in psutil.Process(process.pid).children():
            if child.cpu_times().user > 0.1:
                return process, child
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("it does not train")


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".jsonl")


def test_interrupted_it_leaves_nothing(endless: list[str], tmp_path: Path) -> None:
    process, child = started(endless)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert errors == "crawl4llm: interrupted\n"
    assert not child.is_running()
    assert not left(tmp_path)


def test_killed_it_leaves_no_model_and_the_next_one_tidies_up(endless: list[str], tmp_path: Path) -> None:
    process, child = started(endless)
    process.kill()
    process.communicate(timeout=600)
    child.wait(timeout=600)
    (remains,) = left(tmp_path)
    assert remains.startswith(".model.")
    run_training([tmp_path / "good.jsonl"], [tmp_path / "other.jsonl"], tmp_path / "model", held_out=0.3)
    assert left(tmp_path) == ["model"]


def test_fasttext_that_is_killed_is_one_line(endless: list[str], tmp_path: Path) -> None:
    process, child = started(endless)
    child.kill()
    output, errors = process.communicate(timeout=600)
    result = subprocess.CompletedProcess(endless, process.returncode, output, errors)
    assert error_of(result).startswith("fastText cannot train on this: its process has ended with SIGKILL")
    assert not left(tmp_path)


def test_bad_usage() -> None:
    wrong = scrapy("trainscorer", "--positive", "a.jsonl", "--out", "model")
    assert wrong.returncode == 2
    assert "usage: scrapy trainscorer --positive SRC [SRC ...] --negative SRC [SRC ...] --out DIR" in wrong.stderr
    share = scrapy("trainscorer", "--held-out", "1.5")
    assert share.returncode == 2
    assert "'1.5' is not a share between 0 and 1" in share.stderr
    count = scrapy("trainscorer", "--word-ngrams", "9" * 11)
    assert count.returncode == 2
    assert "'99999999999' is more than 2147483647" in count.stderr


def test_a_model_that_is_cut_short_by_a_full_disk_is_one_line(tmp_path: Path) -> None:
    good = write_jsonl(tmp_path / "good.jsonl", texts(GOOD, 100))
    other = write_jsonl(tmp_path / "other.jsonl", texts(OTHER, 100))
    args = ["--positive", str(good), "--negative", str(other), "--out", str(tmp_path / "model")]
    full = scrapy("trainscorer", *args, "--buckets", "20000", "--dim", "8", limits={"RLIMIT_FSIZE": 100_000})
    assert error_of(full) == f"{tmp_path / 'model'}: model.bin was not written whole; is the disk full?"
    assert not left(tmp_path)
