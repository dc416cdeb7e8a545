"""The life of a page in docs/architecture.md: the files that it names are those that a page goes through."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
MOST = 20
"""Files that a reader has to open, at most."""


def test_the_life_of_a_page_is_told_file_by_file(shared: Callable[[str], Path]) -> None:
    shared("clueweb22-sample")
    walk = subprocess.run(
        [sys.executable, "-m", "benchmarks.walk"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    walked = re.findall(r"^(\S+\.py)\s", walk.stdout, re.MULTILINE)
    told = re.findall(r"^\d+\. `(\S+\.py)`", (PROJECT / "docs/architecture.md").read_text(), re.MULTILINE)
    assert sorted(told) == sorted(walked)
    assert len(walked) <= MOST
