"""The frontier that tells sites apart: what waits for a site that never answered, and for how long, as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest

from crawl4llm.base.urls import site_of
from crawl4llm.crawl.gate import layered
from crawl4llm.crawl.sited_frontier import TURNS_A_TRY, SitedFrontier
from crawl4llm.frontier import Caps, Entry, Lease, Outcome
from crawl4llm.frontier.aside import MemoryAside
from crawl4llm.frontier.frontier import NO_CAPS
from crawl4llm.frontier.opening import memory_frontier
from crawl4llm.options import Options
from crawl4llm.parts import Parts
from crawl4llm.parts.budgets.work import BudgetsPart

OWNER = "a.test"
GOOD = "http://a.test/"


class Asked:
    """A frontier that is asked for one document after the other, a second each."""

    def __init__(self, *urls: str, caps: Caps | None = None) -> None:
        self.within = memory_frontier(caps or NO_CAPS, by_owners=True)
        self.sites = SitedFrontier(self.within, MemoryAside())
        self.now = 0.0
        self.sites.owners.tick(0.0)
        self.push(urls)

    def push(self, urls: Sequence[str], score: float = 1.0) -> None:
        self.sites.push([Entry(url, url, score, 0, None) for url in urls])

    def lease(self) -> Lease | None:
        self.now += 1.0
        self.sites.owners.tick(self.now)
        leases = self.sites.lease(1)
        return leases[0] if leases else None

    def answer(self, lease: Lease) -> None:
        self.sites.answered(lease.entry.key)
        self.sites.took_turn(OWNER)
        self.sites.owners.release(OWNER, self.now)
        assert self.sites.settle(lease, Outcome.ARCHIVED)

    def fail(self, lease: Lease, wait: float = 60.0) -> None:
        url = lease.entry.key
        self.sites.failed(url, 1)
        self.sites.owners.hold(site_of(url), self.now + wait)
        self.sites.leave_alone(url, self.now + wait)
        self.sites.owners.release(OWNER, self.now)
        assert self.sites.give_back(lease, attempted=True)

    def run(self, turns: int, *, more: bool = True) -> list[str]:
        """Ask so many times; hosts that are called dead never answer. ``more``: pages lead to new ones."""
        asked = []
        for turn in range(turns):
            if (lease := self.lease()) is None:
                asked.append("")
                continue
            asked.append(lease.entry.key)
            if "dead" in lease.entry.key:
                self.fail(lease)
            else:
                self.answer(lease)
                if more:
                    self.push([f"{GOOD}{turn}"], 0.5)
        return asked


def test_one_turn_in_twenty_is_a_try() -> None:
    """However many better documents there are of sites that never answered."""
    asked = Asked(GOOD)
    asked.run(1)
    asked.push([f"http://dead-{number}.a.test/" for number in range(100)])
    found = asked.run(400)
    assert "" not in found
    places = [place for place, url in enumerate(found) if "dead" in url]
    assert places == list(range(0, 400, TURNS_A_TRY + 1))
    assert asked.sites.waiting == 100


def test_a_site_is_left_alone_for_its_wait() -> None:
    """And nothing else of its owner."""
    asked = Asked(GOOD, "http://dead.a.test/1", "http://dead.a.test/2")
    found = asked.run(200)
    tries = [place for place, url in enumerate(found) if "dead" in url]
    assert tries[0] <= 1
    assert all(60 <= after - before <= 60 + TURNS_A_TRY + 2 for before, after in pairwise(tries))
    assert found.count("") == 0


def test_where_nothing_else_is_left_tries_go_on() -> None:
    asked = Asked(*(f"http://dead-{number}.a.test/" for number in range(10)))
    found = asked.run(30, more=False)
    assert {url for url in found if url} == {f"http://dead-{number}.a.test/" for number in range(10)}
    assert asked.sites.only_unanswered
    assert asked.sites.owners.next_ready() is not None


def test_all_documents_of_a_site_that_answers_come_back() -> None:
    asked = Asked(GOOD, "http://dead.a.test/", *(f"http://new.a.test/{number}" for number in range(50)))
    found = asked.run(120, more=False)
    assert {url for url in found if "new" in url} == {f"http://new.a.test/{number}" for number in range(50)}
    assert asked.sites.waiting == 1


def test_documents_of_a_site_that_is_given_up_come_to_their_end() -> None:
    """Those that were set aside too."""
    asked = Asked(GOOD, *(f"http://dead.a.test/{number}" for number in range(5)))
    for _ in range(2):
        lease = asked.lease()
        assert lease is not None
        asked.fail(lease) if "dead" in lease.entry.key else asked.answer(lease)
    asked.sites.give_up("http://dead.a.test/")
    ended = set()
    for _ in range(10):
        if (lease := asked.lease()) is not None:
            asked.sites.owners.release(OWNER, asked.now)
            asked.sites.settle(lease, Outcome.FAILED, "refused")
            ended.add(lease.entry.key)
    assert ended == {f"http://dead.a.test/{number}" for number in range(5)}
    assert asked.sites.waiting == len(asked.sites) == 0


@pytest.mark.parametrize("tries", range(6))
@pytest.mark.parametrize("wait", [0.0, 1.5, 3.0])
def test_whenever_a_site_is_given_up_all_of_its_documents_end(tries: int, wait: float) -> None:
    """Also if one of them is queued to be tried, or on its way, and others are set aside."""
    asked = Asked(*(f"http://dead.a.test/{number}" for number in range(5)))
    out = None
    for _ in range(tries):
        if out is not None:
            asked.fail(out, wait)
        out = asked.lease()
    asked.sites.give_up("http://dead.a.test/")
    if out is not None:
        asked.fail(out, wait)
    ended = []
    for _ in range(20):
        if (lease := asked.lease()) is not None:
            asked.sites.owners.release(OWNER, asked.now)
            asked.sites.settle(lease, Outcome.FAILED, "dns")
            ended.append(lease.entry.key)
    assert sorted(ended) == [f"http://dead.a.test/{number}" for number in range(5)]
    assert asked.sites.waiting == len(asked.sites) == 0


def test_what_a_stranger_links_to_takes_little_memory() -> None:
    """Twenty thousand hosts of an owner: what is kept of them is set aside, which a store has on disk."""
    asked = Asked(GOOD)
    asked.run(1)
    asked.push([f"http://dead-{number}.a.test/" for number in range(20_000)])
    found = asked.run(300)
    assert sum("dead" in url for url in found) <= 300 // TURNS_A_TRY
    kept = vars(asked.sites)
    others = {"_within", "_aside", "_answering", "_sites", "owners"}
    sizes = {name: len(value) for name, value in kept.items() if name not in others}
    assert max(sizes.values()) < 100, sizes


def test_a_parked_owner_keeps_what_was_set_aside() -> None:
    asked = Asked(GOOD, *(f"http://dead-{number}.a.test/" for number in range(5)))
    asked.run(4, more=False)
    asked.sites.owners.park(OWNER)
    asked.run(20, more=False)
    assert asked.sites.waiting == 0
    assert len(asked.sites) == asked.sites.owners.documents.parked == 5


def test_tries_that_fail_cost_an_owner_no_budget() -> None:
    """Twenty links to dead hosts, and a budget of ten fetches."""
    within = memory_frontier(by_owners=True)
    parts = Parts([BudgetsPart(Options(url_budget=10, crawl_batch_size=0))])
    layers = layered(within, within, parts, MemoryAside(), sites=True)
    assert layers.owned is not None
    assert layers.sites is not None
    assert layers.gate is not None
    layers.gate.ask(parts.begun(Counter(), layers.gate), lambda _entry, _refusal: None)
    urls = [f"http://dead-{number}.a.test/" for number in range(20)]
    layers.frontier.push([Entry(url, url, 1.0, 0, "http://b.test/") for url in urls])
    failed = []
    for now in range(100):
        layers.owned.owners.tick(float(now))
        for lease in layers.frontier.lease(1):
            layers.sites.failed(lease.entry.key, 1)
            layers.owned.owners.release(OWNER, float(now))
            assert layers.frontier.settle(lease, Outcome.FAILED, "refused")
            failed.append(lease.entry.key)
    assert sorted(failed) == sorted(urls)
