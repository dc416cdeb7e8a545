"""A quick look: the bits per byte that n-grams of a run's tokens leave of a target, without training.

Interpolated Witten-Bell smoothing (Chen and Goodman 1999, 2.6): p(w|h) = (c(hw) + t(h) p(w|h')) / (c(h) + t(h)).
There c are the counts in the run, t(h) is how many tokens follow h there, and h' is the history h without its oldest
token. Below single tokens each token has the same probability.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ORDER: Final = 3
"""Tokens of the longest n-gram. Four would still fit in 64 bits."""
_BITS: Final = np.uint64(16)

_Keys = NDArray[np.uint64]
_Floats = NDArray[np.float64]


def bits_per_byte(run: NDArray[np.uint16], target: NDArray[np.uint16], size: int, vocabulary: int) -> float:
    """Return the estimate for a target of ``size`` bytes, all of whose tokens but the first are predicted."""
    probability: _Floats = np.full(len(target) - 1, 1 / vocabulary)
    for order in range(1, ORDER + 1):
        probability = _mixed(run, target, order, probability)
    return float(-np.log2(probability).sum() / size)


def _mixed(run: NDArray[Any], target: NDArray[Any], order: int, lower: _Floats) -> _Floats:
    """Return the probabilities by n-grams of one order, of which the first tokens of the target have none."""
    grams, counts = np.unique(_grams(run, order), return_counts=True)
    histories, places, following = np.unique(grams >> _BITS, return_index=True, return_counts=True)
    totals = np.add.reduceat(counts, places)
    wanted = _grams(target, order)[1 if order == 1 else 0 :]
    count = _found(grams, counts, wanted)
    total, distinct = (_found(histories, values, wanted >> _BITS) for values in (totals, following))
    known = total > 0
    before = lower[len(lower) - len(wanted) :]
    mixed = before.copy()
    mixed[known] = (count[known] + distinct[known] * before[known]) / (total[known] + distinct[known])
    return np.concatenate([lower[: len(lower) - len(wanted)], mixed])


def _grams(tokens: NDArray[Any], order: int) -> _Keys:
    """Return the n-grams of tokens as numbers, the last token in the lowest bits."""
    keys = np.zeros(max(len(tokens) - order + 1, 0), np.uint64)
    for place in range(order):
        keys = keys << _BITS | tokens[place : place + len(keys)].astype(np.uint64)
    return keys


def _found(keys: _Keys, values: NDArray[Any], wanted: _Keys) -> _Floats:
    """Return the value of each wanted key, 0 for one that is not there."""
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0).astype(np.float64)
