"""Continuous order by ready owners, driven without Scrapy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from driven_crawl import Driven, scored

from crawl4llm.base.domains import Domain
from crawl4llm.base.pages import PageRecord
from crawl4llm.crawl.scope import Limits, Scope
from crawl4llm.frontier import Caps, Entry, Lease
from crawl4llm.frontier.memory_owned import MemoryOwnerFrontier

A, B = "http://a.example/", "http://b.example/"
WEB = scored({f"{A}9": [], f"{A}8": [], f"{A}7": [], f"{B}6": [], f"{B}5": []})


class Noting:
    """Releases owners at the end of a lease, for as long as it is told."""

    def __init__(self, frontier: MemoryOwnerFrontier) -> None:
        self.frontier = frontier
        self.told: list[str] = []
        self.delay = 0.0

    def begin(self, lease: Lease) -> None:
        self.told.append(f"+{lease.entry.key}")

    def end(self, lease: Lease, *, asked: bool = True) -> None:
        self.told.append(f"-{lease.entry.key}")
        owners = self.frontier.owners
        owners.release(lease.entry.key.split("/")[2], owners.now + self.delay)


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[Driven]:
    frontier = MemoryOwnerFrontier()
    frontier.owners.tick(0)
    crawl = Driven(WEB, tmp_path, by_owners=frontier, crawl_batch_size=0, leases=4)
    crawl.start(*(key for key in (f"{A}9", f"{A}8", f"{A}7", f"{B}6", f"{B}5")))
    yield crawl
    crawl.close()


def noting(driven: Driven) -> Noting:
    assert isinstance(driven.crawl.frontier, MemoryOwnerFrontier)
    turns = driven.crawl.turns = Noting(driven.crawl.frontier)
    return turns


def test_one_document_of_each_owner(driven: Driven) -> None:
    leases = driven.dequeue()
    assert [lease.entry.key for lease in leases] == [f"{A}9", f"{B}6"]
    assert driven.dequeue() == []
    driven.fetch(leases[1])
    assert [lease.entry.key for lease in driven.dequeue()] == [f"{B}5"]


def test_pages_are_logged_in_the_order_in_which_they_came(driven: Driven) -> None:
    slow, one = driven.dequeue()
    driven.fetch(one)
    (two,) = driven.dequeue()
    driven.fetch(two)
    driven.advance()
    assert driven.ids == [f"{B}6", f"{B}5"]
    driven.fetch(slow)
    driven.advance()
    assert driven.ids == [f"{B}6", f"{B}5", f"{A}9"]
    assert driven.crawl.unanswered() == []


def test_a_slow_page_bounds_nothing(tmp_path: Path) -> None:
    frontier = MemoryOwnerFrontier()
    frontier.owners.tick(0)
    keys = [f"http://{number}.example/{number}" for number in range(100, 200)]
    driven = Driven(scored({key: [] for key in keys}), tmp_path, by_owners=frontier, crawl_batch_size=0, leases=2)
    driven.start(*keys)
    slow, *others = driven.dequeue()
    while others:
        driven.fetch(others.pop())
        others += driven.dequeue()
    assert driven.crawl.answered == 99
    driven.fetch(slow)
    driven.advance()
    assert len(driven.lines) == 100
    driven.close()


def test_who_sees_to_turns_is_told_of_each_lease_once(driven: Driven) -> None:
    turns = noting(driven)
    turns.delay = 3
    nine, six = driven.dequeue()
    driven.crawl.give_back(nine)
    driven.fetch(six)
    driven.crawl.failed(six, "late")
    assert turns.told == [f"+{A}9", f"+{B}6", f"-{A}9", f"-{B}6"]
    assert driven.dequeue() == []
    turns.frontier.owners.tick(3)
    again, _ = driven.dequeue()
    assert (again.entry.key, again.entry.attempts) == (f"{A}9", 1), "to be given back is no attempt"


def redirect(driven: Driven, lease: Lease, *hops: str) -> None:
    """Answer a lease with redirects, the last of which leads to another owner."""
    driven.crawl.redirected(lease, PageRecord(lease.entry.key, lease.entry.url, hops=hops))


def test_the_target_of_a_redirect_to_another_owner_is_queued_once(driven: Driven) -> None:
    nine, six = driven.dequeue()
    target = "http://c.example/"
    redirect(driven, nine, f"{A}on", target)
    redirect(driven, six, target)
    driven.advance()
    assert {line["id"]: (line["outcome"], line["reason"], line["target"]) for line in driven.failures} == {
        f"{A}9": ("redirected", "queued", target),
        f"{B}6": ("redirected", "visited", target),
    }
    states = "0 archived + 3 redirected + 0 failed + 0 dropped + 4 queued + 0 leased + 0 parked"
    assert str(driven.crawl.balance) == f"7 discovered = {states}"
    (entry,) = (lease.entry for lease in driven.dequeue() if lease.entry.key == target)
    assert entry == Entry(target, target, nine.entry.score, 0, f"{A}9", attempts=1, hops=1)


def test_targets_that_are_not_wanted(driven: Driven) -> None:
    """They are not visited, and the document is dropped; nor is one that is reached over what was visited."""
    driven.crawl.scope = driven.crawl.algorithm.scope = Scope(
        driven.crawl.visited, [Domain("gone.example")], Limits(url_length=30), by_owners=True
    )
    nine, six = driven.dequeue()
    redirect(driven, nine, "http://www.gone.example/")
    redirect(driven, six, f"http://c.example/{'x' * 30}")
    eight, five = driven.dequeue()
    redirect(driven, eight, f"{A}7", "http://c.example/")
    redirect(driven, five, "http://d.example/")
    driven.advance()
    assert {line["id"]: line["reason"] for line in driven.failures} == {
        f"{A}9": "opt_out",
        f"{B}6": "url_too_long",
        f"{A}8": "duplicate",
        f"{B}5": "queued",
    }
    assert "http://c.example/" not in driven.crawl.visited
    assert driven.crawl.balance.problem is None


def test_an_owner_out_of_scope(tmp_path: Path) -> None:
    frontier = MemoryOwnerFrontier()
    frontier.owners.tick(0)
    driven = Driven(WEB, tmp_path, by_owners=frontier, crawl_batch_size=0, crawl_scope="domain")
    driven.start(f"{A}9")
    (nine,) = driven.dequeue()
    redirect(driven, nine, "http://www.a.example/", f"{B}6")
    driven.advance()
    assert [(line["outcome"], line["reason"]) for line in driven.failures] == [("dropped", "off_scope")]
    assert (driven.crawl.balance.redirected, driven.crawl.balance.problem) == (1, None)
    driven.close()


def test_a_target_counts_for_the_caps_and_not_for_n(tmp_path: Path) -> None:
    """The worst of a full frontier leaves it, be it the target; what is queued when N is reached stays."""
    frontier = MemoryOwnerFrontier(Caps(total=1))
    frontier.owners.tick(0)
    driven = Driven(WEB, tmp_path, by_owners=frontier, crawl_batch_size=0, crawl_max_pages=1, leases=2)
    driven.start(f"{A}9")
    (nine,) = driven.dequeue()
    redirect(driven, nine, f"{B}6")
    driven.advance()
    (six,) = driven.dequeue()
    frontier.owners.park("c.example")
    redirect(driven, six, "http://c.example/")
    driven.advance()
    assert (driven.crawl.balance.queued, driven.crawl.balance.parked) == (0, 1)
    assert driven.crawl.statistics()["frontier/parked"] == 1
    assert driven.crawl.balance.problem is None
    driven.close()


def test_five_owners_further_and_no_more(tmp_path: Path) -> None:
    frontier = MemoryOwnerFrontier()
    frontier.owners.tick(0)
    driven = Driven(WEB, tmp_path, by_owners=frontier, crawl_batch_size=0)
    driven.start(f"{A}9")
    for number in range(6):
        (lease,) = driven.dequeue()
        assert lease.entry.hops == number
        redirect(driven, lease, f"http://{number}.example/")
        driven.advance()
    assert driven.crawl.finished
    assert [line["reason"] for line in driven.failures] == ["queued"] * 5 + ["too_many_redirects"]
    driven.close()
