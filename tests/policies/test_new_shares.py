"""How much less new a place is than the web: nothing if places are alike, nearly all if they are not."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

import pytest

from crawl4llm.base.shapes import fits
from crawl4llm.policies import _new_shares
from crawl4llm.policies._new_shares import STATE, NewShares

MANY = 10_000
Page = tuple[list[int], bool]
"""Places and whether the text is new."""


def pages(count: int, is_new: Callable[[int, int], bool], *, seed: int = 1) -> Iterator[Page]:
    """Pages of 40 hosts, large and small ones, each of 5 folders; ``is_new`` is asked by host and folder."""
    draw = random.Random(seed)
    for _ in range(count):
        host = min(int(draw.expovariate(1 / 8)), 39)
        folder = 1000 + 5 * host + draw.randrange(5)
        yield [host, folder], is_new(host, folder)


def told(of: Iterator[Page]) -> NewShares:
    shares = NewShares(MANY)
    for places, is_new in of:
        shares.add(places, is_new=is_new)
    return shares


def factors(shares: NewShares) -> dict[tuple[int, int], float]:
    return {(host, folder): shares.factor([host, folder]) for host in range(41) for folder in (1000 + 5 * host, 9999)}


def by_chance(rate: float, seed: int) -> Callable[[int, int], bool]:
    draw = random.Random(seed)
    return lambda *_: draw.random() < rate


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_known_pages_spread_over_all_hosts_change_nothing(rate: float, seed: int) -> None:
    shares = told(pages(2000, by_chance(rate, seed), seed=seed))
    assert shares.are_alike
    assert set(factors(shares).values()) == {1.0}


@pytest.mark.parametrize("is_new", [True, False])
def test_without_a_difference_there_is_no_evidence(*, is_new: bool) -> None:
    """All pages are new, or none is, however many there are and on however few hosts."""
    shares = NewShares(MANY)
    for places, new in pages(3000, lambda *_: is_new):
        assert not shares.add(places, is_new=new)
    assert set(factors(shares).values()) == {1.0}


def test_whole_hosts_are_soon_told_apart() -> None:
    shares = NewShares(MANY)
    first = next(
        number
        for number, (places, _) in enumerate(pages(2000, lambda *_: True))
        if shares.add(places, is_new=places[0] % 2 == 0)
    )
    assert first < 50
    shares = told(pages(400, lambda host, _: host % 2 == 0))
    assert all(shares.factor([host, 9999]) < 0.1 for host in range(1, 20, 2))
    assert all(shares.factor([host, 9999]) == 1 for host in range(0, 20, 2))
    assert shares.factor([77, 9999]) == 1, "an unknown host is as the web"


def test_folders_are_told_apart_on_hosts_that_are_alike() -> None:
    shares = told(pages(2000, lambda _, folder: folder % 5 != 0))
    for host in range(10):
        assert shares.factor([host, 1000 + 5 * host]) < 0.2
        assert shares.factor([host, 1001 + 5 * host]) == 1


def test_places_lose_that_have_less_than_half_of_the_webs_share() -> None:
    """Hosts whose shares are drawn from a uniform distribution: a beta distribution of strength 2."""
    draw = random.Random(3)
    rates = [draw.random() for _ in range(40)]
    shares = told(pages(4000, lambda host, _: draw.random() < rates[host]))
    half = sum(rates) / 40 * _new_shares._LOSING
    assert [shares.factor([host, 9999]) for host in range(12)] == pytest.approx(
        [min(rates[host] / half, 1) for host in range(12)], abs=0.2
    )
    assert sum(rates[host] < half for host in range(12)) > 2
    found = []
    for _ in range(8):
        shares.add([60, 9998], is_new=False)
        found.append(shares.factor([60, 9999]))
    assert found == sorted(found, reverse=True)
    assert 0.1 < found[-1] < 0.6, "it leans on the web's share"


def test_factors_are_shares_in_the_longest_crawl() -> None:
    """A page that is known where millions were new is no error, although shares are rounded to 1."""
    shares = NewShares(MANY)
    places, web, odds, *rest = shares.save()
    counts = [[place, float(10**12), 10**12] for place in range(3)]
    shares.load([[*places, *counts], [[1e12, 0.0]] * len(web), odds, *rest])
    for _ in range(3):
        shares.add([0, 1, 2], is_new=False)
    assert all(0 < factor <= 1 for factor in factors(shares).values())


@pytest.mark.parametrize("is_new", [lambda host, _: host % 3 > 0, by_chance(0.5, 5)])
def test_what_is_saved_goes_on_alike(is_new: Callable[[int, int], bool]) -> None:
    told_of = list(pages(600, is_new))
    whole, again = told(iter(told_of)), NewShares(MANY)
    for number, (places, new) in enumerate(told_of):
        if number % 37 == 0:
            state = json.loads(json.dumps(again.save()))
            assert fits([state], STATE)
            again = NewShares(MANY)
            again.load(state)
            assert json.loads(json.dumps(again.save())) == state
        again.add(places, is_new=new)
    assert again.save() == whole.save()
    assert factors(again) == factors(whole)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (0, [[1, 3.0, 2]]),
        (1, [[3.0, 2.0]]),
        (1, [[-1.0, 2.0]] * len(_new_shares._HOST_STRENGTHS)),
        (2, [0.0]),
        (2, [float("nan")] * len(_new_shares._PRIORS)),
        (3, -1),
        (4, len(_new_shares._PRIORS)),
        (4, -1),
        (5, 0.0),
        (5, float("nan")),
    ],
)
def test_a_damaged_state_is_none(field: int, value: object) -> None:
    state = told(pages(50, lambda host, _: host % 2 == 0)).save()
    state[field] = value
    assert not fits([state], STATE)
