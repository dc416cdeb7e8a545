"""Changes of a store as bytes."""

from __future__ import annotations

import random
import struct

import orjson
import pytest

from crawl4llm.cluster.stores import Patch, encoded, records


def test_pieces_that_change_here_and_there_are_told_in_few_bytes() -> None:
    draw = random.Random(0)
    piece = [
        7,
        ["http://a.example/page?x=1,2", 3, None, draw.sample(range(1 << 32), 12), *(draw.random() for _ in range(6))],
    ]
    before = orjson.dumps(piece)
    for _ in range(200):
        for part in draw.choices((0, 1, 2, 3), k=2):
            hashes = piece[1][3]
            if part == 0:
                piece[0] += 1
            elif part == 1:
                piece[1][draw.randrange(4, 10)] = draw.choice([0, 0.5, draw.random()])
            elif part == 2:
                hashes.insert(draw.randrange(len(hashes) + 1), draw.getrandbits(32))
            elif len(hashes) > 1:
                del hashes[draw.randrange(len(hashes))]
        value = orjson.dumps(piece)
        changes = encoded([("current", b"http://a.example/\0\xffwaiting", value, before)])
        ((_, _, patch),) = records(changes)
        assert isinstance(patch, Patch)
        assert patch.applied_to(before) == value
        assert len(patch.hunks) < 90
        before = value


def test_any_value_can_follow_any_other() -> None:
    draw = random.Random(1)
    values = [bytes(draw.choices(b"\0,=-+12", k=draw.randrange(9))) for _ in range(200)]
    values[::50] = [b"%d," % number + draw.randbytes(1 << 17) for number in range(4)]
    for before, value in zip(values, reversed(values), strict=True):
        keys = [b"a", b"ab", b"abc" * 100, b"b"]
        given = [("current", key, value, before) for key in keys] + [("state", b"policy/x", None, before)]
        read = list(records(encoded(given)))
        assert [key for _, key, _ in read] == [*keys, b"policy/x"]
        told = [one if one is None or isinstance(one, bytes) else one.applied_to(before) for _, _, one in read]
        assert told == [value] * 4 + [None]


@pytest.mark.parametrize(
    "hunks",
    [[(8, 0, 0)], [(0, 8, 0)], [(4, 4, 0)], [(4, 0, 0), (4, 0, 0)], [(0, 0, 1)], [(1 << 31, 1 << 15, 0)]],
)
def test_hunks_of_another_value_are_refused(hunks: list[tuple[int, int, int]]) -> None:
    data = b"".join(struct.pack("<IHH", *hunk) for hunk in hunks)
    for cut in (data, data[:-1], b"\xff"):
        with pytest.raises(ValueError, match="what is not there"):
            Patch(cut).applied_to(b"[1,2,3]")


@pytest.mark.parametrize("cut", [1, 5, 9, 10, 12])
def test_changes_that_are_cut_short_are_refused(cut: int) -> None:
    data = encoded([("current", b"a", b"b", None), ("current", b"ab", b"c", None)])
    with pytest.raises(ValueError, match="cut short"):
        list(records(data[:cut]))
    with pytest.raises(ValueError, match="cut short"):
        list(records(data[len(data) // 2 :]))  # which refers to the key before
