"""An export's selection: what is chosen, in which order, divided how, against the rules in plain Python."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from crawl4llm.base import reductions
from crawl4llm.scoring import signature_of
from crawl4llm.tools.export import documents
from crawl4llm.tools.export.documents import PREPARED, Block, Reader, Row, rows_path, write_rows
from crawl4llm.tools.export.filters import Wanted
from crawl4llm.tools.export.selecting import Table, matches, near_duplicates

ROWS, BLOCK = 200, 70
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
        id=f"http://host/\x00{draw.randrange(180)}",
        url='"\n',
        date=None,
        digest=None,
        file=draw.randrange(3),
        offset=draw.randrange(90),  # not in crawl order, as in the storage of a cluster
        length=1,
        after=0,
        text=None,
        text_digest=draw.choice([None, *[f"{number:040x}" for number in range(26)]]),
        influence=draw.choice([None, 0.0, -0.0, 0.5, draw.random(), draw.random() * 1e-300]),
        language=draw.choice([None, "en", "en-GB, de", "de"]),
        reason="damaged" if number % 31 == 7 else None,
        text_bytes=draw.choice([0, 200, 700, 2000]),
        words=draw.randrange(100),
        signature=signature_of(text).hex(),
    )


def written(rows: Sequence[Row], work: Path) -> list[Block]:
    """The rows in files of several blocks."""
    blocks = documents.blocks_of(len(rows), 1)
    for block in blocks:
        write_rows(rows_path(work, PREPARED, block.number), [rows[number] for number in block.numbers])
    return blocks


class Plain:
    """The rules in Python: each sorts all documents that are left."""

    def __init__(self, rows: Sequence[Row], wanted: Wanted, oracle: float | None, damaged: dict[int, str]) -> None:
        self.rows = rows
        reasons = {number: row.reason for number, row in enumerate(rows) if row.reason} | damaged
        self.left_out = Counter(reasons.values())
        self.kept = [number for number in range(len(rows)) if number not in reasons]
        self.keep(self.first(int, lambda row: row.id), "duplicate_id")
        self.keep_if(lambda row: not wanted.languages or matches(row.language, wanted.languages), "language")
        self.keep_if(lambda row: row.words >= (wanted.min_words or 0), "too_short")
        self.keep_if(lambda row: row.words <= (wanted.max_words or 1000), "too_long")
        self.keep_if(
            lambda row: oracle is None or (row.influence is not None and row.influence >= oracle), "not_oracle"
        )
        if not wanted.keep_duplicates:
            self.keep(self.first(self.best, lambda row: row.text_digest), "duplicate_text")
        if wanted.compares_texts:
            signatures = [(number, bytes.fromhex(rows[number].signature or "")) for number in self.sorted(self.best)]
            alike = set(near_duplicates(signatures, len(signatures)))
            self.keep([number for number in self.kept if number not in alike], "near_duplicate")
        most = len(self.kept)
        if wanted.top_share is not None:
            most = math.ceil(Fraction(str(wanted.top_share)) * most)
        self.keep(self.sorted(self.best)[: wanted.top or most], "not_top")
        self.parts = list(self.divided(wanted))

    def best(self, number: int) -> tuple[float, int]:
        influence = self.rows[number].influence
        return math.inf if influence is None else -influence, number

    def sorted(self, key: Callable[[int], Any]) -> list[int]:
        return sorted(self.kept, key=key)

    def first(self, key: Callable[[int], Any], value: Callable[[Row], object]) -> Iterable[int]:
        found: dict[object, int] = {}
        for number in self.sorted(key):
            found.setdefault(value(self.rows[number]), number)
        return found.values()

    def keep(self, numbers: Iterable[int], reason: str) -> None:
        staying = list(numbers)
        self.left_out[reason] += len(self.kept) - len(staying)
        self.kept = staying

    def keep_if(self, fits: Callable[[Row], bool], reason: str) -> None:
        self.keep([number for number in self.kept if fits(self.rows[number])], reason)

    def divided(self, wanted: Wanted) -> Iterator[list[int]]:
        part: list[int] = []
        for number in self.sorted(self.best if wanted.order == "influence" else int):
            size = sum(self.rows[one].text_bytes for one in [*part, number])
            if part and (len(part) == wanted.shard_documents or size > (wanted.shard_bytes or math.inf)):
                yield part
                part = []
            part.append(number)
        if part:
            yield part


@pytest.mark.parametrize("given", WANTED, ids=lambda given: "-".join(given) or "all")
def test_what_is_chosen(given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BLOCK", BLOCK)
    draw = random.Random(str(given))
    rows = [row(draw, number) for number in range(ROWS)]
    wanted, oracle = Wanted(**given), 0.4 if given.get("oracle") else None
    work = tmp_path / "a[b]*?'"  # no pattern for DuckDB
    work.mkdir()
    with closing(Table(work, written(rows, work))) as table:
        assert set(table.languages) == {None, "en", "en-GB, de", "de"}
        assert table.has_influence
        for damaged in ({}, {3: "corrupt_record", 5: "no_text"}):
            chosen, plain = table.select(wanted, oracle, damaged), Plain(rows, wanted, oracle, damaged)
            parts = list(chosen.parts)
            assert [[number for number, *_ in part] for part in parts] == plain.parts
            reader = Reader([], work)
            assert all(reader.prepared(*place) == rows[number] for part in parts for number, *place in part)
            assert chosen.documents == sum(map(len, plain.parts)) > 0
            assert +chosen.left_out == +plain.left_out


@pytest.mark.slow
def test_more_documents_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit goes to the disk, and is removed at the end."""
    count = 200_000
    one = row(random.Random(1), 0)._replace(influence=None, file=0)
    rows = (one._replace(id=f"{n % 195_000}", text_digest=f"{n:040x}", offset=n) for n in range(count))
    write_rows(rows_path(tmp_path, PREPARED, 0), rows)
    monkeypatch.setattr(reductions, "MEMORY", "96MB")
    with closing(Table(tmp_path, [Block(0, 0, count)])) as table:
        chosen = table.select(Wanted(keep_near_duplicates=True, shard_documents=count), None, {})
        assert [[number for number, *_ in part] for part in chosen.parts] == [list(range(195_000))]
        assert +chosen.left_out == {"duplicate_id": 5_000}
        assert any((tmp_path / "tables.tmp").iterdir())
    assert not (tmp_path / "tables.tmp").exists()
