"""``DRY_RUN`` checks what a crawl needs, says what it would take, and writes nothing."""

from __future__ import annotations

import fcntl
import re
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, error_of

from crawl4llm.engine.dry_run import memory_of_stores
from crawl4llm.frontier import Entry
from crawl4llm.frontier.bloom import bytes_within
from crawl4llm.frontier.opening import open_frontier
from crawl4llm.frontier.store import Store
from crawl4llm.frontier.visited import DurableVisited
from crawl4llm.options import Options


@pytest.mark.parametrize(("policy", "jobdir"), [("influence", False), ("indegree", True)])
def test_estimate(policy: str, jobdir: bool, demo_web: Web, tmp_path: Path) -> None:
    wanted = {"CRAWL_MAX_PAGES": 600, "URL_POLICY": policy, "JOBDIR": tmp_path / "job" if jobdir else ""}
    dry = crawl(demo_web, tmp_path / "run", DRY_RUN=1, **wanted)
    assert dry.returncode == 0, dry.stderr
    assert list(tmp_path.iterdir()) == []
    assert "600 crawled, of 1,500 in the corpus" in dry.stdout
    disk = re.search(r"disk +([\d.]+) MiB", dry.stdout)
    assert disk
    assert re.search(r"memory +[\d.]+ MiB in the crawler, and [\d.]+ MiB in a worker", dry.stdout)

    assert crawl(demo_web, tmp_path / "run", **wanted).returncode == 0
    written = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) / (1 << 20)
    assert float(disk.group(1)) == pytest.approx(written, rel=0.3)


def test_more_pages_than_the_corpus_holds(demo_web: Web, tmp_path: Path) -> None:
    dry = crawl(demo_web, tmp_path / "run", DRY_RUN=1, CRAWL_MAX_PAGES=10**6, CRAWL_BATCH_SIZE=0)
    assert "1,500 crawled, of 1,500 in the corpus; up to 1,500 visited" in dry.stdout


def test_with_a_jobdir(demo_web: Web, tmp_path: Path) -> None:
    """It is looked at, as the crawl would do it, and left as it is."""
    job, settings = tmp_path / "job", {"JOBDIR": tmp_path / "job", "CRAWL_SEEDS": 20}
    assert crawl(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=40, **settings).returncode == 0
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in job.iterdir() if path.name[-5:] != "-lock"}
    dry = crawl(demo_web, tmp_path / "run", DRY_RUN=1, CRAWL_MAX_PAGES=300, **settings)
    assert dry.returncode == 0, dry.stderr
    assert "The rest of the crawl would take about" in dry.stdout
    assert "300 crawled (40 of them already), of 1,500 in the corpus" in dry.stdout
    refused = crawl(demo_web, tmp_path / "run", DRY_RUN=1, CRAWL_MAX_PAGES=300, **{**settings, "CRAWL_SEED": 7})
    assert "was begun with other settings" in error_of(refused)
    with (job / "lock").open("r+") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        assert "in use by process" in error_of(crawl(demo_web, tmp_path / "run", DRY_RUN=1, **settings))
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    assert {path.name for path in job.iterdir()} == {"job.json", "lock", "store.mdb", "store.mdb-lock"}


@pytest.mark.slow
def test_memory_of_stores() -> None:
    """Those on disk remember some documents, whatever the number; those in memory, all."""
    few, many = 5_000, 50_000_000
    assert memory_of_stores(Options(), many, on_disk=False) > 5e9
    for options in (Options(), Options(visited_cache=10_000)):
        assert memory_of_stores(options, many, on_disk=True) < 0.6e9
    assert memory_of_stores(Options(), few, on_disk=True) == pytest.approx(measured(few), rel=0.5)
    assert bytes_within(1 << 30, 10_000_000) == pytest.approx(18_900_000, rel=0.1)
    assert bytes_within(1 << 20, 10_000_000) == 0


def measured(documents: int) -> int:
    """Memory that stores on disk take."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store.mdb")
        tracemalloc.start()
        frontier = open_frontier(store)
        visited = DurableVisited(store, Path(folder) / "filter", cache=10**6, filter_bytes=1)
        for key in visited.add(f"clueweb22-en0000-00-{number:05d}" for number in range(documents)):
            frontier.push([Entry(key, f"https://www.example.org/{key}/index.html", hash(key) / 7, 1, "parent")])
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        store.close()
    return size


def test_bad_input_is_found(demo_web: Web, tmp_path: Path) -> None:
    assert "SCORER_LABEL" in error_of(crawl(demo_web, tmp_path / "run", DRY_RUN=1, SCORER_LABEL="no"))
    assert crawl(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=5).returncode == 0
    assert "holds another crawl" in error_of(crawl(demo_web, tmp_path / "run", DRY_RUN=1))
