"""Every visited set keeps the visited set's contract: exact, whatever the keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings, strategies as st
from visited_helpers import ROOMY, TIGHT, Reopened, small_parts

from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.frontier.visited import VisitedSet

KINDS: dict[str, Callable[[], VisitedSet]] = {
    "memory": MemoryVisited,
    "durable, all in its cache": lambda: Reopened(1_000_000, ROOMY),
    "durable, with filter": lambda: Reopened(4, ROOMY),
    "durable, without cache and filter": lambda: Reopened(0, TIGHT),
}


@pytest.fixture(scope="module", autouse=True)
def _parts() -> Iterator[None]:
    with small_parts():
        yield


@pytest.fixture(params=list(KINDS.values()), ids=list(KINDS))
def visited(request: pytest.FixtureRequest) -> VisitedSet:
    """An empty visited set, of each kind."""
    made: VisitedSet = request.param()
    return made


def test_new_keys_are_told_once_in_the_order_given(visited: VisitedSet) -> None:
    assert visited.add(["b", "a", "b", "c", "a"]) == ["b", "a", "c"]
    assert visited.add(["c", "d", "a", "d"]) == ["d"]
    assert visited.add([]) == []
    assert len(visited) == 4


def test_keys_may_come_from_a_generator(visited: VisitedSet) -> None:
    visited.add(["2"])
    assert visited.add(str(number) for number in range(4)) == ["0", "1", "3"]


def test_only_added_keys_are_in_it(visited: VisitedSet) -> None:
    visited.add(["a", "http://example.org/"])
    assert "a" in visited
    assert "http://example.org/" in visited
    assert [key for key in ("", "A", "a ", "http://example.org", "b") if key in visited] == []


def test_something_other_than_a_key_is_not_in_it(visited: VisitedSet) -> None:
    visited.add(["1", "None"])
    assert 1 not in visited
    assert None not in visited
    assert b"1" not in visited


def test_keys_that_look_alike_are_told_apart(visited: VisitedSet) -> None:
    alike = ["", "\0", "a", "a\0", "a\0\0", " a", "ä", "a\u0308", "\ud800", "\U00010000", "x" * 5000, "x" * 5001]
    assert visited.add(alike) == alike
    assert visited.add(alike) == []
    assert len(visited) == len(alike)


def test_nothing_is_lost_among_many(visited: VisitedSet) -> None:
    def keys(start: int) -> list[str]:
        return [f"clueweb22-en{number // 5:04d}-{number % 97:02d}-{number:05d}" for number in range(start, 20_000, 2)]

    assert visited.add(keys(0)) == keys(0)
    assert visited.add(keys(1)) == keys(1)
    assert len(visited) == 20_000
    assert visited.add(keys(0) + keys(1)) == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
@settings(max_examples=60, deadline=None)
@given(batches=st.lists(st.lists(st.text(max_size=2), max_size=8), max_size=8))
def test_it_agrees_with_a_list(kind: Callable[[], VisitedSet], batches: list[list[str]]) -> None:
    visited, seen = kind(), list[str]()
    for batch in batches:
        new: list[str] = []
        for key in batch:
            if key not in seen:
                seen.append(key)
                new.append(key)
        assert visited.add(batch) == new
        assert len(visited) == len(seen)
    assert all(key in visited for key in seen)
