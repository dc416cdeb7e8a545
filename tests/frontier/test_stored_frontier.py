"""Frontiers of owners in a store: what outlives their process, owners by other rules, damage."""

from __future__ import annotations

import json
import math
import random
import signal
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from crawl_helpers import python
from frontier_contract import KINDS, Opened, entry, keys_of, owner
from power_cut_helpers import SURVIVALS, Disk, PowerCutError, put_files

from crawl4llm.base.input_files import parse_json
from crawl4llm.base.reasons import OPT_OUT
from crawl4llm.crawl.store_check import ID, check_store
from crawl4llm.frontier import Entry, Outcome, OwnerCounts
from crawl4llm.frontier.holds import FAILURES_KEPT, NAME, Holds, hold_of
from crawl4llm.frontier.opening import open_frontier, stored_frontier
from crawl4llm.frontier.store import Store, StoreError

PROJECT = Path(__file__).resolve().parents[2]
(OF_OWNERS,) = (kind for kind in KINDS if kind.name == "store by owner")


@pytest.fixture
def stored() -> Iterator[Opened]:
    stored = OF_OWNERS.open(time=0.0)
    yield stored
    stored.store.close()


def some(owners: int, documents: int, seed: int = 0) -> list[Entry]:
    """Entries of some owners."""
    draw = random.Random(seed)
    return [
        entry(f"{number:04d}", round(draw.random(), 2), number, host=f"www.owner{draw.randrange(owners)}.example")
        for number in range(documents)
    ]


# -- what outlives the process ------------------------------------------------------------------------------------


def test_holds_and_parking_outlive_the_process_without_a_commit(stored: Opened) -> None:
    stored.frontier.push([entry(name, 0.5, host=name) for name in ("one", "two", "three")])
    stored.commit()
    assert stored.frontier.owners.hold("one", 60)
    assert stored.frontier.owners.park("two")
    assert stored.frontier.owners.hold("two", 20)
    stored.tick(10)
    frontier = stored.reopen(commit=False)
    assert frontier.owners.counts == OwnerCounts(1, 1, 0, 1)
    assert frontier.owners.ready_at("one") == 60
    assert frontier.owners.is_parked("two")
    assert keys_of(frontier.lease(9)) == ["three"]
    assert frontier.owners.unpark("two")
    assert frontier.owners.ready_at("two") == 20
    assert frontier.owners.hold("two", 0, force=True)
    assert frontier.owners.hold("one", 0, force=True)
    frontier = stored.reopen(commit=False)
    assert frontier.owners.counts == OwnerCounts(3, 0, 0, 0)


def test_a_hold_that_is_shorter_than_the_wait_after_an_exchange_outlives_that(stored: Opened) -> None:
    """The wait is known to the process alone."""
    stored.frontier.push([entry("a", 0.5, host="one")])
    assert stored.frontier.owners.occupy("one")
    assert stored.frontier.owners.release("one", 60)
    assert not stored.frontier.owners.hold("one", 30)
    frontier = stored.reopen()
    assert frontier.owners.ready_at("one") == 30


def test_exchanges_and_waits_end_with_the_process(stored: Opened) -> None:
    stored.frontier.push([entry(f"{name}{n}", n, host=name) for name in ("one", "two") for n in (1, 2)])
    stored.frontier.lease(2)
    stored.frontier.owners.release("one", 60)
    frontier = stored.reopen()
    assert frontier.owners.counts == OwnerCounts(2, 0, 0, 0)
    frontier.owners.hold_all(5)
    assert (frontier.lease(9), frontier.owners.next_ready()) == ([], 5)
    stored.tick(5)
    assert keys_of(frontier.lease(9)) == ["one1", "two1"]


@pytest.mark.parametrize(("jump", "left"), [(-1e6, 50.0), (0.0, 50.0), (20.0, 30.0), (1e6, 0.0)])
def test_a_hold_is_no_longer_than_it_was_when_the_wall_clock_jumps(stored: Opened, jump: float, left: float) -> None:
    stored.tick(10)
    stored.frontier.owners.hold("one", 60)
    stored.wall += jump
    frontier = stored.reopen()
    assert max(frontier.owners.ready_at("one"), 10) == 10 + left


def test_failures_outlive_the_process_for_a_day(stored: Opened) -> None:
    """Of names that are no owner's too; a clock that is set back does not forget them."""
    stored.tick(10)
    stored.frontier.owners.hold("one", 70, failures=2)
    stored.frontier.owners.hold("www.one.", -math.inf, failures=3)
    assert (stored.frontier.owners.failures("one"), stored.frontier.owners.failures("www.one.")) == (2, 3)
    stored.wall -= 1e6
    frontier = stored.reopen(commit=False)
    assert (frontier.owners.failures("one"), frontier.owners.failures("www.one.")) == (2, 3)
    frontier.owners.hold("one", -math.inf, failures=0)
    stored.wall += 1e6 + FAILURES_KEPT
    frontier = stored.reopen(commit=False)
    assert (frontier.owners.failures("one"), frontier.owners.failures("www.one.")) == (0, 0)


def test_owners_are_unparked_where_no_more_is_asked_for(stored: Opened) -> None:
    for name, delay in (("one", 400.0), ("two", 3600.0), ("three", 0.0)):
        stored.frontier.owners.park(name, delay)
    frontier = stored.reopen(commit=False)
    assert dict(frontier.owners.parked()) == {"one": 400, "two": 3600, "three": 0}
    assert frontier.owners.unpark_within(400) == 1
    assert dict(stored.reopen(commit=False).owners.parked()) == {"two": 3600, "three": 0}


@pytest.mark.parametrize(
    "hold",
    [
        *("[{}, 60.0, true]", '["9e9", 60.0, true]', "[9e9, 60.0, 1]", "[9e9, 60.0]", "[9e9, NaN, true]"),
        *("[9e9, 60.0, true, 0, {}]", "[9e9, 60.0, true, 1, 9e9, 0, 5000, 9e9]", "[9e9, 60.0, true, 0, 0, 0, 0, 0, 0]"),
        *("null", "7", "[" * 2000 + "]" * 2000),
    ],
)
def test_lines_of_the_holds_file_that_say_no_hold_are_passed_over(stored: Opened, hold: str) -> None:
    """Their checksums may hold nevertheless: who made the JOBDIR made them."""
    one = hold.replace("[", '["one", ', 1).encode()
    two = b'["two", 9e9, 60.0, true, 3, 9e9, 0.0, 4, 9e9]'
    lines = [b"%08x %b\n" % (zlib.crc32(content), content) for content in (one, two)]
    stored.store.path.with_name(NAME).write_bytes(b"".join(lines))
    owners = stored.reopen(commit=False).owners
    assert dict(owners.parked()) == {"two": 0.0}
    assert owners.slowed("two") == 4
    with pytest.raises(ValueError, match=r"no hold|nested"):
        hold_of(parse_json(hold))


def test_the_running_clock_may_be_another_after_a_restart(stored: Opened) -> None:
    """As a monotonic one is after a boot."""
    stored.tick(1000)
    stored.frontier.owners.hold("one", 1060)
    stored.time, stored.wall = 0.0, stored.wall + 1000 + 20
    assert stored.reopen().owners.ready_at("one") == 40


KILLED = """
import os, signal, sys
from pathlib import Path
from crawl4llm.frontier import Entry, Outcome
from crawl4llm.frontier.opening import open_frontier
from crawl4llm.frontier.store import Store
store = Store(Path(sys.argv[1]))
frontier = open_frontier(store, by_owners=True)
frontier.push(Entry(f"{n:03d}", f"http://h{n % 50}.example/{n}", n / 7 % 1, 0, None) for n in range(500))
for lease in frontier.lease(20):
    frontier.settle(lease, Outcome.ARCHIVED)
frontier.save()
store.commit()
frontier.owners.hold("h1.example", frontier.owners.now + 3600)
frontier.owners.park("h2.example")
frontier.lease(20)
frontier.drop_owner("h3.example", Outcome.DROPPED, "opt_out", 9)
frontier.save()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_it_has_its_last_commit_and_every_hold(tmp_path: Path) -> None:
    path = tmp_path / "store.mdb"
    killed = python("-c", KILLED, path)
    assert killed.returncode == -signal.SIGKILL
    with closing(Store(path)) as store:
        frontier = open_frontier(store, by_owners=True)
        frontier.verify()
        assert (len(frontier), frontier.leased) == (480, 0)
        assert frontier.outcomes == {(Outcome.ARCHIVED, None): 20}
        assert frontier.owners.counts == OwnerCounts(48, 1, 0, 1)
        assert 3590 < frontier.owners.ready_at("h1.example") - frontier.owners.now <= 3600
        assert frontier.owners.queued_of("h3.example") > 8
        leased = {owner(lease.entry) for lease in frontier.lease(99)}
        assert len(leased) == 48
        assert not leased & {"h1.example", "h2.example"}


def test_power_cut_at_any_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each hold that was set before the power failed is there, whether it was committed or not; so is each commit."""
    monkeypatch.setattr("crawl4llm.frontier.holds._LEAST", 4)  # the file is written anew on the way
    draw = random.Random(3)
    root = tmp_path / "job"
    cuts = 0
    for calls in range(1000):
        put_files(root, {})
        done: dict[str, float] = {}
        disk = Disk(root, calls)
        try:
            with disk.powered(), closing(Store(root / "store.mdb")) as store:
                owners = open_frontier(store, by_owners=True, clock=lambda: 0.0, wall=lambda: 1e9).owners
                for number in range(14):
                    name = f"owner{number % 5}.example"
                    owners.hold(name, 100.0 + number)
                    done[name] = 100.0 + number
        except PowerCutError:
            cuts += 1
        finished = disk.calls >= 0
        put_files(root, disk.survivors(*draw.choice(SURVIVALS)))
        for path in root.glob("store.mdb*"):  # which is whole after a power cut: tests/crawl/test_power_cut.py
            path.unlink()
        found = OF_OWNERS.open(time=0.0, folder=root)
        for name, until in done.items():
            assert found.frontier.owners.ready_at(name) >= until, f"after {calls} calls"
        found.frontier.owners.hold("owner0.example", 200.0)
        assert found.reopen().owners.ready_at("owner0.example") == 200
        found.store.close()
        if finished:
            break
    assert cuts > 15


# -- stores of other kinds ----------------------------------------------------------------------------------------


def test_owners_by_other_rules_are_found_anew(stored: Opened) -> None:
    """As when the list of public suffixes is another."""
    stored.frontier.push(some(5, 100))
    stored.frontier.owners.hold("owner1.example", 60)
    stored.stored.save()
    state = json.loads(stored.store.get("state", b"frontier") or b"")
    stored.store.put("state", b"frontier", json.dumps({**state, "order": "owners, others"}).encode())
    (key, value), *_ = stored.store.items("owned")
    stored.store.delete("owned", key)
    stored.store.put("owned", key[:-1] + b"~", value)
    stored.store.commit()
    stored.store.close()
    with closing(Store(stored.path, readonly=True)) as store:
        assert not stored_frontier(store).by_owners
        assert len([*stored_frontier(store)]) == 100
    stored.open()
    frontier = stored.stored
    assert frontier.owners.counts == OwnerCounts(4, 1, 0, 0)
    stored.reopen().verify()
    assert json.loads(stored.store.get("state", b"frontier") or b"")["order"] == state["order"]


def test_others_can_read_it(stored: Opened) -> None:
    stored.store.put("state", ID, b"a crawl")
    stored.frontier.push(some(5, 100))
    stored.frontier.owners.park("owner1.example")
    parked = stored.frontier.owners.queued_of("owner1.example")
    stored.commit()
    stored.store.close()
    with closing(Store(stored.path, readonly=True)) as store:
        frontier = stored_frontier(store)
        assert frontier.by_owners
        assert frontier.owners.documents.parked == parked > 0
        assert len([*frontier]) == 100
    check_store(stored.path, "a crawl", thorough=True)


def test_what_is_purged_leaves_the_index_of_owners(stored: Opened) -> None:
    stored.frontier.push(some(5, 300))
    stored.commit()
    for gone in stored.stored.rewrite(lambda one: owner(one) == "owner1.example" or one.depth % 2 == 0):
        stored.stored.count_dropped(OPT_OUT, len(gone))
        stored.commit()
    assert stored.frontier.owners.queued_of("owner1.example") == 0
    stored.reopen().verify()
    assert all(lease.entry.depth % 2 for lease in stored.lease_any(999))


# -- damage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["owned", "current"])
def test_a_lost_pair_is_found(stored: Opened, table: str) -> None:
    stored.frontier.push(some(5, 100))
    stored.commit()
    (key, _), *_ = stored.store.items(table)
    stored.store.delete(table, key)
    stored.store.commit()
    with pytest.raises(StoreError, match="is damaged"):
        stored.reopen(commit=False).verify()


def test_the_holds_file_stays_small(stored: Opened) -> None:
    """What is over, or was said again, goes."""
    for turn in range(5000):
        stored.tick(turn)
        stored.frontier.owners.hold(f"owner{turn}.example", turn + 3.0)
        stored.frontier.owners.hold("often.example", turn + 9.0)
    size = (stored.path.parent / NAME).stat().st_size
    assert 0 < size < 150_000
    assert len([*Holds(stored.path.with_name(NAME), wall=lambda: stored.wall + stored.time).items()]) < 2000
    owners = stored.reopen().owners
    assert (owners.ready_at("often.example"), owners.ready_at("owner4999.example")) == (5008, 5002)


def test_damaged_lines_of_the_holds_file_are_passed_over(stored: Opened) -> None:
    for number in range(9):
        stored.frontier.owners.hold(f"owner{number}.example", 60)
    path = stored.path.parent / NAME
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"owner2", b"ownerX")
    lines[4] = b"\xff" * 9000 + b"\n"
    lines[5] = b"\n"
    lines[8] = lines[8][:-5]
    path.write_bytes(b"".join(lines))
    held = {f"owner{number}.example": 60.0 for number in (0, 1, 3, 6, 7)}
    for name in ("owner8.example", "again.example"):
        owners = stored.reopen().owners
        assert {one: owners.ready_at(one) for one in held} == held
        assert owners.ready_at("ownerX.example") == -math.inf
        assert owners.ready_at("owner2.example") == owners.ready_at("owner8.example") == -float("inf") or held.get(
            "owner8.example"
        )
        owners.hold(name, 60)
        held[name] = 60.0
    assert json.loads(path.read_bytes().splitlines()[-1].partition(b" ")[2])[0] == "again.example"
