"""Finished crawls of the demo web, made once for a run of the tests: tests that read a crawl take one of these."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crawl_helpers import Web, crawl

COMMON: Mapping[str, Any] = {
    "CRAWL_MAX_PAGES": 200,
    "CRAWL_BATCH_SIZE": 20,
    "CRAWL_SEEDS": 20,
    "WARC_MAX_BYTES": 100_000,
}
PAUSED: Mapping[str, Any] = {"CRAWL_SEEDS": 30, "CRAWL_MAX_PAGES": 60, "CRAWL_BATCH_SIZE": 30}
RUNS: Mapping[str, Mapping[str, Any]] = {
    **{policy: {**COMMON, "URL_POLICY": policy} for policy in ("influence", "random", "indegree", "pagerank")},
    "paused": PAUSED,
}
"""Their settings by their names; ``paused`` has a JOBDIR."""
_STATE = "state.json"


class FinishedRuns:
    """The crawls, in folders below one that the processes of a parallel run share."""

    def __init__(self, web: Web, folder: Path) -> None:
        self._web, self._folder = web, folder
        folder.mkdir(exist_ok=True)

    def output(self, name: str) -> Path:
        """The output directory of a crawl, which no test may change; it is made when it is first asked for."""
        return self._made(name) / name

    def copy(self, name: str, folder: Path) -> None:
        """Copy a crawl for a test that changes it: its output to ``run`` in a folder, and its JOBDIR to ``job``."""
        made = self._made(name)
        shutil.copytree(made / name, folder / "run")
        if not (made / "job").exists():
            return
        shutil.copytree(made / "job", folder / "job")
        described = folder / "job/job.json"
        described.write_text(described.read_text().replace(str(made / name), str(folder / "run")))

    def check(self) -> None:
        """Fail if a test has changed a crawl that others read."""
        for kept in self._folder.glob(f"*/{_STATE}"):
            assert _state(kept.parent) == json.loads(kept.read_text()), f"a test has changed {kept.parent}"

    def _made(self, name: str) -> Path:
        folder, settings = self._folder / name, RUNS[name]
        with (self._folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / _STATE).exists():
                more = {"JOBDIR": folder / "job"} if settings is PAUSED else {}
                done = crawl(self._web, folder / name, **settings, **more)
                assert done.returncode == 0, done.stderr
                (folder / _STATE).write_text(json.dumps(_state(folder)))
        return folder


def _state(folder: Path) -> dict[str, list[int]]:
    """Sizes and times of change of files; locks apart, which readers take."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "lock" not in path.name and path.name != _STATE]
    return {str(path.relative_to(folder)): [path.stat().st_size, path.stat().st_mtime_ns] for path in sorted(paths)}
