"""What every store of the frontier must do. A store is tested by a subclass of FrontierContract that makes one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from crawl4llm.base.reasons import FRONTIER_FULL, HOST_FULL
from crawl4llm.base.urls import host_of
from crawl4llm.frontier import MOST_HOPS, NO_CAPS, Caps, Entry, Frontier, Lease, Outcome

KEYS_IN_ORDER = sorted(
    [
        "",
        "\0",
        "\0\0",
        " ",
        "a",
        "a\0",
        "a\0b",
        "a ",
        "a" * 600,
        "a" * 600 + "b",
        "a" * 5000,
        "aa",
        "b",
        "http://example.org/" + "x" * 3000,
        "z",
        "\x7f",
        "\x80",
        "é",
        "\ud7ff",
        "\uffff",
        "\U00010000",
        "\U0010ffff",
    ]
)
"""Ascending by code point: longer than a disk store's keys may be, prefixes of each other, of all widths in UTF-8."""
SCORES_IN_ORDER = [
    1.7976931348623157e308,
    1e300,
    2.0**53,
    1.0000000000000002,
    1.0,
    0.9999999999999999,
    0.1 + 0.2,
    0.3,
    1e-300,
    5e-324,
    0.0,
    -5e-324,
    -0.3,
    -1.0,
    -1e300,
    -1.7976931348623157e308,
]
"""Descending, some of them one bit apart."""

_SCORES = st.one_of(
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),  # ties
    st.floats(allow_nan=False, allow_infinity=False),
)


def entry(key: str, score: float, depth: int = 0, parent: str | None = None, host: str = "example.org") -> Entry:
    """An entry that was never leased."""
    return Entry(key, f"http://{host}/{key}" if host else f"urn:{key}", score, depth, parent)


def keys_of(leases: list[Lease]) -> list[str]:
    """Keys of leased documents."""
    return [lease.entry.key for lease in leases]


class FrontierContract:
    """Tests for a store of the frontier."""

    reranks = False

    def new_frontier(self, caps: Caps = NO_CAPS) -> Frontier:
        """An empty frontier."""
        raise NotImplementedError

    @pytest.fixture
    def frontier(self) -> Iterator[Frontier]:
        frontier = self.new_frontier()
        yield frontier
        frontier.close()

    # -- order ----------------------------------------------------------------------------------------------------

    def test_the_best_come_first_to_the_last_bit(self, frontier: Frontier) -> None:
        scores = SCORES_IN_ORDER
        assert scores == sorted(scores, reverse=True)
        frontier.push(entry(str(number), score) for number, score in enumerate(scores[::2]))
        frontier.push(entry(f"{number} later", score) for number, score in enumerate(scores[1::2]))
        assert [lease.entry.score for lease in frontier.lease(1000)] == scores

    def test_ties_break_by_key_ascending(self, frontier: Frontier) -> None:
        frontier.push(entry(key, 0.5) for key in reversed(KEYS_IN_ORDER))
        frontier.push([entry("best", 0.6), entry("worst", 0.4)])
        assert keys_of(frontier.lease(1000)) == ["best", *KEYS_IN_ORDER, "worst"]

    def test_the_two_zeros_tie(self, frontier: Frontier) -> None:
        frontier.push([entry("c", 0.0), entry("b", -0.0), entry("a", 0.0), entry("d", -0.0)])
        assert keys_of(frontier.lease(4)) == ["a", "b", "c", "d"]

    def test_fewer_are_leased_where_there_are_no_more(self, frontier: Frontier) -> None:
        assert frontier.lease(3) == []
        frontier.push([])
        frontier.push([entry("a", 0.1), entry("b", 0.2)])
        assert frontier.lease(0) == []
        assert keys_of(frontier.lease(1)) == ["b"]
        assert keys_of(frontier.lease(3)) == ["a"]
        assert frontier.lease(1) == []

    def test_a_better_document_overtakes_those_queued(self, frontier: Frontier) -> None:
        frontier.push([entry("a", 0.1), entry("b", 0.2)])
        assert keys_of(frontier.lease(1)) == ["b"]
        frontier.push([entry("c", 0.3), entry("d", 0.05)])
        assert keys_of(frontier.lease(3)) == ["c", "a", "d"]

    # -- what an entry holds --------------------------------------------------------------------------------------

    def test_a_lease_gives_back_all_that_was_pushed(self, frontier: Frontier) -> None:
        entries = [
            Entry("page", "http://example.org/ä?a=b#c", 1 / 3, 2**31 - 1, "key of its parent"),
            Entry("seed", "", 0.25, 0, None),
            Entry("empty parent", "http://example.org/", 0.125, 1, ""),
            Entry("http://far/", "http://far/", -0.0, 1, "http://near/", hops=MOST_HOPS),
        ]
        frontier.push(replace(one) for one in entries)
        leased = [lease.entry for lease in frontier.lease(4)]
        assert leased == [replace(one, attempts=1) for one in entries]

    # -- leases ---------------------------------------------------------------------------------------------------

    def test_a_document_is_leased_once(self, frontier: Frontier) -> None:
        frontier.push([entry("a", 0.1)])
        (lease,) = frontier.lease(1)
        assert (len(frontier), frontier.leased) == (0, 1)
        assert frontier.lease(1) == []
        assert frontier.settle(lease, Outcome.ARCHIVED)
        assert (len(frontier), frontier.leased) == (0, 0)
        assert frontier.lease(1) == []

    def test_tokens_ascend(self, frontier: Frontier) -> None:
        frontier.push(entry(key, 0.5) for key in "dbca")
        tokens = [lease.token for lease in frontier.lease(2)]
        first, *_ = leases = frontier.lease(1)
        frontier.give_back(first, attempted=True)
        leases += frontier.lease(2)
        tokens += [lease.token for lease in leases]
        assert tokens == sorted(set(tokens))

    def test_what_is_withdrawn_is_gone_and_may_come_again(self, frontier: Frontier) -> None:
        frontier.push([entry("a", 0.3), entry("b", 0.2)])
        (a,) = frontier.lease(1)
        withdrawn = frontier.withdraw(a)
        assert withdrawn == entry("a", 0.3)
        assert (len(frontier), frontier.leased, dict(frontier.outcomes)) == (1, 0, {})
        assert frontier.withdraw(a) is None
        assert not frontier.settle(a, Outcome.ARCHIVED)
        frontier.push([withdrawn])
        assert [lease.entry.attempts for lease in frontier.lease(2)] == [1, 1]

    def test_what_is_given_back_keeps_its_place(self, frontier: Frontier) -> None:
        frontier.push([entry("a", 0.3), entry("b", 0.2), entry("c", 0.1)])
        a, b = frontier.lease(2)
        assert frontier.give_back(b, attempted=True)
        assert frontier.give_back(a, attempted=True)
        assert (len(frontier), frontier.leased) == (3, 0)
        assert keys_of(frontier.lease(3)) == ["a", "b", "c"]

    def test_attempts_count_the_leases_that_were_attempted(self, frontier: Frontier) -> None:
        frontier.push([entry("a", 0.1)])
        seen = []
        for attempted in (True, False, False, True, True):
            (lease,) = frontier.lease(1)
            seen.append(lease.entry.attempts)
            assert frontier.give_back(lease, attempted=attempted)
        assert seen == [1, 2, 2, 2, 3]

    def test_what_is_said_late_is_ignored(self, frontier: Frontier) -> None:
        frontier.push([entry("a", 0.1)])
        (late,) = frontier.lease(1)
        assert frontier.give_back(late, attempted=True)
        self._assert_ended(frontier, late)
        (lease,) = frontier.lease(1)
        self._assert_ended(frontier, late)
        assert (len(frontier), frontier.leased) == (0, 1)
        assert frontier.settle(lease, Outcome.FAILED, "http_404")
        self._assert_ended(frontier, lease)
        self._assert_ended(frontier, late)
        assert (len(frontier), frontier.leased) == (0, 0)
        assert frontier.outcomes == {(Outcome.FAILED, "http_404"): 1}

    def _assert_ended(self, frontier: Frontier, lease: Lease) -> None:
        assert not frontier.settle(lease, Outcome.ARCHIVED)
        assert not frontier.give_back(lease, attempted=True)
        assert not frontier.give_back(lease, attempted=False)

    def test_outcomes_are_counted_by_reason(self, frontier: Frontier) -> None:
        frontier.push(entry(key, 0.5) for key in "abcdef")
        a, b, c, d, e, _ = frontier.lease(6)
        frontier.settle(a, Outcome.ARCHIVED)
        frontier.settle(b, Outcome.FAILED, "timeout")
        frontier.settle(c, Outcome.FAILED, "timeout")
        frontier.settle(d, Outcome.FAILED, "killed")
        frontier.settle(e, Outcome.DROPPED, "timeout")
        assert dict(frontier.outcomes) == {
            (Outcome.ARCHIVED, None): 1,
            (Outcome.FAILED, "timeout"): 2,
            (Outcome.FAILED, "killed"): 1,
            (Outcome.DROPPED, "timeout"): 1,
        }

    # -- caps -----------------------------------------------------------------------------------------------------

    def test_the_worst_leave_a_full_frontier(self) -> None:
        frontier = self.new_frontier(Caps(total=3))
        assert frontier.push([entry("a", 0.5), entry("b", 0.1), entry("c", 0.3)]) == []
        evicted = frontier.push([entry("d", 0.2), entry("e", 0.4), entry("f", 0.1)])
        assert [(one.entry.key, one.reason) for one in evicted] == [(key, FRONTIER_FULL) for key in "fbd"]
        assert keys_of(frontier.lease(9)) == ["a", "e", "c"]
        assert frontier.outcomes == {(Outcome.DROPPED, FRONTIER_FULL): 3}
        frontier.close()

    def test_the_worst_of_a_host_leave_first(self) -> None:
        frontier = self.new_frontier(Caps(total=4, per_host=2))
        frontier.push([entry("a", 0.5, host="one"), entry("b", 0.1, host="two"), entry("c", 0.3, host="one")])
        evicted = frontier.push([entry(key, score, host="one") for key, score in zip("de", (0.2, 0.9), strict=True)])
        assert [(one.entry.key, one.reason) for one in evicted] == [("d", HOST_FULL), ("c", HOST_FULL)]
        evicted = frontier.push([entry("f", 0.2, host=""), entry("g", 0.1, host="")])
        assert [(one.entry.key, one.reason) for one in evicted] == [("g", FRONTIER_FULL)]
        assert keys_of(frontier.lease(9)) == ["e", "a", "f", "b"]
        frontier.close()

    def test_what_is_on_lease_is_never_evicted(self) -> None:
        frontier = self.new_frontier(Caps(total=1, per_host=1))
        frontier.push([entry("a", 0.1)])
        (lease,) = frontier.lease(1)
        assert frontier.push([entry("b", 0.9)]) == []
        assert frontier.give_back(lease, attempted=True)
        assert [one.entry.key for one in frontier.push([entry("c", 0.5)])] == ["a", "c"]
        assert keys_of(frontier.lease(9)) == ["b"]
        frontier.close()

    # -- everything at once ---------------------------------------------------------------------------------------

    def test_it_agrees_with_a_naive_model(self) -> None:
        new_frontier = self.new_frontier

        class AgainstModel(NaiveModel):
            reranks = self.reranks

            def new_frontier(self, caps: Caps) -> Frontier:
                return new_frontier(caps)

        run_state_machine_as_test(
            AgainstModel, settings=settings(max_examples=40, stateful_step_count=40, deadline=None)
        )


class RerankContract(FrontierContract):
    """Tests for a store in which queued documents can be given new scores."""

    reranks = True

    def test_a_new_score_gives_a_new_place(self, frontier: Frontier) -> None:
        frontier.push([entry("a", 0.4), entry("b", 0.3), entry("c", 0.2), entry("d", 0.1)])
        assert frontier.rerank([("d", 0.35), ("a", 0.15)]) == 2
        assert len(frontier) == 4
        assert [(lease.entry.key, lease.entry.score) for lease in frontier.lease(9)] == [
            ("d", 0.35),
            ("b", 0.3),
            ("c", 0.2),
            ("a", 0.15),
        ]
        assert (len(frontier), frontier.leased) == (0, 4)

    def test_scores_change_to_the_last_bit(self, frontier: Frontier) -> None:
        keys = [str(number) for number in range(len(SCORES_IN_ORDER))]
        frontier.push(entry(key, 0.5) for key in keys)
        assert frontier.rerank(zip(keys, SCORES_IN_ORDER, strict=True)) == len(keys)
        assert [lease.entry.score for lease in frontier.lease(1000)] == SCORES_IN_ORDER

    def test_documents_that_now_tie_are_taken_by_key(self, frontier: Frontier) -> None:
        frontier.push(entry(key, number) for number, key in enumerate(KEYS_IN_ORDER))
        assert frontier.rerank((key, 0.5) for key in KEYS_IN_ORDER) == len(KEYS_IN_ORDER)
        assert keys_of(frontier.lease(1000)) == KEYS_IN_ORDER

    def test_a_score_may_change_there_and_back(self, frontier: Frontier) -> None:
        frontier.push([entry("a", 0.4), entry("b", 0.3)])
        for score in (0.1, 0.4, 0.2, 0.4):
            assert frontier.rerank([("a", score)]) == 1
        a, b = frontier.lease(3)
        assert (a.entry.score, b.entry.key, len(frontier)) == (0.4, "b", 0)
        assert frontier.give_back(a, attempted=False)
        assert keys_of(frontier.lease(3)) == ["a"]

    def test_of_several_new_scores_the_last_counts(self, frontier: Frontier) -> None:
        frontier.push([entry("a", 0.4), entry("b", 0.3), entry("c", 0.2)])
        assert frontier.rerank([("a", 0.9), ("c", 0.9), ("b", 0.5), ("a", 0.1), ("c", 0.2)]) == 2
        assert keys_of(frontier.lease(3)) == ["b", "c", "a"]

    def test_only_what_is_queued_and_scored_otherwise_changes(self, frontier: Frontier) -> None:
        frontier.push(entry(key, 0.5) for key in "abc")
        a, b = frontier.lease(2)
        assert frontier.settle(a, Outcome.ARCHIVED)
        assert frontier.rerank([]) == 0
        assert frontier.rerank([("a", 0.9), ("b", 0.9), ("c", 0.5), ("never pushed", 0.9)]) == 0
        assert (len(frontier), frontier.leased) == (1, 1)
        assert frontier.give_back(b, attempted=True)
        assert [lease.entry.score for lease in frontier.lease(9)] == [0.5, 0.5]

    def test_what_was_given_back_can_be_ranked_anew(self, frontier: Frontier) -> None:
        frontier.push([entry("a", 0.5), entry("b", 0.4)])
        (a,) = frontier.lease(1)
        assert frontier.give_back(a, attempted=True)
        assert frontier.rerank([("a", 0.3)]) == 1
        b, a = frontier.lease(2)
        assert (b.entry.key, a.entry) == ("b", replace(entry("a", 0.3), attempts=2))

    def test_many_new_scores_leave_everything_in_order(self, frontier: Frontier) -> None:
        keys = [f"{number:02d}" for number in range(50)]
        frontier.push(entry(key, 0.0) for key in keys)
        for turn in range(1, 100):
            assert frontier.rerank((key, turn / (1 + int(key))) for key in keys) == len(keys)
        assert len(frontier) == len(keys)
        assert [(lease.entry.key, lease.entry.score) for lease in frontier.lease(99)] == [
            (key, 99 / (1 + int(key))) for key in keys
        ]


def _reversed(key: str) -> tuple[int, ...]:
    """Sorts keys in descending order."""
    return (*(-ord(letter) for letter in key), 1)


class NaiveModel(RuleBasedStateMachine):
    """Does the same to a frontier and to a list that is sorted at every lease."""

    reranks: bool

    def __init__(self) -> None:
        super().__init__()
        self.caps = Caps()
        self.frontier: Frontier
        self.queued: list[Entry] = []
        self.leases: dict[int, Entry] = {}
        self.given_out: list[Lease] = []
        self.outcomes: Counter[tuple[Outcome, str | None]] = Counter()
        self.pushed: set[str] = set()

    def new_frontier(self, caps: Caps) -> Frontier:
        """An empty frontier of the store that is tested."""
        raise NotImplementedError

    @initialize(total=st.none() | st.integers(1, 12), per_host=st.none() | st.integers(1, 4))
    def open(self, total: int | None, per_host: int | None) -> None:
        self.caps = Caps(total, per_host)
        self.frontier = self.new_frontier(self.caps)

    def teardown(self) -> None:
        if hasattr(self, "frontier"):
            self.frontier.close()

    @rule(
        documents=st.dictionaries(st.text(max_size=3), _SCORES, max_size=6),
        depth=st.integers(0, 2**31 - 1),
        host=st.sampled_from(["one", "two", "three", ""]),
    )
    def push(self, documents: dict[str, float], depth: int, host: str) -> None:
        new = [self.entry_of(key, score, depth, host) for key, score in documents.items() if key not in self.pushed]
        self.pushed.update(documents)
        self.queued += [replace(one) for one in new]
        expected = self.beyond_host_cap({host_of(one.url) for one in new}) + self.beyond_total_cap()
        assert [(one.entry, one.reason) for one in self.frontier.push(new)] == expected
        self.outcomes.update((Outcome.DROPPED, reason) for _, reason in expected)

    def entry_of(self, key: str, score: float, depth: int, host: str) -> Entry:
        """A document to be pushed."""
        return entry(key, score, depth, "p", host)

    def beyond_host_cap(self, hosts: set[str]) -> list[tuple[Entry, str]]:
        gone: list[tuple[Entry, str]] = []
        for host in sorted(hosts - {""}) if self.caps.per_host is not None else []:
            of_host = [one for one in self.queued if host_of(one.url) == host]
            gone += self.evict(of_host, len(of_host) - self.caps.per_host, HOST_FULL)
        return gone

    def beyond_total_cap(self) -> list[tuple[Entry, str]]:
        if self.caps.total is None:
            return []
        return self.evict(self.queued, len(self.queued) - self.caps.total, FRONTIER_FULL)

    def evict(self, among: list[Entry], surplus: int, reason: str) -> list[tuple[Entry, str]]:
        worst = sorted(among, key=lambda one: (one.score, _reversed(one.key)))[: max(surplus, 0)]
        self.queued = [one for one in self.queued if one not in worst]
        return [(one, reason) for one in worst]

    @rule(n=st.integers(0, 5))
    def lease(self, n: int) -> None:
        self.queued.sort(key=lambda one: (-one.score, one.key))
        expected, self.queued = self.queued[:n], self.queued[n:]
        leases = self.frontier.lease(n)
        for one in expected:
            one.attempts += 1
        assert [lease.entry for lease in leases] == expected
        tokens = [lease.token for lease in leases]
        assert tokens == sorted(set(tokens))
        assert not tokens or not self.given_out or tokens[0] > self.given_out[-1].token
        self.leases.update(zip(tokens, expected, strict=True))
        self.given_out += leases

    @precondition(lambda self: self.given_out)
    @rule(data=st.data(), outcome=st.sampled_from(Outcome), reason=st.sampled_from(["timeout", "http_404"]))
    def settle(self, data: st.DataObject, outcome: Outcome, reason: str) -> None:
        lease = data.draw(st.sampled_from(self.given_out))
        counted = None if outcome is Outcome.ARCHIVED else reason
        held = self.leases.pop(lease.token, None)
        assert self.frontier.settle(lease, outcome, counted) is (held is not None)
        if held:
            self.outcomes[outcome, counted] += 1

    @precondition(lambda self: self.given_out)
    @rule(data=st.data(), attempted=st.booleans())
    def give_back(self, data: st.DataObject, attempted: bool) -> None:
        lease = data.draw(st.sampled_from(self.given_out))
        held = self.leases.pop(lease.token, None)
        assert self.frontier.give_back(lease, attempted=attempted) is (held is not None)
        if held:
            held.attempts -= not attempted
            self.queued.append(held)

    @precondition(lambda self: self.reranks)
    @rule(data=st.data())
    def rerank(self, data: st.DataObject) -> None:
        keys = st.one_of(st.sampled_from(sorted(self.pushed) or [""]), st.text(max_size=3))
        scores = data.draw(st.lists(st.tuples(keys, _SCORES), max_size=6))
        queued = {one.key: one for one in self.queued}
        changed = {key: score for key, score in dict(scores).items() if key in queued and queued[key].score != score}
        for key, score in changed.items():
            queued[key].score = score
        assert self.frontier.rerank(scores) == len(changed)

    @precondition(lambda self: hasattr(self, "frontier"))
    @invariant()
    def counts_agree(self) -> None:
        assert len(self.frontier) == len(self.queued)
        assert self.frontier.leased == len(self.leases)
        assert dict(self.frontier.outcomes) == dict(self.outcomes)
