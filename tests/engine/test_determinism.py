"""Same inputs, settings and seed: the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawl_helpers import Web, crawl


def contents(output: Path) -> dict[str, bytes]:
    """What must not differ: log, index and archive."""
    files = [output / "crawl.jsonl", *sorted((output / "warc").iterdir())]
    return {str(file.relative_to(output)): file.read_bytes() for file in files}


@pytest.mark.parametrize(
    "settings",
    [
        {"CRAWL_BATCH_SIZE": 0},
        {"CRAWL_BATCH_SIZE": 50, "URL_POLICY": "random"},
        {"CRAWL_BATCH_SIZE": 50, "SIMULATION_TEXT": "extracted", "CRAWL_MAX_PAGES": 80},
    ],
    ids=["continuous", "random", "extracted"],
)
def test_hash_seed_workers_and_concurrency_change_nothing(
    settings: dict[str, object], demo_web: Web, tmp_path: Path
) -> None:
    common = {"CRAWL_MAX_PAGES": 200, "WARC_MAX_BYTES": 200_000, **settings}
    one = crawl(
        demo_web, tmp_path / "one", **common, CONCURRENT_REQUESTS=1
    )  # with a seed of its own, or that of a fork
    two = crawl(
        demo_web, tmp_path / "two", env={"PYTHONHASHSEED": "2"}, **common, CONCURRENT_REQUESTS=64, SCORING_WORKERS=2
    )

    assert (one.returncode, two.returncode) == (0, 0), one.stderr + two.stderr
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_continuous_order_is_batch_order_with_one_page_a_batch(demo_web: Web, tmp_path: Path) -> None:
    """In a simulation a fetch takes no time: after the first seed, only the batch of all seeds sets them apart."""
    seed = tmp_path / "seed.txt"
    seed.write_text("clueweb22-en0000-00-00007\n")
    for n in (0, 1):
        assert crawl(demo_web, tmp_path / str(n), seed, CRAWL_BATCH_SIZE=n, CRAWL_MAX_PAGES=100).returncode == 0
    orders = [
        [line.split('"id": ')[1].split(",")[0] for line in (tmp_path / str(n) / "crawl.jsonl").read_text().splitlines()]
        for n in (0, 1)
    ]
    assert orders[0] == orders[1]
    assert len(orders[0]) == 100


def test_another_random_seed_gives_another_crawl(demo_web: Web, tmp_path: Path) -> None:
    for seed in (0, 1):
        crawl(demo_web, tmp_path / str(seed), CRAWL_MAX_PAGES=100, CRAWL_SEED=seed)
    assert (tmp_path / "0/crawl.jsonl").read_bytes() != (tmp_path / "1/crawl.jsonl").read_bytes()
