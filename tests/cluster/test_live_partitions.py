"""Live crawls by workers that have half of the partitions each, by the access log of the servers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from continuous_cluster import begin, merged, storage_at
from graph_corpus import GraphCorpus
from live_helpers import live_args, text_page
from valkey_helpers import eventually, url_of, valkey_server

from crawl4llm.cluster import History, ValkeyLiveness, journal
from crawl4llm.cluster.storage import Storage, unpacked
from crawl4llm.cluster.stores import records
from crawl4llm.cluster.worker import Partitions
from tests.testweb import FewPages, LocalWeb, Logged, read_log, running, waits
from tests.testweb.server import Answer, Asked

P = 8
DELAY = 0.3
ASKED_FOR = 9
"""Seconds; more than a taker waits by itself."""
AGENTS = [f"testbot/1.0 (+http://testbot.example/worker{number})" for number in range(2)]
"""By worker."""
OF = Partitions(P, GraphCorpus({"http://a.test/": []}, {})).of


def hosts(half: int, count: int) -> list[str]:
    """Return hosts of which a worker has the partitions: the first one has the lower half of them."""
    found = (f"host{number}.test" for number in range(1000))
    return [host for host in found if OF(f"http://{host}/") * 2 // P == half][:count]


class GatedWeb(LocalWeb):
    """A web of which one host, or all, answer nothing until the gate is opened."""

    def __init__(self, *given: Any, host: str | None = None, **more: Any) -> None:
        super().__init__(*given, **more)
        self.gate, self.is_asked, self._host = threading.Event(), threading.Event(), host

    async def _answer(self, asked: Asked, answer: Answer) -> None:
        if self._host in (None, asked.host):
            self.is_asked.set()
            await asyncio.to_thread(self.gate.wait, 60)
        await super()._answer(asked, answer)


class Cluster:
    """Workers of a crawl of a web, and its storage."""

    def __init__(self, web: LocalWeb, folder: Path, server: str, settings: Mapping[str, object]) -> None:
        self.storage = storage_at(folder / "storage", P)
        self.workers: list[subprocess.Popen[str]] = []
        self._web, self._folder, self._server = web, folder, server
        self._settings: dict[str, object] = {
            **self.storage,
            "CLUSTER": server,
            "CRAWL_BATCH_SIZE": 0,
            "CRAWL_MAX_PAGES": 1000,
            "DNS_HOSTS": web.hosts_file,
            "DOWNLOAD_DELAY": DELAY,
            "DELAY_FACTOR": 0,
            **settings,
        }

    def start(self) -> None:
        """Start one more worker."""
        number = len(self.workers)
        given = {**self._settings, "USER_AGENT": AGENTS[number]}
        arguments = live_args(self._web.seeds[:1], self._folder / f"worker{number}", **given)
        self.workers.append(begin(arguments, SCRAPY_PROJECT="live"))

    def end(self) -> str:
        """Kill the workers; return what they said."""
        for worker in self.workers:
            worker.kill()
        said = [worker.communicate()[1] for worker in self.workers]
        self.workers.clear()
        return "".join(said)

    def have_half(self) -> bool:
        """Whether there are two workers with half of the partitions each."""
        return self.have(list(range(P // 2)), list(range(P // 2, P)))

    def have(self, *partitions: list[int]) -> bool:
        """Whether workers have these partitions."""
        crawl_id = History(str(self.storage["STORAGE"])).crawl["id"]
        workers = ValkeyLiveness(self._server, crawl_id, P, 30).workers()
        return sorted(list(worker.partitions) for worker in workers) == sorted(partitions)


@contextmanager
def cluster(web: LocalWeb, folder: Path, **settings: object) -> Iterator[Cluster]:
    """Serve a web and the workers of a crawl."""
    with running(web), valkey_server() as server:
        crawl = Cluster(web, folder, url_of(server), settings)
        try:
            yield crawl
        finally:
            crawl.end()


def hold_in(storage: dict[str, object], owner: str) -> Any:
    """Return the wait of an owner that its partition's commits have."""
    said = b"{}"
    for commit in journal.commits(Storage(str(storage["STORAGE"])), OF(f"http://{owner}/")):
        for _, key, value in records(unpacked(commit.changes)):
            if key == b"holds" and value is not None:
                said = value if isinstance(value, bytes) else value.applied_to(said)
    return json.loads(said).get(owner)


def short(requests: list[Logged]) -> list[str]:
    return [f"{one.host}{one.path}" for one in requests if not one.path.endswith((".txt", ".json"))]


def test_a_redirect_into_another_partition_is_followed_by_the_worker_that_has_it(tmp_path: Path) -> None:
    """In both directions, several to one document, and to one that a link leads to: it is asked for once."""
    sources, targets = [*hosts(0, 4)[1:], *hosts(1, 3)], [*hosts(1, 6)[3:], *hosts(0, 7)[4:]]
    start = hosts(0, 1)[0]
    rules: dict[str, str] = {}
    for source, target, other in zip(sources, targets, [*targets[1:], targets[0]], strict=True):
        rules |= {f"{source}/a": f"to:{target}/page", f"{source}/b": f"to:{target}/second"}
        rules[f"{source}/c"] = f"to:{other}/page"
    links = "".join(f'<a href="http://{place}">x</a> ' for place in [*rules, f"{targets[0]}/page"])
    pages = {target: {path: text_page(1, []).body for path in ("/page", "/second")} for target in targets}
    first = {start: {"/": text_page(0, []).body + links.encode()}}
    shown = FewPages({**first, **pages, **{source: {} for source in sources}})
    web = GatedWeb(tmp_path / "web", shown, misbehaving=rules)
    with cluster(web, tmp_path, CLUSTER_LEASE=4, DOWNLOAD_TIMEOUT=10, COMMIT_INTERVAL_SECONDS=1) as crawl:
        crawl.start()
        assert web.is_asked.wait(60)
        crawl.start()
        eventually(crawl.have_half, 60)
        web.gate.set()
        assert [worker.wait(120) for worker in crawl.workers] == [0, 0]
    log = merged(crawl.storage, tmp_path / "merged")
    asked = read_log(web.log_file)
    places = [f"{target}{path}" for target in targets for path in pages[target]]
    assert Counter(short(asked)) == Counter([f"{start}/", *rules, *places]), "each once"
    assert len(log) == len(places) + 1
    wrong = [one for one in asked if one.agent != AGENTS[OF(f"http://{one.host}/") * 2 // P]]
    assert wrong == [], "by the worker that has its partition"
    assert min(seconds for of_owner in waits(asked).values() for seconds in of_owner) >= DELAY
    failures = map(json.loads, (tmp_path / "merged/failures.jsonl").read_text().splitlines())
    assert Counter(line["outcome"] for line in failures) == {"redirected": len(rules)}


def test_who_hands_partitions_over_tries_the_network_at_the_others(tmp_path: Path) -> None:
    """An exchange fails of a partition that is to be handed over, with the host that answered last."""
    start, others = hosts(0, 1)[0], hosts(1, 99)
    partition = OF(f"http://{others[0]}/")
    good, silent = [host for host in others if OF(f"http://{host}/") == partition][:2]
    links = "".join(f'<a href="http://{place}">x</a> ' for place in (f"{good}/page", f"{silent}/page"))
    pages = {"/": text_page(0, []).body + links.encode()}
    shown = FewPages({start: pages, good: {"/page": text_page(1, []).body}, silent: {}})
    web = GatedWeb(tmp_path / "web", shown, misbehaving={f"{silent}/robots.txt": "reset"}, host=silent)
    rest = [number for number in range(P) if number >= P // 2 and number != partition]
    with cluster(web, tmp_path, CLUSTER_LEASE=8, DOWNLOAD_TIMEOUT=20) as crawl:
        crawl.start()
        assert web.is_asked.wait(60)
        eventually(lambda: f"{good}/page" in short(read_log(web.log_file)), 10)
        crawl.start()
        eventually(lambda: crawl.have(sorted([*range(P // 2), partition]), rest), 60)
        web.gate.set()
        eventually(crawl.have_half, 60)
        said = crawl.end()
    assert "No network" not in said


def test_a_wait_that_a_server_asked_for_outlives_the_worker(tmp_path: Path) -> None:
    """It is in the storage at once, however seldom commits are: whoever takes over keeps to it. One owner asks for it
    in answer to a page, another one to robots.txt."""
    start, *others = hosts(0, 99)
    of_page, of_robots, *_ = [host for host in others if OF(f"http://{host}/") == OF(f"http://{start}/")]
    paths = {of_page: "/page", of_robots: "/robots.txt"}
    links = [*(f"http://{owner}/page" for owner in paths), *(f"/{number}" for number in range(40))]
    body = text_page(0, []).body + b"".join(b'<a href="%s">x</a>' % link.encode() for link in links)
    pages = {"/": body, **{f"/{number}": text_page(number, []).body for number in range(40)}}
    shown = FewPages({start: pages, **{owner: {} for owner in paths}})
    rules = {f"{owner}{path}": f"retry-after:{ASKED_FOR}" for owner, path in paths.items()}
    web = LocalWeb(tmp_path / "web", shown, misbehaving=rules)

    def refusals(owner: str) -> list[Logged]:
        return [one for one in read_log(web.log_file) if (one.host, one.status) == (owner, 429)]

    seldom = {"COMMIT_INTERVAL_SECONDS": 3600, "COMMIT_INTERVAL_PAGES": 100_000}
    with cluster(web, tmp_path, CLUSTER_LEASE=1, DOWNLOAD_TIMEOUT=2.5, RETRY_WAITS="1,1,1", **seldom) as crawl:
        crawl.start()
        eventually(lambda: all(map(refusals, paths)), 60)
        eventually(lambda: all(hold_in(crawl.storage, owner) for owner in paths), 10)
        os.killpg(crawl.workers[0].pid, signal.SIGKILL)
        crawl.start()
        eventually(lambda: all(len(refusals(owner)) > 1 for owner in paths), 60)
    for owner, path in paths.items():
        first, *others = [one for one in read_log(web.log_file) if (one.host, one.path) == (owner, path)]
        assert {one.agent for one in others} == {AGENTS[1]}
        assert others[0].arrived - first.ended >= ASKED_FOR
