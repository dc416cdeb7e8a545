"""Live crawls as processes of their own, and what their main processes cost."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import signals

from tests.testweb import LocalWeb

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

PROJECT = Path(__file__).resolve().parents[1]
INTERRUPTED = 130
_METER_FILE = "BENCHMARK_METER"


class Cost(NamedTuple):
    """What a crawl cost, from its opening to its end; without the start of Python and the worker processes."""

    seconds: float
    cpu: float
    """User and system seconds of the main process."""


class Meter:
    """Scrapy extension that writes the :class:`Cost` of its crawl to the file that the environment names."""

    def __init__(self, crawler: Crawler) -> None:
        self._began = _now()
        crawler.signals.connect(self._stopped, signal=signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Meter:
        return cls(crawler)

    def _stopped(self) -> None:
        if path := os.environ.get(_METER_FILE):
            cost = [now - began for now, began in zip(_now(), self._began, strict=True)]
            Path(path).write_text(json.dumps(cost))


def _now() -> tuple[float, float]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), usage.ru_utime + usage.ru_stime


def crawl(web: LocalWeb, folder: Path, settings: Mapping[str, Any], **more: Any) -> subprocess.Popen[str]:
    """Begin, or go on with, a live crawl of a web that writes to ``folder/run``; ``more`` are settings, too."""
    values = {"DNS_HOSTS": web.hosts_file, "OUTPUT_DIR": folder / "run", **settings, **more}
    options = [part for name, value in values.items() for part in ("-s", f"{name}={value}")]
    return start("benchmarks.live_settings", ["crawl", "influence", "-a", f"seeds={web.seeds_file}", *options], folder)


def start(settings: str, command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Run Scrapy's command line with a module of settings; the cost goes to ``folder/cost.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    env = {"PYTHONPATH": str(PROJECT), "SCRAPY_SETTINGS_MODULE": settings, _METER_FILE: str(folder / "cost.json")}
    return subprocess.Popen(
        [sys.executable, "-m", "scrapy", *command],
        cwd=PROJECT,
        env={**os.environ, **env},
        stdout=subprocess.DEVNULL,
        stderr=(folder / "log").open("a"),
        text=True,
    )


def finish(process: subprocess.Popen[str], folder: Path, timeout: float | None = None) -> Cost:
    """Wait for the end of what was started; returns its cost. Raises RuntimeError where it fails."""
    process.wait(timeout)
    log = (folder / "log").read_text()
    if process.returncode or "Traceback" in log:
        raise RuntimeError(
            f"status {process.returncode}, {folder / 'log'}: {log[log.find('Traceback') - 500 :][:2500]}"
        )
    return Cost(*json.loads((folder / "cost.json").read_text()))


def verify(folder: Path) -> None:
    """Raise RuntimeError unless a crawl with the JOBDIR ``folder/job`` is sound, and has archived nothing twice."""
    command = [sys.executable, "-m", "scrapy", "frontier", str(folder / "job"), "--verify"]
    command += ["-s", f"OUTPUT_DIR={folder / 'run'}"]
    result = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if not result.stdout.startswith("sound: "):
        raise RuntimeError(f"--verify: {result.stdout}{result.stderr[-2000:]}")
    log = [json.loads(line)["id"] for line in (folder / "run/crawl.jsonl").open()]
    if len(set(log)) < len(log):
        raise RuntimeError(f"{len(log) - len(set(log))} documents were archived twice")
