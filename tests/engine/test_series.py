"""The series of real crawls: what its points say is what the crawl has written, also after a kill."""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, begin, crawl, crawl_args, crawl_log, stats

from crawl4llm.base.crawl_log import FAILURES, read_log
from crawl4llm.base.series import read_series

N = 250
SETTINGS: dict[str, Any] = {
    **{"CRAWL_MAX_PAGES": N, "CRAWL_SEEDS": 30, "CRAWL_BATCH_SIZE": 10, "QUALITY_THRESHOLD": 0.5},
    **{"SIMULATION_TEXT": "extracted", "COMMIT_INTERVAL_PAGES": 50, "SCORING_WORKERS": 1},
}


def check(output: Path) -> list[dict[str, Any]]:
    """Check each point against the log up to it, and the last against the statistics; returns the points."""
    points, lines = read_series(output) or [], crawl_log(output)
    log = (output / "crawl.jsonl").read_bytes()
    for point in points:
        seen = [line["influence"] for line in lines[: point["crawled"]] if line["influence"] is not None]
        assert log[: point["log"]].count(b"\n") == point["crawled"]
        assert point["scored"] == len(seen)
        assert point["influence"] == pytest.approx(sum(seen))
        assert point["good"] == sum(score >= 0.5 for score in seen)
        assert [score for score, _ in point["best"]] == sorted(seen, reverse=True)[:10]
    assert [point["seconds"] for point in points] == sorted(point["seconds"] for point in points)
    last, figures = points[-1], stats(output)
    assert (last["crawled"], last["visited"]) == (len(lines), figures["pages/visited"])
    ended = Counter(f"{line['outcome']}/{line['reason']}" for line in read_log(output / FAILURES))
    assert {key: n for key, n in last["counts"].items() if key.startswith(("failed/", "dropped/"))} == ended
    return points


def reached(output: Path) -> int:
    """Pages crawled by the last point."""
    return max((point["crawled"] for point in read_series(output) or []), default=0)


def test_a_killed_and_resumed_crawl_has_one_series(demo_web: Web, tmp_path: Path) -> None:
    args = crawl_args(demo_web, tmp_path / "run", **SETTINGS, JOBDIR=tmp_path / "job")
    process = begin(args, silent=["out", "err"])
    end = time.monotonic() + 600
    while not (tmp_path / "run/series.jsonl").exists() or reached(tmp_path / "run") < 100:
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = [point for point in read_series(tmp_path / "run") or [] if point["crawled"] <= 50]  # its first commit
    assert len(before) > 1
    assert reached(tmp_path / "run") < N

    result = crawl(demo_web, tmp_path / "run", **SETTINGS, JOBDIR=tmp_path / "job")
    assert result.returncode == 0, result.stderr
    points = check(tmp_path / "run")
    assert points[: len(before)] == before
    if sys.platform == "linux":
        memory, cpu = points[-1]["memory"], points[-1]["cpu"]
        assert points[-1]["workers"] == 1
        assert all(10e6 < used < 10e9 for used in memory)
        assert cpu[0] > 0 <= cpu[1]


def test_a_crawl_goes_on_where_the_series_cannot_be_written(demo_web: Web, tmp_path: Path) -> None:
    """A folder is in its place."""
    settings = {"CRAWL_BATCH_SIZE": 10, "JOBDIR": tmp_path / "job"}  # a new crawl would refuse the directory
    assert crawl(demo_web, tmp_path / "run", **settings, CRAWL_MAX_PAGES=10).returncode == 0
    (tmp_path / "run/series.jsonl").unlink()
    (tmp_path / "run/series.jsonl/in-the-way").mkdir(parents=True)
    result = crawl(demo_web, tmp_path / "run", **settings, CRAWL_MAX_PAGES=50)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("the crawl continues without it") == 1
    assert "Error caught on signal handler" not in result.stderr
    assert len(crawl_log(tmp_path / "run")) == 50
