"""Does the same to a frontier and to a sorted list, a few sets and a list of pages crawled."""

from __future__ import annotations

import math
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from zlib import crc32

from frontier_contract import CELLS, TARGETS, Kind, Opened, entry, owner
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from crawl4llm.base.reasons import FRONTIER_FULL, HOST_FULL, OPT_OUT
from crawl4llm.base.urls import host_of
from crawl4llm.frontier import IMPATIENT, Caps, Entry, Lease, Outcome, OwnerCounts, Patience
from crawl4llm.frontier.memory import order_of

SCORES = st.one_of(
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),  # ties
    st.floats(allow_nan=False, allow_infinity=False),
)
OWNERS = ["one", "two", "three", "", "never.example"]
TIMES = st.integers(0, 12).map(float)


def run_model(kind: Kind, patience: Patience = IMPATIENT) -> None:
    """Compare a kind of frontier with the model."""

    class AgainstModel(FrontierModel):
        pass

    AgainstModel.kind, AgainstModel.patience = kind, patience
    run_state_machine_as_test(AgainstModel, settings=settings(max_examples=30, stateful_step_count=40, deadline=None))


def by_owners(model: FrontierModel) -> bool:
    return model.kind.by_owners


def is_stored(model: FrontierModel) -> bool:
    return model.kind.stored


def _reversed(key: str) -> tuple[int, ...]:
    """Sorts keys in descending order."""
    return (*(-ord(letter) for letter in key), 1)


class Documents:
    """What a commit keeps of the model."""

    def __init__(self) -> None:
        self.queued: list[Entry] = []
        self.leases: dict[int, Entry] = {}
        self.given_out: list[Lease] = []
        self.outcomes: Counter[tuple[Outcome, str | None]] = Counter()
        self.pushed: set[str] = set()


class FrontierModel(RuleBasedStateMachine):
    """See the module."""

    kind: Kind
    patience = IMPATIENT

    def __init__(self) -> None:
        super().__init__()
        self.docs, self.committed = Documents(), Documents()
        self.now, self.gate = 0.0, -math.inf
        self.rests: dict[str, float] = {}
        """Until when owners wait since their last exchange."""
        self.holds: dict[str, float] = {}
        self.busy: set[str] = set()
        self.parked: set[str] = set()
        self.crawled: list[tuple[int, ...]] = []

    @initialize(total=st.none() | st.integers(1, 12), per_host=st.none() | st.integers(1, 4))
    def open(self, total: int | None, per_host: int | None) -> None:
        self.caps = Caps(total, per_host)
        self.opened: Opened = self.kind.open(self.caps, self.patience, targets=TARGETS, time=0.0)
        if self.kind.stored:
            self.opened.commit()

    def teardown(self) -> None:
        if hasattr(self, "opened"):
            self.opened.close()

    # -- what the model says --------------------------------------------------------------------------------------

    def until(self, name: str) -> float:
        return max(self.rests.get(name, -math.inf), self.holds.get(name, -math.inf))

    def ready(self, name: str) -> bool:
        return name not in self.busy | self.parked and max(self.until(name), self.gate) <= self.now

    def good(self, one: Entry) -> bool:
        """Whether a document is leased although better ones may wait."""
        names = {owner(one) for one in self.docs.queued} - self.parked
        waits = [self.until(name) for name in names - self.busy if self.until(name) > self.now]
        if not self.patience.quantile or not waits or min(waits) > self.now + self.patience.longest:
            return True
        bests = sorted(max(one.score for one in self.docs.queued if owner(one) == name) for name in names)
        return one.score >= bests[math.ceil(self.patience.quantile * len(bests)) - 1]

    def lack(self, cell: int) -> float:
        """By how many pages the classes of a cell are below their shares."""
        if not cell or not self.kind.by_classes:
            return math.inf
        cells = [one.cell for one in self.docs.leases.values() if one.cell]
        pages = [*self.crawled, *(divmod(one - 1, len(TARGETS[1])) for one in cells)]
        classes = divmod(cell - 1, len(TARGETS[1]))
        return sum(
            TARGETS[place][number] * len(pages) - sum(page[place] == number for page in pages)
            for place, number in enumerate(classes)
        )

    def next(self) -> Entry | None:
        """The document that is leased next."""
        able = [one for one in self.docs.queued if not self.kind.by_owners or self.ready(owner(one))]
        if not able:
            return None
        if self.kind.by_classes:
            return min(able, key=lambda one: (-self.lack(one.cell), one.cell, -one.score, one.key))
        best = min(able, key=lambda one: (-one.score, one.key))
        return best if not self.kind.by_owners or self.good(best) else None

    def beyond_host_cap(self, hosts: set[str]) -> list[tuple[Entry, str]]:
        gone: list[tuple[Entry, str]] = []
        for host in sorted(hosts - {""}) if self.caps.per_host is not None else []:
            of_host = [one for one in self.docs.queued if host_of(one.url) == host]
            gone += self.evict(of_host, len(of_host) - self.caps.per_host, HOST_FULL)
        return gone

    def evict(self, among: list[Entry], surplus: int, reason: str) -> list[tuple[Entry, str]]:
        worst = sorted(among, key=lambda one: (one.score, _reversed(one.key)))[: max(surplus, 0)]
        self.docs.queued = [one for one in self.docs.queued if one not in worst]
        return [(one, reason) for one in worst]

    # -- documents and leases -------------------------------------------------------------------------------------

    @rule(
        documents=st.dictionaries(st.text(max_size=3), SCORES, max_size=6),
        depth=st.integers(0, 2**31 - 1),
        host=st.sampled_from(["one", "two", "three", ""]),
    )
    def push(self, documents: dict[str, float], depth: int, host: str) -> None:
        docs = self.docs
        new = [entry(key, score, depth, "p", host) for key, score in documents.items() if key not in docs.pushed]
        if self.kind.by_classes:
            new = [replace(one, cell=crc32(one.key.encode("utf-8", "surrogatepass")) % CELLS) for one in new]
        docs.pushed.update(documents)
        docs.queued += [replace(one) for one in new]
        expected = self.beyond_host_cap({host_of(one.url) for one in new})
        if self.caps.total is not None:
            expected += self.evict(docs.queued, len(docs.queued) - self.caps.total, FRONTIER_FULL)
        assert [(one.entry, one.reason) for one in self.opened.push(new)] == expected
        docs.outcomes.update((Outcome.DROPPED, reason) for _, reason in expected)

    @rule(n=st.integers(0, 5))
    def lease(self, n: int) -> None:
        docs, expected = self.docs, list[Entry]()
        last = docs.given_out[-1].token if docs.given_out else 0
        leases = self.opened.lease(n)
        while len(expected) < n and (one := self.next()) is not None:
            docs.queued.remove(one)
            one.attempts += 1
            self.busy |= {owner(one)} - {""} if self.kind.by_owners else set()
            docs.leases[leases[len(expected)].token if len(expected) < len(leases) else -1] = one
            expected.append(one)
        assert [lease.entry for lease in leases] == expected
        tokens = [last, *(lease.token for lease in leases)]
        assert tokens == sorted(set(tokens))
        docs.given_out += leases

    @precondition(lambda self: self.docs.given_out)
    @rule(data=st.data(), outcome=st.sampled_from(Outcome), reason=st.sampled_from(["timeout", "http_404"]))
    def settle(self, data: st.DataObject, outcome: Outcome, reason: str) -> None:
        lease = data.draw(st.sampled_from(self.docs.given_out))
        counted = None if outcome is Outcome.ARCHIVED else reason
        held = self.docs.leases.pop(lease.token, None)
        assert self.opened.settle(lease, outcome, counted) is (held is not None)
        if held:
            self.docs.outcomes[outcome, counted] += 1

    @precondition(lambda self: self.docs.given_out)
    @rule(data=st.data(), attempted=st.booleans())
    def give_back(self, data: st.DataObject, attempted: bool) -> None:
        lease = data.draw(st.sampled_from(self.docs.given_out))
        held = self.docs.leases.pop(lease.token, None)
        assert self.opened.give_back(lease, attempted=attempted) is (held is not None)
        if held:
            held.attempts -= not attempted
            self.docs.queued.append(held)

    @precondition(lambda self: self.docs.given_out)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.docs.given_out))
        held = self.docs.leases.pop(lease.token, None)
        if held:
            held.attempts -= 1
            self.docs.pushed.remove(held.key)
        assert self.opened.withdraw(lease) == held

    @precondition(lambda self: self.kind.reranks)
    @rule(data=st.data())
    def rerank(self, data: st.DataObject) -> None:
        keys = st.one_of(st.sampled_from(sorted(self.docs.pushed) or [""]), st.text(max_size=3))
        scores = data.draw(st.lists(st.tuples(keys, SCORES), max_size=6))
        queued = {one.key: one for one in self.docs.queued}
        changed = {key: score for key, score in dict(scores).items() if key in queued and queued[key].score != score}
        for key, score in changed.items():
            queued[key].score = score
        assert self.opened.rerank(scores) == len(changed)

    @precondition(lambda self: self.kind.by_classes)
    @rule(cell=st.integers(1, CELLS - 1))
    def count(self, cell: int) -> None:
        classes = divmod(cell - 1, len(TARGETS[1]))
        self.crawled.append(classes)
        self.opened.shares.count(classes)

    # -- owners ---------------------------------------------------------------------------------------------------

    @precondition(by_owners)
    @rule(passed=TIMES)
    def tick(self, passed: float) -> None:
        self.now += passed / 4
        self.opened.tick(self.now)

    @precondition(by_owners)
    @rule(name=st.sampled_from(OWNERS))
    def occupy(self, name: str) -> None:
        assert self.opened.owners.occupy(name) is self.ready(name)
        self.busy |= {name} - {""} if self.ready(name) else set()

    @precondition(by_owners)
    @rule(name=st.sampled_from(OWNERS), wait=TIMES)
    def release(self, name: str, wait: float) -> None:
        assert self.opened.owners.release(name, self.now + wait) is (name in self.busy)
        if name in self.busy:
            self.busy.remove(name)
            self.rests[name] = max(self.until(name), self.now + wait)

    @precondition(by_owners)
    @rule(name=st.sampled_from(OWNERS), until=TIMES, force=st.booleans())
    def hold(self, name: str, until: float, force: bool) -> None:
        before, after = (time if time > self.now else -math.inf for time in (self.until(name), until))
        changes = name != "" and (after > before or (force and after != before))
        if name:
            self.holds[name] = until if force else max(until, self.holds.get(name, -math.inf))
        if force:
            self.rests.pop(name, None)
        assert self.opened.owners.hold(name, until, force=force) is changes

    @precondition(by_owners)
    @rule(until=TIMES)
    def hold_all(self, until: float) -> None:
        self.opened.owners.hold_all(until)
        self.gate = max(self.gate, until)

    @precondition(by_owners)
    @rule(name=st.sampled_from(OWNERS))
    def park(self, name: str) -> None:
        assert self.opened.owners.park(name) is (name != "" and name not in self.parked)
        self.parked |= {name} - {""}

    @precondition(by_owners)
    @rule(name=st.sampled_from(OWNERS))
    def unpark(self, name: str) -> None:
        assert self.opened.owners.unpark(name) is (name in self.parked)
        self.parked -= {name}

    @precondition(by_owners)
    @rule(name=st.sampled_from(OWNERS), most=st.integers(1, 3), outcome=st.sampled_from(list(Outcome)[1:]))
    def drop_owner(self, name: str, most: int, outcome: Outcome) -> None:
        of_owner = [one for one in self.docs.queued if owner(one) == name]
        expected = sorted(of_owner, key=lambda one: (-one.score, one.key))[:most]
        assert self.opened.drop_owner(name, outcome, "killed", most) == expected
        self.docs.queued = [one for one in self.docs.queued if one not in expected]
        if expected:
            self.docs.outcomes[outcome, "killed"] += len(expected)

    # -- the store ------------------------------------------------------------------------------------------------

    @precondition(is_stored)
    @rule()
    def commit(self) -> None:
        self.opened.commit()
        self.committed = deepcopy(self.docs)

    @precondition(is_stored)
    @rule()
    def reopen(self) -> None:
        self.commit()
        self.kill()

    @precondition(is_stored)
    @rule()
    def kill(self) -> None:
        """Documents and leases are those of the last commit; holds and parking need none."""
        self.opened.reopen(commit=False).verify()
        self.docs = deepcopy(self.committed)
        self.busy.clear()
        self.rests.clear()
        self.gate = -math.inf

    @precondition(is_stored)
    @rule(rest=st.integers(0, 2))
    def rewrite(self, rest: int) -> None:
        def unwanted(one: Entry) -> bool:
            return crc32(one.key.encode("utf-8", "surrogatepass")) % 3 == rest

        gone: list[Entry] = []
        for piece in self.opened.stored.rewrite(unwanted):
            self.opened.stored.count_dropped(OPT_OUT, len(piece))
            gone += piece
            self.opened.commit()
        expected = [one for one in self.docs.queued if unwanted(one)]
        assert sorted(gone, key=lambda one: one.key) == sorted(expected, key=lambda one: one.key)
        self.docs.queued = [one for one in self.docs.queued if not unwanted(one)]
        if gone:
            self.docs.outcomes[Outcome.DROPPED, OPT_OUT] += len(gone)
        self.commit()

    @precondition(is_stored)
    @rule(most=st.none() | st.integers(0, 4))
    def read(self, most: int | None) -> None:
        self.commit()
        order = sorted(self.docs.queued, key=lambda one: (-one.score, one.key))
        assert [*self.opened.stored.best(most)] == order[:most]
        assert sorted(self.opened.stored, key=lambda one: (-one.score, one.key)) == order

    # -- at any time ----------------------------------------------------------------------------------------------

    @precondition(lambda self: hasattr(self, "opened"))
    @invariant()
    def documents_agree(self) -> None:
        assert len(self.opened) == len(self.docs.queued)
        assert self.opened.leased == len(self.docs.leases)
        assert dict(self.opened.outcomes) == dict(self.docs.outcomes)
        first, expected = self.opened.first(), self.next()
        if expected is None:
            assert first is None
        else:
            assert first is not None
            assert first.startswith(order_of(expected.score) + expected.key.partition("\0")[0].encode("utf-8"))

    @precondition(lambda self: hasattr(self, "opened") and self.kind.by_owners)
    @invariant()
    def owners_agree(self) -> None:
        owners = self.opened.owners
        numbers, documents = [0] * 4, [0] * 4
        for name in OWNERS:
            queued = sum(owner(one) == name for one in self.docs.queued)
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
            for one in self.docs.queued
            if owner(one) not in self.busy | self.parked and (self.until(owner(one)) > self.now or self.good(one))
        ]
        assert owners.next_ready() == (max(self.now, self.gate, min(times)) if times else None)
