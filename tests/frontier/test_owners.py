"""The owner index holds no more than it needs, however much was said to it."""

from __future__ import annotations

import random
from bisect import insort

import pytest

from crawl4llm.base.domains import owner_of
from crawl4llm.frontier import OwnerCounts
from crawl4llm.frontier.owners import OwnerIndex
from crawl4llm.frontier.ranks import Ranks


def document(turn: int, number: int) -> bytes:
    """One that is better in each turn."""
    return b"%06d" % (1000 * (200 - turn) + number)


def test_stale_places_are_cleared_away() -> None:
    index: OwnerIndex[bytes] = OwnerIndex()
    index.tick(0)
    names = [f"owner{number}.example" for number in range(500)]
    for turn in range(1, 101):
        for number, name in enumerate(names):
            assert index.add(name, document(turn, number)) == (document(turn - 1, number) if turn > 1 else None)
    for turn in range(100, 50, -1):
        for number, name in enumerate(names):
            index.remove(name, document(turn, number), lambda name: document(turn - 1, names.index(name)))  # noqa: B023
    assert len(index._ready) <= 2000
    for turn in range(1, 101):
        for name in names:
            assert index.hold(name, float(turn))
    assert len(index._waiting) <= 2000
    assert index.next_ready() == 100
    index.tick(100)
    assert index.documents == OwnerCounts(25_000, 0, 0, 0)
    taken = [index.take() for _ in range(501)]
    assert taken == [*((name, document(50, number)) for number, name in enumerate(names)), None]


def test_owners_that_have_nothing_queued_are_forgotten_when_their_wait_is_over() -> None:
    index: OwnerIndex[bytes] = OwnerIndex()
    for number in range(20_000):
        index.tick(number)
        index.add(f"owner{number}.example", b"a")
        assert index.take() == (f"owner{number}.example", b"a")
        index.remove(f"owner{number}.example", b"a", lambda name: None)
        assert index.release(f"owner{number}.example", number + 50.0)
    assert len(index._owners) < 2100
    assert index.ready_at("owner19999.example") == 20_049
    assert index.counts == OwnerCounts(0, 0, 0, 0)


def test_parked_owners_are_not_forgotten() -> None:
    index: OwnerIndex[bytes] = OwnerIndex()
    index.park("parked.example")
    for number in range(5000):
        index.tick(number)
        index.hold(f"owner{number}.example", number + 1.0)
    assert index.is_parked("parked.example")
    assert len(index._owners) < 2100


def test_ranks_are_those_of_a_sorted_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawl4llm.frontier.ranks._MOST", 4)
    draw = random.Random(0)
    ranks: Ranks[bytes] = Ranks()
    values: list[bytes] = []
    for turn in range(3000):
        if values and draw.random() < (0.45 if turn < 2000 else 0.7):
            ranks.remove(values.pop(draw.randrange(len(values))))
        elif (value := draw.randbytes(2)) not in values:
            ranks.add(value)
            insort(values, value)
        assert len(ranks) == len(values)
        if turn % 50 == 0:
            assert [ranks.at(rank) for rank in range(len(values))] == values
    with pytest.raises(IndexError):
        ranks.at(len(values))


@pytest.mark.parametrize(
    ("url", "owner"),
    [
        ("https://www.example.co.uk/a", "example.co.uk"),
        ("http://EXAMPLE.com:8080/", "example.com"),
        ("http://example.com./", "example.com"),
        ("http://one.github.io/", "one.github.io"),
        ("http://www.bücher.example/", "xn--bcher-kva.example"),
        ("http://192.0.2.7/", "192.0.2.7"),
        ("http://[2001:db8::7]/", "2001:db8::7"),
        *(
            (f"http://{form}:80/", "127.0.0.1")
            for form in ("2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0X7F000001")
        ),
        ("http://[::FFFF:127.0.0.1]/", "127.0.0.1"),
        ("http://[2001:0db8:0:0::0007]/", "2001:db8::7"),
        ("http://1.2.3.4.5/", "4.5"),
        ("http://256.1/", "256.1"),
        ("http://localhost/", "localhost"),
        ("http://intranet:80/", "intranet"),
        ("clueweb22-en0000-00-00000", ""),
        ("mailto:a@example.com", ""),
        ("http://[broken/", ""),
        (f"http://{'a' * 254}/", ""),
        (f"http://{'ä' * 80}.example/", ""),
    ],
)
def test_the_owner_of_a_url(url: str, owner: str) -> None:
    assert owner_of(url) == owner
