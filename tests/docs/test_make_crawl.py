"""``make crawl``: the two crawls, their report, and what to do next, as docs/first-ten-minutes.md promises."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from crawl_helpers import PROJECT, TIMEOUT, Web, scrapy
from forked_programs import forked_programs

pytest.importorskip("matplotlib", reason="needs the extra evaluate")
if shutil.which("make") is None:
    pytest.skip("needs make; on Debian: apt-get install make", allow_module_level=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose environment is set up, by the marks that make goes by."""
    for name in ("Makefile", "pyproject.toml", "scrapy.cfg", "settings"):
        path = PROJECT / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / name)
    (tmp_path / ".venv").mkdir()
    for number, name in enumerate(("pyproject.toml", ".venv/.python", ".venv/.crawl")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (number, number))
    return tmp_path


def run(checkout: Path, *command: str) -> str:
    """Run a command, which is to succeed; return what it prints."""
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_goes_up_to_the_report_and_says_what_is_next(checkout: Path, small_demo_web: Web) -> None:
    small = f"-s CORPUS={small_demo_web.corpus} -s SCORER_MODEL={small_demo_web.model} "
    small += "-s CRAWL_MAX_PAGES=100 -s SCORING_WORKERS=1"
    (checkout / "crawls/0001").mkdir(parents=True)  # of an earlier crawl: the report is of the newest two
    with forked_programs(checkout / "bin", "scrapy"):
        said = run(checkout, "make", "crawl", "BIN=bin", f"ARGS={small}")
    assert (checkout / "report/0003/report.html").is_file()
    assert "influence is best" in said
    assert "open report/0003/report.html" in said
    assert "\n  source .venv/bin/activate\n" in said
    explain = re.search(r"^  scrapy (explain '.*' --run (\S+)) ", said, re.MULTILINE)
    assert explain is not None
    assert explain[2] == "crawls/0003"
    words = explain[1].replace("'", "").split()
    assert "crawled" in scrapy(*words, *small.split(), cwd=checkout).stdout


def test_it_installs_what_the_report_needs(checkout: Path) -> None:
    (checkout / ".venv/.crawl").unlink()
    assert "'.[evaluate]'" in run(checkout, "make", "-n", ".venv/.crawl")
