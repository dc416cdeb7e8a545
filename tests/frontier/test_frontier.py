"""Every frontier keeps one contract, whatever its medium and its order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from frontier_contract import (
    CELLS,
    KEYS_IN_ORDER,
    KINDS,
    SCORES_IN_ORDER,
    TARGETS,
    Kind,
    Opened,
    entry,
    keys_of,
    owner,
)
from frontier_model import run_model

from crawl4llm.base.reasons import FRONTIER_FULL, HOST_FULL, OPT_OUT
from crawl4llm.frontier import IMPATIENT, MOST_HOPS, Caps, Entry, Lease, Outcome, OwnerCounts, Patience, plain, runs
from crawl4llm.frontier.frontier import NO_CAPS
from crawl4llm.frontier.memory import MemoryDocuments, MemoryQueues
from crawl4llm.frontier.opening import open_frontier
from crawl4llm.frontier.store import Store, StoreError

New = Callable[..., Opened]
"""Opens an empty frontier, with caps and patience."""


class Variant(NamedTuple):
    """A frontier that is tested."""

    kind: Kind
    every: int | None = None
    """It is opened anew before each so manieth call, and lies in small pieces."""


def variants(kinds: list[Kind], *, whole: bool = False) -> pytest.MarkDecorator:
    """Test these kinds; ``whole``: never opened anew."""
    found = [Variant(kind) for kind in kinds]
    if not whole:
        found += [Variant(kind, 2) for kind in kinds if kind.stored]
    names = [f"{one.kind.name}{', opened anew' if one.every else ''}" for one in found]
    return pytest.mark.parametrize("variant", found, ids=names)


reranking = variants([kind for kind in KINDS if kind.reranks])
owned = variants([kind for kind in KINDS if kind.by_owners], whole=True)
"""What owners do ends with the process."""
every = variants(KINDS)


@pytest.fixture
def new(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> Iterator[New]:
    if variant.every:  # blocks of a few records and merges of a few runs, a few records at a time
        monkeypatch.setattr(runs, "_BLOCK_BYTES", 200)
        monkeypatch.setattr(runs, "_FAN_IN", 2)
        monkeypatch.setattr(runs, "_LEAST_MOVES", 2)
        monkeypatch.setattr(plain, "MOST_FRESH", 4)
    opened: list[Opened] = []

    def open_one(caps: Caps = NO_CAPS, patience: Patience = IMPATIENT) -> Opened:
        opened.append(variant.kind.open(caps, patience, every=variant.every, time=0.0))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def frontier(new: New) -> Opened:
    return new()


# -- order ----------------------------------------------------------------------------------------------------


@every
def test_the_best_come_first_to_the_last_bit(frontier: Opened) -> None:
    scores = SCORES_IN_ORDER
    assert scores == sorted(scores, reverse=True)
    frontier.push(entry(str(number), score) for number, score in enumerate(scores[::2]))
    frontier.push(entry(f"{number} later", score) for number, score in enumerate(scores[1::2]))
    assert [lease.entry.score for lease in frontier.lease_any(1000)] == scores


@every
def test_ties_break_by_key_ascending(frontier: Opened) -> None:
    frontier.push(entry(key, 0.5) for key in reversed(KEYS_IN_ORDER))
    frontier.push([entry("best", 0.6), entry("worst", 0.4)])
    assert keys_of(frontier.lease_any(1000)) == ["best", *KEYS_IN_ORDER, "worst"]


@every
def test_the_two_zeros_tie(frontier: Opened) -> None:
    frontier.push([entry("c", 0.0), entry("b", -0.0), entry("a", 0.0), entry("d", -0.0)])
    assert keys_of(frontier.lease_any(4)) == ["a", "b", "c", "d"]


@every
def test_fewer_are_leased_where_there_are_no_more(frontier: Opened) -> None:
    assert frontier.lease_any(3) == []
    frontier.push([])
    frontier.push([entry("a", 0.1), entry("b", 0.2)])
    assert frontier.lease_any(0) == []
    assert keys_of(frontier.lease_any(1)) == ["b"]
    assert keys_of(frontier.lease_any(3)) == ["a"]
    assert frontier.lease_any(1) == []


@every
def test_a_better_document_overtakes_those_queued(frontier: Opened) -> None:
    frontier.push([entry("a", 0.1), entry("b", 0.2)])
    assert keys_of(frontier.lease_any(1)) == ["b"]
    frontier.push([entry("c", 0.3), entry("d", 0.05)])
    assert keys_of(frontier.lease_any(3)) == ["c", "a", "d"]


# -- what an entry holds --------------------------------------------------------------------------------------


@every
def test_a_lease_gives_back_all_that_was_pushed(frontier: Opened) -> None:
    entries = [
        Entry("page", "http://example.org/ä?a=b#c", 1 / 3, 2**31 - 1, "key of its parent"),
        Entry("seed", "", 0.25, 0, None),
        Entry("empty parent", "http://example.org/", 0.125, 1, ""),
        Entry("http://far/", "http://far/", -0.0, 1, "http://near/", hops=MOST_HOPS),
    ]
    frontier.push(replace(one) for one in entries)
    leased = [lease.entry for lease in frontier.lease_any(4)]
    assert leased == [replace(one, attempts=1) for one in entries]


# -- leases ---------------------------------------------------------------------------------------------------


@every
def test_a_document_is_leased_once(frontier: Opened) -> None:
    frontier.push([entry("a", 0.1)])
    (lease,) = frontier.lease_any(1)
    assert (len(frontier), frontier.leased) == (0, 1)
    assert frontier.lease_any(1) == []
    assert frontier.settle(lease, Outcome.ARCHIVED)
    assert (len(frontier), frontier.leased) == (0, 0)
    assert frontier.lease_any(1) == []


@every
def test_tokens_ascend(frontier: Opened) -> None:
    frontier.push(entry(key, 0.5) for key in "dbca")
    tokens = [lease.token for lease in frontier.lease_any(2)]
    first, *_ = leases = frontier.lease_any(1)
    frontier.give_back(first, attempted=True)
    leases += frontier.lease_any(2)
    tokens += [lease.token for lease in leases]
    assert tokens == sorted(set(tokens))


@every
def test_what_is_withdrawn_is_gone_and_may_come_again(frontier: Opened) -> None:
    frontier.push([entry("a", 0.3), entry("b", 0.2)])
    (a,) = frontier.lease_any(1)
    withdrawn = frontier.withdraw(a)
    assert withdrawn == entry("a", 0.3)
    assert (len(frontier), frontier.leased, dict(frontier.outcomes)) == (1, 0, {})
    assert frontier.withdraw(a) is None
    assert not frontier.settle(a, Outcome.ARCHIVED)
    frontier.push([withdrawn])
    assert [lease.entry.attempts for lease in frontier.lease_any(2)] == [1, 1]


@every
def test_what_is_given_back_keeps_its_place(frontier: Opened) -> None:
    frontier.push([entry("a", 0.3), entry("b", 0.2), entry("c", 0.1)])
    a, b = frontier.lease_any(2)
    assert frontier.give_back(b, attempted=True)
    assert frontier.give_back(a, attempted=True)
    assert (len(frontier), frontier.leased) == (3, 0)
    assert keys_of(frontier.lease_any(3)) == ["a", "b", "c"]


@every
def test_attempts_count_the_leases_that_were_attempted(frontier: Opened) -> None:
    frontier.push([entry("a", 0.1)])
    seen = []
    for attempted in (True, False, False, True, True):
        (lease,) = frontier.lease_any(1)
        seen.append(lease.entry.attempts)
        assert frontier.give_back(lease, attempted=attempted)
    assert seen == [1, 2, 2, 2, 3]


@every
def test_what_is_said_late_is_ignored(frontier: Opened) -> None:
    frontier.push([entry("a", 0.1)])
    (late,) = frontier.lease_any(1)
    assert frontier.give_back(late, attempted=True)
    _assert_ended(frontier, late)
    (lease,) = frontier.lease_any(1)
    _assert_ended(frontier, late)
    assert (len(frontier), frontier.leased) == (0, 1)
    assert frontier.settle(lease, Outcome.FAILED, "http_404")
    _assert_ended(frontier, lease)
    _assert_ended(frontier, late)
    assert (len(frontier), frontier.leased) == (0, 0)
    assert frontier.outcomes == {(Outcome.FAILED, "http_404"): 1}


def _assert_ended(frontier: Opened, lease: Lease) -> None:
    assert not frontier.settle(lease, Outcome.ARCHIVED)
    assert not frontier.give_back(lease, attempted=True)
    assert not frontier.give_back(lease, attempted=False)


@every
def test_outcomes_are_counted_by_reason(frontier: Opened) -> None:
    frontier.push(entry(key, 0.5) for key in "abcdef")
    a, b, c, d, e, _ = frontier.lease_any(6)
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


@every
def test_the_worst_leave_a_full_frontier(new: New) -> None:
    frontier = new(Caps(total=3))
    assert frontier.push([entry("a", 0.5), entry("b", 0.1), entry("c", 0.3)]) == []
    evicted = frontier.push([entry("d", 0.2), entry("e", 0.4), entry("f", 0.1)])
    assert [(one.entry.key, one.reason) for one in evicted] == [(key, FRONTIER_FULL) for key in "fbd"]
    assert keys_of(frontier.lease_any(9)) == ["a", "e", "c"]
    assert frontier.outcomes == {(Outcome.DROPPED, FRONTIER_FULL): 3}


@every
def test_the_worst_of_a_host_leave_first(new: New) -> None:
    frontier = new(Caps(total=4, per_host=2))
    frontier.push([entry("a", 0.5, host="one"), entry("b", 0.1, host="two"), entry("c", 0.3, host="one")])
    evicted = frontier.push([entry(key, score, host="one") for key, score in zip("de", (0.2, 0.9), strict=True)])
    assert [(one.entry.key, one.reason) for one in evicted] == [("d", HOST_FULL), ("c", HOST_FULL)]
    evicted = frontier.push([entry("f", 0.2, host=""), entry("g", 0.1, host="")])
    assert [(one.entry.key, one.reason) for one in evicted] == [("g", FRONTIER_FULL)]
    assert keys_of(frontier.lease_any(9)) == ["e", "a", "f", "b"]


@every
def test_what_is_on_lease_is_never_evicted(new: New) -> None:
    frontier = new(Caps(total=1, per_host=1))
    frontier.push([entry("a", 0.1)])
    (lease,) = frontier.lease_any(1)
    assert frontier.push([entry("b", 0.9)]) == []
    assert frontier.give_back(lease, attempted=True)
    assert [one.entry.key for one in frontier.push([entry("c", 0.5)])] == ["a", "c"]
    assert keys_of(frontier.lease_any(9)) == ["b"]


# -- new scores ---------------------------------------------------------------------------------------------------


@reranking
def test_a_new_score_gives_a_new_place(frontier: Opened) -> None:
    frontier.push([entry("a", 0.4), entry("b", 0.3), entry("c", 0.2), entry("d", 0.1)])
    assert frontier.rerank([("d", 0.35), ("a", 0.15)]) == 2
    assert len(frontier) == 4
    assert [(lease.entry.key, lease.entry.score) for lease in frontier.lease_any(9)] == [
        ("d", 0.35),
        ("b", 0.3),
        ("c", 0.2),
        ("a", 0.15),
    ]
    assert (len(frontier), frontier.leased) == (0, 4)


@reranking
def test_scores_change_to_the_last_bit(frontier: Opened) -> None:
    keys = [str(number) for number in range(len(SCORES_IN_ORDER))]
    frontier.push(entry(key, 0.5) for key in keys)
    assert frontier.rerank(zip(keys, SCORES_IN_ORDER, strict=True)) == len(keys)
    assert [lease.entry.score for lease in frontier.lease_any(1000)] == SCORES_IN_ORDER


@reranking
def test_documents_that_now_tie_are_taken_by_key(frontier: Opened) -> None:
    frontier.push(entry(key, number) for number, key in enumerate(KEYS_IN_ORDER))
    assert frontier.rerank((key, 0.5) for key in KEYS_IN_ORDER) == len(KEYS_IN_ORDER)
    assert keys_of(frontier.lease_any(1000)) == KEYS_IN_ORDER


@reranking
def test_a_score_may_change_there_and_back(frontier: Opened) -> None:
    frontier.push([entry("a", 0.4), entry("b", 0.3)])
    for score in (0.1, 0.4, 0.2, 0.4):
        assert frontier.rerank([("a", score)]) == 1
    a, b = frontier.lease_any(3)
    assert (a.entry.score, b.entry.key, len(frontier)) == (0.4, "b", 0)
    assert frontier.give_back(a, attempted=False)
    assert keys_of(frontier.lease_any(3)) == ["a"]


@reranking
def test_of_several_new_scores_the_last_counts(frontier: Opened) -> None:
    frontier.push([entry("a", 0.4), entry("b", 0.3), entry("c", 0.2)])
    assert frontier.rerank([("a", 0.9), ("c", 0.9), ("b", 0.5), ("a", 0.1), ("c", 0.2)]) == 2
    assert keys_of(frontier.lease_any(3)) == ["b", "c", "a"]


@reranking
def test_only_what_is_queued_and_scored_otherwise_changes(frontier: Opened) -> None:
    frontier.push(entry(key, 0.5) for key in "abc")
    a, b = frontier.lease_any(2)
    assert frontier.settle(a, Outcome.ARCHIVED)
    assert frontier.rerank([]) == 0
    assert frontier.rerank([("a", 0.9), ("b", 0.9), ("c", 0.5), ("never pushed", 0.9)]) == 0
    assert (len(frontier), frontier.leased) == (1, 1)
    assert frontier.give_back(b, attempted=True)
    assert [lease.entry.score for lease in frontier.lease_any(9)] == [0.5, 0.5]


@reranking
def test_what_was_given_back_can_be_ranked_anew(frontier: Opened) -> None:
    frontier.push([entry("a", 0.5), entry("b", 0.4)])
    (a,) = frontier.lease_any(1)
    assert frontier.give_back(a, attempted=True)
    assert frontier.rerank([("a", 0.3)]) == 1
    b, a = frontier.lease_any(2)
    assert (b.entry.key, a.entry) == ("b", replace(entry("a", 0.3), attempts=2))


@reranking
def test_many_new_scores_leave_everything_in_order(frontier: Opened) -> None:
    keys = [f"{number:02d}" for number in range(50)]
    frontier.push(entry(key, 0.0) for key in keys)
    for turn in range(1, 100):
        assert frontier.rerank((key, turn / (1 + int(key))) for key in keys) == len(keys)
    assert len(frontier) == len(keys)
    assert [(lease.entry.key, lease.entry.score) for lease in frontier.lease_any(99)] == [
        (key, 99 / (1 + int(key))) for key in keys
    ]


# -- one exchange at a time -----------------------------------------------------------------------------------


@owned
def test_the_best_document_of_each_owner_is_leased(frontier: Opened) -> None:
    frontier.push([entry("a", 0.9, host="one"), entry("b", 0.8, host="one"), entry("c", 0.1, host="one")])
    frontier.push([entry("d", 0.5, host="two"), entry("e", 0.7, host="three"), entry("f", 0.5, host="four")])
    assert keys_of(frontier.lease(3)) == ["a", "e", "d"]
    assert keys_of(frontier.lease(9)) == ["f"]
    assert frontier.lease(9) == []
    assert (len(frontier), frontier.leased) == (2, 4)
    assert frontier.owners.counts == OwnerCounts(0, 0, 4, 0)
    assert frontier.owners.documents == OwnerCounts(0, 0, 2, 0)


@owned
def test_the_hosts_of_a_registrable_domain_are_one_owner(frontier: Opened) -> None:
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


@owned
def test_a_seed_belongs_to_the_owner_of_its_key(frontier: Opened) -> None:
    frontier.push([Entry("http://one/", "", 0.5, 0, None), entry("a", 0.4, host="one")])
    assert keys_of(frontier.lease(9)) == ["http://one/"]


@owned
def test_who_has_no_owner_never_waits(frontier: Opened) -> None:
    nobody = ["", "mailto:a@example.org", "http://", f"http://{'a.' * 150}example/"]
    frontier.push(Entry(f"{place} {url}", url, 0.5, 0, None) for place, url in enumerate(nobody))
    assert not frontier.owners.hold("", 9)
    assert not frontier.owners.park("")
    assert len(leases := frontier.lease(3)) == 3
    assert frontier.give_back(leases[0], attempted=True)
    assert [lease.entry.url for lease in frontier.lease(9)] == [nobody[0], nobody[3]]
    assert not frontier.owners.release("", 9)


@owned
def test_an_exchange_ends_by_release_alone(frontier: Opened) -> None:
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


@owned
def test_an_exchange_may_be_for_no_document(frontier: Opened) -> None:
    frontier.push([entry("a", 0.9)])
    assert frontier.owners.occupy("example.org")
    assert not frontier.owners.occupy("example.org")
    assert frontier.lease(1) == []
    assert frontier.owners.release("example.org", 5)
    assert not frontier.owners.occupy("example.org")
    frontier.tick(5)
    assert frontier.owners.occupy("example.org")
    assert frontier.owners.occupy("never.example")
    assert frontier.owners.counts == OwnerCounts(0, 0, 2, 0)
    assert frontier.owners.release("never.example", 9)
    assert frontier.owners.ready_at("never.example") == 9


# -- waits ----------------------------------------------------------------------------------------------------


@owned
def test_who_waits_blocks_nobody(frontier: Opened) -> None:
    frontier.push([entry("a", 0.9, host="one"), entry("b", 0.8, host="one"), entry("c", 0.1, host="two")])
    frontier.lease(1)
    frontier.owners.release("one", 5.0)
    assert frontier.owners.counts == OwnerCounts(1, 1, 0, 0)
    assert keys_of(frontier.lease(9)) == ["c"]
    assert frontier.owners.next_ready() == 5
    frontier.tick(math.nextafter(5, 0))
    assert frontier.lease(9) == []
    frontier.tick(5)
    assert frontier.owners.next_ready() == 5
    assert keys_of(frontier.lease(9)) == ["b"]
    assert frontier.owners.next_ready() is None


@owned
def test_time_does_not_go_back(frontier: Opened) -> None:
    frontier.tick(7)
    frontier.tick(3)
    assert frontier.owners.now == 7


@owned
def test_the_latest_of_several_times_holds(frontier: Opened) -> None:
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


@owned
def test_an_owner_can_be_held_before_anything_of_it_is_queued(frontier: Opened) -> None:
    assert frontier.owners.hold("example.org", 60)
    assert frontier.owners.next_ready() is None
    frontier.push([entry("a", 0.9)])
    assert frontier.lease(9) == []
    assert frontier.owners.next_ready() == 60


@owned
def test_all_are_held_at_once(frontier: Opened) -> None:
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
    frontier.tick(5)
    assert keys_of(frontier.lease(9)) == ["a", "c"]


@owned
def test_order_is_that_of_the_moment(frontier: Opened) -> None:
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
    frontier.tick(5)
    leases = frontier.lease(9)
    assert [(lease.entry.key, lease.entry.attempts) for lease in leases] == [("c", 2), ("a", 1)]
    for name in ("one", "two"):
        frontier.owners.release(name, 0)
    assert keys_of(frontier.lease(9)) == ["d", "b"]


# -- parking and dropping -------------------------------------------------------------------------------------


@owned
def test_parked_owners_keep_their_documents(frontier: Opened) -> None:
    frontier.push([entry("a", 0.9, host="one"), entry("b", 0.8, host="one"), entry("c", 0.1, host="two")])
    frontier.lease(1)
    assert frontier.owners.park("one")
    assert not frontier.owners.park("one")
    assert frontier.owners.is_parked("one")
    assert not frontier.owners.is_parked("two")
    frontier.owners.release("one", 5)
    assert (frontier.owners.counts, len(frontier)) == (OwnerCounts(1, 0, 0, 1), 2)
    assert frontier.owners.documents == OwnerCounts(1, 0, 0, 1)
    frontier.tick(9)
    assert not frontier.owners.occupy("one")
    assert keys_of(frontier.lease(9)) == ["c"]
    assert frontier.owners.next_ready() is None
    frontier.owners.hold("one", 12)
    assert frontier.owners.unpark("one")
    assert not frontier.owners.unpark("one")
    assert frontier.owners.next_ready() == 12
    frontier.tick(12)
    assert keys_of(frontier.lease(9)) == ["b"]


@owned
def test_what_is_queued_of_an_owner_ends_in_pieces(frontier: Opened) -> None:
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


@owned
def test_caps_count_whoever_waits(new: New) -> None:
    frontier = new(Caps(total=2))
    frontier.push([entry("a", 0.1, host="one"), entry("b", 0.2, host="one")])
    frontier.owners.hold("one", 5)
    evicted = frontier.push([entry("c", 0.3, host="two")])
    assert [(one.entry.key, one.reason) for one in evicted] == [("a", FRONTIER_FULL)]
    assert frontier.owners.documents == OwnerCounts(1, 1, 0, 0)
    evicted = frontier.push([entry("d", 0.4, host="two")])
    assert [one.entry.key for one in evicted] == ["b"]
    assert frontier.owners.counts == OwnerCounts(1, 0, 0, 0)
    frontier.tick(5)
    assert keys_of(frontier.lease(9)) == ["d"]


# -- patience -------------------------------------------------------------------------------------------------


@owned
def test_what_scores_below_a_quantile_of_what_waits_is_not_leased(new: New) -> None:
    frontier = new(patience=Patience(0.5))
    owners = frontier.owners
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
    frontier.tick(10)
    assert keys_of(frontier.lease(9)) == ["4"]
    assert frontier.lease(9) == []
    owners.park("host6")
    assert keys_of(frontier.lease(9)) == ["0"], "of 0.5 and 0.05; what is parked does not count"


@owned
def test_the_longest_patience(new: New) -> None:
    frontier = new(patience=Patience(1.0, longest=5.0))
    frontier.push([entry("best", 0.9, host="one"), entry("good", 0.5, host="two"), entry("worse", 0.1)])
    frontier.owners.hold("one", 60)
    frontier.owners.hold("two", 5)
    assert frontier.lease(9) == []
    assert frontier.owners.next_ready() == 5
    frontier.tick(5)
    assert keys_of(frontier.lease(9)) == ["good", "worse"], "a minute is longer"


# -- classes ------------------------------------------------------------------------------------------------------


def in_cell(cell: int, key: str, score: float, host: str = "example.org") -> Entry:
    return Entry(key, f"http://{host}/{key}", score, 1, "p", cell=cell)


@pytest.mark.parametrize("stored", [False, True])
def test_the_class_furthest_below_its_share_is_served_with_its_best_document(stored: bool) -> None:
    frontier = Kind("", stored=stored, by_classes=True).open(targets=TARGETS, every=2)
    shares = frontier.shares
    first, second, third = (shares.cell_of((number, 0)) for number in range(3))
    frontier.push(in_cell(first, f"a{number}", 0.1 * number) for number in range(6))
    frontier.push(in_cell(second, f"b{number}", 10.0 + number) for number in range(3))
    frontier.push([in_cell(third, "c", -1.0), in_cell(0, "seed", -9.0)])
    leases = frontier.lease(8)
    assert keys_of(leases) == ["seed", "a5", "b2", "c", "a4", "a3", "b1", "a2"]
    assert keys_of(frontier.lease(9)) == ["b0", "a1", "a0"]
    for lease in leases[1:4]:
        assert frontier.settle(lease, Outcome.ARCHIVED)
        frontier.shares.count((1, 0))
    for lease in leases[4:6]:
        assert frontier.give_back(lease, attempted=True)
    frontier.push([in_cell(second, "b9", 99.0), in_cell(third, "c9", 9.0)])
    assert keys_of(frontier.lease(9)) == ["c9", "a4", "a3", "b9"], "three were of another class than was thought"
    frontier.close()


@pytest.mark.parametrize("stored", [False, True])
def test_documents_keep_their_cell(stored: bool) -> None:
    frontier = Kind("", stored=stored, by_owners=True, by_classes=True).open(targets=TARGETS, time=0.0)
    frontier.tick(0)
    entries = [in_cell(cell, f"{cell}", 0.5, host=f"host{cell}.example") for cell in range(CELLS)]
    frontier.push(replace(one) for one in entries)
    assert frontier.rerank((one.key, 0.75) for one in entries) == CELLS
    found = sorted((lease.entry for lease in frontier.lease(99)), key=lambda one: one.cell)
    assert found == [replace(one, score=0.75, attempts=1) for one in entries]
    frontier.close()


# -- everything at once -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_it_agrees_with_a_naive_model(kind: Kind) -> None:
    run_model(kind)


PATIENT = [kind for kind in KINDS if kind.by_owners and not kind.by_classes]


@pytest.mark.parametrize("kind", PATIENT, ids=[kind.name for kind in PATIENT])
def test_it_agrees_with_a_naive_model_that_is_patient(kind: Kind) -> None:
    run_model(kind, Patience(0.6, 2.0))


# -- what an order cannot do --------------------------------------------------------------------------------------


def test_sorted_runs_find_no_document(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.mdb", fsync=False)
    frontier = open_frontier(store)
    assert frontier.rerank([]) == 0
    with pytest.raises(TypeError, match="not opened to rerank"):
        frontier.rerank([("a", 0.5)])
    store.close()


def test_a_store_of_another_order_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.mdb", fsync=False)
    open_frontier(store).save()
    with pytest.raises(StoreError, match="its frontier is ordered by score, and not by score, indexed; restore"):
        open_frontier(store, reranks=True)
    with pytest.raises(StoreError, match="its frontier is ordered by score, and not by owners, "):
        open_frontier(store, by_owners=True)
    store.close()


# -- what is stale in memory --------------------------------------------------------------------------------------


def test_stale_places_are_cleared_away() -> None:
    documents = MemoryDocuments(None, by_host=False)
    for number in range(1000):
        documents.add(entry(str(number), 0.0))
    for turn in range(1, 100):
        documents.rerank((str(number), turn / (number + 1)) for number in range(1000))
    assert len(documents._heap) <= 4000
    assert [one.key for one in documents.take(1000)] == [str(number) for number in range(1000)]


def test_stale_places_of_a_queue_are_cleared_away(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[MemoryQueues] = []
    init = MemoryQueues.__init__
    monkeypatch.setattr(MemoryQueues, "__init__", lambda self, *given: (made.append(self), init(self, *given))[1])
    frontier = KINDS[1].open(Caps(total=1000))
    (queues,) = made
    frontier.push(entry(str(number), 0.0) for number in range(1000))
    for turn in range(1, 20):
        frontier.rerank((str(number), turn / (number + 1)) for number in range(1000))
        assert len(queues._others["example.org"]) <= 2100
    frontier.push(entry(f"better {number}", 99.0, host="better.example") for number in range(990))
    assert frontier.owners.queued_of("example.org") == 10
    assert len(queues._others["example.org"]) <= 40
    assert keys_of(frontier.lease_any(2000))[990:] == [str(number) for number in range(10)]
