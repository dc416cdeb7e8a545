"""What a user sees: a bar on a terminal, lines elsewhere, a summary at the end; and figures that are documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from crawl_helpers import PROJECT, Web, crawl, crawl_args, crawl_log, error_of, scrapy, stats
from documented import is_documented
from terminal_helpers import on_a_terminal


@pytest.mark.parametrize("columns", [160, 80])
def test_bar_on_a_terminal(columns: int, demo_web: Web, tmp_path: Path) -> None:
    args = crawl_args(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=60, CRAWL_BATCH_SIZE=10, SIMULATION_TEXT="extracted")
    status, shown, _ = on_a_terminal(["-m", "scrapy", *args], columns)
    assert status == 0, shown
    last = shown.strip().rpartition("\r")[2]
    assert re.search(r"mean influence 0\.\d{3}: 100%.*60/60 .*pages/s, visited", last), last
    assert columns < 100 or re.search(r"pages/s, visited [\d,]+, frontier [\d,]+", last), last
    assert len(last) <= columns
    assert "iteration 1" not in shown


@pytest.mark.parametrize("level", [None, "DEBUG"])
def test_a_line_an_iteration_is_for_who_asks(level: str | None, demo_web: Web, tmp_path: Path) -> None:
    asked = {} if level is None else {"LOG_LEVEL": level}
    result = crawl(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=130, CRAWL_BATCH_SIZE=10, CRAWL_SEEDS=100, **asked)
    first, *lines = [line for line in result.stderr.splitlines() if "crawl4llm." in line]
    assert f"Crawling {demo_web.corpus} by influence: 130 pages, 100 seeds, to {tmp_path / 'run'}" in first
    log = crawl_log(tmp_path / "run")
    if level is None:
        assert result.stderr.splitlines() == [first]
        assert len(result.stdout.splitlines()) <= 8
    else:
        lines = [line for line in lines if "iteration" in line]
        assert len(lines) == 4
        assert f"iteration 3: crawled 130 of 130, visited {log[-1]['visited']:,}" in lines[-1]
        assert "Versions:" in result.stderr


def test_an_error_is_all_there_is(tmp_path: Path) -> None:
    result = scrapy(*crawl_args(None, tmp_path / "run", CORPUS=tmp_path / "none"))
    assert error_of(result)
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize("policy", ["influence", "random"])
def test_summary_and_statistics_agree_with_the_log(policy: str, demo_web: Web, tmp_path: Path) -> None:
    result = crawl(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=130, URL_POLICY=policy)
    log, figures = crawl_log(tmp_path / "run"), stats(tmp_path / "run")
    mean = sum(line["influence"] for line in log) / len(log)

    assert "Crawled 130 of 130 pages" in result.stdout
    assert f"mean influence   {mean:.3f}" in result.stdout
    assert f"visited          {log[-1]['visited']:,} documents from 100 seeds" in result.stdout
    assert f"fetched          {log[-1]['fetched']:,} documents" in result.stdout
    assert str(tmp_path / "run") in result.stdout
    assert figures["influence/mean"] == pytest.approx(mean)
    assert figures["pages/crawled"] == 130
    assert figures["pages/visited"] == log[-1]["visited"]
    assert figures["pages/fetched"] == log[-1]["fetched"] == (log[-1]["visited"] if policy == "influence" else 130)


def test_every_figure_is_documented(demo_web: Web, tmp_path: Path) -> None:
    crawl(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=100_000)
    figures = stats(tmp_path / "run")
    assert len(figures) > 10
    assert [key for key in figures if not is_documented(key)] == []


def test_output_directories_are_numbered(demo_web: Web, tmp_path: Path) -> None:
    (tmp_path / "scrapy.cfg").write_text((PROJECT / "scrapy.cfg").read_text())
    given = crawl_args(demo_web, tmp_path, CRAWL_MAX_PAGES=5, CRAWL_SEEDS=5)
    place = given.index(f"OUTPUT_DIR={tmp_path}")
    args = given[: place - 1] + given[place + 1 :]
    for _ in range(2):
        assert scrapy(*args, cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in (tmp_path / "crawls").iterdir()) == ["0001", "0002"]
