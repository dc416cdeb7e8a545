"""States of policies that anybody may have made: what is loaded works on, all else is refused when it is loaded."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from changed_json import OTHERS, places, with_other
from graph_corpus import GraphCorpus
from policy_helpers import Told, new_policy, page, variants

from crawl4llm.base.shapes import NUMBER, fits
from crawl4llm.policies._seen_graph import SeenGraph

REFUSED = (ArithmeticError, LookupError, AttributeError, RecursionError, TypeError, ValueError, struct.error)
"""What a crawl takes for a damaged JOBDIR (crawl4llm.crawl.job)."""
ODD: list[Any] = [*OTHERS, 10**400, float("nan"), float("inf"), -1, 3, {"a": None}, [0, 0], "\ud800"]
NAMES = ["link", "host", "pagerank", "backlink", "parent_mean", "parent_min", "hot_queue(backlink)"]
A, B, C = "a.example/1", "a.example/2", "b.example/"


def told(name: str) -> Told:
    return Told(**variants(Path())[name])


def go_on(policy: Told, first: str) -> None:
    policy.pages(page(first, 0.75, A, B, C), page(B, None, C, "c.example/"))
    policy.policy.save()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_loaded_works_on(name: str) -> None:
    before = told(name)
    before.seeds(A)
    go_on(before, A)
    lines = [json.loads(line) for line in before.policy.save().split(b"\n")]
    draw = random.Random(name)
    refused = taken = 0
    for number, line in enumerate(lines):
        for at in places(line):
            for other in draw.sample(ODD, 6):
                changed = [*lines[:number], with_other(line, at, other), *lines[number + 1 :]]
                after = told(name)
                try:
                    after.policy.load(b"\n".join(json.dumps(one).encode() for one in changed))
                except REFUSED:
                    refused += 1
                    continue
                go_on(after, A)
                after.policy.dequeued([])
                assert all(fits([score], NUMBER) for score in after.scores.values())
                taken += 1
    assert refused > 20
    assert taken > 0


@pytest.mark.parametrize("state", [[["1", 0, 0]], [[1, 0]], [[-1, 0, 0]], [[1, 0, -5]], [5], {}, [[10**400, 0, 0]]])
def test_a_normaliser_takes_no_other_state(state: Any) -> None:
    settings = {"url_policy": "ensemble", "ensemble_weights": "length:1"}
    with pytest.raises(ValueError, match=r"."):
        new_policy(GraphCorpus({}), **settings).load(json.dumps(state).encode())


@pytest.mark.parametrize(
    "dumped",
    [
        (["a", "a"], [], [], []),
        (["a"], [1], [0], []),
        (["a"], [0], [1], [1]),
        (["a"], [0], [], []),
        (["a"], [0], [2], [0]),
        (["a", "b", "c"], [0, 1], [2, 1], [2]),
    ],
)
def test_a_graph_of_another_shape_is_none(dumped: Any) -> None:
    with pytest.raises(ValueError, match=r"targets|keys"):
        SeenGraph.restored(dumped)
