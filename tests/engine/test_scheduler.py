"""No lease is lost and no crawl hangs, whatever Scrapy's other components do to a request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, crawl_log, stats

FETCH = {"simulate.middleware.SimulationMiddleware": 0}
PAGES = {"CRAWL_MAX_PAGES": 200, "CRAWL_SEEDS": 30, "WARC_ENABLED": 0}


@pytest.fixture(params=[20, 0], ids=["batch", "continuous"])
def order(request: pytest.FixtureRequest) -> dict[str, object]:
    return {"CRAWL_BATCH_SIZE": request.param, "CRAWL_CONCURRENT_LEASES": 8, **PAGES}


def middlewares(name: str, priority: int) -> str:
    return json.dumps({**FETCH, f"hostile.{name}": priority})


def spiders(tmp_path: Path, name: str) -> str:
    """A module that has just this spider."""
    (tmp_path / "only_spider.py").write_text(f"from hostile import {name} as Spider\nSpider.__module__ = __name__\n")
    return "only_spider"


def check(output: Path, *, dropped: str | None = None, failed: str | None = None, every: int = 3) -> None:
    """N pages were crawled, each once, and every third document, or ninth, ended by its reason."""
    crawled = [line["id"] for line in crawl_log(output)]
    assert len(crawled) == len(set(crawled)) == 200
    assert [line["order"] for line in crawl_log(output)] == list(range(200))
    counts = stats(output)
    assert counts["frontier/leased"] == 0
    if dropped or failed:
        key = f"dropped/{dropped}" if dropped else f"failed/{failed}"
        assert counts[key] > 10
        assert not [key for key in crawled if int(key[-5:]) % every == 0]


def test_a_request_for_several_documents_makes_no_other_crawl(demo_web: Web, tmp_path: Path) -> None:
    """In batches there is one for many documents, some of which cannot be read, where nobody else sees requests."""
    settings = {**PAGES, "CRAWL_BATCH_SIZE": 40, "URL_POLICY": "breadth_first", "DOWNLOAD_MAXSIZE": 2500}
    watched = {**settings, "DOWNLOADER_MIDDLEWARES": middlewares("Watching", -1)}
    counts = []
    for name, given in ("alone", settings), ("watched", watched):
        result = crawl(demo_web, tmp_path / name, **given)
        assert result.returncode == 0, result.stderr
        counts.append(json.loads((tmp_path / name / "stats.json").read_text()))
    for log in "crawl.jsonl", "failures.jsonl":
        assert (tmp_path / "alone" / log).read_bytes() == (tmp_path / "watched" / log).read_bytes()
    pages, dropped = (counts[0][f"crawl4llm/{name}"] for name in ("pages/crawled", "dropped/too_large"))
    assert pages + dropped == counts[1]["watched"] > 200
    assert counts[0]["response_received_count"] == counts[1]["response_received_count"] == pages > 50


def test_ignored_by_a_middleware(order: dict[str, object], demo_web: Web, tmp_path: Path) -> None:
    result = crawl(demo_web, tmp_path / "run", DOWNLOADER_MIDDLEWARES=middlewares("Ignoring", -1), **order)
    assert result.returncode == 0, result.stderr
    check(tmp_path / "run", dropped="ignored")


def test_asked_for_twice_by_a_middleware(order: dict[str, object], demo_web: Web, tmp_path: Path) -> None:
    result = crawl(demo_web, tmp_path / "run", DOWNLOADER_MIDDLEWARES=middlewares("Retrying", -1), **order)
    assert result.returncode == 0, result.stderr
    check(tmp_path / "run")


def test_broken_middleware(order: dict[str, object], demo_web: Web, tmp_path: Path) -> None:
    """Unanticipated: logged in full; tried again up to the cap, then failed."""
    result = crawl(demo_web, tmp_path / "run", DOWNLOADER_MIDDLEWARES=middlewares("Swallowing", -1), **order)
    assert result.returncode == 0, result.stderr
    assert "RuntimeError: middleware broke" in result.stderr
    check(tmp_path / "run", failed="error")
    assert stats(tmp_path / "run")["frontier/retried"] > 10


def test_refused_by_a_signal_handler(order: dict[str, object], demo_web: Web, tmp_path: Path) -> None:
    result = crawl(
        demo_web, tmp_path / "run", EXTENSIONS=json.dumps({"hostile.Refusing": 0}), CONCURRENT_REQUESTS=1, **order
    )
    assert result.returncode == 0, result.stderr
    check(tmp_path / "run")


def test_callback_that_raises(order: dict[str, object], demo_web: Web, tmp_path: Path) -> None:
    result = crawl(
        demo_web,
        tmp_path / "run",
        env={"PYTHONPATH": f"{tmp_path}"},
        SPIDER_MODULES=spiders(tmp_path, "BrokenSpider"),
        **order,
    )
    assert result.returncode == 0, result.stderr
    assert "RuntimeError: callback broke" in result.stderr
    check(tmp_path / "run", failed="error")
    assert stats(tmp_path / "run")["errors"] == stats(tmp_path / "run")["failed/error"]


def test_callback_that_forgets(order: dict[str, object], demo_web: Web, tmp_path: Path) -> None:
    result = crawl(
        demo_web,
        tmp_path / "run",
        env={"PYTHONPATH": f"{tmp_path}"},
        SPIDER_MODULES=spiders(tmp_path, "ForgetfulSpider"),
        **{**order, "CRAWL_CONCURRENT_LEASES": 400},  # each time that all of them are forgotten, seconds pass
    )
    assert result.returncode == 0, result.stderr
    check(tmp_path / "run", dropped="ignored", every=9)


def test_too_many_errors_in_a_row_stop_the_crawl(order: dict[str, object], demo_web: Web, tmp_path: Path) -> None:
    result = crawl(
        demo_web,
        tmp_path / "run",
        env={"PYTHONPATH": f"{tmp_path}"},
        SPIDER_MODULES=spiders(tmp_path, "AlwaysBrokenSpider"),
        CRAWL_MAX_ERRORS=5,
        **order,
    )
    assert result.returncode == 1
    assert "unanticipated errors in a row" in result.stderr
    assert not crawl_log(tmp_path / "run")
    assert "Traceback" not in result.stderr
    in_full = (tmp_path / "run/errors.log").read_text()
    lines = [line for line in result.stderr.splitlines() if "(in full in errors.log)" in line]
    assert in_full.count("Traceback") == len(lines) >= 5
    assert all(line.partition("ERROR: ")[2].partition(": ")[0] in in_full for line in lines)
