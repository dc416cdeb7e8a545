"""Owners wait by a virtual clock: who is asked when, and that nothing of the machine enters it."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, crawl_log, error_of, stats
from frontier_contract import entry

from crawl4llm.base.domains import owner_of
from crawl4llm.crawl.turns import owner_of_lease
from crawl4llm.frontier import Outcome, Patience
from crawl4llm.frontier.opening import memory_frontier
from simulate.web import VirtualClock

WAITS = {"CRAWL_BATCH_SIZE": 0, "SIMULATION_OWNER_DELAY": 2, "CRAWL_SEEDS": 30, "CRAWL_MAX_PAGES": 150}


def times_of(delay: float, capacity: float, patience: float = 0.0, documents: int = 300) -> list[tuple[float, str]]:
    """When each document of some owners is asked for, and whose it is; some of them come while others are crawled."""
    frontier = memory_frontier(by_owners=True, patience=Patience(patience))
    clock = VirtualClock(delay, capacity)
    turns = clock.turns(frontier.owners)
    draw = random.Random(0)
    new = [
        entry(f"{number:03d}", draw.random(), host=f"owner{int(draw.random() ** 3 * 12)}.example")
        for number in range(documents)
    ]
    found = []
    while new or len(frontier):
        if new:
            frontier.push([new.pop(), new.pop(), new.pop()])
        clock.tick(frontier.owners)
        (lease,) = frontier.lease(1)
        turns.begin(lease)
        if draw.random() < 0.1:  # stopped, and resumed by another process
            frontier.give_back(lease, attempted=False)
            turns.end(lease, asked=False)
            clock.tick(frontier.owners)
            (again,) = frontier.lease(1)
            assert again.entry.key == lease.entry.key
            lease = again
        found.append((frontier.owners.now, owner_of_lease(lease)))
        frontier.settle(lease, Outcome.ARCHIVED)
        turns.end(lease)
    return found


@pytest.mark.parametrize(("delay", "capacity", "patience"), [(2.0, 10.0, 0.0), (2.0, 10.0, 0.5), (2.0, 0.0, 0.9)])
def test_places_and_delays(delay: float, capacity: float, patience: float) -> None:
    found = times_of(delay, capacity, patience)
    assert len(found) == 300
    assert found[0][0] == 0
    for (before, _), (after, _) in itertools.pairwise(found):
        assert after >= before + (1 / capacity if capacity else 0)
    asked = defaultdict(list)
    for moment, owner in found:
        asked[owner].append(moment)
    assert all(after >= before + delay for times in asked.values() for before, after in itertools.pairwise(times))
    most = max(map(len, asked.values()))
    assert found[-1][0] >= (most - 1) * delay
    if not patience:
        gaps = [after - before for (before, _), (after, _) in itertools.pairwise(found)]
        assert gaps[:3] == pytest.approx([0.1] * 3), "nobody waits at first"
        assert max(gaps[-20:]) > 1, "the owner with the most documents is alone in the end"


def test_what_is_on_the_clock_outlives_a_process() -> None:
    """At any moment, and in a state that holds the owners that wait alone."""
    frontier, clock = memory_frontier(by_owners=True), VirtualClock(2.0, 10.0)
    turns = clock.turns(frontier.owners)
    frontier.push(entry(f"{number}", number, host=f"owner{number % 90}.example") for number in range(200))
    for _ in range(200):
        clock.tick(frontier.owners)
        (lease,) = frontier.lease(1)
        turns.end(lease)
        frontier.settle(lease, Outcome.ARCHIVED)
        state = clock.save()
        assert len(state["waits"]) <= 20
        other, resumed = memory_frontier(by_owners=True), VirtualClock(2.0, 10.0)
        resumed.turns(other.owners)
        resumed.load(state, other.owners)
        assert resumed.save() == state
        for number in range(90):
            owner = f"owner{number}.example"
            assert max(other.owners.ready_at(owner), clock.now()) == max(frontier.owners.ready_at(owner), clock.now())


def test_a_crawl_keeps_the_delay_whatever_the_machine_does(demo_web: Web, tmp_path: Path) -> None:
    """A page is in the log in its place; where nothing had to wait for an owner, the clock shows so many places."""
    one, two = tmp_path / "one", tmp_path / "two"
    settings = {**WAITS, "URL_POLICY": "parent_first", "WARC_MAX_BYTES": 200_000}
    assert crawl(demo_web, one, **settings, CONCURRENT_REQUESTS=1).returncode == 0
    busy = {"CRAWL_CONCURRENT_LEASES": 8, "SCORING_WORKERS": 2, "JOBDIR": tmp_path / "job", "COMMIT_INTERVAL_PAGES": 7}
    result = crawl(demo_web, two, env={"PYTHONHASHSEED": "2"}, **settings, **busy)
    assert result.returncode == 0, result.stderr
    names = ["crawl.jsonl", *(f"warc/{path.name}" for path in (one / "warc").iterdir())]
    assert [(one / name).read_bytes() for name in names] == [(two / name).read_bytes() for name in names]

    seconds = stats(two)["simulation/seconds"]
    assert seconds == pytest.approx(15), "150 places of a tenth of a second"
    assert "virtual time     15.0 s, 10.00 pages a second" in result.stdout
    last: dict[str, int] = {}
    for line in crawl_log(one):
        owner = owner_of(line["url"])
        assert line["order"] - last.get(owner, -20) >= 20, f"{owner} was not left alone for two seconds"
        last[owner] = line["order"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {**WAITS, "CRAWL_BATCH_SIZE": 50},
            "SIMULATION_OWNER_DELAY is for continuous order, and CRAWL_BATCH_SIZE is 50; set CRAWL_BATCH_SIZE=0",
        ),
        ({"CRAWL_PATIENCE": 0.5}, "CRAWL_PATIENCE is for crawls in which owners wait"),
    ],
    ids=["batches", "patience"],
)
def test_settings_that_do_not_go_together(
    settings: dict[str, object], said: str, demo_web: Web, tmp_path: Path
) -> None:
    assert error_of(crawl(demo_web, tmp_path / "run", **settings)).startswith(said)
    assert not (tmp_path / "run").exists()
