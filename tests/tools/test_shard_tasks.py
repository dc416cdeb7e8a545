"""The work of commands in shard tasks, one of them killed: the same bytes as in one go."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from clueweb22_helpers import key_of, member, text_record, write_file
from crawl_helpers import PROJECT, Web, begin, crawl, error_of, scrapy
from demo_helpers import digests
from export_helpers import html_of
from fake_slurm import fake_slurm
from shard_jobs import OPTIONS, KillingScorer
from warc_helpers import http, response, url_of, write

from crawl4llm.base.errors import InputError
from crawl4llm.base.jobs import UNDIVIDED, Executor, Here
from crawl4llm.options import Options
from crawl4llm.scoring.rating import PageRater
from crawl4llm.tools.evaluate.survey import Survey
from simulate.clueweb22.corpus import ClueWeb22Corpus

FILES = ("en0000-00", "en0000-01", "en0000-02")
SETTINGS = ("-s", "SCORER=shard_jobs.KillingScorer", "-s", "SCORING_WORKERS=2", "-s", "CORPUS=web")


@pytest.fixture(scope="module")
def project(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a web of several files, and an archive of several WARC files."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(PROJECT / "scrapy.cfg", folder)
    (folder / "web").symlink_to(demo_web.corpus)
    done = crawl(demo_web, folder / "run", CRAWL_MAX_PAGES=200, WARC_MAX_BYTES=30_000)
    assert done.returncode == 0, done.stderr
    for file in range(3):
        texts = [" ".join(f"word{file}{number}{place}" for place in range(number + 20)) for number in range(60)]
        texts[30] += "x" * ((6 - len(texts[30])) % 20)  # see KillingScorer
        records = [response(url_of(100 * file + number), http(html_of(text))) for number, text in enumerate(texts)]
        write(folder / f"foreign/{file}.warc.gz", *records)
    return folder


def copied(project: Path, folder: Path) -> Path:
    """A project that has done nothing yet."""
    folder.mkdir()
    for path in project.iterdir():
        (folder / path.name).symlink_to(path)
    return folder


@pytest.mark.slow
def test_scores_of_evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three blocks of pages (see passes.BLOCK) in two tasks, the second of which is killed once."""
    texts = [f"{'word ' * (number % 90)}{number % 7}" for number in range(4096)]
    for file in FILES:
        keys = [key_of(file, number) for number in range(4096)]
        found = texts if file == FILES[2] else ["", *["short"] * 4095]
        records = [member(text_record(key, text=text)) for key, text in zip(keys, found, strict=True)]
        write_file(tmp_path / "tree", "txt", file, records)
    corpus, options = ClueWeb22Corpus(tmp_path / "tree"), Options(scoring_workers=2, progress_bar="off")
    monkeypatch.setenv("KILLED", str(tmp_path / "killed"))

    def scores(cache: str, executor: Executor) -> None:
        survey = Survey(corpus, options, cache=tmp_path / cache, executor=executor)
        survey.scores(PageRater(corpus, KillingScorer(), None), "killing")

    with pytest.raises(InputError, match="a task was killed; the same command does the remaining ones"):
        scores("tasks", Here(tasks=2))
    assert 0 < len(list((tmp_path / "tasks").rglob("*.block"))) < 3
    scores("tasks", Here(tasks=2))
    scores("whole", UNDIVIDED)
    assert digests(tmp_path / "tasks") == digests(tmp_path / "whole")
    assert len(list((tmp_path / "tasks").rglob("*.block"))) == 3


def test_export(project: Path, tmp_path: Path) -> None:
    """Pages are extracted, scored and compared; here with a kill, then by Slurm, of whose arrays of more than one task
    tests/base/test_jobs.py tells."""
    command = ("export", "foreign", "--out", "export", "--shard-documents", "50", *SETTINGS)
    one, here, there = (copied(project, tmp_path / name) for name in ("one", "here", "there"))
    env = {"KILLED": str(tmp_path / "killed")}
    tasks = ("--tasks", "2")
    assert "a task was killed" in error_of(scrapy(*command, *tasks, cwd=here, env=env))
    told = [scrapy(*command, *more, cwd=folder, env=env).stdout for folder, more in ((one, ()), (here, tasks))]
    assert told[0] == told[1] != ""
    assert digests(one / "export") == digests(here / "export")
    pytest.importorskip("datatrove")
    slurm = ("-s", f"EXECUTOR={json.dumps(OPTIONS)}")
    done = scrapy(*command, "--tasks", "1", *slurm, cwd=there, env=env | fake_slurm(tmp_path / "slurm"))
    assert done.returncode == 0, done.stderr
    assert digests(there / "export") == digests(one / "export")


@pytest.mark.parametrize("command", ["corpus index", "archive check run"])
def test_indexes_and_checks(command: str, project: Path, tmp_path: Path) -> None:
    one, here = (copied(project, tmp_path / name) for name in ("one", "here"))
    settings = ("-s", "CORPUS=foreign")
    told = [
        scrapy(*command.split(), *settings, *more, cwd=folder) for folder, more in ((one, ()), (here, ("--tasks", "2")))
    ]
    assert told[0].returncode == told[1].returncode == 0, told
    assert told[0].stdout.replace(str(one), "") == told[1].stdout.replace(str(here), "")
    left = [{Path(name).name: digest for name, digest in digests(folder / ".scrapy").items()} for folder in (one, here)]
    assert left[0] == left[1]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_check_goes_on(number: signal.Signals, project: Path, tmp_path: Path) -> None:
    """What was found in a file before a stop is not searched for again, also if another file has changed since: here
    somebody has added to it. Nothing is left in the end."""
    here = copied(project, tmp_path / "here")
    process = begin(("archive", "check", "run", "--jobs", "1"), cwd=here, silent=["out", "err"])
    while not (parts := sorted((here / ".scrapy").glob("archive/*/*.db"))):
        assert process.poll() is None, "it ended before it was stopped"
        time.sleep(0.005)
    os.kill(process.pid, number)
    process.wait()
    with closing(sqlite3.connect(parts[0])) as part, part:
        part.execute("INSERT INTO problems VALUES ('one.warc.gz', NULL, 'was read before')")
    os.utime(max((here / "run").rglob("*.warc.gz")))
    done = scrapy("archive", "check", "run", "--jobs", "1", cwd=here)
    assert done.stdout == "one.warc.gz: was read before\n", done.stderr
    assert scrapy("archive", "check", "run", "--jobs", "1", cwd=here).stdout.startswith("sound: ")
    assert not list((here / ".scrapy/archive").iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["export foreign --out export", "archive check run"])
def test_stopped(command: str, number: signal.Signals, project: Path, tmp_path: Path) -> None:
    """Ctrl-C, which all processes get, and SIGTERM, which the command alone gets: a line, and no process is left."""
    here = copied(project, tmp_path / "here")
    args = [*command.split(), "--tasks", "2", "-s", "SCORER=length"]
    process = begin(args, cwd=here, silent=["out"])
    while len(tasks := psutil.Process(process.pid).children(recursive=True)) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    _, told = process.communicate(timeout=600)
    goes_on = "; the same command goes on" if command.startswith("export") else ""
    assert (process.returncode, told) == (130, f"crawl4llm: interrupted{goes_on}\n")
    assert not psutil.wait_procs(tasks, timeout=120)[1]
