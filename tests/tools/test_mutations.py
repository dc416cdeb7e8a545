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
