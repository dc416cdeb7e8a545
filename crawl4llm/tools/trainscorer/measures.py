"""Measures of a model: how well scores separate positive from negative texts, and whether they are probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from crawl4llm.tools.evaluate.documents import Flags, Floats

THRESHOLDS: Final = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_BINS: Final = 10


@dataclass(frozen=True)
class AtThreshold:
    """Figures for taking every text of at least this score."""

    threshold: float
    share: float
    """The share of texts that are taken."""
    precision: float | None
    """The share of positive texts among those taken; None if none is taken."""
    recall: float
    """The share of the positive texts that is taken."""
    f1: float


@dataclass(frozen=True)
class Bin:
    """The texts with scores in one tenth of the range."""

    low: float
    texts: int
    mean_score: float
    positive_share: float


@dataclass(frozen=True)
class Measures:
    """Figures of a model on held-out texts."""

    positive: int
    negative: int
    average_precision: float
    """Mean of the precision at each positive text, by descending score."""
    expected_calibration_error: float
    """Mean distance of mean score and share of positive texts in ten bins of equal width, by texts (Guo et al. 2017,
    On Calibration of Modern Neural Networks, section 3)."""
    thresholds: list[AtThreshold]
    bins: list[Bin]
    """Those that have texts."""


def measure(scores: Floats, positive: Flags) -> Measures:
    """Compare scores, from 0 to 1, with the truth; both classes must occur."""
    bins = _bins(scores, positive)
    distance = sum(found.texts * abs(found.mean_score - found.positive_share) for found in bins)
    return Measures(
        positive=int(positive.sum()),
        negative=int((~positive).sum()),
        average_precision=_average_precision(scores, positive),
        expected_calibration_error=distance / len(scores),
        thresholds=[_at(threshold, scores, positive) for threshold in THRESHOLDS],
        bins=bins,
    )


def _at(threshold: float, scores: Floats, positive: Flags) -> AtThreshold:
    taken = scores >= threshold
    hits = int((taken & positive).sum())
    count, wanted = int(taken.sum()), int(positive.sum())
    return AtThreshold(
        threshold=threshold,
        share=count / len(scores),
        precision=hits / count if count else None,
        recall=hits / wanted,
        f1=2 * hits / (count + wanted),
    )


def _average_precision(scores: Floats, positive: Flags) -> float:
    """Texts of equal score are taken together, so that their order does not matter."""
    order = np.argsort(-scores, kind="stable")
    last_of_equals = np.append(np.diff(scores[order]) != 0, True)
    hits = np.cumsum(positive[order])[last_of_equals]
    taken = np.arange(1, len(scores) + 1)[last_of_equals]
    return float((np.diff(hits, prepend=0) * hits / taken).sum() / hits[-1])


def _bins(scores: Floats, positive: Flags) -> list[Bin]:
    numbers = np.minimum((scores * _BINS).astype(np.int64), _BINS - 1)
    found = []
    for number in range(_BINS):
        inside = numbers == number
        if inside.any():
            found.append(
                Bin(number / _BINS, int(inside.sum()), float(scores[inside].mean()), float(positive[inside].mean()))
            )
    return found
