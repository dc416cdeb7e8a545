"""Texts of two kinds, and training on them in this process."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from scrapy.settings import Settings

from crawl4llm.base.tables import text_lines
from crawl4llm.tools._fit import Recipe
from crawl4llm.tools.trainscorer import Wanted, train

GOOD = "therefore essay argument because chapter theorem lesson evidence".split()
OTHER = "cart login menu buy click cookie checkout sale".split()
BOTH = "the a of page and reader time name".split()
SMALL = {"dim": 8, "buckets": 500, "rate": 1.0}
"""What makes a recipe quick."""


def texts(words: Sequence[str], count: int, seed: int = 0) -> list[str]:
    """Texts of three lines, mostly of some words."""
    draw = random.Random(f"{words[0]} {seed}")
    vocabulary = [*words, *BOTH, *BOTH]
    return ["\n".join(" ".join(draw.choices(vocabulary, k=5)) for _ in range(3)) for _ in range(count)]


def write_jsonl(path: Path, given: Iterable[str], field: str = "text") -> Path:
    lines = "".join(json.dumps({"n": number, field: text}) + "\n" for number, text in enumerate(given)).encode()
    path.write_bytes(gzip.compress(lines, mtime=0) if path.suffix == ".gz" else lines)
    return path


def run_training(
    positive: Sequence[object],
    negative: Sequence[object],
    out: Path,
    *,
    field: str = "text",
    settings: Mapping[str, object] | None = None,
    **recipe: object,
) -> list[str]:
    """Train, and return what the command would print."""
    given = Settings({"SCORING_WORKERS": 0, "PROGRESS_BAR": "off", **(settings or {})})
    wanted = Wanted(
        [str(source) for source in positive],
        [str(source) for source in negative],
        out,
        field,
        Recipe(**{**SMALL, **recipe}),  # type: ignore[arg-type]
    )
    return list(text_lines(train(given, wanted)))
