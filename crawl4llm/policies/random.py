"""The paper's random baseline: any document of the frontier is as likely to be next as any other (section 3)."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crawl4llm.policies._policy import EACH, BasePolicy, Candidate, Rating
from crawl4llm.policies.random_static import draw

if TYPE_CHECKING:
    from crawl4llm.frontier import Entry


class Policy(BasePolicy):
    """Uniform over the frontier at each pop, with scores that never change.

    A score drawn once would favour the newest documents: the old ones still queued are those that drew badly. Instead
    each document gets an alarm that rings after an exponentially distributed time from its discovery, and the next to
    ring is popped. Exponential times have no memory, so among the documents queued at any moment each is the next with
    the same probability. The clock stands where the last popped document's alarm rang. Times are a hash of the random
    seed and the key: no state is kept but the clock.
    """

    name = "random"
    partitioned = EACH
    _clock = 0.0

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        seed = self._options.crawl_seed
        return [Rating(-(self._clock - math.log(draw(seed, candidate.key)))) for candidate in candidates]

    def dequeued(self, entries: Sequence[Entry]) -> None:
        """Set the clock to the last alarm; a document that came back to the frontier has rung before."""
        if entries:
            self._clock = max(self._clock, -entries[-1].score)

    def save(self) -> bytes:
        return struct.pack("<d", self._clock)

    def load(self, state: bytes) -> None:
        (self._clock,) = struct.unpack("<d", state)
