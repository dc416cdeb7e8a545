"""Signatures of texts: how much of their words two texts share is estimated from theirs, without the texts.

Broder 1997, On the resemblance and containment of documents: MinHash of the runs of five words. What is kept of it is
short: the lowest bit of each hash (Li and König 2010, b-Bit minwise hashing), and a checksum of each band of eight, of
which texts that are alike probably have one in common (Leskovec et al., Mining of Massive Datasets, 3.4).
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from crawl4llm.base.errors import InputError

HASHES: Final = 128
BANDS: Final = 16
SIGNATURE: Final = struct.Struct(f"<QQ{BANDS}I")
"""The bits, as two numbers, and the checksums."""
SCHEME: Final = "rensa 2"
"""What made the hashes: the ALGORITHM_VERSION of rensa. Signatures of others cannot be compared with them."""
SIMILARITY: Final = 0.8
"""Share of runs of words in common (Jaccard) from which on texts are near duplicates of each other."""
_MOST_BITS: Final = HASHES - round((1 + SIMILARITY) / 2 * HASHES)
"""Bits in which two texts as similar as that differ: half of those of the hashes that they do not share."""
_WORDS, _SEED = 5, 1
_BAND: Final = struct.Struct(f"<{HASHES // BANDS}I")


def require_library(wanted_by: str = "NEAR_DUPLICATES", instead: str = "set it to off") -> None:
    """Raise InputError if the library that makes the hashes is not installed, or one that makes others; it says what
    wants it, and what to do without it."""
    try:
        from rensa import RMinHash  # perhaps missing, or another version
    except ImportError:
        RMinHash = None  # noqa: N806 - the class, where there is one
    if RMinHash is None or f"rensa {RMinHash.ALGORITHM_VERSION}" != SCHEME:
        raise InputError(f"{wanted_by} needs rensa 0.5; pip install 'rensa>=0.5,<0.6', or {instead}")


def signature_of(text: str) -> bytes:
    """Return the signature of a text, as SIGNATURE packs it: of its runs of five words in lower case, or of all of it
    where it has fewer; empty for a blank text."""
    from rensa import RMinHash  # few crawls need it

    words = text.lower().encode("utf-8", "replace").decode().split()
    if not words:
        return b""
    runs = zip(*(words[start:] for start in range(min(_WORDS, len(words)))), strict=False)
    minhash = RMinHash(num_perm=HASHES, seed=_SEED)
    minhash.update([*map(" ".join, runs)])  # a run that comes twice counts as one: its hashes are the same
    hashes = minhash.digest()
    bits = sum((value & 1) << place for place, value in enumerate(hashes))
    bands = (crc32(_BAND.pack(*hashes[start::BANDS])) for start in range(BANDS))
    return SIGNATURE.pack(bits & (1 << 64) - 1, bits >> 64, *bands)


def are_alike(first: int, second: int, other_first: int, other_second: int) -> bool:
    """Return whether two texts are near duplicates, by the two numbers each that hold the bits of their signatures."""
    return (first ^ other_first).bit_count() + (second ^ other_second).bit_count() <= _MOST_BITS
