"""What every frontier that knows owners must do besides; a store is tested by a subclass of OwnerContract."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from frontier_contract import NaiveModel, entry, keys_of
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from crawl4llm.base.domains import owner_of
from crawl4llm.base.reasons import FRONTIER_FULL, OPT_OUT
from crawl4llm.frontier import (
    IMPATIENT,
    NO_CAPS,
    Caps,
    Entry,
    Frontier,
    Lease,
    Outcome,
    OwnerCounts,
    OwnerFrontier,
    Patience,
)


def owner(one: Entry) -> str:
    """The owner of an entry."""
    return owner_of(one.url or one.key)


class Undelayed:
    """A frontier whose owners are always ready: then it does what a plain one does."""

    def __init__(self, frontier: OwnerFrontier) -> None:
        self.frontier = frontier
        self.push, self.rerank = frontier.push, frontier.rerank
        self.settle, self.give_back, self.close = frontier.settle, frontier.give_back, frontier.close
        self.withdraw = frontier.withdraw

    def lease(self, n: int) -> list[Lease]:
        leases: list[Lease] = []
        while len(leases) < n and (one := self.frontier.lease(1)):
            leases += one
            self.frontier.owners.release(owner(one[0].entry), -math.inf)
        return leases

    def __len__(self) -> int:
        return len(self.frontier)

    def __getattr__(self, name: str) -> object:
        return getattr(self.frontier, name)


class OwnerContract:
    """Tests for a frontier that knows owners."""

    def new_frontier(self, caps: Caps = NO_CAPS, patience: Patience = IMPATIENT) -> OwnerFrontier:
        """An empty frontier."""
        raise NotImplementedError

    @pytest.fixture
    def frontier(self) -> Iterator[OwnerFrontier]:
        frontier = self.new_frontier()
        frontier.owners.tick(0)
        yield frontier
        frontier.close()

    # -- one exchange at a time -----------------------------------------------------------------------------------

    def test_the_best_document_of_each_owner_is_leased(self, frontier: OwnerFrontier) -> None:
        frontier.push([entry("a", 0.9, host="one"), entry("b", 0.8, host="one"), entry("c", 0.1, host="one")])
        frontier.push([entry("d", 0.5, host="two"), entry("e", 0.7, host="three"), entry("f", 0.5, host="four")])
        assert keys_of(frontier.lease(3)) == ["a", "e", "d"]
        assert keys_of(frontier.lease(9)) == ["f"]
        assert frontier.lease(9) == []
        assert (len(frontier), frontier.leased) == (2, 4)
        assert frontier.owners.counts == OwnerCounts(0, 0, 4, 0)
        assert frontier.owners.documents == OwnerCounts(0, 0, 2, 0)

    def test_the_hosts_of_a_registrable_domain_are_one_owner(self, frontier: OwnerFrontier) -> None:
        hosts = {
            "example.co.uk": ["www.example.co.uk", "example.co.uk", "EXAMPLE.co.uk:8080", "example.co.uk."],
            "one.github.io": ["one.github.io"],
            "two.github.io": ["two.github.io"],
            "192.0.2.1": ["192.0.2.1", "192.0.2.1:80"],
            "2001:db8::1": ["[2001:db8::1]"],
            "localhost": ["localhost"],
            "xn--bcher-kva.example": ["xn--bcher-kva.example", "www.bücher.example"],
        }
        frontier.push(entry(f"{name}{host}", 0.5, host=host) for name in hosts for host in hosts[name])
        assert sorted(owner(lease.entry) for lease in frontier.lease(99)) == sorted(hosts)
        assert len(frontier) == sum(map(len, hosts.values())) - len(hosts)

    def test_a_seed_belongs_to_the_owner_of_its_key(self, frontier: OwnerFrontier) -> None:
        frontier.push([Entry("http://one/", "", 0.5, 0, None), entry("a", 0.4, host="one")])
        assert keys_of(frontier.lease(9)) == ["http://one/"]

    def test_who_has_no_owner_never_waits(self, frontier: OwnerFrontier) -> None:
        nobody = ["", "mailto:a@example.org", "http://", f"http://{'a.' * 150}example/"]
        frontier.push(Entry(f"{place} {url}", url, 0.5, 0, None) for place, url in enumerate(nobody))
        assert not frontier.owners.hold("", 9)
        assert not frontier.owners.park("")
        assert len(leases := frontier.lease(3)) == 3
        assert frontier.give_back(leases[0], attempted=True)
        assert [lease.entry.url for lease in frontier.lease(9)] == [nobody[0], nobody[3]]
        assert not frontier.owners.release("", 9)

    def test_an_exchange_ends_by_release_alone(self, frontier: OwnerFrontier) -> None:
        frontier.push([entry("a", 0.9), entry("b", 0.8), entry("c", 0.7)])
        (a,) = frontier.lease(1)
        assert frontier.settle(a, Outcome.ARCHIVED)
        assert frontier.lease(1) == []
        assert frontier.owners.release("example.org", 0)
        assert not frontier.owners.release("example.org", 0)
        (b,) = frontier.lease(1)
        assert frontier.give_back(b, attempted=True)
        assert frontier.lease(1) == []
        assert frontier.owners.release("example.org", 0)
        assert keys_of(frontier.lease(1)) == ["b"]

    def test_an_exchange_may_be_for_no_document(self, frontier: OwnerFrontier) -> None:
        frontier.push([entry("a", 0.9)])
        assert frontier.owners.occupy("example.org")
        assert not frontier.owners.occupy("example.org")
        assert frontier.lease(1) == []
        assert frontier.owners.release("example.org", 5)
        assert not frontier.owners.occupy("example.org")
        frontier.owners.tick(5)
        assert frontier.owners.occupy("example.org")
        assert frontier.owners.occupy("never.example")
        assert frontier.owners.counts == OwnerCounts(0, 0, 2, 0)
        assert frontier.owners.release("never.example", 9)
        assert frontier.owners.ready_at("never.example") == 9

    # -- waits ----------------------------------------------------------------------------------------------------

    def test_who_waits_blocks_nobody(self, frontier: OwnerFrontier) -> None:
        frontier.push([entry("a", 0.9, host="one"), entry("b", 0.8, host="one"), entry("c", 0.1, host="two")])
        frontier.lease(1)
        frontier.owners.release("one", 5.0)
        assert frontier.owners.counts == OwnerCounts(1, 1, 0, 0)
        assert keys_of(frontier.lease(9)) == ["c"]
        assert frontier.owners.next_ready() == 5
        frontier.owners.tick(math.nextafter(5, 0))
        assert frontier.lease(9) == []
        frontier.owners.tick(5)
        assert frontier.owners.next_ready() == 5
        assert keys_of(frontier.lease(9)) == ["b"]
        assert frontier.owners.next_ready() is None

    def test_time_does_not_go_back(self, frontier: OwnerFrontier) -> None:
        frontier.owners.tick(7)
        frontier.owners.tick(3)
        assert frontier.owners.now == 7

    def test_the_latest_of_several_times_holds(self, frontier: OwnerFrontier) -> None:
        frontier.push([entry("a", 0.9), entry("b", 0.8)])
        frontier.lease(1)
        assert frontier.owners.hold("example.org", 60)
        assert frontier.owners.ready_at("example.org") == math.inf
        frontier.owners.release("example.org", 5)
        assert not frontier.owners.hold("example.org", 30)
        assert frontier.owners.ready_at("example.org") == 60
        assert frontier.owners.hold("example.org", 20, force=True)
        assert frontier.owners.next_ready() == 20
        assert frontier.owners.hold("example.org", -1, force=True)
        assert keys_of(frontier.lease(9)) == ["b"]

    def test_an_owner_can_be_held_before_anything_of_it_is_queued(self, frontier: OwnerFrontier) -> None:
        assert frontier.owners.hold("example.org", 60)
        assert frontier.owners.next_ready() is None
        frontier.push([entry("a", 0.9)])
        assert frontier.lease(9) == []
        assert frontier.owners.next_ready() == 60

    def test_all_are_held_at_once(self, frontier: OwnerFrontier) -> None:
        frontier.push([entry("a", 0.9, host="one"), entry("b", 0.8, host="two")])
        frontier.owners.hold("two", 9)
        frontier.owners.hold_all(5)
        frontier.owners.hold_all(4)
        frontier.push([entry("c", 0.7, host="three")])
        assert frontier.lease(9) == []
        assert not frontier.owners.occupy("four")
        assert frontier.owners.counts == OwnerCounts(0, 3, 0, 0)
        assert frontier.owners.documents == OwnerCounts(0, 3, 0, 0)
        assert sorted(frontier.owners.names) == ["one", "three", "two"]
        assert frontier.owners.next_ready() == 5
        assert [frontier.owners.ready_at(name) for name in ("one", "two", "four")] == [5, 9, 5]
        frontier.owners.tick(5)
        assert keys_of(frontier.lease(9)) == ["a", "c"]

    def test_order_is_that_of_the_moment(self, frontier: OwnerFrontier) -> None:
        """What was pushed, ranked anew or given back while its owner waited counts when it is ready."""
        frontier.push([entry("a", 0.9, host="one"), entry("b", 0.8, host="one"), entry("c", 0.5, host="two")])
        a, c = frontier.lease(2)
        frontier.owners.release("one", 5)
        frontier.owners.release("two", 5)
        frontier.push([entry("d", 0.6, host="two")])
        assert frontier.rerank([("b", 0.1)]) == 1
        frontier.give_back(a, attempted=False)
        frontier.give_back(c, attempted=True)
        assert frontier.rerank([("a", 0.2), ("d", 0.4)]) == 2
        assert frontier.lease(9) == []
        frontier.owners.tick(5)
        leases = frontier.lease(9)
        assert [(lease.entry.key, lease.entry.attempts) for lease in leases] == [("c", 2), ("a", 1)]
        for name in ("one", "two"):
            frontier.owners.release(name, 0)
        assert keys_of(frontier.lease(9)) == ["d", "b"]

    # -- parking and dropping -------------------------------------------------------------------------------------

    def test_parked_owners_keep_their_documents(self, frontier: OwnerFrontier) -> None:
        frontier.push([entry("a", 0.9, host="one"), entry("b", 0.8, host="one"), entry("c", 0.1, host="two")])
        frontier.lease(1)
        assert frontier.owners.park("one")
        assert not frontier.owners.park("one")
        assert frontier.owners.is_parked("one")
        assert not frontier.owners.is_parked("two")
        frontier.owners.release("one", 5)
        assert (frontier.owners.counts, len(frontier)) == (OwnerCounts(1, 0, 0, 1), 2)
        assert frontier.owners.documents == OwnerCounts(1, 0, 0, 1)
        frontier.owners.tick(9)
        assert not frontier.owners.occupy("one")
        assert keys_of(frontier.lease(9)) == ["c"]
        assert frontier.owners.next_ready() is None
        frontier.owners.hold("one", 12)
        assert frontier.owners.unpark("one")
        assert not frontier.owners.unpark("one")
        assert frontier.owners.next_ready() == 12
        frontier.owners.tick(12)
        assert keys_of(frontier.lease(9)) == ["b"]

    def test_what_is_queued_of_an_owner_ends_in_pieces(self, frontier: OwnerFrontier) -> None:
        frontier.push(entry(f"{number}", number, host="one") for number in range(6))
        frontier.push([entry("x", 0.5, host="two")])
        (leased,) = frontier.lease(1)
        assert frontier.owners.queued_of("one") == 5
        gone = [frontier.drop_owner("one", Outcome.DROPPED, OPT_OUT, 2) for _ in range(4)]
        assert [[one.key for one in piece] for piece in gone] == [["4", "3"], ["2", "1"], ["0"], []]
        assert (len(frontier), frontier.leased, frontier.owners.queued_of("one")) == (1, 1, 0)
        assert frontier.settle(leased, Outcome.ARCHIVED)
        assert frontier.outcomes == {(Outcome.DROPPED, OPT_OUT): 5, (Outcome.ARCHIVED, None): 1}
        assert frontier.drop_owner("never.example", Outcome.FAILED, "dns", 9) == []
        assert keys_of(frontier.lease(9)) == ["x"]

    def test_caps_count_whoever_waits(self) -> None:
        frontier = self.new_frontier(Caps(total=2))
        frontier.owners.tick(0)
        frontier.push([entry("a", 0.1, host="one"), entry("b", 0.2, host="one")])
        frontier.owners.hold("one", 5)
        evicted = frontier.push([entry("c", 0.3, host="two")])
        assert [(one.entry.key, one.reason) for one in evicted] == [("a", FRONTIER_FULL)]
        assert frontier.owners.documents == OwnerCounts(1, 1, 0, 0)
        evicted = frontier.push([entry("d", 0.4, host="two")])
        assert [one.entry.key for one in evicted] == ["b"]
        assert frontier.owners.counts == OwnerCounts(1, 0, 0, 0)
        frontier.owners.tick(5)
        assert keys_of(frontier.lease(9)) == ["d"]
        frontier.close()

    # -- patience -------------------------------------------------------------------------------------------------

    def test_what_scores_below_a_quantile_of_what_waits_is_not_leased(self) -> None:
        frontier = self.new_frontier(patience=Patience(0.5))
        owners = frontier.owners
        owners.tick(0)
        frontier.push(entry(f"{number}", number / 10, host=f"host{number}") for number in range(1, 7))
        for number, until in ((6, 30), (5, 20), (4, 10)):
            owners.hold(f"host{number}", until)
        assert keys_of(frontier.lease(9)) == ["3"], "in the better half; of the five that are left 2 is not"
        assert owners.next_ready() == 10
        assert frontier.lease(9) == []
        frontier.push([entry("as good", 0.4, host="other")])
        assert owners.next_ready() == 0
        assert keys_of(frontier.lease(9)) == ["as good"], "as the third of six"
        assert frontier.rerank([("5", 0.01), ("6", 0.02)]) == 2
        assert keys_of(frontier.lease(9)) == ["2", "1"]
        assert frontier.rerank([("5", 0.5), ("6", 0.6)]) == 2
        owners.release("host1", 0)
        frontier.push([entry("0", 0.05, host="host1")])
        owners.tick(10)
        assert keys_of(frontier.lease(9)) == ["4"]
        assert frontier.lease(9) == []
        owners.park("host6")
        assert keys_of(frontier.lease(9)) == ["0"], "of 0.5 and 0.05; what is parked does not count"
        frontier.close()

    def test_the_longest_patience(self) -> None:
        frontier = self.new_frontier(patience=Patience(1.0, longest=5.0))
        frontier.owners.tick(0)
        frontier.push([entry("best", 0.9, host="one"), entry("good", 0.5, host="two"), entry("worse", 0.1)])
        frontier.owners.hold("one", 60)
        frontier.owners.hold("two", 5)
        assert frontier.lease(9) == []
        assert frontier.owners.next_ready() == 5
        frontier.owners.tick(5)
        assert keys_of(frontier.lease(9)) == ["good", "worse"], "a minute is longer"
        frontier.close()

    # -- everything at once ---------------------------------------------------------------------------------------

    @pytest.mark.parametrize("given", [IMPATIENT, Patience(0.6, 2.0)], ids=["impatient", "patient"])
    def test_it_agrees_with_a_naive_model_of_owners(self, given: Patience) -> None:
        make = self.new_frontier

        class AgainstModel(OwnerModel):
            patience = given

            def new_frontier(self, caps: Caps) -> Frontier:
                return make(caps, given)

        run_owner_model(AgainstModel)


OWNERS = ["one", "two", "three", "", "never.example"]
_TIMES = st.integers(0, 12).map(float)


class OwnerModel(NaiveModel):
    """Does the same to a frontier with owners, and to a sorted list and a few sets."""

    reranks = True
    patience = IMPATIENT
    frontier: OwnerFrontier

    def __init__(self) -> None:
        super().__init__()
        self.now = self.gate = -math.inf
        self.rests: dict[str, float] = {}
        """Until when owners wait since their last exchange."""
        self.holds: dict[str, float] = {}
        self.busy: set[str] = set()
        self.parked: set[str] = set()

    def until(self, name: str) -> float:
        return max(self.rests.get(name, -math.inf), self.holds.get(name, -math.inf))

    def ready(self, name: str) -> bool:
        return name not in self.busy | self.parked and max(self.until(name), self.gate) <= self.now

    def good(self, one: Entry) -> bool:
        """Whether a document is leased although better ones may wait."""
        names = {owner(one) for one in self.queued} - self.parked
        waits = [self.until(name) for name in names - self.busy if self.until(name) > self.now]
        if not self.patience.quantile or not waits or min(waits) > self.now + self.patience.longest:
            return True
        bests = sorted(max(one.score for one in self.queued if owner(one) == name) for name in names)
        return one.score >= bests[math.ceil(self.patience.quantile * len(bests)) - 1]

    @rule(n=st.integers(0, 5))
    def lease(self, n: int) -> None:
        expected: list[Entry] = []
        for one in sorted(self.queued, key=lambda one: (-one.score, one.key)):
            if len(expected) < n and self.ready(owner(one)) and self.good(one):
                expected.append(one)
                self.busy |= {owner(one)} - {""}
        self.queued = [one for one in self.queued if one not in expected]
        leases = self.frontier.lease(n)
        for one in expected:
            one.attempts += 1
        assert [lease.entry for lease in leases] == expected
        tokens = [lease.token for lease in leases]
        assert tokens == sorted(tokens)
        assert not tokens or not self.given_out or tokens[0] > self.given_out[-1].token
        self.leases.update(zip(tokens, expected, strict=True))
        self.given_out += leases

    @rule(passed=_TIMES)
    def tick(self, passed: float) -> None:
        self.now = passed if self.now == -math.inf else self.now + passed / 4
        self.frontier.owners.tick(self.now)

    @rule(name=st.sampled_from(OWNERS))
    def occupy(self, name: str) -> None:
        assert self.frontier.owners.occupy(name) is self.ready(name)
        self.busy |= {name} - {""} if self.ready(name) else set()

    @rule(name=st.sampled_from(OWNERS), wait=_TIMES)
    def release(self, name: str, wait: float) -> None:
        assert self.frontier.owners.release(name, self.now + wait) is (name in self.busy)
        if name in self.busy:
            self.busy.remove(name)
            self.rests[name] = max(self.until(name), self.now + wait)

    @rule(name=st.sampled_from(OWNERS), until=_TIMES, force=st.booleans())
    def hold(self, name: str, until: float, force: bool) -> None:
        before, after = (time if time > self.now else -math.inf for time in (self.until(name), until))
        changes = name != "" and (after > before or (force and after != before))
        if name:
            self.holds[name] = until if force else max(until, self.holds.get(name, -math.inf))
        if force:
            self.rests.pop(name, None)
        assert self.frontier.owners.hold(name, until, force=force) is changes

    @rule(until=_TIMES)
    def hold_all(self, until: float) -> None:
        self.frontier.owners.hold_all(until)
        self.gate = max(self.gate, until)

    @rule(name=st.sampled_from(OWNERS))
    def park(self, name: str) -> None:
        assert self.frontier.owners.park(name) is (name != "" and name not in self.parked)
        self.parked |= {name} - {""}

    @rule(name=st.sampled_from(OWNERS))
    def unpark(self, name: str) -> None:
        assert self.frontier.owners.unpark(name) is (name in self.parked)
        self.parked -= {name}

    @rule(name=st.sampled_from(OWNERS), most=st.integers(1, 3), outcome=st.sampled_from(list(Outcome)[1:]))
    def drop_owner(self, name: str, most: int, outcome: Outcome) -> None:
        of_owner = [one for one in self.queued if owner(one) == name]
        expected = sorted(of_owner, key=lambda one: (-one.score, one.key))[:most]
        assert self.frontier.drop_owner(name, outcome, "killed", most) == expected
        self.queued = [one for one in self.queued if one not in expected]
        if expected:
            self.outcomes[outcome, "killed"] += len(expected)

    @precondition(lambda self: hasattr(self, "frontier"))
    @invariant()
    def owners_agree(self) -> None:
        owners = self.frontier.owners
        numbers, documents = [0] * 4, [0] * 4
        for name in OWNERS:
            queued = sum(owner(one) == name for one in self.queued)
            assert owners.queued_of(name) == queued
            assert owners.is_parked(name) is (name in self.parked)
            free = name not in self.busy | self.parked
            until = max(self.until(name), self.gate) if free else math.inf
            found = owners.ready_at(name)
            assert found <= self.now if self.ready(name) else found == until
            state = 3 if name in self.parked else 2 if name in self.busy else 0 if self.ready(name) else 1
            numbers[state] += bool(queued) or state > 1
            documents[state] += queued
        assert owners.counts == OwnerCounts(*numbers)
        assert owners.documents == OwnerCounts(*documents)
        times = [
            self.until(owner(one))
            for one in self.queued
            if owner(one) not in self.busy | self.parked and (self.until(owner(one)) > self.now or self.good(one))
        ]
        assert owners.next_ready() == (max(self.now, self.gate, min(times)) if times else None)


def run_owner_model(model: type[OwnerModel]) -> None:
    """Run a state machine on a store."""
    run_state_machine_as_test(model, settings=settings(max_examples=60, stateful_step_count=40, deadline=None))
