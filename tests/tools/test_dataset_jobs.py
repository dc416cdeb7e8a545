"""A paused crawl whose archive was purged or repaired goes on where its files end now."""

from __future__ import annotations

import os
import random
import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from archive_helpers import INFO
from dataset_helpers import archive, done
from driven_crawl import JobCrawl, scored
from graph_corpus import GraphCorpus

from crawl4llm.base.files import ArchiveError
from crawl4llm.base.pages import PageRecord
from crawl4llm.base.run_folder import read_json, write_json
from crawl4llm.crawl.jobdir import JobDir
from crawl4llm.warc.cdxj import read

OPTIONS: dict[str, Any] = {"crawl_batch_size": 10, "warc_max_bytes": 4000, "commit_interval_pages": 5}


class TwoHosts(GraphCorpus):
    """Every other document is of the host that opts out."""

    def page(self, key: str) -> PageRecord:
        host = "gone" if int(key.rstrip("b")) % 2 else "stays"
        return replace(super().page(key), url=f"http://{host}.example/{key}")


def web() -> GraphCorpus:
    rng = random.Random(3)
    keys = [f"{number}" for number in range(100, 180)]
    plain = scored({key: rng.sample(keys, 6) for key in keys}, size=300)
    return TwoHosts({key: plain.targets(key) for key in keys}, plain.texts, size=300)


def crawl(folder: Path, pages: int) -> Path:
    """Crawl until there are so many pages, or go on; the output directory."""
    with closing(JobCrawl(web(), folder, crawl_max_pages=pages, **OPTIONS)) as driven:
        driven.run("100", "101", "102")
    settings = folder / "run/settings.json"
    write_json(settings, {**read_json(settings), "settings": {"WARC_PREFIX": INFO.prefix}})
    return folder / "run"


def test_goes_on(tmp_path: Path) -> None:
    run = crawl(tmp_path, 30)
    job = ["-s", f"JOBDIR={tmp_path / 'job'}", "-s", f"OUTPUT_DIR={run}"]
    done("finish", run)
    done("purge", "gone.example", run, *job)
    assert done("check", run).startswith("sound")
    before = [entry.id for entry in read(run / "warc/index.cdxj")]
    crawl(tmp_path, 50)
    done("finish", run)
    assert done("check", run).startswith("sound")
    after = [entry.id for entry in read(run / "warc/index.cdxj")]
    assert after[: len(before)] == before
    assert len(after) == len(before) + 20


def test_without_jobdir_it_is_refused(tmp_path: Path) -> None:
    run = crawl(tmp_path, 30)
    done("purge", "gone.example", run)
    with pytest.raises(ArchiveError, match="were committed"):
        crawl(tmp_path, 50)


def test_jobdir_in_use(tmp_path: Path) -> None:
    """Asked of another process: a lock does not hold against who has it."""
    run = crawl(tmp_path, 10)
    ready, waiting = os.pipe()
    child = os.fork()
    if child == 0:
        held = JobDir(tmp_path / "job")
        os.write(waiting, str(held.path).encode())
        while True:
            signal.pause()
    os.read(ready, 1)
    try:
        for command in (["purge", "gone.example"], ["finish"], ["repair"]):
            status, _, err = archive(*command, run, "-s", f"JOBDIR={tmp_path / 'job'}")
            assert (status, f"is in use by process {child}" in err) == (1, True)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
