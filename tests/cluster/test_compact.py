"""Compaction of the archive in a storage: killed anywhere, it leaves a storage that can be read, and what was there."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

import pytest
from cluster_helpers import Died, Worker, differing, merged, random_web
from driven_crawl import pages_at_once

from crawl4llm.cluster import crawl as cluster_crawl
from crawl4llm.cluster import worker as cluster_worker
from crawl4llm.cluster.storage import Storage
from crawl4llm.tools.cluster.compact import COMPACT

WEB = random_web(11)
SEEDS = WEB.sample(15, 11)
OPTIONS: dict[str, Any] = {"url_policy": "length", "crawl_batch_size": 20, "crawl_max_pages": 80}


def compact(storage: Path) -> list[Any]:
    return list(COMPACT.run({}, argparse.Namespace(arguments=[f"file://{storage}"])))  # type: ignore[arg-type]


def files(storage: Path) -> dict[str, bytes]:
    return {str(path.relative_to(storage)): path.read_bytes() for path in storage.rglob("*") if path.is_file()}


def test_a_compaction_that_is_killed_at_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_crawl, "POLL", 0.002)
    monkeypatch.setattr(cluster_worker, "POLL", 0.002)
    storage = tmp_path / "storage"
    storage.mkdir()

    def work(puts: float) -> None:
        folder = tmp_path / f"worker{puts}"
        options = {**OPTIONS, "warc_max_bytes": 15_000, "crawl_partitions": 3}
        worker = Worker(WEB, folder, f"file://{storage}", SEEDS, puts=puts, **options)
        with pytest.raises(Died) if puts < 1e9 else pages_at_once(7):
            worker.run(*SEEDS)
        worker.crawl.close()

    with pages_at_once(7):
        work(45)
        half = tmp_path / "half"
        shutil.copytree(storage, half)
        assert compact(half)[0].value > 0, "while the crawl goes on"
        compacted = {name for name in files(half) if name.startswith("warc/")}
        assert compacted
        work(1e9)
        before = merged(f"file://{storage}", tmp_path / "before")
        whole = tmp_path / "whole"
        shutil.copytree(storage, whole)
        compact(whole)
        left = [1]
        with monkeypatch.context() as patch:
            for name in ("put", "delete"):
                real = getattr(Storage, name)

                def mortal(self: Storage, *given: Any, real: Any = real) -> object:
                    left[0] -= 1
                    if left[0] < 0:
                        raise Died
                    return real(self, *given)

                patch.setattr(Storage, name, mortal)
            for lives in range(1, 99):
                left[0] = lives
                try:
                    compact(storage)
                except Died:
                    assert differing(before, merged(f"file://{storage}", tmp_path / f"merged{lives}")) == []
                else:
                    break
        assert 5 < lives < 98
        assert files(storage) == files(whole)
        assert not list(storage.glob("i/*/pages-*"))
        sizes = [path.stat().st_size for path in sorted(storage.glob("warc/*.warc.gz"))]
        assert len(sizes) > 1
        assert max(sizes) <= 15_000
        assert compacted <= files(storage).keys(), "where each begins does not depend on when it was run"
