"""A scorer by which a crawl stays amid its work until the test has sent a signal: a crawl of few pages does then."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from crawl4llm.scoring import ScoringOptions

GATE = "TEST_GATE"
"""The environment's name for a file that holds crawls up while it is there; it says for how many seconds a page."""
SCORER: dict[str, Any] = {"SCORER": "gated_scorer.GatedScorer", "SCORER_MODEL": ""}


class GatedScorer:
    """The length of a text, which takes a while as long as the gate is there."""

    digest = "8" * 64

    @classmethod
    def from_options(cls, options: ScoringOptions) -> GatedScorer:
        return cls()

    def score(self, texts: Sequence[str]) -> list[float]:
        with suppress(FileNotFoundError):
            time.sleep(float(Path(os.environ.get(GATE, "/none")).read_text()) * len(texts))
        return [float(len(text)) for text in texts]


@contextmanager
def gate(path: Path, seconds: float = 0.06) -> Iterator[None]:
    """Hold crawls up that begin in here, until the block ends or the file is removed; those after it run freely."""
    path.write_text(str(seconds))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(GATE, str(path))
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
