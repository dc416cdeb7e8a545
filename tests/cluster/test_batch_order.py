"""Batch order in partitions: the same bytes as one process, whoever crawls, and whoever dies."""

from __future__ import annotations

import asyncio
import math
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from archive_helpers import INFO
from cluster_helpers import Died, HostsCorpus, Worker, differing, merged, random_web
from crawl_helpers import crawl_log, stats
from driven_crawl import Driven, pages_at_once
from known_links_helpers import half_known
from said_web import RULES, said_web

from crawl4llm.base.crawl_log import read_log
from crawl4llm.cluster import crawl as cluster_crawl, worker
from crawl4llm.policies import NO, known_policies, load_policy
from crawl4llm.warc import ArchiveWriter

POLICIES = [
    name for name in known_policies() if load_policy(name).partitioned != NO and name not in {"harmonic", "bound"}
]
"""Without those that read a file."""

ALL = [*POLICIES, "scorer:length"]


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers look often for what others have put: hints of these never reach another one."""
    monkeypatch.setattr(cluster_crawl, "POLL", 0.002)
    monkeypatch.setattr(worker, "POLL", 0.002)


def one_process(web: HostsCorpus, folder: Path, seeds: list[str], **options: Any) -> Path:
    folder.mkdir()
    archive = ArchiveWriter(folder / "warc", INFO, 1 << 30)
    with pages_at_once(7):
        Driven(web, folder, archive=archive, **options).run(*seeds).close()
    archive.close()
    return folder


def new_storage(folder: Path) -> str:
    folder.mkdir()
    return f"file://{folder}"


def test_what_can_be_partitioned() -> None:
    assert {"influence", "length", "parent_first", "parent_min", "breadth_first", "host", "random"} <= set(POLICIES)
    assert {"link", "pagerank", "ensemble"}.isdisjoint(POLICIES)


@pytest.mark.parametrize("policy", ALL)
def test_partitions_change_nothing(policy: str, tmp_path: Path) -> None:
    """Also where documents fail, N cuts the last batch, and the frontier runs empty."""
    number = ALL.index(policy)
    n, pages, extra = [(40, 75, {}), (20, 1000, {"order": "asc"}), (30, 70, {"crawl_scope": "domain"})][number % 3]
    web = random_web(number)
    seeds = web.sample(15, number)
    options = {"url_policy": policy, "crawl_batch_size": n, "crawl_max_pages": pages, **extra}
    alone = one_process(web, tmp_path / "alone", seeds, **options)
    storage = new_storage(tmp_path / "storage")
    with pages_at_once(7):
        Worker(web, tmp_path / "worker", storage, seeds, crawl_partitions=4, **options).run(*seeds)
        assert differing(alone, merged(storage, tmp_path / "merged")) == []
    assert (alone / "crawl.jsonl").stat().st_size > 2000


@pytest.mark.parametrize(
    ("policy", "noindex"),
    [("parent_first", "archive"), ("host", "drop"), ("influence", "archive"), ("influence", "drop")],
)
def test_partitions_change_nothing_where_pages_say_what_they_are(policy: str, noindex: str, tmp_path: Path) -> None:
    """Links that are not followed, pages that do not count, and pages that are dropped once they were read."""
    web = said_web(5, 300)
    seeds = web.sample(15, 5)
    options = {**RULES, "url_policy": policy, "noindex": noindex, "crawl_batch_size": 20, "crawl_max_pages": 70}
    alone = one_process(web, tmp_path / "alone", seeds, **options)
    storage = new_storage(tmp_path / "storage")
    with pages_at_once(7):
        Worker(web, tmp_path / "worker", storage, seeds, crawl_partitions=4, **options).run(*seeds)
        assert differing(alone, merged(storage, tmp_path / "merged")) == []
    lines, failures = crawl_log(alone), list(read_log(alone / "failures.jsonl"))
    assert sum(not line.get("noindex") for line in lines) == 70
    assert any(line.get("noindex") for line in lines) == (noindex == "archive")
    dropped = {line["id"] for line in failures if line["reason"] in ("noindex", "language")}
    assert {line["parent"] for line in [*lines, *failures]} & dropped, "links of some that were dropped are followed"
    assert stats(tmp_path / "merged")["pages/crawled"] == len(lines)


@pytest.mark.parametrize("policy", ["parent_first", "influence"])
def test_partitions_change_nothing_where_pages_are_known(policy: str, tmp_path: Path) -> None:
    """Some with a score, some with that of the page on which they were found; a worker dies now and then."""
    web = random_web(5, 300)
    seeds = web.sample(15, 5)
    known = half_known(tmp_path / "known", web, 2)
    options: dict[str, Any] = {"url_policy": policy, "crawl_batch_size": 20, "crawl_max_pages": 70}
    options["known_links"] = str(tmp_path / "known")
    alone = one_process(web, tmp_path / "alone", seeds, **options)
    storage = new_storage(tmp_path / "storage")
    workers = [  # all of them live on as objects: the stores of one that is collected are closed by any thread
        Worker(web, tmp_path / f"worker{life}", storage, seeds, puts=puts, crawl_partitions=4, **options)
        for life, puts in enumerate([9, 17, 25, math.inf])
    ]
    with pages_at_once(7):
        for one in workers:
            with suppress(Died):
                one.run(*seeds)
        assert differing(alone, merged(storage, tmp_path / "merged")) == []
    dropped = [line for line in read_log(alone / "failures.jsonl") if line["reason"] == "known_page"]
    assert len(dropped) > 30
    assert len(crawl_log(alone)) == 70
    assert not {line["id"] for line in crawl_log(alone)} & known
    assert stats(tmp_path / "merged")["dropped/known_page"] == len(dropped)


def test_workers_that_share_overlap_and_die_change_nothing(tmp_path: Path) -> None:
    """Two workers have each a part of the partitions and wait for each other; a third believes that it has all. Each
    dies after some objects that it has put, so that the next one, which begins with nothing, comes between any two."""
    web = random_web(7)
    seeds = web.sample(15, 7)
    options: dict[str, Any] = {"url_policy": "parent_min", "crawl_batch_size": 25, "crawl_max_pages": 80}
    alone = one_process(web, tmp_path / "alone", seeds, **options)
    storage = new_storage(tmp_path / "storage")
    draw = random.Random("parent_min")
    deaths: list[int] = []

    async def work(its: range | None) -> None:
        """Crawl to the end, with new workers in the place of those that die."""
        while True:
            folder = tmp_path / f"worker{its}{len(deaths)}"
            puts = draw.randrange(1, 12)
            worker = Worker(web, folder, storage, seeds, its=its, puts=puts, crawl_partitions=4, **options)
            try:
                await worker._run(seeds, draw)
            except Died:
                deaths.append(puts)
            else:
                return
            finally:
                assert isinstance(worker.crawl, cluster_crawl.ClusterCrawl)
                worker.crawl.close()  # LMDB's locks are the thread's that took them, not the garbage collector's

    async def work_together() -> None:
        await asyncio.gather(*map(work, [range(2), range(2, 4), None]))

    with pages_at_once(7):
        asyncio.run(work_together())
        assert differing(alone, merged(storage, tmp_path / "merged")) == []
    assert len(deaths) > 5
