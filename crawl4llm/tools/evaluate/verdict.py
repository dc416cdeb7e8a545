"""The verdict of a comparison: recall at 25% by policy, which policy is best, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from crawl4llm.tools.evaluate.documents import Estimate
from crawl4llm.tools.evaluate.figures import Cell, Table
from crawl4llm.tools.evaluate.ranking import AREA, NOT_DISTINGUISHED, Ranking, Values, ranking_of
from crawl4llm.tools.evaluate.runs import INFLUENCE, PRECISION, RECALL, CrawledPages
from crawl4llm.tools.evaluate.shares import BASE, BOUND, CLOSED, CLOSED_AT, closed
from crawl4llm.tools.evaluate.survey import Group, Subject

_FETCHED = "Fetched a page"
_MARK: Final = 0.25
"""The share of the pages in reach at which the report states recall first."""


class Mark(NamedTuple):
    """The point of a run at which its recall is stated."""

    pages: int
    reach: int
    """Pages that the run's seeds can reach; all documents of the corpus if only a sample is surveyed."""


class Standpoint(NamedTuple):
    """Recall of a policy's runs at the mark: mean, least and greatest."""

    policy: str
    runs: int
    crawled: Estimate
    """After as many pages crawled."""
    fetched: Estimate
    """After as many documents fetched."""


def marks(subject: Subject) -> dict[str, Mark]:
    """Return the mark of each run by name: 25% of the pages in reach or, if a run is shorter, the shortest run's length
    for all."""
    found, shortest = _marks_at(subject, _MARK), min(map(len, subject.runs))
    if _are_reached(subject, found):
        return found
    return {name: mark._replace(pages=shortest) for name, mark in found.items()}


def _marks_at(subject: Subject, share: float) -> dict[str, Mark]:
    """Return the mark of each run by name, at a share of the pages in reach."""
    found = {}
    for one in subject.runs:
        reachable = subject.reachable(one)
        reach = subject.survey.size if reachable is None else int(np.count_nonzero(reachable))
        found[one.run.name] = Mark(max(1, round(share * reach)), reach)
    return found


def _are_reached(subject: Subject, at: Mapping[str, Mark]) -> bool:
    return all(at[one.run.name].pages <= len(one) for one in subject.runs)


def standpoints(subject: Subject, at: Mapping[str, Mark]) -> list[Standpoint]:
    """Return the recall of each policy at the marks, the highest first."""

    def spread(values: Sequence[float]) -> Estimate:
        return Estimate(fmean(values), min(values), max(values))

    found = []
    for group in subject.groups:
        pages = [(one, at[one.run.name].pages) for one in group.runs]
        crawled = [_recall_by_crawled(one, n) for one, n in pages]
        fetched = [_recall_by_fetched(one, n) for one, n in pages]
        found.append(Standpoint(group.name, len(pages), spread(crawled), spread(fetched)))
    return sorted(found, key=lambda one: (-one.crawled.value, one.policy))


def headline(subject: Subject) -> Iterator[str]:
    """Yield the recall of each policy at 25% of the pages in reach, then after as many documents fetched."""
    at = marks(subject)
    found = standpoints(subject, at)
    where = _where(at.values())
    told = "; ".join(f"{one.policy} {_percent(one.crawled, one.runs)}" for one in found)
    yield f"Share of the oracle set found after {where} were crawled: {told}."
    by_fetched = sorted(found, key=lambda one: (-one.fetched.value, one.policy))
    if any(one.fetched != one.crawled for one in found):
        told = "; ".join(f"{one.policy} {_percent(one.fetched, one.runs)}" for one in by_fetched)
        yield f"After as many documents were fetched: {told}."


def quarter(subject: Subject) -> Table:
    """Return the recall of each policy at 25% of the pages in reach, by pages crawled and by documents fetched."""
    at = marks(subject)
    rows: list[list[Cell]] = []
    for one in standpoints(subject, at):
        spreads = [(estimate.low, estimate.high) if one.runs > 1 else (None, None) for estimate in one[2:]]
        rows.append([one.policy, one.runs, one.crawled.value, *spreads[0], one.fetched.value, *spreads[1]])
    return Table(
        id="quarter",
        title=f"Recall after {_where(at.values())}",
        definition="Recall: the share of the oracle set that was crawled. By pages crawled: after that number of "
        "pages. By documents fetched: after as many fetches, which is earlier for a policy that fetches documents to "
        "score them, such as influence. In reach: the pages that the run's seeds can reach over links, or the whole "
        "corpus if only a sample of it was surveyed. Least and greatest: of the runs of a policy, if there are "
        "several. If a run is shorter than 25%, the mark is the length of the shortest run.",
        columns=[
            *("Policy", "Runs", "Recall by pages crawled", "Least", "Greatest"),
            *("Recall by documents fetched", "Least", "Greatest"),
        ],
        rows=rows,
    )


def _where(at: Iterable[Mark]) -> str:
    """Return the marks in words: how many pages, and which share of those in reach."""
    pages = sorted({mark.pages for mark in at})
    shares = sorted({f"{mark.pages / mark.reach:.2g}" for mark in at})
    numbers = f"{pages[0]:,}" if len(pages) == 1 else f"{pages[0]:,} to {pages[-1]:,}"
    share = " to ".join(f"{100 * float(one):.2g}%" for one in (shares[0], shares[-1])[: len(shares)])
    return f"{share} of the pages in reach ({numbers} pages)"


def _percent(estimate: Estimate, runs: int) -> str:
    spread = f" ({estimate.low:.1%} to {estimate.high:.1%} in {runs} runs)" if runs > 1 else ""
    return f"{estimate.value:.1%}{spread}"


def ranking(subject: Subject) -> Table:
    """Return the policies by area, over as many pages as all runs have."""
    at = min(map(len, subject.runs))
    found = _ranking(subject, at)
    runs = {group.name: len(group.runs) for group in subject.groups}
    rows: list[list[Cell]] = []
    for standing in found.standings:
        means = [standing.means[name] for name in (RECALL, PRECISION, INFLUENCE, _FETCHED)]
        area = [standing.means[AREA], standing.errors[AREA]]
        rows.append([standing.rank, standing.policy, runs[standing.policy], *area, *means, found.alike(standing)])
    return Table(
        id="ranking",
        title=f"Ranking at {at:,} pages",
        definition=f"All figures are at the length of the shortest run. Area: the mean of recall over all numbers of "
        f"pages up to that; it ranks the policies. ±: its standard error over the runs, which differ in their seeds. "
        f"Recall and precision of the oracle set, mean influence: of all these pages. Fetched a page: documents "
        f"fetched per page crawled. {NOT_DISTINGUISHED}",
        columns=[
            *("Rank", "Policy", "Runs", "Area", "±", "Recall", "Precision", "Mean influence", "Fetched a page"),
            "Not distinguished from",
        ],
        rows=rows,
    )


def gap(subject: Subject) -> Iterator[Table]:
    """Yield the share of the gap from BASE to a bound that each other policy closes, if there are runs by both.

    The bound is BOUND or, without it, the policy that looks ahead by influence. Marks that a run does not reach are
    left out.
    """
    base, bound = _only(subject, BASE), _only(subject, BOUND) or _only(subject, "influence")
    reached = {mark: at for mark in CLOSED_AT if _are_reached(subject, at := _marks_at(subject, mark / 100))}
    others = [group for group in subject.groups if group not in (base, bound)]
    if base is None or bound is None or not others or not reached:
        return
    sets = _common_seeds(subject)

    def recalls(group: Group, at: Mapping[str, Mark]) -> list[float]:
        found = {one.run.name: _recall_by_crawled(one, at[one.run.name].pages) for one in group.runs}
        return [fmean(map(found.__getitem__, runs)) for runs in _runs_of(group, sets) or [list(found)]]

    rows: list[list[Cell]] = []
    for group in others:
        shares = (closed(*([recalls(one, at)] for one in (group, base, bound))).told() for at in reached.values())
        rows.append([group.name, len(group.runs), *shares])
    yield Table(
        id="gap",
        title=f"The gap from {BASE} to {bound.name}",
        definition=f"{CLOSED}. At 10 and 25% of the pages in reach of a run's seeds, by pages crawled; recall of the "
        "whole oracle set. The interval is known if all policies have runs from the same two or more sets of seeds.",
        columns=["Policy", "Runs", *(f"Closed at {mark}%" for mark in reached)],
        rows=rows,
    )


def _only(subject: Subject, policy: str) -> Group | None:
    """Return the group of runs by a policy; None unless it is one group."""
    found = [group for group in subject.groups if group.runs[0].run.facts["policy"] == policy]
    return found[0] if len(found) == 1 else None


def verdict(subject: Subject) -> Iterator[str]:
    """Yield the verdict on the runs: recall at 25%, the best policy, and how sure that is."""
    yield from headline(subject)
    at = min(map(len, subject.runs))
    if len(subject.groups) < 2:
        yield f"One policy, {subject.groups[0].name}: give runs of others, from the same seeds, to compare it with."
        return
    yield from _ranking(subject, at).verdict(f"the first {at:,} pages crawled")


def _ranking(subject: Subject, at: int) -> Ranking:
    """Return the ranking after a number of pages, tested over the sets of seeds from which all policies have runs."""
    sets = _common_seeds(subject)
    return ranking_of({group.name: _values(group, at, sets) for group in subject.groups}, (), len(sets))


def _common_seeds(subject: Subject) -> list[tuple[str, ...]]:
    """Return the sets of seeds from which all policies have runs; none of one policy."""
    common = set.intersection(*({tuple(one.run.seeds) for one in group.runs} for group in subject.groups))
    return sorted(common) if len(subject.groups) > 1 else []


def _runs_of(group: Group, sets: Sequence[tuple[str, ...]]) -> list[list[str]]:
    """Return the names of a group's runs by the sets of seeds."""
    return [[one.run.name for one in group.runs if tuple(one.run.seeds) == seeds] for seeds in sets]


def _values(group: Group, at: int, sets: Sequence[tuple[str, ...]]) -> Values:
    """Return a group's values by measure: of each set of seeds that all policies have, or else of each run."""
    measured = {one.run.name: _measures(one, at) for one in group.runs}
    together: Sequence[Sequence[str]] = _runs_of(group, sets) or [[name] for name in measured]
    names = next(iter(measured.values()))
    return {name: [[fmean(measured[one][name] for one in runs) for runs in together]] for name in names}


def _measures(crawled: CrawledPages, at: int) -> Mapping[str, float]:
    area = float(crawled.recall(np.arange(1, at + 1)).value.mean())
    return {AREA: area, **crawled.measured(at), _FETCHED: float(crawled.run.fetched[at - 1] / at)}


def _recall_by_crawled(crawled: CrawledPages, pages: int) -> float:
    """Return the recall after ``pages`` pages crawled."""
    return float(crawled.recall(np.array([pages])).value[0])


def _recall_by_fetched(crawled: CrawledPages, fetched: int) -> float:
    """Return the recall after ``fetched`` documents fetched."""
    place = int(np.searchsorted(crawled.run.fetched, fetched, side="right"))
    return _recall_by_crawled(crawled, place) if place else 0.0
