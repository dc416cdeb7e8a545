"""Continuous order in partitions: whoever dies, each document comes to one end, and owners are left alone."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest
from continuous_cluster import begin, merged, storage_at
from crawl_helpers import Web, crawl, crawl_args, crawl_log, error_of, scrapy, stats
from gated_scorer import SCORER, gate
from known_links_helpers import write_known
from live_helpers import crawl_live, live_args
from valkey_helpers import eventually, url_of, valkey_server

from crawl4llm.base.pages import PageRecord
from crawl4llm.cluster.journal import Quotas
from crawl4llm.cluster.storage import Storage
from crawl4llm.cluster.stores import LoggedStore, restore
from crawl4llm.frontier import Store
from simulate.clueweb22.corpus import ClueWeb22Corpus
from tests.testweb import DemoPages, LocalWeb, read_log, running, waits

ALL = {"CRAWL_BATCH_SIZE": 0, "CRAWL_MAX_PAGES": 5000, "URL_POLICY": "parent_first", "CRAWL_SEEDS": 30}
OFTEN = {"COMMIT_INTERVAL_PAGES": 12, "COMMIT_INTERVAL_SECONDS": 1}
LIVE_PAGES, DELAY = 120, 0.4


def commits_in(folder: Path) -> int:
    return objects_in(folder, "log")


def objects_in(folder: Path, kind: str) -> int:
    return len(list(folder.glob(f"p/*/{kind}/*")))


def test_all_that_can_be_reached_is_crawled_by_whoever_lives(small_demo_web: Web, tmp_path: Path) -> None:
    """To the end of the frontier: the same documents come to the same ends as in one process, although workers die."""
    given = {**ALL, **SCORER}
    assert crawl(small_demo_web, tmp_path / "alone", **given).returncode == 0
    storage = storage_at(tmp_path / "storage")
    with gate(tmp_path / "gate", 0.02):
        for name, kind, number in (("first", "log", 12), ("second", "all", 0)):  # the last goes on from a snapshot
            worker = begin(crawl_args(small_demo_web, tmp_path / name, **given, **OFTEN, **storage))
            eventually(lambda kind=kind, number=number: objects_in(tmp_path / "storage", kind) > number, 120)
            os.killpg(worker.pid, signal.SIGKILL)
            worker.communicate()
    assert not (tmp_path / "storage/end.json").exists()
    again = crawl(small_demo_web, tmp_path / "again", **given, **OFTEN, **storage)
    assert (again.returncode, "frontier_empty" in again.stdout) == (0, False), again.stderr
    log = merged(storage, tmp_path / "merged")
    alone = crawl_log(tmp_path / "alone")
    assert {(line["id"], line["influence"]) for line in log} == {(line["id"], line["influence"]) for line in alone}
    assert [line["order"] for line in log] == list(range(len(alone)))
    figures, expected = stats(tmp_path / "merged"), stats(tmp_path / "alone")
    same = ("links/seen", "links/new", "pages/crawled", "pages/visited", "pages/no_text", "frontier/queued")
    assert {key: figures[key] for key in same} == {key: expected[key] for key in same}
    status = json.loads(scrapy("cluster", "status", str(storage["STORAGE"]), "--json").stdout)
    assert (status["pages"], status["ended"]) == (len(alone), "frontier_empty")


def test_known_pages_are_followed_by_whoever_has_their_partition(small_demo_web: Web, tmp_path: Path) -> None:
    """Without scores, so that each has its parent's, which the storage keeps; a worker dies."""
    few = {"CRAWL_SEEDS": 20, "CRAWL_MAX_PAGES": 100, "URL_POLICY": "breadth_first"}
    assert crawl(small_demo_web, tmp_path / "first", **few).returncode == 0
    keys = [line["id"] for line in crawl_log(tmp_path / "first")]
    corpus = ClueWeb22Corpus(small_demo_web.corpus)
    pages = [PageRecord(key, corpus.url(key), outlinks=corpus.outlinks(key)) for key in keys]
    given = {**ALL, **SCORER, "KNOWN_LINKS": write_known(tmp_path / "links.known", pages)}
    assert crawl(small_demo_web, tmp_path / "alone", **given).returncode == 0
    storage = storage_at(tmp_path / "storage")
    with gate(tmp_path / "gate"):
        worker = begin(crawl_args(small_demo_web, tmp_path / "one", **given, **OFTEN, **storage))
        eventually(lambda: objects_in(tmp_path / "storage", "log") > 12, 120)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.communicate()
    assert not (tmp_path / "storage/end.json").exists()
    again = crawl(small_demo_web, tmp_path / "two", **given, **OFTEN, **storage)
    assert again.returncode == 0, again.stderr
    log, alone = merged(storage, tmp_path / "merged"), crawl_log(tmp_path / "alone")
    assert {line["id"] for line in log} == {line["id"] for line in alone}
    assert not {line["id"] for line in log} & set(keys)
    figures, expected = stats(tmp_path / "merged"), stats(tmp_path / "alone")
    same = ("links/seen", "links/new", "pages/crawled", "pages/fetched", "pages/visited", "dropped/known_page")
    assert {key: figures[key] for key in same} == {key: expected[key] for key in same}
    assert figures["dropped/known_page"] > 50


def test_n_is_not_exceeded_and_a_lost_object_is_found(demo_web: Web, tmp_path: Path) -> None:
    storage, few = storage_at(tmp_path / "storage"), {**ALL, "CRAWL_MAX_PAGES": 60, "URL_POLICY": "link"}
    assert crawl(demo_web, tmp_path / "one", **few, **storage).returncode == 0
    joins = crawl(demo_web, tmp_path / "other", **few, **storage)
    assert (joins.returncode, "60 of 60 pages" in joins.stdout) == (0, True), joins.stderr
    log = merged(storage, tmp_path / "merged")
    assert len(log) == 60
    assert [line["visited"] for line in log] == sorted(line["visited"] for line in log)
    file = next((tmp_path / "storage").glob("p/*/pages-*.warc.gz"))
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    assert "another digest" in error_of(scrapy("cluster", "verify", str(storage["STORAGE"])))
    file.write_bytes(content)
    next((tmp_path / "storage").glob("p/*/log/00000001")).unlink()
    assert "it is missing" in error_of(scrapy("cluster", "verify", str(storage["STORAGE"])))


def test_live_workers_that_die_and_stand_still_ask_nobody_early(tmp_path: Path) -> None:
    storage = storage_at(tmp_path / "storage")
    web = LocalWeb(tmp_path / "web", DemoPages(400, 24, 0), robots={"*": "User-agent: *\nAllow: /\n"})
    with running(web), valkey_server() as server:
        given: dict[str, object] = {
            **storage,
            "COMMIT_INTERVAL_PAGES": 20,
            "COMMIT_INTERVAL_SECONDS": 1,
            "CLUSTER": url_of(server),
            "CLUSTER_LEASE": 1,
            "CRAWL_BATCH_SIZE": 0,
            "CRAWL_MAX_PAGES": LIVE_PAGES,
            "DNS_HOSTS": web.hosts_file,
            "DOWNLOAD_DELAY": DELAY,
            "DOWNLOAD_TIMEOUT": 2.5,
            "DELAY_FACTOR": 0,
            "URL_POLICY": "link",
        }
        workers = [
            begin(live_args(web.seeds, tmp_path / f"worker{number}", **given), SCRAPY_PROJECT="live")
            for number in range(3)
        ]
        try:
            eventually(lambda: commits_in(tmp_path / "storage") > 12, 120)
            os.killpg(workers[0].pid, signal.SIGKILL)
            os.killpg(workers[1].pid, signal.SIGSTOP)
            eventually(lambda: commits_in(tmp_path / "storage") > 28, 120)
            os.killpg(workers[1].pid, signal.SIGCONT)
            assert [worker.wait(120) for worker in workers[1:]] == [0, 0]
        finally:
            for worker in workers:
                worker.kill()
                worker.communicate()
    log = merged(storage, tmp_path / "merged")
    assert len({line["id"] for line in log}) == LIVE_PAGES
    early = {owner: min(some) for owner, some in waits(read_log(web.log_file)).items() if some and min(some) < DELAY}
    assert early == {}


@pytest.mark.parametrize(("lease", "is_refused"), [(23, True), (24, False)])
def test_a_lease_that_an_exchange_can_outlast_is_refused(lease: int, tmp_path: Path, *, is_refused: bool) -> None:
    """The profile's DOWNLOAD_TIMEOUT is 60; a worker that nothing is said against does not find its server."""
    given = {**storage_at(tmp_path / "storage"), "CLUSTER": "valkey://127.0.0.1:1/0", "CLUSTER_LEASE": lease}
    ended = crawl_live(["http://127.0.0.1:1/"], tmp_path / "worker", **given, CRAWL_BATCH_SIZE=0)
    said = error_of(ended)
    assert ended.returncode != 0
    expected = "CLUSTER_LEASE = 23 is too short for DOWNLOAD_TIMEOUT = 60: .* set CLUSTER_LEASE to 24 or more"
    assert bool(re.search(expected, said)) is is_refused, said


def test_commands_take_the_storage(demo_web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    storage = storage_at(tmp_path / "storage")
    url = str(storage["STORAGE"])
    crawl(demo_web, tmp_path / "worker", **ALL | {"CRAWL_MAX_PAGES": 60}, **storage)
    log = merged(storage, tmp_path / "merged")
    queue = json.loads(scrapy("frontier", url, "--json").stdout)
    assert queue["queued"] == stats(tmp_path / "merged")["frontier/queued"] > 0
    full = scrapy("cluster", "merge", url, "--out", str(tmp_path / "full"), limits={"RLIMIT_FSIZE": 20_000})
    assert re.fullmatch(r"\S+/full: the merged crawl cannot be written \(.+\)", error_of(full))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "merged", "storage", "worker"]
    checked = scrapy("archive", "check", url, "--json")
    assert json.loads(checked.stdout)["documents"] == len(log) == 60, checked.stderr
    compacted = json.loads(scrapy("cluster", "compact", url, "--json").stdout)
    assert (compacted["files"], compacted["left"]) == (4, 0), "one for each partition"
    again = scrapy("archive", "check", url, "--json")
    assert (json.loads(again.stdout)["documents"], json.loads(again.stdout)["files"]) == (60, 4), again.stderr


def test_who_is_not_alone_says_so(demo_web: Web, tmp_path: Path) -> None:
    """Two workers without CLUSTER do not know of each other: the one that comes second to a commit ends."""
    storage = storage_at(tmp_path / "storage", 2)
    workers = [
        begin(crawl_args(demo_web, tmp_path / f"worker{number}", **{**ALL, "CRAWL_MAX_PAGES": 150}, **OFTEN, **storage))
        for number in range(2)
    ]
    said = "".join(worker.communicate(timeout=600)[1] for worker in workers)
    assert "another worker crawls partition" in said
    assert scrapy("cluster", "verify", str(storage["STORAGE"])).returncode == 0


def test_a_store_is_made_anew_of_its_changes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    store, copy = LoggedStore(tmp_path / "one/store"), Store(tmp_path / "other/store")
    assert store.take() == b""
    document = b"\0" * 8 + b"score---" + b"http://a.example/" * 3
    steps: list[list[tuple[str, bytes, bytes | None]]] = [
        [("current", b"a", document), ("current", b"b", b'["x",1]'), ("state", b"policy/p", b"[1,2,3]")],
        [("current", b"a", document.replace(b"score", b"SCORE")), ("current", b"b", b'["x",12]')],
        [
            ("current", b"c", b"[]"),
            ("current", b"b", None),
            ("state", b"policy/p", b"[1,4,3]"),
            ("frontier", b"f", b""),
        ],
        [("current", b"c", None), ("current", b"a", b""), ("aside", b"d", b"e")],
    ]
    sizes = []
    for step in steps:
        for table, key, value in step:
            if value is None:
                store.delete(table, key)
            else:
                store.put(table, key, value)
        changes = store.take()
        sizes.append(len(changes))
        restore(copy, changes)
        for table in ("current", "state", "aside"):
            assert list(copy.items(table)) == list(store.items(table))
    assert sizes[1] < 80
    assert list(copy.items("frontier")) == []
    store.close()
    copy.close()


@pytest.mark.parametrize("partitions", [1, 3])
def test_no_more_pages_are_dealt_than_there_are(tmp_path: Path, partitions: int) -> None:
    storage = Storage(f"file://{tmp_path}")
    workers = [Quotas(storage, 20) for _ in range(3)]
    dealt = [worker.claim(number % partitions, 3, 0) for number, worker in enumerate(workers * 4)]
    assert (sum(dealt), dealt[-1]) == (20, 0)
    assert workers[0].claim(0, 5, returned=2) == 2
    for worker in workers:
        worker.look()
        assert sum(worker.of.values()) == 22
