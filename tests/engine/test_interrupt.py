"""Ctrl-C, a lost terminal and a full disk: what was reported as crawled can be read."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from crawl_helpers import Web, begin, crawl_args, crawl_log, scrapy
from scrapy_server import Process

from crawl4llm.warc import cdxj
from crawl4llm.warc.reader import read_record

ENDLESS = {"CRAWL_MAX_PAGES": 100_000, "CRAWL_BATCH_SIZE": 10, "SIMULATION_TEXT": "extracted", "SCORING_WORKERS": 2}


def start(web: Web, output: Path, **settings: object) -> Process | subprocess.Popen[str]:
    """A crawl in a process group of its own, as a shell starts it."""
    return begin(crawl_args(web, output, **{**ENDLESS, **settings}))


def wait_for_pages(output: Path, pages: int) -> None:
    """Wait until so many pages are in the log."""
    log = output / "crawl.jsonl"
    for _ in range(600):
        if log.exists() and log.read_bytes().count(b"\n") >= pages:
            return
        time.sleep(0.05)
    pytest.fail(f"{log} did not reach {pages} lines")


def readable(output: Path) -> None:
    """Every page in the log leads to a record that can be read."""
    entries = list(cdxj.read(output / "warc/index.cdxj"))
    logged = [line["id"] for line in crawl_log(output)]
    assert [entry.id for entry in entries[: len(logged)]] == logged
    for entry in entries:
        assert read_record(output / "warc", entry)


def test_ctrl_c_once_finishes_what_is_in_flight(demo_web: Web, tmp_path: Path) -> None:
    process = start(demo_web, tmp_path / "run")
    wait_for_pages(tmp_path / "run", 60)
    children = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=600)

    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "interrupted" in out
    readable(tmp_path / "run")
    assert len(list(cdxj.read(tmp_path / "run/warc/index.cdxj"))) == len(crawl_log(tmp_path / "run"))
    assert not list((tmp_path / "run/warc").glob("*.open"))
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


def test_ctrl_c_twice_stops_at_once(demo_web: Web, tmp_path: Path) -> None:
    process = start(demo_web, tmp_path / "run", CRAWL_BATCH_SIZE=2000, CRAWL_SEEDS=200)
    wait_for_pages(tmp_path / "run", 200)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    pressed = time.monotonic()
    _, err = process.communicate(timeout=600)

    assert process.returncode not in {0, None}
    assert time.monotonic() - pressed < 60, "it waited for the batch"
    assert "Traceback" not in err
    readable(tmp_path / "run")


def test_kill_leaves_no_worker_behind(demo_web: Web, tmp_path: Path) -> None:
    process = start(demo_web, tmp_path / "run")
    wait_for_pages(tmp_path / "run", 60)
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.kill()
    process.communicate(timeout=600)
    _, alive = psutil.wait_procs(children, timeout=120)
    assert not alive


def test_full_disk_stops_the_crawl_and_loses_nothing(demo_web: Web, tmp_path: Path) -> None:
    """A limit on file size stands in for the disk: writes fail just so, in the middle of a record."""
    args = crawl_args(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=1000)
    result = scrapy(*args, limits={"RLIMIT_FSIZE": 150_000})

    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    errors = [line for line in result.stderr.splitlines() if line.startswith("crawl4llm: error: ")]
    assert len(errors) == 1
    assert "File too large" in errors[0]
    readable(tmp_path / "run")
    assert len(crawl_log(tmp_path / "run")) > 10
