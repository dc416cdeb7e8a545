"""Continuous order by ready owners, driven without Scrapy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from driven_crawl import Driven, scored

from crawl4llm.frontier import Lease
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


def test_all_documents_of_an_owner_end(driven: Driven) -> None:
    nine, _ = driven.dequeue()
    driven.crawl.end_owner("a.example", "dns")
    driven.crawl.failed(nine, "dns")
    driven.advance()
    assert {line["id"]: line["reason"] for line in driven.failures} == dict.fromkeys((f"{A}9", f"{A}8", f"{A}7"), "dns")
    assert driven.crawl.statistics()["failed/dns"] == 3
    assert driven.crawl.balance.problem is None
