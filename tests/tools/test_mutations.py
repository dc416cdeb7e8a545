"""Received data with hostile objects: the attack of ``python -m benchmarks.mutations``, of a few objects."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from crawl_helpers import PROJECT

KINDS = ["run", "job", "export", "wacz", "known", "batches", "journals"]
OBJECTS = 1
"""Of each kind; ``python -m benchmarks.mutations`` changes 500."""
ONCE = ["job:498", "export:75", "export:76", "export:119", "known:476"]
"""Objects that did harm: a skip behind a block; a folder for a file, twice; a text that is a number; a bomb of lines
that are no URLs."""
_SLOW = "evaluate"
"""It takes as long as all others together."""


@pytest.mark.slow
def test_no_changed_object_does_harm() -> None:
    """All kinds in one run, which makes what it attacks once."""
    given = ["--only", ",".join(KINDS), "--objects", str(OBJECTS), "--also", ",".join(ONCE), "--without", _SLOW]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.mutations", *given],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^(\w+): [\d,]+ commands, .* 0 faults, ", done.stdout, re.MULTILINE) == KINDS
