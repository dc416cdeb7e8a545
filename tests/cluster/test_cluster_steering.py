"""A live crawl by workers is steered, and each request of it is on record, by what the servers saw."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from continuous_cluster import begin, merged, storage_at
from crawl_helpers import Web, crawl, error_of, scrapy
from graph_corpus import GraphCorpus
from live_helpers import live_args, text_page
from valkey_helpers import eventually, url_of, valkey_server

from crawl4llm.base.errors import InputError
from crawl4llm.cluster.complaints import Controls, RequestSpool, lines_of, write_log
from crawl4llm.cluster.storage import Storage, packed
from crawl4llm.cluster.worker import Partitions
from crawl4llm.tools.report import Log
from tests.testweb import FewPages, LocalWeb, Logged, read_log, running

P, DELAY, LEASE, PAGES = 8, 0.2, 2, 400
OF = Partitions(P, GraphCorpus({"http://a.test/": []}, {})).of
NOW = 1_780_000_000.0


def hosts(half: int, count: int) -> list[str]:
    """Return hosts of which a worker has the partitions, by halves."""
    found = (f"www.host{number}.test" for number in range(1000))
    return [host for host in found if OF(f"http://{host}/") * 2 // P == half][:count]


HOSTS = [*hosts(0, 3), *hosts(1, 3)]
BLOCKED = [HOSTS[0], HOSTS[3]]


def site() -> dict[str, bytes]:
    """Pages of which the first one links to all."""
    links = [f"/{number}" for number in range(1, PAGES)]
    return {f"/{number}": text_page(number, links if not number else []).body for number in range(PAGES)}


def domain(host: str) -> str:
    return host.removeprefix("www.")


def block(storage: dict[str, object], name: str, way: str = "--block") -> subprocess.CompletedProcess[str]:
    return scrapy("frontier", str(storage["STORAGE"]), way, name)


def place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}{parts.path}"


class Steered(NamedTuple):
    """What was seen of a crawl by two workers, of which one was killed and went on, with two domains blocked."""

    storage: dict[str, object]
    merged: Path
    asked: list[Logged]
    """All requests, as the servers saw them."""
    blocked_at: float
    """A lease after ``--block`` had returned, by the monotonic clock."""
    killed_at: float
    agents: list[str]
    """Of the workers; the second one was killed, and the last one went on with its folder."""
    said: str


@pytest.fixture(scope="module")
def steered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Steered]:
    folder = tmp_path_factory.mktemp("steered")
    storage, workers = storage_at(folder / "storage", P), list[subprocess.Popen[str]]()
    web = LocalWeb(folder / "web", FewPages({host: site() for host in HOSTS}))
    agents = [f"testbot/1.0 (+http://testbot.example/worker{number})" for number in range(3)]
    with running(web), valkey_server() as server:

        def start(output: str) -> subprocess.Popen[str]:
            settings: dict[str, object] = {
                **storage,
                "CLUSTER": url_of(server),
                "CLUSTER_LEASE": LEASE,
                "CRAWL_BATCH_SIZE": 0,
                "CRAWL_MAX_PAGES": 10_000,
                "COMMIT_INTERVAL_SECONDS": 1,
                "DNS_HOSTS": web.hosts_file,
                "DOWNLOAD_DELAY": DELAY,
                "DOWNLOAD_TIMEOUT": 5,
                "DELAY_FACTOR": 0,
                "USER_AGENT": agents[len(workers)],
            }
            arguments = live_args([web.url(host) for host in HOSTS], folder / output, **settings)
            workers.append(begin(arguments, SCRAPY_PROJECT="live"))
            return workers[-1]

        def asked(host: str, after: float = 0.0, agent: str = "") -> int:
            seen = read_log(web.log_file)
            return sum(one.host == host and one.arrived > after and agent in one.agent for one in seen)

        try:
            start("one")
            eventually(lambda: all(asked(host) > 2 for host in HOSTS), 120)
            start("two")
            eventually(lambda: sum(one.agent == agents[1] for one in read_log(web.log_file)) > 12, 120)
            for host in BLOCKED:
                assert asked(host) > 2
                done = block(storage, domain(host))
                assert "each worker applies it" in done.stdout, done.stderr
            time.sleep(LEASE)
            blocked_at = time.monotonic()
            eventually(lambda: all(asked(host, blocked_at) > 5 for host in HOSTS if host not in BLOCKED), 120)
            os.killpg(workers[1].pid, signal.SIGKILL)
            killed_at = time.monotonic()
            workers[1].wait()
            start("two")
            eventually(lambda: any(asked(host, killed_at, agents[2]) > 3 for host in HOSTS), 120)
            stopped = scrapy("cluster", "stop", str(storage["STORAGE"]), "-s", f"CLUSTER={url_of(server)}")
            assert stopped.returncode == 0, stopped.stderr
            for worker in (workers[0], workers[2]):
                worker.wait(120)
        finally:
            for worker in workers:
                worker.kill()
            said = "".join(str(worker.communicate()[1]) for worker in workers)
    assert merged(storage, folder / "merged")
    yield Steered(storage, folder / "merged", read_log(web.log_file), blocked_at, killed_at, agents, said)


@pytest.mark.slow
def test_a_blocked_domain_gets_no_request_from_any_worker(steered: Steered) -> None:
    """Nor from one that began later; the other domains go on."""
    late = [one for one in steered.asked if one.host in BLOCKED and one.arrived > steered.blocked_at]
    assert late == []
    others = Counter(one.host for one in steered.asked if one.arrived > steered.blocked_at)
    assert set(others) == set(HOSTS) - set(BLOCKED)
    assert "Traceback" not in steered.said
    lines = [json.loads(line) for line in (steered.merged / "failures.jsonl").read_text().splitlines()]
    dropped = Counter(urlsplit(line["id"]).hostname for line in lines if line["reason"] == "opt_out")
    crawled = Counter(urlsplit(json.loads(line)["id"]).hostname for line in (steered.merged / "crawl.jsonl").open())
    for host in BLOCKED:
        assert dropped[host] == PAGES - crawled[host] > 100
    assert set(dropped) == set(BLOCKED)


def test_each_request_is_on_record(steered: Steered, tmp_path: Path) -> None:
    """But for what was under way when a worker was killed: one exchange an owner at most."""
    kept = Counter(place(request.url) for request in Log(steered.merged).requests())
    seen = Counter(f"{one.host}{one.path}" for one in steered.asked)
    lost = seen - kept
    killed = Counter(f"{one.host}{one.path}" for one in steered.asked if one.agent == steered.agents[1])
    assert lost <= killed
    assert lost.total() <= len(HOSTS)
    hosts = Counter(name.partition("/")[0] for name in lost.elements())
    assert all(count == 1 for count in hosts.values())
    broken_off = [request for request in Log(steered.merged).requests() if request.status is None]
    assert (kept - seen).total() <= len(broken_off)
    assert kept.total() > 100
    assert not list((steered.merged.parent / "two").glob("requests-waiting/*/*"))


def test_a_complaint_is_answered_from_the_storage_and_from_what_was_merged(
    steered: Steered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    name, owner = BLOCKED[0], domain(BLOCKED[0])
    seen = sum(one.host == name for one in steered.asked)
    for path in (steered.merged, steered.storage["STORAGE"]):
        told = json.loads(scrapy("report", str(path), "--owner", owner, "--json").stdout)
        assert seen - 1 <= told["summary"]["requests"] <= seen
        assert told["summary"]["robots_txt"] >= 1
        assert owner in scrapy("report", str(path)).stdout
    assert json.loads((steered.merged / "blocked.json").read_text()) == {"blocked": sorted(map(domain, BLOCKED))}
    exported = scrapy("export", str(steered.storage["STORAGE"]), "--out", str(tmp_path / "set"), "--format", "jsonl")
    assert exported.returncode == 0, exported.stderr
    assert "opt_out" in (tmp_path / "set").joinpath("README.md").read_text() or "opt_out" in exported.stdout


def test_who_cannot_hear_sends_nothing(tmp_path: Path) -> None:
    """A worker that cannot read what is blocked, while all else of the storage answers, stands still after a lease, and
    goes on when it hears again."""
    storage = storage_at(tmp_path / "storage", 2)
    web = LocalWeb(tmp_path / "web", FewPages({host: site() for host in HOSTS[:2]}))
    with running(web):
        settings: dict[str, object] = {**storage, "CRAWL_BATCH_SIZE": 0, "CRAWL_MAX_PAGES": 10_000, "CLUSTER_LEASE": 1}
        settings |= {"DNS_HOSTS": web.hosts_file, "DOWNLOAD_DELAY": 0.1, "DELAY_FACTOR": 0}
        seeds = [web.url(host) for host in HOSTS[:2]]
        worker = begin(live_args(seeds, tmp_path / "one", **settings), SCRAPY_PROJECT="live")

        def asked_since(time: float) -> int:
            return sum(one.arrived > time for one in read_log(web.log_file))

        try:
            eventually(lambda: len(read_log(web.log_file)) > 20, 120)
            pipe = tmp_path / "storage/control/00000001"
            pipe.parent.mkdir()
            os.mkfifo(pipe)
            time.sleep(1 + 1.5)  # a look begins within half a second
            deaf_at = time.monotonic()
            time.sleep(1.5)
            assert asked_since(deaf_at) == 0
            pipe.unlink()
            assert block(storage, domain(HOSTS[0])).returncode == 0
            blocked_at = time.monotonic() + 1
            eventually(lambda: asked_since(blocked_at) > 10, 120)
        finally:
            worker.kill()
            said = worker.communicate()[1]
    assert {one.host for one in read_log(web.log_file) if one.arrived > blocked_at} == {HOSTS[1]}
    assert "Traceback" not in said


def test_what_cannot_be_blocked(demo_web: Web, tmp_path: Path) -> None:
    storage = storage_at(tmp_path / "storage")
    few = {"CRAWL_MAX_PAGES": 20, "CRAWL_BATCH_SIZE": 0, "URL_POLICY": "parent_first"}
    assert crawl(demo_web, tmp_path / "one", **few, **storage).returncode == 0
    assert "holds a simulation, which sends nothing" in error_of(block(storage, "example.com"))
    assert "use scrapy cluster verify" in error_of(scrapy("frontier", str(storage["STORAGE"]), "--verify"))


def test_what_is_said_last_holds(tmp_path: Path) -> None:
    """Whoever says something knows what was said before, also at the same time."""
    url = f"file://{tmp_path}"
    one, other = Controls(Storage(url)), Controls(Storage(url))
    assert one.set_blocked("a.test", blocked=True)
    assert not other.set_blocked("a.test", blocked=True)
    assert other.set_blocked("b.test", blocked=True)
    assert one.set_blocked("c.test", blocked=True)
    assert one.set_blocked("b.test", blocked=False)
    late = Controls(Storage(url))
    assert (late.look(), late.number, late.control.blocked) == (True, 4, ("a.test", "c.test"))
    assert not late.look()
    Storage(url).put_packed("control/00000005", {"time": "now", "blocked": ["no domain!"]})
    with pytest.raises(InputError, match="control/00000005: blocked has 'no domain!'"):
        late.look()


def line(at: str, number: int) -> bytes:
    request = {"time": f"{at}.000Z", "owner": "a.test", "url": f"http://a.test/{number}", "for": "document"}
    more = {"status": 200, "error": None, "bytes": 1, "ms": 1, "waited": None, "rule": None, "sent": True}
    return json.dumps(request | more).encode() + b"\n"


def test_lines_outlive_the_process_that_wrote_them(tmp_path: Path) -> None:
    storage = Storage(f"file://{storage_path(tmp_path)}")
    lines = [line(f"2026-05-3{number // 5}T00:00:0{number % 10}", number) for number in range(10)]
    killed = RequestSpool(storage, tmp_path, "crawl", "node_1-11-a")
    for number in range(3):
        killed.append(lines[number], NOW)
    killed._put_parts(0)  # what is being written stays
    assert list(lines_of(storage)) == []
    path = next(tmp_path.glob("requests-waiting/crawl/*"))
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open("ab") as file:
        file.write(b'{"time": "cut sho')  # a power cut
    other = RequestSpool(storage, tmp_path, "crawl", "node_1-12-b")
    for number in (9, 4, 8, 5):
        other.append(lines[number], NOW)
    other.finish()
    other.append(lines[7], NOW)
    other.finish()
    assert not (tmp_path / "requests-waiting").exists()
    assert [one for _, one in lines_of(storage)][:3] == lines[:3]
    (tmp_path / "merged").mkdir()
    (tmp_path / "merged/failures.jsonl").touch()
    write_log(storage, tmp_path / "merged")
    kept = [request.url for request in Log(tmp_path / "merged").requests()]
    assert sorted(kept) == [f"http://a.test/{number}" for number in (0, 1, 2, 4, 5, 7, 8, 9)]
    assert {path.name for path in (tmp_path / "merged/requests").iterdir()} == {
        "2026-05-30.jsonl.gz",
        "2026-05-31.jsonl.gz",
    }
    (tmp_path / "storage/requests/node-1-12-b/00000001").unlink()
    with pytest.raises(InputError, match="requests/node-1-12-b/00000001 is damaged: it is missing"):
        list(lines_of(storage))
    storage.put("requests/node-1-12-b/00000001", packed(b'{"time": "../../etc/x"}\n'))
    with pytest.raises(InputError, match="it has a line that is no request"):
        list(lines_of(storage))


def storage_path(folder: Path) -> Path:
    (folder / "storage").mkdir()
    return folder / "storage"
