"""Where redirects lead: the target of one takes the document's place, unless it was visited. Driven without Scrapy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from driven_crawl import Driven, scored

from crawl4llm.frontier import Lease

WEB = {"9": ["8", "7", "6"], "8": [], "7": [], "6": [], "5": ["4"], "4": []}


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[Driven]:
    driven = begun(tmp_path)
    yield driven
    driven.close()


def begun(folder: Path, **options: str) -> Driven:
    driven = Driven(scored(WEB), folder, crawl_batch_size=3, **options)
    driven.start("9")
    assert driven.batch() == ["9"]
    return driven


def redirected(driven: Driven, lease: Lease, *hops: str) -> None:
    """Answer a lease with the page at the end of redirects."""
    page = driven.corpus.page(hops[-1] if hops[-1] in WEB else "5")
    driven.crawl.fetched(lease, replace(page, key=hops[-1], hops=hops), 200)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_the_first_in_turn_takes_the_target(driven: Driven, tmp_path: Path, order: Sequence[int]) -> None:
    leases = driven.dequeue()
    answers = [(leases[0], "5"), (leases[1], "5"), (leases[2], "9")]
    for lease, target in (answers[place] for place in order):
        redirected(driven, lease, target)
    driven.advance()
    assert driven.ids == ["9", "5"]
    assert (driven.lines[1]["priority"], driven.lines[1]["parent"]) == (0.8, "9")
    assert [key for key in ("5", "4", "8") if key in driven.crawl.visited] == ["5", "4", "8"]
    assert driven.batch() == ["4"]
    assert driven.lines[2]["parent"] == "5"
    assert failures(tmp_path) == {"7": "duplicate", "6": "duplicate"}


def test_on_the_way(driven: Driven, tmp_path: Path) -> None:
    """Each hop is visited, and a chain ends where it meets one that was; it may come back to where it began."""
    first, second, third = driven.dequeue()
    redirected(driven, first, "http://graph.example/hop", "5")
    redirected(driven, second, "http://graph.example/hop", "4")
    redirected(driven, third, "5b", third.entry.key)
    driven.advance()
    assert driven.ids == ["9", "5", "6"]
    assert "http://graph.example/hop" in driven.crawl.visited
    assert driven.batch() == ["4"]
    assert failures(tmp_path) == {"7": "duplicate"}


def test_out_of_scope(tmp_path: Path) -> None:
    driven = begun(tmp_path, crawl_scope="domain")
    inside, outside, neither = driven.dequeue()
    redirected(driven, inside, "http://graph.example/moved")
    redirected(driven, outside, "http://graph.example/by", "http://else.example/")
    driven.fetch(neither)
    driven.advance()
    driven.close()
    assert driven.ids == ["9", "http://graph.example/moved", "6"]
    assert failures(tmp_path) == {"7": "off_scope"}


def failures(folder: Path) -> dict[str, str]:
    lines = (folder / "failures.jsonl").read_text().splitlines()
    return {line["id"]: line["reason"] for line in map(json.loads, lines)}
