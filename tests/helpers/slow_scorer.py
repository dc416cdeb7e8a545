"""A scorer that takes its time over some pages."""

from __future__ import annotations

import time
from collections.abc import Sequence

from crawl4llm.scoring import ScoringOptions

SECONDS = 2.0


class SlowScorer:
    """The length of a text, which takes a while where the text says so."""

    digest = "7" * 64

    @classmethod
    def from_options(cls, options: ScoringOptions) -> SlowScorer:
        return cls()

    def score(self, texts: Sequence[str]) -> list[float]:
        time.sleep(SECONDS * sum("takes a while" in text for text in texts))
        return [float(len(text)) for text in texts]
