"""An export's selection on disk: what is chosen in memory, in the same order, divided the same way."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crawl4llm.base.errors import InputError
from crawl4llm.tools.evaluate.measures import Population, oracle_of
from crawl4llm.tools.export.rows import Columns, Row
from crawl4llm.tools.export.selecting import TableInMemory, Wanted, signature_of

pytest.importorskip("duckdb")
from crawl4llm.base import reductions
from crawl4llm.tools.export.selecting_on_disk import TableOnDisk, threshold_on_disk

WANTED: list[dict[str, Any]] = [
    {},
    {"order": "influence", "shard_documents": 7},
    {"shard_bytes": 1000, "shard_documents": 9, "keep_duplicates": True},
    {"languages": ("en",), "min_words": 5, "max_words": 90},
    {"min_influence": 0.3, "top": 40},
    {"top_share": 0.07, "order": "influence", "near_duplicates": 0.8},
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
        signature=signature_of(text),
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


@pytest.mark.parametrize("pages", [1, 9, 10, 11, 1000])
@pytest.mark.parametrize("known", [0.0, 0.04, 0.7])
def test_the_threshold_of_the_oracle_set(pages: int, known: float, tmp_path: Path) -> None:
    draw = np.random.default_rng(pages)
    influence = np.where(draw.random(pages) < known, draw.random(pages).round(2), np.nan)
    blocks = [influence[start : start + 300] for start in range(0, pages, 300)]
    assert threshold_on_disk(blocks, tmp_path) == oracle_of(Population(influence, pages)).threshold.value


def test_more_rows_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit goes to the disk; where that cannot be, one line says so."""
    monkeypatch.setattr(reductions, "MEMORY", "24MB")
    blocks = [np.random.default_rng(number).random(1 << 19) for number in range(8)]  # 32 MB
    rank = -(-8 * (1 << 19) // 10)
    assert threshold_on_disk(blocks, tmp_path) == np.sort(np.concatenate(blocks))[-rank]
    with pytest.raises(InputError, match="gone/oracle: IO Error"):
        threshold_on_disk(blocks, tmp_path / "gone")
