"""Harmonic centrality from a file, as Common Crawl ranks hosts and domains to choose what it crawls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crawl4llm.base.errors import InputError
from crawl4llm.policies import BasePolicy, Candidate, Rating
from crawl4llm.policies._harmonic_ranks import HarmonicRanks


class Policy(BasePolicy):
    """Static, from HARMONIC_RANKS: ranks of hosts, domains or pages; what is not in the file scores 0."""

    name = "harmonic"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if self._options.harmonic_ranks is None:
            raise InputError(
                "HARMONIC_RANKS is not set; give Common Crawl's ranks of hosts or domains, or those that "
                "scrapy corpus ranks writes"
            )
        self._ranks = HarmonicRanks(Path(self._options.harmonic_ranks).expanduser())

    def identity(self) -> Mapping[str, object]:
        return {"harmonic_ranks": f"sha256:{self._ranks.digest}"}

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        return [Rating(self._ranks.value(candidate.key, candidate.url)) for candidate in candidates]
