"""Texts that are nearly the same: MinHash and locality-sensitive hashing, by datasketch (Broder 1997)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.errors import InputError

Hashes = NDArray[np.uint32]

PERMUTATIONS = 128
SHINGLE_WORDS = 5
_SEED = 1
_FEWER_MISSED = (0.1, 0.9)
"""How bad it is to compare two texts in vain, and to miss two that are alike. Those found are compared, so the former
costs little; with datasketch's equal weights more than half of the texts just above 0.8 are missed.
"""
_SCHEME = "affine32"


def check_installed() -> None:
    """Raise InputError where the library is missing."""
    try:
        import datasketch  # noqa: F401 - only looked for
    except ImportError:
        raise InputError("--near-duplicates needs datasketch; pip install 'crawl4llm[export]'") from None


def signature_of(text: str) -> str:
    """The MinHash of a text's runs of five words, letters in lower case; of the whole text where it has fewer."""
    from datasketch import MinHash

    words = text.lower().split()
    runs = range(max(len(words) - SHINGLE_WORDS + 1, 1))
    shingles = {" ".join(words[start : start + SHINGLE_WORDS]) for start in runs}
    minhash = MinHash(PERMUTATIONS, seed=_SEED, scheme=_SCHEME)
    minhash.update_batch(shingle.encode("utf-8", "replace") for shingle in shingles)
    hashes: Hashes = minhash.hashvalues
    return hashes.astype("<u4").tobytes().hex()


def near_duplicates(signatures: Iterable[tuple[int, str]], similarity: float) -> Iterator[int]:
    """The numbers of texts that are as similar as that, or more, to one that came before and stays.

    Similarity is the share of runs of words that two texts have in common (Jaccard), estimated from 128 hashes: its
    standard error is 0.04 at 0.7. Locality-sensitive hashing finds the texts to compare, most but not all that qualify.
    """
    from datasketch import MinHash, MinHashLSH

    staying = MinHashLSH(threshold=similarity, num_perm=PERMUTATIONS, weights=_FEWER_MISSED)
    permutations = MinHash(PERMUTATIONS, seed=_SEED, scheme=_SCHEME).permutations
    values: dict[int, Hashes] = {}
    for number, signature in signatures:
        mine = np.frombuffer(bytes.fromhex(signature), "<u4").astype(np.uint32)
        minhash = MinHash(seed=_SEED, hashvalues=mine, permutations=permutations, scheme=_SCHEME)
        alike = (np.count_nonzero(values[other] == mine) for other in staying.query(minhash))
        if any(same >= similarity * PERMUTATIONS for same in alike):
            yield number
        else:
            staying.insert(number, minhash)
            values[number] = mine
