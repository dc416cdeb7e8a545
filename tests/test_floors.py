"""The rooms of the code and who may import whom: the contracts in pyproject.toml hold."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def test_no_room_imports_from_a_room_above_it() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    linter = subprocess.run([program, "--no-cache"], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert linter.returncode == 0, linter.stdout + linter.stderr


def test_the_picture_of_the_rooms_is_that_of_the_import_graph() -> None:
    """Drawn anew it is the same: ``make map``."""
    drawn = runpy.run_path(str(PROJECT / "docs" / "map.py"))
    assert drawn["draw"]() == drawn["PICTURE"].read_text(encoding="utf-8")
