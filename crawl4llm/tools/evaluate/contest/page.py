"""The report of a contest, and its table to paste, made of the results alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from crawl4llm.base.command_lines import docs
from crawl4llm.base.terminal import cell
from crawl4llm.tools.evaluate.contest.crawling import MARKS, POINTS
from crawl4llm.tools.evaluate.contest.ranking import AREA, Paired, Standing, error_of, mean_of, too_few
from crawl4llm.tools.evaluate.contest.results import LEARNT, Results, mean
from crawl4llm.tools.evaluate.figures import Cell, Figure, Report, Series, Table
from crawl4llm.tools.evaluate.learnt import correlation_note
from crawl4llm.tools.evaluate.shares import CLOSED, CLOSED_AT, closed_cells
from crawl4llm.tools.evaluate.verdict import NOT_DISTINGUISHED, alike, how_sure, told

_RECALLS = tuple(f"recall at {mark}%" for mark in MARKS)
_QUARTER = 25
"""The mark at which mean influence is shown."""
_CLOSED_COLUMNS = (*(f"Closed at {mark}%" for mark in CLOSED_AT), f"Least, at {CLOSED_AT[-1]}%")
_AREA = (
    "Area: the mean of recall over all numbers of pages crawled up to half of those in reach. Recall: the share of "
    "the oracle set in reach (the tenth of the web's pages with the highest influence; Craw4LLM, section 3) among the "
    "first 5, 10, 25 and 50% of the pages in reach that were crawled. Means over webs of means over seed sets"
)


def report_of(results: Results) -> Report:
    """Return the report as figures and tables."""
    differences = results.differences()
    ranked = results.standings(differences)
    return Report(
        title=f"Contest of crawl policies, track {results.about['track']}",
        notes=list(_notes(results)),
        sections=[
            _ranking(results, ranked),
            *(replace(_curves(results, web["name"], ranked), part="Recall on each web") for web in results.webs),
            *(
                replace(table, part="In numbers")
                for table in (_differences(results, ranked, differences), _by_web(results, ranked), _webs(results))
            ),
        ],
        verdict=list(_verdict(results, ranked, differences)),
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
    areas = {standing.policy: standing.means[AREA] for standing in results.standings(results.differences())}
    for target, losses in results.about.get(LEARNT, {}).items():
        yield correlation_note(target, losses, areas)
    for failure in results.failures:
        policy, web, number = (failure[name] for name in ("policy", "web", "set"))
        yield f"{policy} failed on {web}, seed set {number}, and is not ranked: {failure['error']}"


def _verdict(results: Results, ranked: Sequence[Standing], differences: Sequence[Paired]) -> Iterator[str]:
    ours = [standing for standing in ranked if standing.rank is not None]
    if len(ours) > 1:
        yield from told(ours, "the first half of the pages in reach")
        yield from how_sure(ours, differences, results.sets())


def _few(results: Results, ranked: Sequence[Standing]) -> bool:
    return too_few(sum(standing.rank is not None for standing in ranked), results.sets())


def _ranking(results: Results, ranked: Sequence[Standing]) -> Table:
    closed = _closed(results)
    return Table(
        id="ranking",
        title="Ranking",
        definition=f"{_AREA}; ± the standard error of the mean, from the seed sets. Ranked by area. "
        f"{NOT_DISTINGUISHED} Policies without a rank are bounds. Those that look ahead know the influence of each "
        "page that they discover, and are shown by pages crawled, as if to look had cost no fetch. The policy bound "
        f"has read a quarter of the web beforehand.{f' {CLOSED}.' if closed else ''}",
        columns=(
            *("Rank", "Policy", "Area", "±", *_RECALLS, f"Mean influence at {_QUARTER}%"),
            *(_CLOSED_COLUMNS if closed else ()),
            *(f"Loss on {target}" for target in results.about.get(LEARNT, {})),
            "Not distinguished from",
        ),
        rows=[_standing_row(results, standing, _few(results, ranked), closed) for standing in ranked],
    )


def _closed(results: Results) -> dict[str, list[Cell]]:
    """Return the cells of each policy on the gap that it closes; nothing without both ends of the gap."""
    closed, webs = results.closed(), [str(web["name"]) for web in results.webs]
    return {policy: closed_cells(closed.get(policy), webs) for policy in results.complete() if closed}


def _standing_row(results: Results, standing: Standing, few: bool, closed: Mapping[str, Sequence[Cell]]) -> list[Cell]:
    means, errors = standing.means, standing.errors
    of_webs = results.influence(standing.policy, _QUARTER)
    quarter = mean([value for web in of_webs for value in web])
    recalls = [means[name] for name in _RECALLS]
    others = ", ".join(alike(standing, few)) or None
    losses = [by_policy.get(standing.policy) for by_policy in results.about.get(LEARNT, {}).values()]
    share = closed.get(standing.policy, ())
    return [standing.rank, standing.policy, means[AREA], errors[AREA], *recalls, quarter, *share, *losses, others]


def _curves(results: Results, web: str, ranked: Sequence[Standing]) -> Figure:
    def series(standing: Standing) -> Series:
        crawls = results.of(standing.policy, web)
        means = [mean([results.recall(crawl, point) for crawl in crawls]) for point in POINTS]
        curve: Any = [0.0, *means]
        return Series(standing.policy, [0, *POINTS], curve, kind="line" if standing.rank else "dashed")

    return Figure(
        id=f"recall-{web}",
        title=f"Recall on {web}",
        definition="Recall of the oracle set in reach, mean over the seed sets. Dashed: bounds.",
        x_label="pages crawled, % of those in reach",
        y_label="recall",
        series=[series(standing) for standing in ranked],
    )


def _differences(results: Results, ranked: Sequence[Standing], differences: Sequence[Paired]) -> Table:
    order = [standing.policy for standing in ranked]
    rows = [_difference_row(pair, order) for pair in differences]
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
        rows=sorted(rows, key=lambda row: (row[0] != AREA, row[0], order.index(str(row[1])), order.index(str(row[2])))),
    )


def _difference_row(pair: Paired, order: Sequence[str]) -> list[Cell]:
    if order.index(pair.policy) < order.index(pair.other):
        one, two, sign, better, worse = pair.policy, pair.other, 1, pair.better, pair.worse
    else:
        one, two, sign, better, worse = pair.other, pair.policy, -1, pair.worse, pair.better
    webs = [sign * difference for difference in pair.webs]
    return [pair.measure, one, two, sign * pair.mean, pair.error, pair.p, pair.p_holm, better, worse, *webs]


def _by_web(results: Results, ranked: Sequence[Standing]) -> Table:
    rows: list[list[Cell]] = []
    for place, web in enumerate(results.webs):
        for standing in ranked:
            measured = {name: [webs[place]] for name, webs in results.measured(standing.policy).items()}
            influence = [mean(results.influence(standing.policy, mark)[place]) for mark in MARKS]
            recalls = [mean_of(measured[name]) for name in _RECALLS]
            areas = measured[AREA]
            rows.append([web["name"], standing.policy, mean_of(areas), error_of(areas), *recalls, *influence])
    influences = (f"Mean influence at {mark}%" for mark in MARKS)
    return Table(
        id="by-web",
        title="Each web by itself",
        definition=f"{_AREA}, here of one web. Mean influence: of the pages crawled by then that have a score.",
        columns=("Web", "Policy", "Area", "±", *_RECALLS, *influences),
        rows=rows,
    )


def _webs(results: Results) -> Table:
    names = ("half", "corpus_pages", "pages", "hosts", "links", "oracle", "scorer", "model", "digest")
    rows: list[list[Cell]] = []
    for web in results.webs:
        reach = mean([start["reach"] for start in web["sets"]])
        rows.append([web["name"], *(web.get(name) for name in names), reach])
    return Table(
        id="webs",
        title="The webs",
        definition="Half: the part of the hosts that was crawled (by a hash of the host's name), or what a demo web "
        "is for; a dash for a corpus that is not divided. Pages and links: pages of these hosts that can be read, and "
        "links between them. The digest is that of all that decides a crawl: keys, URLs, "
        "influence scores, links and anchors.",
        columns=(
            *("Web", "Half", "Pages of the corpus", "Pages", "Hosts", "Links", "Oracle pages", "Scorer", "Model"),
            *("Digest", "Pages in reach, mean"),
        ),
        rows=rows,
    )


def markdown_of(results: Results) -> str:
    """Return the ranking as a Markdown table, with what it was measured on."""
    ranked = results.standings(results.differences())
    few, closed = _few(results, ranked), _closed(results)
    columns = ["rank", "policy", "area", *(f"{mark}%" for mark in MARKS)]
    columns += [*(name.lower() for name in _CLOSED_COLUMNS if closed), "not distinguished from"]
    lines = [f"| {' | '.join(columns)} |", "|" + "-|" * len(columns)]
    for standing in ranked:
        error = standing.errors[AREA]
        area = f"{standing.means[AREA]:.3f}" + ("" if error is None else f"±{error:.3f}")
        recalls = " | ".join(f"{standing.means[name]:.3f}" for name in _RECALLS)
        others = ", ".join(map(cell, alike(standing, few)))
        share = "".join(f"{one or '-'} | " for one in closed.get(standing.policy, ()))
        lines.append(f"| {standing.rank or ''} | {cell(standing.policy)} | {area} | {recalls} | {share}{others} |")
    lines.append("")
    about = results.about
    lines += [
        f"- {cell(web['name'])}: {web['pages']:,} pages, {web['links']:,} links, {cell(web['digest'])}"
        for web in results.webs
    ]
    lines.append(
        f"- track {cell(about['track'])}, {about['seed_sets']} sets of {about['seeds']} seeds, batches of "
        f"{about['batch']}; crawl4llm {cell(about['version'])}, code {cell(about['code'])}"
    )
    return "\n".join(lines) + "\n"
