"""Live crawls by workers that have half of the partitions each, by the access log of the servers."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from continuous_cluster import begin, merged, storage_at
from crawl_helpers import scrapy
from graph_corpus import GraphCorpus
from live_helpers import live_args, text_page
from valkey_helpers import eventually, url_of, valkey_server

from crawl4llm.cluster.partitions import Partitions
from tests.testweb import FewPages, LocalWeb, Logged, read_log, running, waits
from tests.testweb.server import Answer, Asked

P = 8
DELAY = 0.5
AGENTS = [f"testbot/1.0 (+http://testbot.example/worker{number})" for number in range(2)]
"""By worker."""
OF = Partitions(P, GraphCorpus({"http://a.test/": []}, {})).of


def hosts(half: int, count: int) -> list[str]:
    """Return hosts of which a worker has the partitions: the first one has the lower half of them."""
    found = (f"host{number}.test" for number in range(1000))
    return [host for host in found if OF(f"http://{host}/") * 2 // P == half][:count]


class GatedWeb(LocalWeb):
    """A web that answers nothing until its gate is opened."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.gate, self.is_asked = threading.Event(), threading.Event()

    async def _answer(self, asked: Asked, answer: Answer) -> None:
        self.is_asked.set()
        await asyncio.to_thread(self.gate.wait, 60)
        await super()._answer(asked, answer)


@contextmanager
def two_workers(web: GatedWeb, folder: Path, **settings: object) -> Iterator[tuple[dict[str, object], list[Any]]]:
    """Run workers at a crawl of a web; the gate is open once each has its half of the partitions."""
    storage, workers = storage_at(folder / "storage", P), []
    with valkey_server() as server:
        given: dict[str, object] = {
            **storage,
            "CLUSTER": url_of(server),
            "CRAWL_BATCH_SIZE": 0,
            "CRAWL_MAX_PAGES": 1000,
            "DNS_HOSTS": web.hosts_file,
            "DOWNLOAD_DELAY": DELAY,
            "DELAY_FACTOR": 0,
            "COMMIT_INTERVAL_SECONDS": 1,
            **settings,
        }

        def start(number: int) -> None:
            arguments = live_args(web.seeds[:1], folder / f"worker{number}", **given, USER_AGENT=AGENTS[number])
            workers.append(begin(arguments, SCRAPY_PROJECT="live"))

        def have_half() -> bool:
            said = scrapy("cluster", "status", str(storage["STORAGE"]), "-s", f"CLUSTER={given['CLUSTER']}", "--json")
            partitions = sorted(worker["partitions"] for worker in json.loads(said.stdout)["workers"])
            return partitions == [list(range(P // 2)), list(range(P // 2, P))]

        try:
            start(0)
            assert web.is_asked.wait(60)
            start(1)
            eventually(have_half, 60)
            web.gate.set()
            yield storage, workers
        finally:
            web.gate.set()
            for worker in workers:
                worker.kill()
                worker.communicate()


def short(requests: list[Logged]) -> list[str]:
    return [f"{one.host}{one.path}" for one in requests if one.path != "/robots.txt"]


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
    with running(web), two_workers(web, tmp_path, CLUSTER_LEASE=4, DOWNLOAD_TIMEOUT=10) as (storage, workers):
        assert [worker.wait(120) for worker in workers] == [0, 0]
    log = merged(storage, tmp_path / "merged")
    asked = read_log(web.log_file)
    places = [f"{target}{path}" for target in targets for path in pages[target]]
    assert Counter(short(asked)) == Counter([f"{start}/", *rules, *places]), "each once"
    assert len(log) == len(places) + 1
    wrong = [one for one in asked if one.agent != AGENTS[OF(f"http://{one.host}/") * 2 // P]]
    assert wrong == [], "by the worker that has its partition"
    assert min(seconds for of_owner in waits(asked).values() for seconds in of_owner) >= DELAY
    failures = map(json.loads, (tmp_path / "merged/failures.jsonl").read_text().splitlines())
    assert Counter(line["outcome"] for line in failures) == {"redirected": len(rules)}
