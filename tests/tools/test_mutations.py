"""Received data with hostile objects: the attack of ``python -m benchmarks.mutations``, of a few objects."""

from __future__ import annotations

import subprocess
import sys

import pytest
from crawl_helpers import PROJECT

KINDS = ["run", "job", "export", "wacz", "known", "batches", "journals"]
_SLOW = "evaluate"
"""It takes as long as all others together."""


@pytest.mark.parametrize("kind", KINDS)
def test_no_changed_object_does_harm(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.mutations", "--only", kind, "--objects", "6", "--without", _SLOW],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 faults" in done.stdout


@pytest.mark.parametrize(
    ("kind", "number"), [("job", 498), ("export", 75), ("export", 76), ("export", 119), ("known", 476)]
)
def test_objects_that_once_did(kind: str, number: int) -> None:
    """A skip behind a block; a folder for a file, twice; a text that is a number; a bomb of lines that are no URLs."""
    command = [sys.executable, "-m", "benchmarks.mutations", "--only", kind, "--one", str(number)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 faults" in done.stdout
