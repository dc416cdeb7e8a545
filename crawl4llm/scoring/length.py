"""The length scorer: the simplest baseline of a page's worth."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from crawl4llm.scoring.scorer import ScoringOptions


class LengthScorer:
    """Characters of the text, counted as by ``length`` in the published code."""

    digest = hashlib.sha256(b"length").hexdigest()
    """SHA-256 of its name, because there is only one of its kind."""

    @classmethod
    def from_options(cls, options: ScoringOptions) -> LengthScorer:
        """Return the scorer, which needs no settings."""
        return cls()

    def score(self, texts: Sequence[str]) -> list[float]:
        """Return one length for each text."""
        return [float(len(text)) for text in texts]
