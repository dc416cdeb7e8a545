"""Signatures of texts, from which the share of common words of two texts is estimated.

Broder 1997, On the resemblance and containment of documents: MinHash of the runs of five words. A signature has the
lowest bit of each hash (Li and König 2010, b-Bit minwise hashing), and a checksum of each band of eight hashes. Texts
that are alike probably share a checksum (Leskovec et al., Mining of Massive Datasets, 3.4).
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
"""ALGORITHM_VERSION of rensa, which makes the hashes. Signatures of other versions cannot be compared with them."""
SIMILARITY: Final = 0.8
"""Least share of common runs of words (Jaccard) of near duplicates."""
_MOST_BITS: Final = HASHES - round((1 + SIMILARITY) / 2 * HASHES)
"""Bits in which two texts of that similarity differ: half of the bits of the hashes that they do not share."""
_WORDS, _SEED = 5, 1
_BAND: Final = struct.Struct(f"<{HASHES // BANDS}I")


def require_library(wanted_by: str = "NEAR_DUPLICATES", instead: str = "set it to off") -> None:
    """Raise InputError if rensa is not installed, or a version with other hashes; ``wanted_by`` names the setting that
    needs it, ``instead`` an alternative."""
    try:
        from rensa import RMinHash  # perhaps missing, or another version
    except ImportError:
        RMinHash = None  # noqa: N806 - the class, where there is one
    if RMinHash is None or f"rensa {RMinHash.ALGORITHM_VERSION}" != SCHEME:
        raise InputError(f"{wanted_by} needs rensa 0.5; pip install 'rensa>=0.5,<0.6', or {instead}")


def signature_of(text: str) -> bytes:
    """Return the signature of a text, packed by SIGNATURE: of its runs of five words in lower case, or of the whole
    text if it is shorter. Empty for a blank text."""
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
    """Return whether two texts are near duplicates, by the two numbers with the bits of each signature."""
    return (first ^ other_first).bit_count() + (second ^ other_second).bit_count() <= _MOST_BITS
