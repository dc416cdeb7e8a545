"""The few statistics that describe a web."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from statistics import correlation, fmean

_TAIL = 0.2


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Spearman's rank correlation, ties having their mean rank; None where one side is constant."""
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    return correlation(_ranks(left), _ranks(right))


def tail_exponent(values: Sequence[int]) -> float | None:
    """Exponent of a power law in the tail of the values, by maximum likelihood.

    Source: Clauset, Shalizi and Newman 2009, Power-law distributions in empirical data, equation 3.7; the tail is the
    largest fifth of the values. None where it has no spread.
    """
    tail = sorted(values, reverse=True)[: int(_TAIL * len(values))]
    if not tail or tail[0] == tail[-1]:
        return None
    return 1 + len(tail) / sum(math.log(value / (tail[-1] - 0.5)) for value in tail)


def share_between(groups: Sequence[Hashable], values: Sequence[float]) -> float | None:
    """The share of the values' variance that lies between groups; None where there is no variance."""
    mean = fmean(values)
    total = sum((value - mean) ** 2 for value in values)
    members: defaultdict[Hashable, list[float]] = defaultdict(list)
    for group, value in zip(groups, values, strict=True):
        members[group].append(value)
    between = sum(len(group) * (fmean(group) - mean) ** 2 for group in members.values())
    return between / total if total else None


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            ranks[place] = (start + end - 1) / 2
        start = end
    return ranks
