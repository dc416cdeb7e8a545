"""Metrics and structured logs of real crawls, and the alert rules that are written for them."""

from __future__ import annotations

import json
import re
import socket
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from addon_site import serve
from crawl_helpers import PROJECT, Web, crawl, error_of, stats
from live_helpers import crawl_live, small_web

pytest.importorskip("prometheus_client", reason="needs the extra metrics")

from prometheus_client.parser import text_string_to_metric_families

from crawl4llm.engine.metrics import OTHERS, families

ALERTS = PROJECT / "docs/alerts.yml"
BROKEN = """
from crawl4llm.policies.random import Policy

class Broken(Policy):
    async def score(self, candidates):
        if any(candidate.depth for candidate in candidates):
            raise ZeroDivisionError("it broke")
        return await super().score(candidates)
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def scrape(port: int) -> dict[tuple[str, tuple[str, ...]], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, tuple(sample.labels.values())): sample.value for sample in samples}


def test_metrics_of_a_live_crawl_are_its_statistics(tmp_path: Path) -> None:
    port, found = free_port(), {}

    def look() -> None:
        """Scrape again and again, while there is an answer."""
        for _ in range(2000):
            try:
                found.update({len(found): scrape(port)})
            except OSError:
                if found:
                    return
            threading.Event().wait(0.02)

    looking = threading.Thread(target=look)
    looking.start()
    with serve(small_web()) as site:
        seeds = [f"{site.url}/page-0", f"{site.url}/gone"]
        result = crawl_live(
            seeds, tmp_path / "run", METRICS_PORT=port, CRAWL_BATCH_SIZE=5, LOG_FORMAT="json", LOG_LEVEL="DEBUG"
        )
    looking.join()
    assert result.returncode == 0, result.stderr

    last, final = found[len(found) - 1], stats(tmp_path / "run")
    assert 0 < last["crawl4llm_pages_crawled_total", ()] <= final["pages/crawled"]
    named = {family.name + "_total" * family.is_counter for family in families().values()} | set(OTHERS)
    assert {name for name, _ in last if name.startswith("crawl4llm_")} <= named
    assert last["crawl4llm_disk_free_bytes", ("output",)] > 0
    assert last["process_resident_memory_bytes", ()] > 10e6
    counts = [one.get(("crawl4llm_pages_crawled_total", ()), 0) for one in found.values()]
    assert counts == sorted(counts)
    failed = {label[0] for one in found.values() for name, label in one if name == "crawl4llm_failed_total"}
    assert failed <= {key.partition("/")[2] for key in final if key.startswith("failed/")}

    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert all(line.keys() >= {"time", "level", "logger", "message"} for line in lines)
    assert any("iteration" in line["message"] for line in lines)


def test_a_traceback_is_inside_its_line(demo_web: Web, tmp_path: Path) -> None:
    (tmp_path / "broken_policy.py").write_text(BROKEN)
    env = {"PYTHONPATH": str(tmp_path)}
    settings: dict[str, Any] = {"URL_POLICY": "broken_policy.Broken", "CRAWL_BATCH_SIZE": 10, "LOG_FORMAT": "json"}
    result = crawl(demo_web, tmp_path / "run", env=env, **settings)
    logged, told = result.stderr.splitlines()[:-1], result.stderr.splitlines()[-1]
    assert told.startswith("crawl4llm: error: ")
    (error,) = [line for line in map(json.loads, logged) if line["level"] == "ERROR"]
    assert "ZeroDivisionError: it broke" in error["traceback"]
    assert "Traceback" in error["traceback"]


def test_a_port_that_is_taken_ends_the_crawl_with_a_line(demo_web: Web, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        error = error_of(crawl(demo_web, tmp_path / "run", METRICS_PORT=port, CRAWL_MAX_PAGES=50))
    assert error.startswith(f"METRICS_PORT 127.0.0.1:{port} cannot be used (")


def test_alert_rules_are_about_metrics_that_exist() -> None:
    yaml = pytest.importorskip("yaml")
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    exist = {family.name + "_total" * family.is_counter for family in families().values()} | set(OTHERS)
    named = [re.findall(r"\b(?:crawl4llm|process)_\w+", rule["expr"]) for rule in rules]
    assert all(named)
    assert {name for names in named for name in names} <= exist | {"process_resident_memory_bytes"}
    assert {"alert", "expr", "for", "labels", "annotations"} <= set.intersection(*map(set, rules))
