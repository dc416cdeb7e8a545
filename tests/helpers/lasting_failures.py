"""A pytest plugin: the failures of a run outlive its crash.

If a worker process of pytest-xdist fails outside of a test, as at a time limit that passes in a hook, the main process
ends with INTERNALERROR and without its report. So each failure goes to a file when it is known, and after such an end
all of them are printed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

NAME = "failures.txt"
"""In pytest's cache folder: names of the tests that have failed in the newest run, and the last line of why."""


class LastingFailures:
    """Notes failures; one for a run, in the process that reports it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._crashed = False
        self._failed: list[pytest.TestReport] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report)
            why = report.longreprtext.strip().rpartition("\n")[2]
            with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{report.nodeid} ({report.when}): {why}\n")

    def pytest_internalerror(self) -> None:
        self._crashed = True

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        if self._crashed and terminal is not None:
            terminal.section(f"{len(self._failed)} tests failed before the run crashed (also in {self._path})")
            for report in self._failed:
                terminal.write_sep("_", report.nodeid)
                terminal.write_line(report.longreprtext)
            for report in self._failed:
                terminal.write_line(f"FAILED {report.nodeid}")


def pytest_configure(config: pytest.Config) -> None:
    """Take part, but not in worker processes."""
    if "PYTEST_XDIST_WORKER" not in os.environ and config.pluginmanager.hasplugin("cacheprovider"):
        folder = Path(config.rootpath, str(config.getini("cache_dir")))
        config.pluginmanager.register(LastingFailures(folder / NAME), "lasting-failures")
