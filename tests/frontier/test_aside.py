"""Documents set aside are kept by scope, best first, in memory and in a store alike."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import pytest
from frontier_contract import KEYS_IN_ORDER, SCORES_IN_ORDER

from crawl4llm.frontier import Entry
from crawl4llm.frontier.aside import Aside, MemoryAside, StoredAside
from crawl4llm.frontier.store import Store


@pytest.fixture(params=["memory", "store"])
def aside(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Aside]:
    if request.param == "memory":
        yield MemoryAside()
        return
    store = Store(tmp_path / "store.mdb", fsync=False)
    yield StoredAside(store)
    store.close()


def test_the_best_of_a_scope_come_first(aside: Aside) -> None:
    scores = random.Random(0).sample(SCORES_IN_ORDER, len(SCORES_IN_ORDER))
    for number, score in enumerate(scores):
        url = f"http://a.example/b/{number}"
        aside.add("a.example", "a.example/b/", Entry(str(number), url, score, 1, "p", 2, 1, 3))
        aside.add("a.example", "a.example/c/", Entry(f"c{number}", "", score, 0, None))
        aside.add("b.example", "b.example", Entry(f"b{number}", "", score, 0, None))
    assert len(aside) == 3 * len(scores)
    taken = aside.take("a.example", "a.example/b/", 5) + aside.take("a.example", "a.example/b/", 999)
    assert [entry.score for entry in taken] == SCORES_IN_ORDER
    assert astuple(taken[0])[3:] == (1, "p", 2, 1, 3)
    assert aside.take("a.example", "a.example/b/", 9) == aside.take("c.example", "c.example", 9) == []
    assert [entry.score for entry in aside.take("a.example", "a.example/c/", 9)] == SCORES_IN_ORDER[:9]
    assert len(aside) == 2 * len(scores) - 9


def test_keys_of_any_length(aside: Aside) -> None:
    for key in reversed(KEYS_IN_ORDER):
        aside.add("a.example", "a.example", Entry(key, "", 0.5, 0, None))
    taken = [entry.key for entry in aside.take("a.example", "a.example", 999)]
    short = [key for key in taken if len(key) < 400]
    assert (short, sorted(taken)) == ([key for key in KEYS_IN_ORDER if len(key) < 400], KEYS_IN_ORDER)
    assert len(aside) == 0


def test_all_of_an_owner(aside: Aside) -> None:
    for number in range(9):
        aside.add("a.example", f"a.example/{number % 3}/", Entry(f"a{number}", "", 0.5, 0, None))
        aside.add("b.example", "b.example", Entry(f"b{number}", "", 0.5, 0, None))
    found = [*aside.take_owner("a.example", 4), *aside.take_owner("a.example", 4)]
    assert len(found) == 8
    found += aside.take_owner("a.example", 4)
    assert sorted(entry.key for entry in found) == [f"a{number}" for number in range(9)]
    assert (aside.take_owner("a.example", 4), len(aside)) == ([], 9)


def test_a_purge_takes_out_what_is_unwanted(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.mdb", fsync=False)
    aside = StoredAside(store)
    for number in range(30):
        aside.add("a.example", f"a.example/{number % 4}/", Entry(f"{number:02d}", "", number / 10, 0, None))
    gone = [entry.key for piece in aside.purge(lambda entry: int(entry.key) % 3 == 0) for entry in piece]
    assert sorted(gone) == [f"{number:02d}" for number in range(0, 30, 3)]
    assert sorted(entry.key for entry in aside) == [f"{number:02d}" for number in range(30) if number % 3]
    assert len(aside) == 20
    store.close()
