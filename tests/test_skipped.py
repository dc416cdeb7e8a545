"""The end of a test run says what was skipped for want of a program, and how to install it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from crawl_helpers import PROJECT


def test_how_to_install_a_browser_is_the_last_line(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import browser\n\ndef test_it(): browser.installed('no-such-browser')\n")
    paths = os.pathsep.join(map(str, (PROJECT, PROJECT / "tests", PROJECT / "tests/helpers")))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-q", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.splitlines()[-1] == (
        "1 tests were skipped for want of a program; to install it: apt-get install chromium chromium-driver"
    )
