"""The published implementation's random baseline: a score drawn once, when a document is discovered."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from crawl4llm.policies._policy import EACH, BasePolicy, Candidate, Rating


class Policy(BasePolicy):
    """Favours new documents, since those still queued are the ones that drew badly; ``random`` does not.

    The draw, between 0 and 1, is a hash of the random seed and the key.
    """

    name = "random_static"
    partitioned = EACH

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        return [Rating(draw(self._options.crawl_seed, candidate.key)) for candidate in candidates]


def draw(seed: int, key: str) -> float:
    """Return a number above 0 and up to 1, uniform over keys: a hash of seed and key."""
    digest = blake2b(f"{seed}:{key}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") + 1) / 2**64
