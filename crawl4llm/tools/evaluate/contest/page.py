"""The report of a contest, and its table to paste, made of the results alone."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from crawl4llm.base.command_lines import docs
from crawl4llm.base.terminal import cell
from crawl4llm.tools import _learnt
from crawl4llm.tools.evaluate.contest.crawling import MARKS, POINTS
from crawl4llm.tools.evaluate.contest.results import LEARNT, Results, mean
from crawl4llm.tools.evaluate.figures import Cell, Figure, Report, Series, Table
from crawl4llm.tools.evaluate.ranking import AREA, NOT_DISTINGUISHED, Standing, error_of, mean_of
from crawl4llm.tools.evaluate.shares import CLOSED, CLOSED_AT, closed_cells

_RECALLS: Final = tuple(f"recall at {mark}%" for mark in MARKS)
_INFLUENCES: Final = tuple(f"Mean influence at {mark}%" for mark in MARKS)
_QUARTER: Final = 25
"""The mark at which the ranking shows mean influence."""
_CLOSED_COLUMNS: Final = (*(f"Closed at {mark}%" for mark in CLOSED_AT), f"Least, at {CLOSED_AT[-1]}%")
_AREA: Final = (
    "Area: the mean of recall over all numbers of pages crawled up to half of those in reach. Recall: the share of "
    "the oracle set in reach (the tenth of the web's pages with the highest influence; Craw4LLM, section 3) among the "
    "first 5, 10, 25 and 50% of the pages in reach that were crawled. Means over webs of means over seed sets"
)


def report_of(results: Results) -> Report:
    """Return the report as figures and tables."""
    ranking = results.ranking
    return Report(
        title=f"Contest of crawl policies, track {results.about['track']}",
        notes=list(_notes(results)),
        sections=[
            _ranking(results),
            *(_curves(results, place, "Recall on each web") for place in range(len(results.webs))),
            *(make(results, "In numbers") for make in (_differences, _by_web)),
        ],
        verdict=list(ranking.verdict("the first half of the pages in reach")) if len(ranking.ranked) > 1 else [],
        runs=[],
    )


def _notes(results: Results) -> Iterator[str]:
    about = results.about
    yield (
        f"{len(results.webs)} webs ({about['half']} part), {about['seed_sets']} sets of {about['seeds']} seeds on "
        f"each, {about['batch']} pages a batch; crawl4llm {about['version']}, code {about['code']}."
    )
    more = f"What they mean, and how to cite them: `{docs('contest')}`."
    yield f"The same inputs and version give the same numbers. {more}"
    areas = {standing.policy: standing.means[AREA] for standing in results.ranking.standings}
    for target, losses in about.get(LEARNT, {}).items():
        yield correlation_note(target, losses, areas)
    for failure in results.failures:
        policy, web, number = (failure[name] for name in ("policy", "web", "set"))
        yield f"{policy} failed on {web}, seed set {number}, and is not ranked: {failure['error']}"


def _ranking(results: Results) -> Table:
    has_gap = bool(results.closed)
    targets = results.about.get(LEARNT, {})
    return Table(
        id="ranking",
        title="Ranking",
        definition=f"{_AREA}; ± the standard error of the mean, from the seed sets. Ranked by area. "
        f"{NOT_DISTINGUISHED} Policies without a rank are bounds. Those that look ahead know the influence of each "
        "page that they discover, and are shown by pages crawled, as if to look had cost no fetch. The policy bound "
        f"has read a quarter of the web beforehand.{f' {CLOSED}.' if has_gap else ''}",
        columns=(
            *("Rank", "Policy", "Area", "±", *_RECALLS, _INFLUENCES[MARKS.index(_QUARTER)]),
            *(_CLOSED_COLUMNS if has_gap else ()),
            *(f"Loss on {target}" for target in targets),
            "Not distinguished from",
        ),
        rows=[
            [
                *(standing.rank, standing.policy, standing.means[AREA], standing.errors[AREA]),
                *(standing.means[name] for name in _RECALLS),
                mean([value for web in results.influence(standing.policy, _QUARTER) for value in web]),
                *_closed(results, standing.policy),
                *(losses.get(standing.policy) for losses in targets.values()),
                results.ranking.alike(standing),
            ]
            for standing in results.ranking.standings
        ],
    )


def _closed(results: Results, policy: str) -> list[Cell]:
    """Return the cells of a policy on the gap that it closes; none without both ends of the gap."""
    if not results.closed:
        return []
    return closed_cells(results.closed.get(policy), [str(web["name"]) for web in results.webs])


def _curves(results: Results, place: int, part: str) -> Figure:
    def series(standing: Standing) -> Series:
        means = [mean(results.recall(standing.policy, point)[place]) for point in POINTS]
        return Series(standing.policy, [0, *POINTS], [0.0, *means], kind="line" if standing.rank else "dashed")

    web = results.webs[place]["name"]
    return Figure(
        id=f"recall-{web}",
        title=f"Recall on {web}",
        definition="Recall of the oracle set in reach, mean over the seed sets. Dashed: bounds.",
        x_label="pages crawled, % of those in reach",
        y_label="recall",
        series=[series(standing) for standing in results.ranking.standings],
        part=part,
    )


def _differences(results: Results, part: str) -> Table:
    pairs = sorted(results.ranking.differences, key=lambda pair: (pair.measure != AREA, pair.measure))
    return Table(
        id="differences",
        title="Paired differences",
        definition="A policy minus another one of lower rank, from the same seeds: mean, its standard error, the p of "
        "a paired randomisation test of the mean (two-sided; exact for 12 pairs or fewer), the same adjusted for all "
        "pairs by this measure by Holm's method, and the crawls in which either is ahead. Error and test come from the "
        "seed sets, and are about these webs alone: the mean difference on each is shown too.",
        columns=(
            *("Measure", "Policy", "Other", "Difference", "±", "p", "p, adjusted", "Better", "Worse"),
            *(web["name"] for web in results.webs),
        ),
        rows=[
            [
                *(pair.measure, pair.policy, pair.other, pair.mean, pair.error, pair.p, pair.p_holm),
                *(pair.better, pair.worse, *pair.webs),
            ]
            for pair in pairs
        ],
        part=part,
    )


def _by_web(results: Results, part: str) -> Table:
    rows: list[list[Cell]] = []
    for place, web in enumerate(results.webs):
        for policy in (standing.policy for standing in results.ranking.standings):
            values = {name: [webs[place]] for name, webs in results.measured[policy].items()}
            recalls = [mean_of(values[name]) for name in _RECALLS]
            influence = [mean(results.influence(policy, mark)[place]) for mark in MARKS]
            rows.append([web["name"], policy, mean_of(values[AREA]), error_of(values[AREA]), *recalls, *influence])
    return Table(
        id="by-web",
        title="Each web by itself",
        definition=f"{_AREA}, here of one web. Mean influence: of the pages crawled by then that have a score.",
        columns=("Web", "Policy", "Area", "±", *_RECALLS, *_INFLUENCES),
        rows=rows,
        part=part,
    )


def markdown_of(results: Results) -> str:
    """Return the ranking as a Markdown table, with what it was measured on."""
    about, ranking = results.about, _ranking(results)
    lines = [_line(ranking.columns), "|" + "-|" * len(ranking.columns), *map(_line, ranking.rows), ""]
    lines += [
        f"- {cell(web['name'])}: {web['pages']:,} pages, {web['links']:,} links, {cell(web['digest'])}"
        for web in results.webs
    ]
    lines.append(
        f"- track {cell(about['track'])}, {about['seed_sets']} sets of {about['seeds']} seeds, batches of "
        f"{about['batch']}; crawl4llm {cell(about['version'])}, code {cell(about['code'])}"
    )
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[Cell]) -> str:
    shown = ("" if one is None else f"{one:.3f}" if isinstance(one, float) else cell(one) for one in cells)
    return f"| {' | '.join(shown)} |"


# -- losses of models, by policy ---------------------------------------------------------------------------------------


def by_policy(results: _learnt.Results) -> dict[str, Any]:
    """Return for each target the mean loss of the runs of each policy, as a contest keeps it."""
    found: dict[str, dict[str, list[float]]] = {target: {} for target in results.targets}
    for run in results.runs:
        for target, losses in found.items():
            losses.setdefault(str(run.facts.get("policy")), []).append(run.points[-1].mean(target))
    return {target: {name: statistics.fmean(some) for name, some in losses.items()} for target, losses in found.items()}


def correlation_note(target: str, losses: Mapping[str, float], areas: Mapping[str, float]) -> str:
    """Return a sentence on the correlation of area with loss over the policies that have both."""
    names = [name for name in areas if name in losses]
    found = _learnt.rank_correlation([areas[name] for name in names], [losses[name] for name in names])
    shown = "cannot be told" if found is None else f"is {found:.2f}"
    return (
        f"Loss on {target}, of runs elsewhere: its rank correlation with the area {shown}, over {len(names)} policies."
    )
