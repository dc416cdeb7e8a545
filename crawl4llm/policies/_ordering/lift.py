"""Two classes of scores in one: every lifted score is above every one that is not, and each class keeps its order.

Adding a number would lose the last bits of small scores. Doubles are ordered as their bits are, so these are shifted:
scores from 2^-128 to 2^128, of either sign, and 0 keep all their bits; smaller ones become 0, larger ones the bound.
"""

from __future__ import annotations

import math
import struct
from typing import Final


def _bits(number: float) -> int:
    """The bits of a positive double; larger numbers have larger ones."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def _number(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


_BOUND: Final = 2.0**128
_LEAST: Final = _bits(1 / _BOUND)
_RANGE: Final = _bits(_BOUND) - _LEAST
_ZERO: Final = _bits(_BOUND) + 1 + _RANGE
"""Where 0 is lifted to: the lowest lifted score is next to the bound."""


def kept(score: float) -> float:
    """A score that is not lifted."""
    return min(max(score, -_BOUND), _BOUND) if math.isfinite(score) else score


def lifted(score: float) -> float:
    """A score above all that are not lifted."""
    if not math.isfinite(score):
        return score
    magnitude = max(_bits(min(abs(score), _BOUND)) - _LEAST, 0)
    return _number(_ZERO + magnitude if score > 0 else _ZERO - magnitude)


def original(score: float) -> float:
    """The score that was lifted, or kept."""
    if score <= _BOUND:
        return score
    magnitude = _bits(score) - _ZERO
    return math.copysign(_number(abs(magnitude) + _LEAST), magnitude) if magnitude else 0.0
