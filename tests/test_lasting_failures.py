"""Names and reasons of failures survive the crash of a test run, as pytest-xdist's INTERNALERROR."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from crawl_helpers import PROJECT, TIMEOUT

TESTS = """
import time

def test_first():
    assert 1 == 2, "the first reason"

def test_crash():
    time.sleep(1)
"""
OTHERS = """
def test_second():
    assert 3 == 4, "the second reason"
"""
CRASH = """
import pytest

pytest_plugins = ["lasting_failures"]

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    done = yield
    if item.name == "test_crash":
        raise RuntimeError("outside of a test")
    return done
"""


def test_after_an_internal_error_all_is_told(tmp_path: Path) -> None:
    """As when a time limit passes in a hook of a worker process."""
    for name, text in (("test_a.py", TESTS), ("test_b.py", OTHERS), ("conftest.py", CRASH)):
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "--max-worker-restart", "0"],
        cwd=tmp_path,
        env={**env, "PYTHONPATH": str(PROJECT / "tests/helpers")},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert "INTERNALERROR" in done.stdout + done.stderr
    told = done.stdout.partition("failed before the run crashed")[2]
    noted = (tmp_path / ".pytest_cache/failures.txt").read_text()
    for name, reason in (
        ("test_a.py::test_first", "the first reason"),
        ("test_b.py::test_second", "the second reason"),
    ):
        assert f"FAILED {name}" in told, done.stdout
        assert reason in told
        assert f"{name} (call): " in noted
