"""A crawl by several workers as a user has it: processes, a Valkey server, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import crawl_helpers
import pytest
from cluster_helpers import differing
from crawl_helpers import Web, crawl, crawl_args, error_of, scrapy, stats
from gated_scorer import SCORER, gate
from scrapy_server import Process
from valkey_helpers import eventually, url_of, valkey_server

N = 200
COMMON = {"CRAWL_MAX_PAGES": N, "CRAWL_BATCH_SIZE": 20, "CRAWL_SEEDS": 40, "URL_POLICY": "parent_min"}


def storage_at(folder: Path) -> dict[str, object]:
    folder.mkdir()
    return {"STORAGE": f"file://{folder}", "CRAWL_PARTITIONS": 16}


def begin(web: Web, output: Path, **settings: object) -> Process | subprocess.Popen[str]:
    """Start a worker, in a process group of its own."""
    return crawl_helpers.begin(crawl_args(web, output, **COMMON, **settings), silent=["out"])


def reaches(storage: dict[str, object], iteration: int) -> Callable[[], bool]:
    folder = Path(str(storage["STORAGE"]).removeprefix("file://"), f"i/{iteration:08}")
    return folder.exists


def test_workers_that_are_killed_and_interrupted_leave_what_one_process_does(demo_web: Web, tmp_path: Path) -> None:
    storage = storage_at(tmp_path / "storage") | SCORER
    assert crawl(demo_web, tmp_path / "alone", **COMMON, **SCORER).returncode == 0
    with valkey_server() as server, gate(tmp_path / "gate", 0.03):
        cluster = {**storage, "CLUSTER": url_of(server), "CLUSTER_LEASE": 1}
        workers = [begin(demo_web, tmp_path / f"worker{number}", **cluster) for number in range(3)]
        try:
            eventually(reaches(storage, 2), 120)
            os.killpg(workers[0].pid, signal.SIGKILL)
            eventually(reaches(storage, 4), 120)
            workers[1].send_signal(signal.SIGINT)
            status = scrapy("cluster", "status", str(storage["STORAGE"]), "-s", f"CLUSTER={url_of(server)}", "--json")
            assert {"id", "partitions", "pages"} <= json.loads(status.stdout)["workers"][0].keys()
            (tmp_path / "gate").unlink()
            assert workers[2].wait(200) == 0
        finally:
            for worker in workers:
                worker.kill()
        assert "Traceback" not in str(workers[1].communicate()[1]) + str(workers[2].communicate()[1])
    ended = json.loads(scrapy("cluster", "status", str(storage["STORAGE"]), "--json").stdout)
    assert (ended["pages"], ended["ended"], ended["lag"]) == (N, "max_pages", 0)
    merged = tmp_path / "merged"
    for command in (["verify"], ["merge", "--out", str(merged)]):
        done = scrapy("cluster", command[0], str(storage["STORAGE"]), *command[1:])
        assert done.returncode == 0, done.stderr
    assert differing(tmp_path / "alone", merged) == []
    alone, figures = stats(tmp_path / "alone"), stats(merged)
    assert {key: count for key, count in alone.items() if key in figures} == figures
    again = crawl(demo_web, tmp_path / "again", **COMMON, **storage)
    assert (again.returncode, f"{N} of {N} pages" in again.stdout) == (0, True)


def test_two_clusters_on_one_storage_do_the_same_work(demo_web: Web, tmp_path: Path) -> None:
    """They know nothing of each other: what one has put, the other finds there."""
    storage = storage_at(tmp_path / "storage") | {"CRAWL_MAX_PAGES": 120}
    with valkey_server() as one, valkey_server() as other:
        workers = [
            crawl_helpers.begin(crawl_args(demo_web, tmp_path / name, **given), silent=["out", "err"])
            for name, server in (("one", one), ("other", other))
            for given in [{**COMMON, **storage, "CLUSTER": url_of(server)}]
        ]
        assert [worker.wait(200) for worker in workers] == [0, 0]
    assert crawl(demo_web, tmp_path / "alone", **COMMON | {"CRAWL_MAX_PAGES": 120}).returncode == 0
    for command in (["verify"], ["merge", "--out", str(tmp_path / "merged")]):
        done = scrapy("cluster", command[0], str(storage["STORAGE"]), *command[1:])
        assert done.returncode == 0, done.stderr
    assert differing(tmp_path / "alone", tmp_path / "merged") == []


def test_what_the_storage_lacks_is_told(demo_web: Web, tmp_path: Path) -> None:
    """A crawl in a storage is found damaged when an object of it is lost; another crawl is not let in."""
    storage = storage_at(tmp_path / "storage")
    small = {"CRAWL_MAX_PAGES": 40, "CRAWL_BATCH_SIZE": 20, "CRAWL_SEEDS": 20}
    assert crawl(demo_web, tmp_path / "one", **small, **storage).returncode == 0
    for other, what in [
        ({"CRAWL_MAX_PAGES": 50}, "CRAWL_MAX_PAGES is 40 there, 50 here"),
        ({"CRAWL_PARTITIONS": 8}, "CRAWL_PARTITIONS is 16 there, 8 here"),
        ({"CRAWL_SEED": 1}, "seeds_digest"),
        ({"SCORER": "length", "SCORER_MODEL": ""}, "model_digest"),
    ]:
        refused = crawl(demo_web, tmp_path / str(other), **{**small, **storage, **other})
        assert what in error_of(refused)
        assert "holds another crawl" in refused.stderr
    index = scrapy("cluster", "merge", str(storage["STORAGE"]), "--index-only", "--out", str(tmp_path / "index"))
    assert index.returncode == 0, index.stderr
    names = [json.loads(line.split(" ", 2)[2])["filename"] for line in (tmp_path / "index/warc/index.cdxj").open()]
    assert len(names) == 40
    lost = tmp_path / "storage" / names[0]
    lost.rename(tmp_path / "lost")
    assert "is missing" in error_of(scrapy("cluster", "verify", str(storage["STORAGE"])))
    lost.write_bytes((tmp_path / "lost").read_bytes()[:-1])
    assert "another digest" in error_of(scrapy("cluster", "verify", str(storage["STORAGE"])))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"STORAGE": "", "CLUSTER": "valkey://127.0.0.1:1/0"}, "CLUSTER is set without STORAGE"),
        ({"CRAWL_BATCH_SIZE": 0, "SIMULATION_OWNER_DELAY": 1}, "SIMULATION_OWNER_DELAY"),
        ({"JOBDIR": "job"}, "JOBDIR"),
        ({"NEAR_DUPLICATES": "follow"}, "NEAR_DUPLICATES"),
        ({"URL_WORTHLESS_PAGES": 20}, "URL_ALIAS_PAIRS in batch order"),
        ({"URL_POLICY": "link"}, "URL_POLICY link learns from all crawled pages"),
        ({"CLUSTER": "valkey://127.0.0.1:1/0"}, "CLUSTER valkey://127.0.0.1:1/0"),
        ({"STORAGE": "file:///nowhere/at/all"}, "there is no such directory"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_what_cannot_be_is_refused(settings: dict[str, object], said: str, demo_web: Web, tmp_path: Path) -> None:
    given = {**storage_at(tmp_path / "storage"), **settings}
    assert said in error_of(crawl(demo_web, tmp_path / "out", CRAWL_MAX_PAGES=10, **given))
    assert not list((tmp_path / "storage").glob("[ip]/*"))


def test_a_corpus_that_tells_no_urls(tmp_path: Path) -> None:
    own = {"CORPUS": "own_corpus.OwnCorpus", "SCORER": "graph_corpus.NumberScorer", "CRAWL_SEEDS": 3}
    storage = storage_at(tmp_path / "storage")
    refused = crawl(None, tmp_path / "out", CRAWL_MAX_PAGES=10, **own, **storage)
    assert "CRAWL_PARTITIONS = 16 needs a corpus that knows the URL of a key" in error_of(refused)
    assert (
        crawl(None, tmp_path / "out", CRAWL_MAX_PAGES=10, **own, **{**storage, "CRAWL_PARTITIONS": 1}).returncode == 0
    )


def test_a_folder_with_something_else(demo_web: Web, tmp_path: Path) -> None:
    storage = storage_at(tmp_path / "storage")
    (tmp_path / "storage/thesis.txt").write_text("of years")
    refused = crawl(demo_web, tmp_path / "out", CRAWL_MAX_PAGES=10, **storage)
    assert "holds something other than a crawl" in error_of(refused)
    assert [path.name for path in (tmp_path / "storage").iterdir()] == ["thesis.txt"]
