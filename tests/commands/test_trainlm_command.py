"""``scrapy trainlm`` on runs of the demo web, the losses in ``scrapy evaluate``, and what is refused in one line."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
from crawl_helpers import TIMEOUT, Limits, Web, begin, crawl, crawl_log, error_of, python, scrapy
from evaluation_helpers import evaluated, rows
from finished_runs import FinishedRuns
from scrapy_server import Process
from training_helpers import write_jsonl

from crawl4llm.tools._learnt import read_results
from crawl4llm.tools.evaluate.evaluate import Wanted
from crawl4llm.tools.trainlm import trainer
from simulate.clueweb22.corpus import ClueWeb22Corpus

if find_spec("jax") is None:  # not imported here: a process that has JAX must not fork, as other tests do
    pytest.skip("needs the extra trainlm", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("jax_cache")]
TOKENS = 30_000
SETTINGS = {"SCRAPY_SETTINGS_MODULE": "settings.simulation"}
Command = Process | subprocess.Popen[str]
SMALL = ("--model", "50k", "--seeds", "1", "--tokens", str(TOKENS), "--device", "cpu", "-s", "SCORING_WORKERS=1")


@pytest.fixture(scope="module")
def runs(finished_runs: FinishedRuns) -> list[Path]:
    """Three crawls of the demo web."""
    return [finished_runs.output(policy) for policy in ("random", "influence", "indegree")]


@pytest.fixture(scope="module")
def target(demo_web: Web, runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of pages, one of which the first run has crawled."""
    corpus = ClueWeb22Corpus(demo_web.corpus)
    crawled = crawl_log(runs[0])[3]["id"]
    keys = [crawled, *(key for key in corpus.sample(120, 7) if key != crawled)]
    return write_jsonl(tmp_path_factory.mktemp("target") / "target.jsonl", map(corpus.text, keys))


def trainlm(*args: object, limits: Limits | None = None) -> subprocess.CompletedProcess[str]:
    return scrapy("trainlm", *map(str, args), env=SETTINGS, limits=limits)


@pytest.fixture(scope="module")
def trained(runs: list[Path], target: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is asked for is planned first. A checkpoint follows each 50 of 117 steps, as in tests/tools/test_trainlm.py,
    for which the same is compiled."""
    out = tmp_path_factory.mktemp("trained") / "out"
    asked = [*runs, "--target", target, "--out", out, *SMALL]
    assert trainlm(*asked, "--plan").returncode == 0
    _train_with(out, checkpoint_seconds=0, batch=4)
    done = trainlm(*asked)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^left out +random: \d+ in a target", done.stdout, re.MULTILINE)
    assert "Rank correlation of the estimates with the trained models, 3 runs" in done.stdout
    return out


def _train_with(out: Path, **parameters: float) -> None:
    """Change the parameters of the trainings of a plan."""
    plan = trainer.load_plan(out)
    plan["training"].update(parameters)
    (out / trainer.PLAN).write_text(json.dumps(plan))


def test_it_trains_and_does_nothing_twice(trained: Path, runs: list[Path], target: Path) -> None:
    found = read_results(trained)
    assert [run.name for run in found.runs] == ["random", "influence", "indegree"]
    logs = {run.name: crawl_log(path) for run, path in zip(found.runs, runs, strict=True)}
    for run in found.runs:
        (point,) = run.points
        assert point.fetched == logs[run.name][point.pages - 1]["fetched"]
        assert 1 < point.mean(str(target)) < 8
    before = {path: path.stat().st_mtime_ns for path in (trained / trainer.RESULTS).iterdir()}
    assert trainlm(*runs, "--target", target, "--out", trained, *SMALL).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in (trained / trainer.RESULTS).iterdir()} == before


def test_evaluate_shows_the_losses(trained: Path, runs: list[Path], target: Path, tmp_path: Path) -> None:
    report = evaluated(tmp_path, *runs, wanted=Wanted(trained=trained))
    learnt = rows(report, "learnt")
    assert list(learnt[0])[:4] == ["Run", "Precision", "Recall", "Mean influence"]
    losses = {run.name: run.points[-1].mean(str(target)) for run in read_results(trained).runs}
    assert {row["Run"]: list(row.values())[-2] for row in learnt} == losses
    found = [list(row.values()) for row in rows(report, "learnt-correlation")]
    assert [row[0] for row in found] == ["Precision", "Recall", "Mean influence"]
    assert all(-1 <= row[2] <= 1 for row in found)


def test_an_estimate_trains_nothing_and_needs_no_framework(runs: list[Path], target: Path, tmp_path: Path) -> None:
    code = "import sys; sys.modules.update(jax=None, equinox=None, optax=None); from scrapy.cmdline import execute; "
    code += "execute(['scrapy', 'trainlm', *sys.argv[1:]])"
    args = [
        *map(str, runs[:2]),
        "--target",
        str(target),
        "--out",
        str(tmp_path / "out"),
        *SMALL,
        "--estimate",
        "--json",
    ]
    done = python("-c", code, *args, env=SETTINGS, check=True)
    told = json.loads(done.stdout)
    (rows,) = (value for name, value in told.items() if name.startswith("target"))
    assert all(1 < row["estimate_by_3-grams"] < 11 and row["bits_per_byte"] is None for row in rows)
    assert not (tmp_path / "out" / trainer.RESULTS).exists()


def test_a_plan_for_elsewhere(runs: list[Path], target: Path, tmp_path: Path) -> None:
    done = trainlm(*runs[:1], "--target", target, "--out", tmp_path / "plan", *SMALL, "--plan")
    assert done.returncode == 0, done.stderr
    assert f"python -m trainer {tmp_path / 'plan'} --device cpu" in done.stdout
    assert len(trainer.missing_jobs(tmp_path / "plan", trainer.load_plan(tmp_path / "plan"))) == 1


# -- stopped ----------------------------------------------------------------------------------------------------------

STOPS = ((signal.SIGINT, True), (signal.SIGTERM, False))
"""Ctrl-C, which reaches all processes; and a signal to the command alone."""


def stopped(when: Callable[[Command], bool], number: int, group: bool, *args: object) -> None:
    """Start the command, and stop it when something has come to pass: it and its processes end, with one line."""
    process = begin(["trainlm", *map(str, args)], {**SETTINGS, "PYTHONUNBUFFERED": "1"})
    deadline = time.monotonic() + TIMEOUT
    while not when(process):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    children = psutil.Process(process.pid).children(recursive=True)
    (os.killpg if group else os.kill)(process.pid, number)
    sent = time.monotonic()
    _, errors = process.communicate(timeout=TIMEOUT)
    *before, last = errors.splitlines()
    assert (process.returncode, last) == (130, "crawl4llm: interrupted; the same command goes on"), errors
    assert all(" training: " in line for line in before), errors
    assert time.monotonic() - sent < 30  # less than one, if the machine has nothing else to do
    assert all(not child.is_running() or child.status() == psutil.STATUS_ZOMBIE for child in children)


def test_stopped_at_any_stage_it_goes_on_to_the_same_bits(
    trained: Path, runs: list[Path], target: Path, tmp_path: Path
) -> None:
    out, results = tmp_path / "out", tmp_path / "out" / trainer.RESULTS
    asked = [*runs, "--target", target, "--out", out, *SMALL]
    stopped(lambda _: any(tmp_path.glob(".out.*.tmp/*")), *STOPS[1], *asked)
    assert not list(tmp_path.iterdir())

    shutil.copytree(trained, out)
    shutil.rmtree(results)

    def saved() -> set[int]:
        return {path.stat().st_mtime_ns for path in (out / trainer.CHECKPOINTS).glob("*.npz")}

    for number, group in STOPS:
        before = saved()
        stopped(lambda _, before=before: saved() - before, number, group, *asked)
        assert len(list(results.glob("*.json"))) < len(runs)
    assert trainlm(*asked).returncode == 0
    for whole in (trained / trainer.RESULTS).iterdir():
        broken, unbroken = (json.loads(path.read_text()) for path in (results / whole.name, whole))
        assert [broken[name] for name in ("losses", "targets")] == [unbroken[name] for name in ("losses", "targets")]

    def estimates(process: Command) -> bool:
        assert process.stdout is not None
        return process.stdout.readline().startswith("left out")

    stopped(estimates, *STOPS[0], *asked)


def test_a_second_signal_leaves_no_training_behind(
    trained: Path, runs: list[Path], target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(trained, out)
    shutil.rmtree(out / trainer.RESULTS)
    given = map(str, (*runs, "--target", target, "--out", out, *SMALL))
    process = begin(["trainlm", *given], SETTINGS, silent=["out"])
    while not (children := psutil.Process(process.pid).children(recursive=True)):
        assert process.poll() is None
        time.sleep(0.005)
    for _ in range(2):
        process.terminate()
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode, errors
    assert errors.startswith("crawl4llm: interrupted")
    assert "Traceback" not in errors
    assert not psutil.wait_procs(children, timeout=60)[1]


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.fixture
def refused(runs: list[Path], target: Path, tmp_path: Path) -> Callable[..., str]:
    """The one line by which the command refuses, when it leaves nothing behind."""

    def run(*given: object, target: object = target, out: Path = tmp_path / "out", options: Any = SMALL) -> str:
        done = trainlm(*(given or runs[:1]), "--target", target, "--out", out, *options)
        assert not (tmp_path / "out").exists()
        assert not list(tmp_path.glob(".*.tmp"))
        return error_of(done)

    return run


def test_a_run_without_text(refused: Callable[..., str], demo_web: Web, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    assert crawl(demo_web, bare, CRAWL_MAX_PAGES=40, WARC_ENABLED=0).returncode == 0
    said = f"{bare}: has no texts, because it has no archive (warc/index.cdxj); was WARC_ENABLED off?"
    assert refused(bare) == said


def test_no_run_at_all(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "is no crawl; give its output directory" in refused(tmp_path)


def test_runs_of_different_corpora(refused: Callable[..., str], runs: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(runs[1], other)
    settings = json.loads((other / "settings.json").read_text())
    (other / "settings.json").write_text(json.dumps({**settings, "corpus_digest": "another"}))
    assert "cannot be compared: they crawled different corpora" in refused(runs[0], other)


def test_fewer_tokens_than_asked(refused: Callable[..., str], runs: list[Path]) -> None:
    options = [*SMALL[:4], "--tokens", "100000000", *SMALL[6:]]
    line = refused(runs[0], options=options)
    found = re.fullmatch(
        rf"{runs[0]}: has ([\d,]+) tokens of 100,000,000 on 200 pages \(left out: (.*)\); give --tokens (\d+) or less, "
        "or a longer run",
        line,
    )
    assert found, line
    assert int(found[1].replace(",", "")) == int(found[3])


def test_a_target_that_is_shared_with_a_run(refused: Callable[..., str], runs: list[Path]) -> None:
    for shared in (runs[0], runs[0] / "warc", runs[0].parent):
        assert f"--target {shared}: shares texts with the run {runs[0]}" in refused(runs[0], target=shared)


def test_a_gpu_that_is_not_there(runs: list[Path], target: Path, tmp_path: Path) -> None:
    options = [*SMALL[:6], "--device", "cuda", *SMALL[8:]]
    done = trainlm(runs[0], "--target", target, "--out", tmp_path / "out", *options)
    assert re.search(r"--device cuda: JAX finds no (GPU|such device) here; give --device cpu$", error_of(done))


def test_another_tokenizer(trained: Path, runs: list[Path], target: Path, tmp_path: Path) -> None:
    content = json.loads((trained / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps({**content, "truncation": None}, indent=3))
    given = ["--tokenizer", tmp_path / "tokenizer.json"]
    line = error_of(trainlm(*runs, "--target", target, "--out", trained, *given, *SMALL))
    assert "its models were trained with another tokenizer" in line
    (tmp_path / "tokenizer.json").write_text("no tokenizer")
    line = error_of(trainlm(*runs, "--target", target, "--out", tmp_path / "o", *given, *SMALL))
    assert f"--tokenizer {tmp_path / 'tokenizer.json'} is no tokenizer.json" in line


def test_a_folder_with_other_results(trained: Path, runs: list[Path], target: Path) -> None:
    line = error_of(trainlm(*runs[:2], "--target", target, "--out", trained, *SMALL))
    assert line == f"--out {trained}: was made with other runs; give the same again, or another folder"


def test_a_full_disk_while_the_plan_is_written(runs: list[Path], target: Path, tmp_path: Path) -> None:
    done = trainlm(runs[0], "--target", target, "--out", tmp_path / "out", *SMALL, limits={"RLIMIT_FSIZE": 20_000})
    assert re.search(r"^.*/\.out\.\d+\.tmp/targets\.known: .*\(File too large\)$", error_of(done))
    assert not (tmp_path / "out").exists()


def test_a_full_disk_amid_a_training(trained: Path, tmp_path: Path) -> None:
    """What has a result stays, and nothing is left of the other: the same command does it, as after a stop."""
    out = tmp_path / "out"
    shutil.copytree(trained, out)
    _train_with(out, checkpoint_seconds=1e9)
    lost, *_ = sorted((out / trainer.RESULTS).iterdir())
    lost.unlink()
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    command = ("-m", "crawl4llm.tools.trainlm.trainer", out, "--device", "cpu")
    done = python(*command, limits={"RLIMIT_FSIZE": 100})  # what is compiled is in the cache
    assert done.returncode == 1
    assert re.search(r"^error: .*File too large$", done.stderr, re.MULTILINE), done.stderr
    assert "Traceback" not in done.stderr
    now = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    assert {path: when for path, when in now.items() if path.name != "lock"} == {
        path: when for path, when in before.items() if path.name != "lock"
    }


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"kind": "crawl4llm trainlm", "format": 9}'])
def test_evaluate_refuses_results_that_are_none(content: str, runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "trainlm.json").write_text(content)
    done = scrapy("evaluate", str(runs[0]), "--trained", str(tmp_path), "--out", str(tmp_path / "report"))
    assert f"--trained {tmp_path / 'trainlm.json'}" in error_of(done)
    assert not (tmp_path / "report").exists()
