"""The same crawl as the published implementation (cxcscmu/Crawl4LLM), iteration by iteration."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, crawl_log, stats


@pytest.mark.parametrize(
    ("run", "policy", "n", "pages", "visited"),
    [
        ("influence-n100", "influence", 100, 6500, 10_800),
        ("influence-n500", "influence", 500, 4000, 8_952),
        ("indegree-n100", "indegree", 100, 3000, 12_104),
    ],
)
def test_each_iteration_crawls_the_same_set(
    run: str, policy: str, n: int, pages: int, visited: int, shared: Callable[[str], Path], tmp_path: Path
) -> None:
    web = Web(shared("clueweb22-real"), shared("scorers/prose.bin"))
    seeds = shared(f"reference-runs/seeds-{n}.txt")
    expected: dict[int, set[str]] = defaultdict(set)
    with gzip.open(shared(f"reference-runs/{run}.tsv.gz"), "rt") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["iteration"]) < pages // n:
                expected[int(row["iteration"])].add(row["id"])

    settings = {"CRAWL_BATCH_SIZE": n, "CRAWL_MAX_PAGES": pages, "URL_POLICY": policy, "WARC_ENABLED": 0}
    result = crawl(web, tmp_path / "run", seeds, SCORING_WORKERS=2, **settings)

    assert result.returncode == 0, result.stderr
    crawled: dict[int, set[str]] = defaultdict(set)
    for line in crawl_log(tmp_path / "run"):
        crawled[line["iteration"]].add(line["id"])
    assert crawled == expected
    assert stats(tmp_path / "run")["pages/visited"] == visited
