"""A linear model of documents' influence, by features that are there or not."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

_Places = npt.NDArray[np.intp]

_BITS: Final = 20
_MASK: Final = (1 << _BITS) - 1
_RATE: Final = 0.3
_START: Final = np.float32(0.1)
"""Added to the squares, so that the first step of a weight is not the longest that there is."""
_NEWTON: Final = 4
"""Times that the length of a step is improved."""


def packed(hashes: Iterable[int]) -> bytes:
    """Return features in the learner's form: the 20 bits of each hash that select its weight, four bytes each."""
    return array("I", sorted({one & _MASK for one in hashes})).tobytes()


def is_document(packed_document: bytes) -> bool:
    """Return whether bytes can be a document: one feature or more."""
    if not packed_document or len(packed_document) % 4:
        return False
    return bool((np.frombuffer(packed_document, np.uint32) <= _MASK).all())


class Learner:
    """Predicts the log-odds of a document by the sum of the weights of its features, as :func:`packed` gives them.

    All weights are 0 at first. The same documents, learnt in the same order and together, give the same weights;
    predicting leaves them alone.

    A step goes down the gradient of the logistic loss, for each weight by a rate that falls with the squares of what
    its gradients were (AdaGrad: Duchi, Hazan and Singer, JMLR 12, 2011). Its length is the one that suits what the
    document is predicted *after* the step, so that none goes beyond its target (implicit updates: Kulis and Bartlett,
    ICML 2010). A target between 0 and 1 counts as that share of a positive example, and the rest of a negative one.
    """

    def __init__(self) -> None:
        self._weights = np.zeros(1 << _BITS, np.float32)
        self._squares = np.zeros(1 << _BITS, np.float32)

    def forget(self) -> None:
        """Be as new; cheaper than a new one, whose memory the system has to find and to clear."""
        self._weights.fill(0)
        self._squares.fill(0)

    def predict(self, documents: Sequence[bytes]) -> list[float]:
        """Return the log-odds of documents."""
        slots, starts, _ = _joined(documents)
        log_odds: list[float] = np.add.reduceat(self._weights.take(slots), starts).tolist()
        return log_odds

    def learn(self, documents: Sequence[bytes], targets: Sequence[float], sizes: Sequence[int] | None = None) -> None:
        """Learn the probabilities of documents in groups of ``sizes``, without it in one group. All documents of a
        group are learnt from the same weights."""
        slots, starts, lengths = _joined(documents)
        place = first = 0
        for size in sizes or [len(documents)]:
            last = first + size
            end = int(starts[last]) if last < len(starts) else len(slots)
            self._learn(targets[first:last], slots[place:end], starts[first:last] - place, lengths[first:last])
            place, first = end, last

    def _learn(self, targets: Sequence[float], slots: _Places, starts: _Places, lengths: _Places) -> None:
        """Learn documents together; ``slots`` are the features of one after those of the other."""
        predicted = np.add.reduceat(self._weights.take(slots), starts).tolist()
        squares = [
            target * (1 - probability) ** 2 + (1 - target) * probability**2
            for probability, target in zip(map(probability_of, predicted), targets, strict=True)
        ]
        np.add.at(self._squares, slots, np.array(squares, np.float32).repeat(lengths))
        rates = 1 / np.sqrt(self._squares.take(slots) + _START)
        reaches = (_RATE * np.add.reduceat(rates, starts)).tolist()
        steps = [_step(*one) for one in zip(predicted, targets, reaches, strict=True)]
        np.add.at(self._weights, slots, np.array(steps, np.float32).repeat(lengths) * rates)


def probability_of(log_odds: float) -> float:
    """Return the probability that has these log-odds."""
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0


def _step(log_odds: float, target: float, reach: float) -> float:
    """Return the factor of a document's learning rates.

    It solves z = log_odds - reach * (probability of z - target) for z by Newton's method: z is the prediction after a
    step along its own gradient.
    """
    if not reach:
        return 0.0
    ends = log_odds, log_odds - reach * (probability_of(log_odds) - target)
    least, most = min(ends), max(ends)
    after = log_odds
    for _ in range(_NEWTON):
        probability = probability_of(after)
        gap = after - log_odds + reach * (probability - target)
        after = min(max(after - gap / (1 + reach * probability * (1 - probability)), least), most)
    return _RATE * (after - log_odds) / reach


def _joined(documents: Sequence[bytes]) -> tuple[_Places, _Places, _Places]:
    """Return all features, one document's after the other's; where each one's begin, and how many they are."""
    lengths = np.array([len(one) // 4 for one in documents])
    starts = np.zeros(len(lengths), np.intp)
    np.cumsum(lengths[:-1], out=starts[1:])
    return np.frombuffer(b"".join(documents), np.uint32).astype(np.intp), starts, lengths
