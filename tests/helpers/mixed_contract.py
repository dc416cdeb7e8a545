"""What every frontier of a crawl with MIXTURE must do besides; a store is tested by a subclass of MixedContract."""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

from frontier_contract import keys_of
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from owner_contract import OwnerModel, owner, run_owner_model

from crawl4llm.frontier import NO_CAPS, Caps, Entry, Outcome, OwnerFrontier
from crawl4llm.frontier.mixed import Shares

TARGETS = ((0.5, 0.25, 0.25), (0.75, 0.25))
"""Of two classifiers; exact in binary."""
CELLS = 1 + len(TARGETS[0]) * len(TARGETS[1])


class Mixed:
    """A frontier with the shares that it goes by; a store on disk has new ones each time that it is opened."""

    def __init__(self) -> None:
        self.shares = self.new_shares()
        self.frontier: OwnerFrontier

    def new_shares(self) -> Shares:
        """Return shares as another process has them, without what is on lease."""
        before = getattr(self, "shares", None)
        self.shares = Shares(TARGETS)
        if before is not None:
            self.shares.load(before.crawled)
        return self.shares


def in_cell(cell: int, key: str, score: float, host: str = "example.org") -> Entry:
    return Entry(key, f"http://{host}/{key}", score, 1, "p", cell=cell)


class MixedContract:
    """Tests for a frontier that knows classes."""

    def new_mixed(self, caps: Caps = NO_CAPS, *, by_owners: bool) -> Mixed:
        """An empty frontier."""
        raise NotImplementedError

    def test_the_class_furthest_below_its_share_is_served_with_its_best_document(self) -> None:
        mixed = self.new_mixed(by_owners=False)
        frontier, shares = mixed.frontier, mixed.shares
        first, second, third = (shares.cell_of((number, 0)) for number in range(3))
        frontier.push(in_cell(first, f"a{number}", 0.1 * number) for number in range(6))
        frontier.push(in_cell(second, f"b{number}", 10.0 + number) for number in range(3))
        frontier.push([in_cell(third, "c", -1.0), in_cell(0, "seed", -9.0)])
        leases = frontier.lease(8)
        assert keys_of(leases) == ["seed", "a5", "b2", "c", "a4", "a3", "b1", "a2"]
        assert keys_of(frontier.lease(9)) == ["b0", "a1", "a0"]
        for lease in leases[1:4]:
            assert frontier.settle(lease, Outcome.ARCHIVED)
            mixed.shares.count((1, 0))
        for lease in leases[4:6]:
            assert frontier.give_back(lease, attempted=True)
        frontier.push([in_cell(second, "b9", 99.0), in_cell(third, "c9", 9.0)])
        assert keys_of(frontier.lease(9)) == ["c9", "a4", "a3", "b9"], "three were of another class than was thought"
        frontier.close()

    def test_documents_keep_their_cell(self) -> None:
        mixed = self.new_mixed(by_owners=True)
        frontier = mixed.frontier
        frontier.owners.tick(0)
        entries = [in_cell(cell, f"{cell}", 0.5, host=f"host{cell}.example") for cell in range(CELLS)]
        frontier.push(replace(one) for one in entries)
        assert frontier.rerank((one.key, 0.75) for one in entries) == CELLS
        found = sorted((lease.entry for lease in frontier.lease(99)), key=lambda one: one.cell)
        assert found == [replace(one, score=0.75, attempts=1) for one in entries]
        frontier.close()

    def test_it_agrees_with_a_naive_model_of_classes(self) -> None:
        make = self.new_mixed

        class AgainstModel(MixedModel):
            def new_frontier(self, caps: Caps) -> OwnerFrontier:
                self.mixed = make(caps, by_owners=True)
                return self.mixed.frontier

        run_owner_model(AgainstModel)


class MixedModel(OwnerModel):
    """Does the same to a frontier with classes, and to a sorted list, a few sets, and a list of pages crawled."""

    mixed: Mixed

    def __init__(self) -> None:
        super().__init__()
        self.crawled: list[tuple[int, ...]] = []

    def entry_of(self, key: str, score: float, depth: int, host: str) -> Entry:
        cell = crc32(key.encode("utf-8", "surrogatepass")) % CELLS
        return replace(super().entry_of(key, score, depth, host), cell=cell)

    def lack(self, cell: int, leased: list[Entry]) -> float:
        if not cell:
            return float("inf")
        cells = [one.cell for one in (*self.leases.values(), *leased) if one.cell]
        pages = [*self.crawled, *(divmod(one - 1, len(TARGETS[1])) for one in cells)]
        classes = divmod(cell - 1, len(TARGETS[1]))
        return sum(
            TARGETS[place][number] * len(pages) - sum(page[place] == number for page in pages)
            for place, number in enumerate(classes)
        )

    @rule(n=st.integers(0, 5))
    def lease(self, n: int) -> None:
        expected: list[Entry] = []
        while len(expected) < n:
            able = [one for one in self.queued if self.ready(owner(one))]
            if not able:
                break
            one = min(able, key=lambda one: (-self.lack(one.cell, expected), one.cell, -one.score, one.key))
            self.queued.remove(one)
            expected.append(one)
            self.busy |= {owner(one)} - {""}
        leases = self.frontier.lease(n)
        for one in expected:
            one.attempts += 1
        assert [lease.entry for lease in leases] == expected
        self.leases.update(zip((lease.token for lease in leases), expected, strict=True))
        self.given_out += leases

    @precondition(lambda self: hasattr(self, "frontier"))
    @rule(cell=st.integers(1, CELLS - 1))
    def count(self, cell: int) -> None:
        classes = divmod(cell - 1, len(TARGETS[1]))
        self.crawled.append(classes)
        self.mixed.shares.count(classes)
