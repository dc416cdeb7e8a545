"""A crawl with JOBDIR whose machine loses power at any step of a commit goes on as if nothing had happened."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from driven_crawl import Graph, JobCrawl, pages_at_once, scored
from power_cut_helpers import SURVIVALS, Disk, PowerCutError, files_under, first_and_last, put_files

from crawl4llm.frontier import store
from crawl4llm.frontier.store import Store

OPTIONS: dict[str, Any] = {
    "crawl_max_pages": 24,
    "crawl_batch_size": 7,
    "commit_interval_pages": 10,
    "warc_max_bytes": 4_000,
    "frontier_max_urls": 12,
    "url_policy": "parent_mean",
}
CONTINUOUS = {
    **OPTIONS,
    "crawl_batch_size": 0,
    "url_policy": "random",
    "frontier_max_urls_per_host": 9,
    "warc_text": True,
}


def graph() -> Graph:
    """60 documents with some links each, a few of them to nothing."""
    draw = random.Random(4)
    keys = [f"{number:02d}" for number in range(60)]
    return {key: [*draw.sample(keys, 4), f"gone{key}" if key.endswith("7") else None] for key in keys}


def crawl(root: Path, options: dict[str, Any]) -> None:
    """Crawl to the end, from wherever it stands; a batch is taken in several slices."""
    driven = JobCrawl(scored(graph(), size=300), root, **options)
    with pages_at_once(3):
        driven.run("03", "14", "25")
    driven.close()


def output(root: Path) -> dict[str, bytes]:
    """What was crawled."""
    return files_under(root / "run")


@contextmanager
def lmdb_on(disk: Disk, opened: list[Store]) -> Iterator[None]:
    """LMDB's commits go through a disk: the power fails before one or after it. What it wrote then is on the disk."""
    commit, init = Store.commit, Store.__init__

    def guarded_commit(self: Store) -> None:
        disk.step("before a commit")
        commit(self)
        disk.sync(self.path)
        disk.step("after a commit")

    def noted_init(self: Store, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        opened.append(self)
        disk.sync(self.path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "commit", guarded_commit)
        patch.setattr(Store, "__init__", noted_init)
        patch.setattr(store.Store, "__init__", noted_init)
        yield


def crawl_until_power_cut(root: Path, calls: int, options: dict[str, Any]) -> Disk:
    """Crawl until the power fails, or to the end; returns the disk."""
    disk = Disk(root, calls)
    opened: list[Store] = []
    try:
        with disk.powered(), lmdb_on(disk, opened):
            try:
                crawl(root, options)
            finally:
                for one in opened:
                    one.close()
    except PowerCutError:
        pass
    return disk


@pytest.mark.slow
@pytest.mark.parametrize("options", [OPTIONS, CONTINUOUS], ids=["batches", "continuous"])
def test_power_cut_at_each_place(tmp_path: Path, options: dict[str, Any]) -> None:
    """At the first and the last call of each place that waits for the disk or changes names."""
    crawl(tmp_path / "whole", options)
    whole = output(tmp_path / "whole")
    assert len([name for name in whole if name.endswith(".warc.gz") and "text" not in name]) > 3, (
        "files are rotated on the way"
    )
    assert ("warc/text.cdxj" in whole) == options.get("warc_text", False)
    draw = random.Random(9)
    root = tmp_path / "crawl"
    put_files(root, {})
    places = crawl_until_power_cut(root, 10_000, options).places
    assert len(set(places)) > 20
    for calls in first_and_last(places):
        put_files(root, {})
        disk = crawl_until_power_cut(root, calls, options)
        assert disk.calls < 0
        names, data = draw.choice(SURVIVALS)
        put_files(root, disk.survivors(names, data))
        crawl(root, options)
        assert output(root) == whole, f"at {places[calls]}, left with {names} names and {data} data"
