"""A received folder that holds modules named like those of Python and its packages: no command runs one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from crawl_helpers import TIMEOUT, Web
from dashboard_helpers import events, read
from finished_runs import FinishedRuns

SCRAPY = str(Path(sys.executable).with_name("scrapy"))

PLANTED = """\
import posix
posix.write(posix.open({marker!r}, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT), (__name__ + "\\n").encode())
raise ImportError("planted: " + __name__)
"""

SIMULATE = """
import sys
import crawl4llm
crawl4llm.simulate("random", sys.argv[1], out=sys.argv[2], SCORER_MODEL=sys.argv[3], CRAWL_MAX_PAGES=30)
"""


@pytest.fixture
def received(finished_runs: FinishedRuns, tmp_path: Path) -> Path:
    """The folder of a crawl, with its JOBDIR and texts, in which such modules lie."""
    finished_runs.copy("paused", tmp_path)
    run = (tmp_path / "run").rename(tmp_path / "received")
    described = (tmp_path / "job").rename(run / "job") / "job.json"
    described.write_text(described.read_text().replace(str(tmp_path / "run"), str(run)))
    text = PLANTED.format(marker=str(tmp_path / "marker"))
    for name in {*sys.stdlib_module_names, *packages_distributions(), "simulate", "settings", "sitecustomize"}:
        if re.fullmatch(r"\w+", name):
            (run / f"{name}.py").write_text(text)
    return run


def start(run: Path, *command: str) -> subprocess.Popen[str]:
    """Start a command in the received folder, as its user would: without a project."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SCRAPY"))}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=run, env=env, stdout=pipe, stderr=pipe, text=True)


def done(run: Path, *command: str) -> None:
    """Run a command to its end, which is to be a good one."""
    with start(run, *command) as process:
        output, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, (command, output, errors)


def test_commands_with_processes_of_their_own(received: Path, demo_web: Web, tmp_path: Path) -> None:
    """Those that start Python anew: by spawn, by a pool, or by a command line."""
    out, marker = tmp_path / "out", tmp_path / "marker"
    web = ["-s", f"CORPUS={demo_web.corpus}", "-s", f"SCORER_MODEL={demo_web.model}", "-s", "SCORE_CACHE="]
    for command in (
        ["export", ".", "--out", f"{out}/jsonl", "--tasks", "2", *web],
        ["evaluate", ".", "--out", f"{out}/report", "--tasks", "2", "--sample", "200", *web],
        ["corpus", "build", "--from", "warc", "--to", f"{out}/corpus", "--jobs", "2"],
        ["corpus", "index", "--jobs", "2", *web],
        ["archive", "check", "."],
        ["report", "."],
    ):
        done(received, SCRAPY, *command)
        assert not marker.exists(), (command, marker.read_text())
    (tmp_path / "script.py").write_text(SIMULATE)
    done(received, sys.executable, str(tmp_path / "script.py"), str(demo_web.corpus), f"{out}/run", str(demo_web.model))
    assert not marker.exists(), marker.read_text()


def test_the_dashboard(received: Path, tmp_path: Path) -> None:
    """It reads texts and the frontier in processes of their own."""
    process = start(received, SCRAPY, "dashboard", "job", "--no-browser")
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        for shown in events(found[0]):
            if shown["frontier"] is not None:
                break
        text = read(f"{found[0]}text?{shown['best'][0]['offset']}")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)
    assert not (tmp_path / "marker").exists(), (tmp_path / "marker").read_text()
    assert "fault" not in shown["frontier"]
    assert len(text["text"]) > 100
