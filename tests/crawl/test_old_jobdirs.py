"""Crawls that 0.1.0 has stopped go on as they would have there (see ``tests/fixtures/make_jobdirs.py``)."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, error_of, scrapy

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures/jobdirs-0.1.0"
DESCRIBED = json.loads((FIXTURES / "cases.json").read_text())
CASES: dict[str, dict[str, Any]] = DESCRIBED["cases"]


def go_on(folder: Path, settings: Mapping[str, Any], corpus: Path, pages: int = DESCRIBED["pages"]) -> Any:
    """Resume the crawl in a folder."""
    places = {"CORPUS": corpus, "JOBDIR": folder / "job", "OUTPUT_DIR": folder / "run"}
    given = {**settings, **places, "CRAWL_MAX_PAGES": pages}
    return scrapy("crawl", "influence", *(f"-s{name}={value}" for name, value in given.items()))


def unpacked(name: str, to: Path) -> Path:
    """The folder with a case and its corpus."""
    for archive in ("corpus", name):
        with zipfile.ZipFile(FIXTURES / f"{archive}.zip") as file:
            file.extractall(to)
    return to


def pages_of(index: Path) -> list[dict[str, Any]]:
    """The lines of an index without what depends on how well records are compressed here."""
    lines = [json.loads(line.split(" ", 2)[2]) for line in index.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in {"offset", "length"}} for line in lines]


def log_of(folder: Path) -> list[dict[str, Any]]:
    """The crawl log without what it counts, which is less for pages that may have been the last."""
    lines = map(json.loads, (folder / "crawl.jsonl").read_text().splitlines())
    return [{name: value for name, value in line.items() if name != "visited"} for line in lines]


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("link")])
def test_the_crawl_that_was_never_stopped(name: str, tmp_path: Path) -> None:
    """Settings that are gone meanwhile are passed over, in JOBDIR and where they are given."""
    folder = unpacked(name, tmp_path)
    begun = json.loads((folder / "job/job.json").read_text())
    resumed = go_on(folder, CASES[name], folder / "corpus")
    assert resumed.returncode == 0, resumed.stderr
    for expected in (folder / "expected").glob("*.jsonl"):
        assert (folder / "run" / expected.name).read_bytes() == expected.read_bytes()
    for expected in (folder / "expected/warc").glob("*"):
        assert pages_of(folder / "run/warc" / expected.name) == pages_of(expected)
    job = json.loads((folder / "job/job.json").read_text())
    assert (job["crawl_id"], job["digests"]) == (begun["crawl_id"], begun["digests"])


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("link")])
def test_link_goes_on_and_learns_anew(name: str, tmp_path: Path) -> None:
    """It learns in another way since; nothing is lost, and where it is stopped makes no difference."""
    logs = []
    for stops in ([DESCRIBED["pages"]], [60, DESCRIBED["pages"]]):
        folder = unpacked(name, tmp_path / str(len(stops)))
        before = (folder / "run/crawl.jsonl").read_bytes()
        for pages in stops:
            resumed = go_on(folder, CASES[name], folder / "corpus", pages)
            assert resumed.returncode == 0, resumed.stderr
        assert (folder / "run/crawl.jsonl").read_bytes().startswith(before)
        logs.append(log_of(folder / "run"))
    assert len({line["id"] for line in logs[0]}) == len(logs[0]) == len(log_of(folder / "expected"))
    assert logs[0] == logs[1]


@pytest.mark.parametrize("name", ["host-n7", "backlink-n0", "hot-n7", "pagerank-n7", "parent_mean-n0"])
def test_what_is_made_of_the_old_state_can_be_resumed_too(name: str, tmp_path: Path) -> None:
    folder = unpacked(name, tmp_path)
    for pages in (60, DESCRIBED["pages"]):
        resumed = go_on(folder, CASES[name], folder / "corpus", pages)
        assert resumed.returncode == 0, resumed.stderr
    assert log_of(folder / "run") == log_of(folder / "expected")


def test_a_crawl_of_the_old_demo_web_is_refused(demo_web: Web, tmp_path: Path) -> None:
    with zipfile.ZipFile(FIXTURES / "demo.zip") as file:
        file.extractall(tmp_path)
    settings = {**CASES["random-n7"], "URL_POLICY": "influence", "CRAWL_BATCH_SIZE": 100}
    resumed = go_on(tmp_path, settings, demo_web.corpus)
    if resumed.returncode == 0:
        pytest.skip("the demo web is still the old one")
    assert error_of(resumed).startswith(f"JOBDIR {tmp_path / 'job'} was begun with other settings: CORPUS was ")
