"""An export's selection on disk: what is chosen in memory, in the same order, divided the same way."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from crawl4llm.scoring import signature_of
from crawl4llm.tools.export.rows import Columns, Row
from crawl4llm.tools.export.selecting import TableInMemory, Wanted

pytest.importorskip("duckdb")
from crawl4llm.tools.export.selecting_on_disk import TableOnDisk

WANTED: list[dict[str, Any]] = [
    {},
    {"order": "influence", "shard_documents": 7},
    {"shard_bytes": 1000, "shard_documents": 9, "keep_duplicates": True},
    {"languages": ("en",), "min_words": 5, "max_words": 90},
    {"top": 40, "keep_near_duplicates": True},
    {"top_share": 0.07, "order": "influence"},
    {"oracle": True},
]


def row(draw: random.Random, number: int) -> Row:
    text = f"one two three four five six {draw.randrange(60)}"
    return Row(
        id=f"http://host/{draw.randrange(180)}",
        url="",
        date=None,
        digest=None,
        file=draw.randrange(3),
        offset=draw.randrange(90),  # some at the same place, which only a damaged index has
        length=1,
        after=0,
        text=None,
        text_digest=draw.choice([None, *[f"sha1:{digit}" for digit in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]]),
        influence=draw.choice([None, 0.0, -0.0, 0.5, draw.random()]),
        language=draw.choice([None, "en", "en-GB, de", "de"]),
        reason="damaged" if number % 31 == 7 else None,
        text_bytes=draw.choice([0, 200, 700, 2000]),
        words=draw.randrange(100),
        signature=signature_of(text).hex(),
    )


@pytest.mark.parametrize("given", WANTED, ids=lambda given: "-".join(given) or "all")
def test_the_same_is_chosen(given: dict[str, Any], tmp_path: Path) -> None:
    draw = random.Random(str(given))
    rows: Any = [row(draw, number) for number in range(200)]
    wanted, oracle = Wanted(**given), 0.4 if given.get("oracle") else None
    in_memory, on_disk = TableInMemory(Columns.of(rows)), TableOnDisk(rows, tmp_path)
    assert set(on_disk.languages) == set(in_memory.languages)
    assert on_disk.has_influence == in_memory.has_influence
    for damaged in ({}, {3: "corrupt_record", 5: "no_text"}):
        chosen = [table.select(rows, wanted, oracle, damaged) for table in (in_memory, on_disk)]
        assert [part.tolist() for part in chosen[1].parts] == [part.tolist() for part in chosen[0].parts]
        assert chosen[1].documents == chosen[0].documents > 0
        assert chosen[1].left_out == +chosen[0].left_out
    on_disk.close()
    assert not list(tmp_path.iterdir())
