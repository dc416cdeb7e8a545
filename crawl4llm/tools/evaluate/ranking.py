"""The ranking of policies: means over webs with their errors, paired tests, which is best, and how sure that is.

The webs of a contest are fixed: the estimate is a policy's result on these webs from seeds like these. Errors come from
the sets of seeds within each web.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from statistics import fmean, variance
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

AREA: Final = "area"
"""The measure by which policies are ranked."""
LEVEL: Final = 0.05
"""Of the tests: policies whose difference in area has a larger p, by Holm's method, are not distinguished."""
_EXACT: Final = 12
"""Up to this many pairs, the test takes all possible signs of their differences; beyond, _DRAWS random ones."""
_DRAWS: Final = 1 << 14
MOST_PAIRS: Final = 1000
"""Sets of seeds on all webs together: a test keeps the signs of each in memory."""
_ROUNDING: Final = 1e-12
"""Sums of the same numbers, in another order, may differ so much."""
TOO_FEW: Final = "too few sets to say"
NOT_DISTINGUISHED: Final = (
    "Not distinguished: the paired randomisation test of the areas from the same seeds, adjusted for the number of "
    f'pairs by Holm\'s method, gives more than {LEVEL}. "{TOO_FEW.capitalize()}": with so few sets the test cannot '
    "give less, for any runs."
)

OfWebs: TypeAlias = Sequence[Sequence[float]]
"""Values by web, then by set of seeds."""
Values: TypeAlias = Mapping[str, OfWebs]
"""A policy's values by measure."""


@dataclass(frozen=True)
class Paired:
    """A policy's values minus those of another one, from the same seeds."""

    measure: str
    policy: str
    other: str
    mean: float
    error: float | None
    """Standard error of the mean; None if a web has one set of seeds."""
    p: float
    """Of the randomisation test: how often random signs give a mean this large."""
    p_holm: float
    """The same, adjusted for all pairs by this measure (Holm 1979)."""
    webs: Sequence[float]
    """The mean difference on each web."""
    better: int
    """Crawls in which the policy is ahead."""
    worse: int
    """Crawls in which the other one is."""


@dataclass(frozen=True)
class Standing:
    """A policy's place."""

    rank: int | None
    """None for a bound."""
    policy: str
    means: Mapping[str, float]
    """By measure."""
    errors: Mapping[str, float | None]
    """Standard errors of the means."""
    not_distinguished: Sequence[str]
    """Policies that may be as good, by area."""


def mean_of(of_webs: OfWebs) -> float:
    """Return the mean over webs of the mean over sets of seeds."""
    return fmean(map(fmean, of_webs))


def error_of(of_webs: OfWebs) -> float | None:
    """Return the standard error of :func:`mean_of`: the root of the mean of the webs' s²/n, over the root of their
    number; None if a web has one value."""
    if min(map(len, of_webs)) < 2:
        return None
    return math.sqrt(math.fsum(variance(values) / len(values) for values in of_webs)) / len(of_webs)


def sign_flip(differences: Sequence[float]) -> float:
    """Return the two-sided p of a paired randomisation test of the mean (Fisher; Smucker et al. 2007, 3.1).

    Exact for 12 pairs or fewer. For more, signs are drawn by SHAKE-256, so they are always the same; the observed signs
    count as one draw (Phipson and Smyth 2010).
    """
    observed = abs(math.fsum(differences)) - _ROUNDING
    sums = _signs(len(differences)) @ np.array(differences)
    extreme = int(np.count_nonzero(np.abs(sums) >= observed))
    return extreme / len(sums) if len(differences) <= _EXACT else (extreme + 1) / (len(sums) + 1)


@cache
def _signs(pairs: int) -> NDArray[np.float64]:
    """Return signs of some pairs, a row for each way to have them."""
    if pairs <= _EXACT:
        return np.array([*product((-1.0, 1.0), repeat=pairs)])
    drawn = hashlib.shake_256(f"signs of {pairs} pairs".encode()).digest(_DRAWS * pairs // 8)
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8)).reshape(_DRAWS, pairs)
    return bits.astype(np.float64) * 2 - 1


def sets_needed(policies: int) -> int | None:
    """Return how many sets of seeds it takes at least to distinguish any two of some policies; None: no number does.

    With fewer the p of a policy that is ahead from all of them is, adjusted for the number of pairs, above LEVEL.
    """
    pairs = math.comb(policies, 2)
    return next((sets for sets in range(1, 2 * _EXACT) if pairs * sign_flip([1.0] * sets) <= LEVEL), None)


def too_few(policies: int, sets: int) -> bool:
    """Return whether there are too few sets of seeds to say which of two policies is better."""
    needed = sets_needed(policies)
    return policies > 1 and (needed is None or sets < needed)


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm 1979, "A Simple Sequentially Rejective ... Procedure")."""
    ordered = np.argsort(values, kind="stable")
    adjusted = np.empty(len(values))
    times = np.arange(len(values), 0, -1)
    adjusted[ordered] = np.minimum(np.maximum.accumulate(times * np.take(values, ordered)), 1.0)
    return list(map(float, adjusted))


def paired(policies: Mapping[str, Values]) -> list[Paired]:
    """Return the differences of all pairs of policies, by each measure: each policy minus one after it."""
    found: list[Paired] = []
    for measure in next(iter(policies.values()), {}):
        pairs = {
            (policy, other): [
                [one - two for one, two in zip(ours, theirs, strict=True)]
                for ours, theirs in zip(policies[policy][measure], policies[other][measure], strict=True)
            ]
            for policy, other in combinations(policies, 2)
        }
        flat = [[value for web in of_webs for value in web] for of_webs in pairs.values()]
        tests = list(map(sign_flip, flat))
        found += [
            Paired(
                measure=measure,
                policy=policy,
                other=other,
                mean=mean_of(of_webs),
                error=error_of(of_webs),
                p=p,
                p_holm=p_holm,
                webs=list(map(fmean, of_webs)),
                better=sum(value > 0 for value in values),
                worse=sum(value < 0 for value in values),
            )
            for ((policy, other), of_webs), values, p, p_holm in zip(
                pairs.items(), flat, tests, holm(tests), strict=True
            )
        ]
    return found


@dataclass(frozen=True)
class Ranking:
    """Policies by area, bounds after the others."""

    standings: Sequence[Standing]
    differences: Sequence[Paired]
    """Of the policies that are no bounds: the better one, by area, minus the other."""
    sets: int
    """Pairs of runs from the same seeds that any two policies have."""

    @property
    def ranked(self) -> list[Standing]:
        """The policies that are no bounds."""
        return [standing for standing in self.standings if standing.rank is not None]

    def alike(self, standing: Standing) -> str | None:
        """Return the policies that one is not distinguished from, for a table."""
        if standing.rank is not None and too_few(len(self.ranked), self.sets):
            return TOO_FEW
        return ", ".join(standing.not_distinguished) or None

    def verdict(self, over: str) -> Iterator[str]:
        """Yield the lead of the best of two or more policies, then the result of the paired test for the best two."""
        best, second = self.ranked[:2]
        areas = best.means[AREA], second.means[AREA]
        if areas[0] == areas[1]:
            yield f"No policy is best: over {over}, {best.policy} and {second.policy} found as much of the oracle set."
        else:
            times = f": {areas[0] / areas[1]:.2f} times as much" if areas[1] else ""
            yield (
                f"{best.policy} is best: on average over {over} it had found {areas[0]:.1%} of the oracle set, "
                f"{second.policy}, the next, {areas[1]:.1%}{times}."
            )
        yield self._how_sure(best.policy, second.policy)

    def _how_sure(self, best: str, second: str) -> str:
        pairs = [one for one in self.differences if (one.measure, one.policy, one.other) == (AREA, best, second)]
        takes = f"it takes runs of each policy from {sets_needed(len(self.ranked)) or 'more'} sets of seeds, the same"
        if not pairs or self.sets < 2:
            return f"The test cannot tell how much of that is chance: {takes} for all."
        lead = f"It was ahead of {second} from {pairs[0].better} of {self.sets} sets of seeds"
        if too_few(len(self.ranked), self.sets):
            return f"{lead}, which are {TOO_FEW} how much of that is chance: {takes} for all."
        sure = "so chance alone does not explain it" if pairs[0].p_holm <= LEVEL else "so it may be chance"
        return f"{lead}; p = {pairs[0].p_holm:.2g} (paired randomisation test, adjusted for all pairs), {sure}."


def ranking_of(policies: Mapping[str, Values], bounds: Collection[str], sets: int) -> Ranking:
    """Return the ranking of policies by mean area; without ``sets`` of seeds that all have, nothing is tested."""
    means = {policy: {name: mean_of(webs) for name, webs in values.items()} for policy, values in policies.items()}
    errors = {policy: {name: error_of(webs) for name, webs in values.items()} for policy, values in policies.items()}
    order = sorted(policies, key=lambda policy: (policy in bounds, -means[policy][AREA], policy))
    differences = paired({policy: policies[policy] for policy in order if policy not in bounds}) if sets else []
    alike: dict[str, list[str]] = {policy: [] for policy in policies}
    for pair in differences:
        if pair.measure == AREA and pair.p_holm > LEVEL:
            alike[pair.policy].append(pair.other)
            alike[pair.other].append(pair.policy)
    standings = [
        Standing(None if policy in bounds else place, policy, means[policy], errors[policy], alike[policy])
        for place, policy in enumerate(order, 1)
    ]
    return Ranking(standings, differences, sets)
