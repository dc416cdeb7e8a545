"""Every store of the frontier keeps the frontier's contract."""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import pytest
from frontier_contract import FrontierContract, RerankContract, entry, keys_of
from mixed_contract import Mixed, MixedContract
from owner_contract import OwnerContract, Undelayed

from crawl4llm.frontier import (
    IMPATIENT,
    NO_CAPS,
    Caps,
    Entry,
    Evicted,
    Frontier,
    Lease,
    Outcome,
    OwnerFrontier,
    Owners,
    Patience,
    runs,
)
from crawl4llm.frontier.durable import DurableFrontier
from crawl4llm.frontier.durable_mixed import DurableMixedFrontier
from crawl4llm.frontier.durable_owned import DurableOwnerFrontier
from crawl4llm.frontier.indexed import IndexedFrontier
from crawl4llm.frontier.memory import MemoryFrontier
from crawl4llm.frontier.memory_owned import MemoryOwnerFrontier
from crawl4llm.frontier.mixed import MemoryMixedFrontier, Shares
from crawl4llm.frontier.store import Store

Make = Callable[[Store, Caps], DurableFrontier]


class TestMemoryFrontier(RerankContract):
    """The store in memory."""

    def new_frontier(self, caps: Caps = NO_CAPS) -> Frontier:
        return MemoryFrontier(caps)

    def test_stale_places_are_cleared_away(self) -> None:
        frontier = MemoryFrontier()
        frontier.push(entry(str(number), 0.0) for number in range(1000))
        for turn in range(1, 100):
            frontier.rerank((str(number), turn / (number + 1)) for number in range(1000))
        assert len(frontier._heap) <= 4000
        assert keys_of(frontier.lease(1000)) == [str(number) for number in range(1000)]


class TestMemoryOwnerFrontier(OwnerContract):
    """The store in memory that knows owners."""

    def new_frontier(self, caps: Caps = NO_CAPS, patience: Patience = IMPATIENT) -> OwnerFrontier:
        return MemoryOwnerFrontier(caps, patience)

    def test_stale_places_of_an_owner_are_cleared_away(self) -> None:
        frontier = MemoryOwnerFrontier(Caps(total=1000))
        frontier.push(entry(str(number), 0.0) for number in range(1000))
        for turn in range(1, 20):
            frontier.rerank((str(number), turn / (number + 1)) for number in range(1000))
            assert len(frontier._others["example.org"]) <= 2100
        frontier.push(entry(f"better {number}", 99.0, host="better.example") for number in range(990))
        assert frontier.owners.queued_of("example.org") == 10
        assert len(frontier._others["example.org"]) <= 40
        assert keys_of(Undelayed(frontier).lease(2000))[990:] == [str(number) for number in range(10)]


class TestMemoryOwnerFrontierWithoutDelays(RerankContract):
    """The same as a plain one."""

    def new_frontier(self, caps: Caps = NO_CAPS) -> Frontier:
        return Undelayed(MemoryOwnerFrontier(caps))


class Reopened:
    """A durable frontier that is saved, committed and opened anew before every third thing that is done with it."""

    def __init__(self, make: Make, caps: Caps, every: int = 3) -> None:
        self._temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # goes with this object
        self._folder = Path(self._temporary.name)
        self._make, self._caps, self._every = make, caps, every
        self._calls = itertools.count(1)
        self._store = Store(self._folder / "store.mdb", fsync=False)
        self._frontier = make(self._store, caps)

    def _open(self) -> DurableFrontier:
        if next(self._calls) % self._every == 0:
            self._frontier.save()
            self._store.commit()
            self._store.close()
            self._store = Store(self._folder / "store.mdb", fsync=False)
            self._frontier = self._make(self._store, self._caps)
        return self._frontier

    def push(self, entries: Iterable[Entry]) -> list[Evicted]:
        return self._open().push(entries)

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        return self._open().rerank(scores)

    def lease(self, n: int) -> list[Lease]:
        return self._open().lease(n)

    def settle(self, lease: Lease, outcome: Outcome, reason: str | None = None) -> bool:
        return self._open().settle(lease, outcome, reason)

    def give_back(self, lease: Lease, *, attempted: bool) -> bool:
        return self._open().give_back(lease, attempted=attempted)

    def withdraw(self, lease: Lease) -> Entry | None:
        return self._open().withdraw(lease)

    def __len__(self) -> int:
        return len(self._frontier)

    @property
    def leased(self) -> int:
        return self._frontier.leased

    @property
    def outcomes(self) -> Mapping[tuple[Outcome, str | None], int]:
        return self._frontier.outcomes

    @property
    def owners(self) -> Owners:
        assert isinstance(self._frontier, DurableOwnerFrontier)
        return self._frontier.owners

    def drop_owner(self, owner: str, outcome: Outcome, reason: str, most: int) -> list[Entry]:
        frontier = self._open()
        assert isinstance(frontier, DurableOwnerFrontier)
        return frontier.drop_owner(owner, outcome, reason, most)

    def close(self) -> None:
        self._store.close()
        self._temporary.cleanup()


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few records and merges of a few runs, a few records at a time."""
    monkeypatch.setattr(runs, "_BLOCK_BYTES", 200)
    monkeypatch.setattr(runs, "_FAN_IN", 2)
    monkeypatch.setattr(runs, "_LEAST_MOVES", 2)
    monkeypatch.setattr("crawl4llm.frontier.durable._MOST_FRESH", 4)


class TestDurableFrontier(FrontierContract):
    """The store on disk."""

    def new_frontier(self, caps: Caps = NO_CAPS) -> Frontier:
        return Reopened(plain_or_indexed, caps, every=1_000_000)


@pytest.mark.usefixtures("small_pieces")
class TestDurableFrontierInSmallPieces(FrontierContract):
    """The store on disk, taken up again all the time."""

    def new_frontier(self, caps: Caps = NO_CAPS) -> Frontier:
        return Reopened(plain_or_indexed, caps)


@pytest.mark.usefixtures("small_pieces")
class TestIndexedFrontierInSmallPieces(RerankContract):
    """The store on disk with its index, taken up again all the time."""

    def new_frontier(self, caps: Caps = NO_CAPS) -> Frontier:
        return Reopened(IndexedFrontier, caps, every=2)


class TestMemoryMixedFrontier(MixedContract):
    """The store in memory that knows classes."""

    def new_mixed(self, caps: Caps = NO_CAPS, *, by_owners: bool) -> Mixed:
        mixed = Mixed()
        mixed.frontier = MemoryMixedFrontier(mixed.shares, caps, by_owners=by_owners)
        return mixed


class TestMemoryMixedFrontierOfOneClass(OwnerContract):
    """The same as one that knows owners."""

    def new_frontier(self, caps: Caps = NO_CAPS, patience: Patience = IMPATIENT) -> OwnerFrontier:
        return MemoryMixedFrontier(Shares([[1.0]]), caps, patience, by_owners=True)


class TestMemoryMixedFrontierWithoutOwners(RerankContract):
    """The same as a plain one."""

    def new_frontier(self, caps: Caps = NO_CAPS) -> Frontier:
        return MemoryMixedFrontier(Shares([[1.0]]), caps, by_owners=False)


@pytest.mark.usefixtures("small_pieces")
class TestDurableMixedFrontierInSmallPieces(MixedContract):
    """The store on disk that knows classes, taken up again all the time."""

    def new_mixed(self, caps: Caps = NO_CAPS, *, by_owners: bool) -> Mixed:
        mixed = Mixed()

        def make(store: Store, caps: Caps) -> DurableFrontier:
            given = {"clock": lambda: -math.inf, "wall": lambda: 0.0}
            return DurableMixedFrontier(store, mixed.new_shares(), caps, by_owners=by_owners, **given)

        # What owners do ends with the process: those are taken up again in the next test.
        mixed.frontier = Reopened(make, caps, every=1_000_000 if by_owners else 2)
        return mixed


@pytest.mark.usefixtures("small_pieces")
class TestDurableMixedFrontierWithoutOwnersInSmallPieces(RerankContract):
    """The same as a plain one."""

    def new_frontier(self, caps: Caps = NO_CAPS) -> Frontier:
        def make(store: Store, caps: Caps) -> DurableFrontier:
            return DurableMixedFrontier(store, Shares([[1.0]]), caps, by_owners=False)

        return Reopened(make, caps, every=2)


class TestDurableOwnerFrontier(OwnerContract):
    """The store on disk that knows owners."""

    def new_frontier(self, caps: Caps = NO_CAPS, patience: Patience = IMPATIENT) -> OwnerFrontier:
        return Reopened(partial(owned_from_the_start_of_time, patience=patience), caps, every=1_000_000)


class TestDurableOwnerFrontierWithoutDelays(RerankContract):
    """The same as a plain one."""

    def new_frontier(self, caps: Caps = NO_CAPS) -> Frontier:
        return Undelayed(Reopened(owned_from_the_start_of_time, caps, every=1_000_000))


@pytest.mark.usefixtures("small_pieces")
class TestDurableOwnerFrontierInSmallPieces(RerankContract):
    """The store on disk that knows owners, taken up again all the time."""

    def new_frontier(self, caps: Caps = NO_CAPS) -> Frontier:
        return Undelayed(Reopened(owned_from_the_start_of_time, caps, every=2))


def owned_from_the_start_of_time(store: Store, caps: Caps, patience: Patience = IMPATIENT) -> DurableOwnerFrontier:
    """With a clock that shows nothing yet."""
    return DurableOwnerFrontier(store, caps, patience, clock=lambda: -math.inf, wall=lambda: 0.0)


def plain_or_indexed(store: Store, caps: Caps) -> DurableFrontier:
    """As a crawl chooses."""
    return DurableFrontier(store, caps) if caps.per_host is None else IndexedFrontier(store, caps)


def test_hops_are_all_that_earlier_versions_miss_of_a_record() -> None:
    """They are in bits which those pass over, and which are 0 in what those wrote."""
    near, far = (runs.encode(Entry("k", "http://k/", 0.5, 1, "p", 2, hops)) for hops in (0, 5))
    assert near[0] == far[0]
    changed = [one ^ other for one, other in zip(near[1], far[1], strict=True)]
    assert [byte for byte in changed if byte] == [5 << 3]
    assert near[1][8] == 2, "the flags: it has a parent"
