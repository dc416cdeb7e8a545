"""Breadth-first: documents in the order in which they were discovered (Cho et al. 1998, section 6)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from crawl4llm.policies._policy import COUNTED, BasePolicy, Candidate, Rating


class Policy(BasePolicy):
    """The score is the number of documents discovered before, negative."""

    name = "breadth_first"
    partitioned = COUNTED
    _discovered = 0

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        first = self._discovered
        self._discovered += len(candidates)
        return [Rating(float(-number)) for number in range(first, self._discovered)]

    def save(self) -> bytes:
        return struct.pack("<q", self._discovered)

    def load(self, state: bytes) -> None:
        (self._discovered,) = struct.unpack("<q", state)
