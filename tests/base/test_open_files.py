"""The limit on open files: caches keep within it, and running out is no page's failure."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from addon_site import serve
from clueweb22_helpers import key_of, link_record, member, text_record, write_file
from crawl_helpers import PROJECT, Web, crawl, crawl_log, error_of
from live_helpers import crawl_live, text_page
from warc_helpers import page, url_of, write
from worker_tasks import RATER, hoard

from crawl4llm.base.errors import MachineError
from crawl4llm.base.files import PreadFile
from crawl4llm.scoring.rating import rate_all
from crawl4llm.scoring.workers import PageWorkers

READ_ALL = """
import os, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[3])))
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.warcs.corpus import WarcCorpus
folder = Path(sys.argv[1])
corpora = ClueWeb22Corpus(folder / "tree"), WarcCorpus(folder / "warcs", Path(sys.argv[4]))
pages = [corpus.page(key) for _ in range(2) for corpus in corpora for key in corpus.keys()]
print(len(pages), len(os.listdir("/dev/fd")), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree and a collection of archives, of a hundred files each."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(100):
        key = key_of(f"en0000-{number:02d}", 0)
        write_file(folder / "tree", "txt", f"en0000-{number:02d}", [member(text_record(key))])
        write_file(folder / "tree", "outlink", f"en0000-{number:02d}", [member(link_record(key, []))])
        write(folder / f"warcs/{number:02d}.warc", page(number))
    return folder


@pytest.mark.parametrize(("soft", "hard"), [(100, 100), (100, 4096)])
def test_caches_keep_within_the_limit(many_files: Path, tmp_path: Path, soft: int, hard: int) -> None:
    command = [sys.executable, "-c", READ_ALL, str(many_files), str(soft), str(hard), str(tmp_path / "index")]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    pages, opened, limit = map(int, done.stdout.split())
    assert (pages, limit) == (400, hard), done.stderr
    assert opened < 60 if hard == 100 else opened > 500


@contextmanager
def no_more_files() -> Iterator[None]:
    """This process may open no more files."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_running_out_is_no_page_of_a_corpus(tmp_path: Path) -> None:
    path = write(tmp_path / "a.warc", page(1))
    with no_more_files(), pytest.raises(MachineError, match=r"a\.warc: Too many open files; raise the limit \(`ulimit"):
        PreadFile(path)
    with no_more_files(), pytest.raises(MachineError, match="Too many open files"):
        rate_all(RATER, lambda _rater, _key: os.open(path, os.O_RDONLY), [url_of(1)])


def test_running_out_where_workers_are_started() -> None:
    workers = PageWorkers(RATER, 1, 30)
    with no_more_files(), pytest.raises(MachineError, match="Too many open files"):
        workers.start()


BUILD = """
import resource, sys
from pathlib import Path
from crawl4llm.base.errors import InputError
from crawl4llm.scoring.workers import PageWorkers
from simulate.demo import build_demo
for start in (lambda: build_demo(Path(sys.argv[1]), pages=300, hosts=12, jobs=9), PageWorkers(None, 9, 30).start):
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
    try:
        start()
    except InputError as error:
        print(error)
"""


def test_running_out_amid_the_start_of_processes(tmp_path: Path) -> None:
    """Those that were started are ended, and not waited for."""
    command = [sys.executable, "-c", BUILD, str(tmp_path / "demo")]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=600)
    assert done.stdout.count("Too many open files; raise the limit") == 2, done.stderr
    assert done.returncode == 0, done.stderr


def test_running_out_in_a_worker_ends_the_work() -> None:
    with PageWorkers(RATER, 1, 30) as workers:
        workers.start()
        with pytest.raises(MachineError, match="Too many open files"):
            asyncio.run(workers.run(hoard, ["a", "b"]))


def test_a_crawl_that_runs_out_stops_and_goes_on_later(demo_web: Web, tmp_path: Path) -> None:
    """At the third batch all files are taken that the process may have, and the corpus has to open its own again."""
    settings = {"CRAWL_MAX_PAGES": 60, "CRAWL_BATCH_SIZE": 10, "CRAWL_SEEDS": 10, "URL_POLICY": "breadth_first"}
    assert crawl(demo_web, tmp_path / "whole", **settings).returncode == 0
    hoarding = {"EXTENSIONS": json.dumps({"hostile.Hoarding": 0})}
    stopped = crawl(demo_web, tmp_path / "run", JOBDIR=tmp_path / "job", **settings, **hoarding)
    assert stopped.returncode == 1
    assert "Too many open files; raise the limit" in error_of(stopped)
    assert len(crawl_log(tmp_path / "run")) < 60
    assert not (tmp_path / "run/failures.jsonl").read_bytes()
    resumed = crawl(demo_web, tmp_path / "run", JOBDIR=tmp_path / "job", **settings)
    assert resumed.returncode == 0, resumed.stderr
    for name in ("crawl.jsonl", "failures.jsonl"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_live_crawl_that_runs_out_fails_no_page(tmp_path: Path) -> None:
    """Each request wants a connection of its own; from the third batch on there are no files for them."""
    pages = {
        f"/page-{n}": text_page(n, [f"/page-{2 * n + 1}", f"/page-{2 * n + 2}"])._replace(
            headers={"Connection": "close"}
        )
        for n in range(60)
    }
    settings = {"CRAWL_MAX_PAGES": 60, "CRAWL_BATCH_SIZE": 4, "ROBOTSTXT_OBEY": 0, "JOBDIR": tmp_path / "job"}
    hoarding = {"EXTENSIONS": json.dumps({"hostile.Hoarding": 0})}
    with serve(pages) as site:
        stopped = crawl_live([f"{site.url}/page-0"], tmp_path / "run", **settings, **hoarding)
        assert "Too many open files; raise the limit" in error_of(stopped)
        assert not (tmp_path / "run/failures.jsonl").read_bytes()
        resumed = crawl_live([f"{site.url}/page-0"], tmp_path / "run", **settings)
        assert resumed.returncode == 0, resumed.stderr
    assert len({line["id"] for line in crawl_log(tmp_path / "run")}) == 60
