"""Every store of a crawl keeps one contract: a commit has all of it or nothing, and no document is ever lost."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from frontier_contract import entry

from crawl4llm.cluster.stores import Scratch
from crawl4llm.crawl.commits import CrawlStore
from crawl4llm.crawl.counting import balance
from crawl4llm.frontier import Lease, Outcome
from crawl4llm.frontier.opening import open_frontier
from crawl4llm.frontier.store import Store
from crawl4llm.options import Options
from crawl4llm.policies import BasePolicy, Pieces, Policy


class Learner(BasePolicy):
    """A policy with a state of both kinds; ``reranks`` so that a partition has the index too."""

    name = "learner"
    reranks = True

    def __init__(self) -> None:
        self.learned = 0
        self.seen: MutableMapping[str, int] = {}

    def keep_in(self, pieces: Pieces) -> None:
        self.seen = pieces.mapping("seen", lambda value: isinstance(value, int))

    def learn(self, key: str) -> None:
        self.learned += 1
        self.seen[key] = self.learned

    def save(self) -> bytes:
        return b"%d" % self.learned

    def load(self, state: bytes) -> None:
        self.learned = int(state or b"0")


class InLmdb:
    """The store of a JOBDIR."""

    store: CrawlStore
    policy: Any

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open()

    def open(self) -> None:
        self.policy = Learner()
        self.tables = Store(self.folder / "store.mdb", fsync=False)
        frontier = open_frontier(self.tables, reranks=True)
        self.store = store = CrawlStore(self.tables, frontier, self.folder / "filter", Options())
        store.keep(self.policy)
        self.policy.load(store.policy_state())

    def killed(self) -> None:
        """Find the store as the next process does when this one was killed."""
        self.close()
        self.open()

    def kept(self) -> None:
        """Hear of a commit."""

    def close(self) -> None:
        """Close it."""
        self.tables.close()


class InCluster(InLmdb):
    """The store of a partition, of which the last snapshot is left."""

    snapshot: bytes | None = None
    store: Scratch

    def open(self) -> None:
        self.policy = Learner()
        options = Options(storage="file:///not-asked", crawl_partitions=4)
        as_policy: Policy = self.policy
        (self.folder / "scratch").mkdir()
        self.store = Scratch(Store(self.folder / "scratch/store", fsync=False), options, as_policy, self.snapshot)

    def kept(self) -> None:
        self.snapshot = self.store.snapshot()

    def close(self) -> None:
        self.store.tables.close()
        shutil.rmtree(self.folder / "scratch")


@pytest.fixture(params=[InLmdb, InCluster], ids=["LMDB", "LMDB in a cluster"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[InLmdb]:
    one: InLmdb = request.param(tmp_path)
    yield one
    one.close()


class Model:
    """A crawl of a store, with what it is known to hold."""

    def __init__(self, opened: InLmdb) -> None:
        self.opened = opened
        self.counts: Counter[str] = Counter({"redirects/followed": 0})
        """Documents that never entered the frontier."""
        self.leases: list[Lease] = []
        self.found = 0
        self.committed = self.all()

    def all(self) -> dict[str, Any]:
        """All that the store holds."""
        store, policy = self.opened.store, self.opened.policy
        keys = [f"http://{number % 5}.example/{number}" for number in range(self.found)]
        seen = {key: policy.seen.get(key) for key in keys}
        return {
            "visited": [key for key in keys if key in store.visited],
            "queued": len(store.frontier),
            "leases": [(lease.token, lease.entry) for lease in self.leases],
            "ended": dict(store.frontier.outcomes),
            "policy": [policy.learned, {key: number for key, number in seen.items() if number}],
        }

    def find(self, draw: random.Random) -> None:
        """Visit some documents, and push those that are wanted."""
        keys = [f"http://{number % 5}.example/{number}" for number in range(self.found, self.found + 7)]
        self.found += 7
        assert self.opened.store.visited.add(keys) == keys
        self.opened.store.frontier.push(entry(key, draw.random()) for key in keys[1:])
        self.counts["failed/http_404"] += 1
        self.opened.policy.learn(keys[0])

    def lease(self, draw: random.Random) -> None:
        self.leases += self.opened.store.frontier.lease(draw.randrange(4))

    def end(self, draw: random.Random) -> None:
        if self.leases:
            lease = self.leases.pop(draw.randrange(len(self.leases)))
            if draw.random() < 0.3:
                assert self.opened.store.frontier.give_back(lease, attempted=True)
            else:
                assert self.opened.store.frontier.settle(lease, draw.choice(list(Outcome)), "why")

    def commit(self, _: object) -> None:
        store = self.opened.store
        states = balance(store.visited, store.frontier, self.counts, None)
        store.commit(states, {"counts": self.counts, "found": self.found})
        self.opened.kept()
        self.committed = self.all()

    def die(self, _: object) -> None:
        """Be killed, and go on from the last commit with all of it, or from nothing."""
        self.opened.killed()
        state = self.opened.store.state()
        self.counts = Counter(state.get("counts", {"redirects/followed": 0}))
        self.leases = self.opened.store.frontier.leases()
        found, self.found = self.found, state.get("found", 0)
        assert self.all() == self.committed
        assert [number for number in range(self.found, found) if f"http://{number % 5}.example/{number}" in self] == []
        order = self.opened.store.frontier.lease(len(self.opened.store.frontier))
        assert [lease.entry.score for lease in order] == sorted((one.entry.score for one in order), reverse=True)
        self.opened.killed()
        self.leases = self.opened.store.frontier.leases()

    def __contains__(self, key: str) -> bool:
        return key in self.opened.store.visited


@pytest.mark.parametrize("seed", range(4))
def test_a_commit_has_all_or_nothing(opened: InLmdb, seed: int) -> None:
    draw, model = random.Random(seed), Model(opened)
    steps = [model.find, model.lease, model.end, model.end, model.commit, model.die]
    for _ in range(60):
        draw.choice(steps)(draw)
    assert len(opened.store.visited) == len(model.all()["visited"])


def test_no_commit_comes_between_a_visit_and_its_push(opened: InLmdb) -> None:
    model, draw = Model(opened), random.Random(0)
    model.find(draw)
    model.commit(draw)
    opened.store.visited.add(["http://lost.example/"])
    with pytest.raises(RuntimeError, match="not committed: 1 documents are in no state"):
        model.commit(draw)
    opened.store.frontier.push([entry("http://lost.example/", 1.0), entry("http://never-visited.example/", 1.0)])
    with pytest.raises(RuntimeError, match="not committed: 1 documents are in two states"):
        model.commit(draw)
    model.die(draw)
    assert "http://lost.example/" not in opened.store.visited


def test_a_lease_ends_once_whoever_has_the_store(opened: InLmdb) -> None:
    model, draw = Model(opened), random.Random(0)
    model.find(draw)
    first, second, third = model.leases = opened.store.frontier.lease(3)
    model.commit(draw)
    assert opened.store.frontier.settle(first, Outcome.ARCHIVED)
    assert not opened.store.frontier.give_back(first, attempted=True)
    opened.killed()
    assert opened.store.frontier.leases() == [first, second, third]
    assert opened.store.frontier.settle(first, Outcome.ARCHIVED)
    assert opened.store.frontier.lease(1)[0].token > third.token
