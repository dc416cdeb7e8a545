"""Random numbers that are the same in every run with the same seed, in whatever order they are asked for."""

from __future__ import annotations

from hashlib import blake2b


def draw(seed: int, key: str) -> float:
    """A number above 0 and up to 1, uniform over keys: a hash of seed and key."""
    digest = blake2b(f"{seed}:{key}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") + 1) / 2**64
