"""The verdict of a comparison: which policy is best, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

import numpy as np

from crawl4llm.tools.evaluate.contest.ranking import (
    AREA,
    LEVEL,
    Paired,
    Standing,
    Values,
    paired,
    sets_needed,
    standings,
    too_few,
)
from crawl4llm.tools.evaluate.figures import Cell, Table, number
from crawl4llm.tools.evaluate.measures import mean_so_far, oracle_hits, precision, recall
from crawl4llm.tools.evaluate.survey import CrawledPages, Group, Subject

_RECALL, _PRECISION, _INFLUENCE, _FETCHED = "recall", "precision", "mean influence", "fetched"
TOO_FEW: Final = "too few sets to say"
NOT_DISTINGUISHED: Final = (
    "Not distinguished: the paired randomisation test of the areas from the same seeds, adjusted for the number of "
    f'pairs by Holm\'s method, gives more than {LEVEL}. "{TOO_FEW.capitalize()}": with so few sets it could not give '
    "less, whatever the runs are."
)
_LOOKS_AHEAD = 1.5
"""Documents fetched for a page crawled, from which the verdict says so."""


def ranking(subject: Subject) -> Table:
    """Return the policies by area, over as many pages as all runs have."""
    at = min(map(len, subject.runs))
    ranked, _, seed_sets = _standings(subject, at)
    few = too_few(len(ranked), seed_sets)
    runs = {group.name: len(group.runs) for group in subject.groups}
    rows: list[list[Cell]] = []
    for standing in ranked:
        means = [number(standing.means[name]) for name in (_RECALL, _PRECISION, _INFLUENCE, _FETCHED)]
        area = [standing.means[AREA], standing.errors[AREA]]
        others = ", ".join(alike(standing, few)) or None
        rows.append([standing.rank, standing.policy, runs[standing.policy], *area, *means, others])
    return Table(
        id="ranking",
        title=f"Ranking at {at:,} pages",
        definition="All at the number of pages that the shortest run has. Area: the mean of recall over all numbers of "
        "pages crawled up to that, by which policies are ranked; ± its standard error over the runs, which differ in "
        "their seeds. Recall and precision of the oracle set, mean influence: of all these pages. Fetched: documents "
        f"fetched for each page crawled. {NOT_DISTINGUISHED}",
        columns=[
            *("Rank", "Policy", "Runs", "Area", "±", "Recall", "Precision", "Mean influence", "Fetched a page"),
            "Not distinguished from",
        ],
        rows=rows,
    )


def verdict(subject: Subject) -> Iterator[str]:
    """Yield the verdict on the runs: the best policy, how sure that is, and what it cost."""
    at = min(map(len, subject.runs))
    ranked, differences, seed_sets = _standings(subject, at)
    if len(ranked) < 2:
        yield f"One policy, {ranked[0].policy}: give runs of others, from the same seeds, to compare it with."
        return
    yield from told(ranked, f"the first {at:,} pages crawled")
    yield from how_sure(ranked, differences, seed_sets)
    fetched = {standing.policy: standing.means[_FETCHED] for standing in ranked}
    if max(fetched.values()) >= _LOOKS_AHEAD * min(fetched.values()):
        most = max(fetched, key=fetched.__getitem__)
        pages = min(int(crawled.run.fetched[-1]) for crawled in subject.runs)
        found = {
            group.name: fmean(_recall_by_fetched(subject, one, pages) for one in group.runs) for group in subject.groups
        }
        best = max(found, key=found.__getitem__)
        yield (
            f"{most} fetched {fetched[most]:,.1f} documents for each page that it crawled. By documents fetched, "
            f"{best} is ahead: with {pages:,} it had found {found[best]:.1%} of the oracle set."
        )


def told(ranked: Sequence[Standing], over: str) -> Iterator[str]:
    """Yield by how much the best of two policies or more leads."""
    best, second = ranked[:2]
    areas = best.means[AREA], second.means[AREA]
    if areas[0] == areas[1]:
        yield f"None is best: over {over}, {best.policy} and {second.policy} had found as much of the oracle set."
        return
    times = f": {areas[0] / areas[1]:.2f} times as much" if areas[1] else ""
    yield (
        f"{best.policy} is best: on average over {over} it had found {areas[0]:.1%} of the oracle set, "
        f"{second.policy}, the next, {areas[1]:.1%}{times}."
    )


def how_sure(ranked: Sequence[Standing], differences: Sequence[Paired], seed_sets: int) -> Iterator[str]:
    """Yield what the paired test says of the best two policies; ``seed_sets``: pairs of runs from the same seeds."""
    best, second = ranked[0].policy, ranked[1].policy
    pair = next((one for one in differences if one.measure == AREA and {one.policy, one.other} == {best, second}), None)
    needed = sets_needed(len(ranked))
    takes = f"it takes runs of each policy from {needed or 'more'} sets of seeds, the same for all"
    if pair is None or seed_sets < 2:
        yield f"How much of that is chance is not known: {takes}."
        return
    lead = f"It was ahead of {second} from {pair.better if pair.policy == best else pair.worse} of {seed_sets} sets"
    if too_few(len(ranked), seed_sets):
        yield f"{lead} of seeds, which are {TOO_FEW} how much of that is chance: {takes}."
        return
    sure = "so chance alone does not explain it" if pair.p_holm <= LEVEL else "so it may be chance"
    yield f"{lead} of seeds; p = {pair.p_holm:.2g} (paired randomisation test, adjusted for all pairs), {sure}."


def alike(standing: Standing, few: bool) -> Sequence[str]:
    """Return which policies one is not distinguished from; ``few``: no test could tell, for want of sets of seeds."""
    return [TOO_FEW] if few and standing.rank is not None else standing.not_distinguished


def _standings(subject: Subject, at: int) -> tuple[list[Standing], list[Paired], int]:
    """Return the ranking, the paired differences, and of how many sets of seeds all policies have runs."""
    common = set.intersection(*({tuple(one.run.seeds) for one in group.runs} for group in subject.groups))
    sets = sorted(common) if len(subject.groups) > 1 else []
    policies: dict[str, Values] = {group.name: _values(subject, group, at, sets) for group in subject.groups}
    differences = paired(policies) if sets and len(policies) > 1 else []
    return standings(policies, (), differences), differences, len(sets)


def _values(subject: Subject, group: Group, at: int, sets: Sequence[tuple[str, ...]]) -> Values:
    """Return a group's values by measure: of each set of seeds that all policies have, or else of each run."""
    measured = {one.name: _measures(subject, one, at) for one in group.runs}
    of_sets = [[one.name for one in group.runs if tuple(one.run.seeds) == seeds] for seeds in sets]
    together: Sequence[Sequence[str]] = of_sets or [[name] for name in measured]
    names = next(iter(measured.values()))
    return {name: [[fmean(measured[one][name] for one in runs) for runs in together]] for name in names}


def _measures(subject: Subject, crawled: CrawledPages, at: int) -> Mapping[str, float]:
    end, oracle = np.array([at]), subject.oracle
    area = recall(crawled.influence, oracle, np.arange(1, at + 1)).value.mean()
    return {
        AREA: float(area),
        _RECALL: float(recall(crawled.influence, oracle, end).value[0]),
        _PRECISION: float(precision(crawled.influence, oracle, end).value[0]),
        _INFLUENCE: float(mean_so_far(crawled.influence, end)[0]),
        _FETCHED: float(crawled.run.fetched[at - 1] / at),
    }


def _recall_by_fetched(subject: Subject, crawled: CrawledPages, fetched: int) -> float:
    """Return the recall when so many documents were fetched."""
    place = int(np.searchsorted(crawled.run.fetched, fetched, side="right"))
    hits = oracle_hits(crawled.influence, subject.oracle)
    return float(hits[place - 1] / subject.oracle.size.value) if place else 0.0
