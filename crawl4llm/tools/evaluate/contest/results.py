"""The results of a contest: one JSON file, and a report and a table to paste, which follow from that file alone."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.command_lines import command, docs
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import read_json
from crawl4llm.base.run_folder import write_text
from crawl4llm.base.shapes import FLAG, Where, fits, misfit, whole
from crawl4llm.base.terminal import cell
from crawl4llm.tools.evaluate.contest.crawling import COUNT, CRAWL, MARKS, POINTS, TEXT
from crawl4llm.tools.evaluate.contest.track import NAME
from crawl4llm.tools.evaluate.figures import Cell, Figure, Report, Series, Table
from crawl4llm.tools.evaluate.ranking import AREA, MOST_PAIRS, NOT_DISTINGUISHED, Ranking, Standing, ranking_of
from crawl4llm.tools.evaluate.report import write_report
from crawl4llm.tools.evaluate.shares import BASE, BOUND, CLOSED, CLOSED_AT, Closed, closed, closed_cells

KIND: Final = "crawl4llm contest"
FORMAT: Final = 1
_LARGEST: Final = 1 << 26
"""Bytes of the file."""
_SET: Final = {"reach": COUNT, "oracle": whole(1, 10**15)}
_WEB: Final = {
    "name": Where(TEXT, NAME.fullmatch),
    "digest": TEXT,
    **dict.fromkeys(("pages", "links"), COUNT),
    "sets": [_SET],
}
_ABOUT: Final = {
    **dict.fromkeys(("version", "code", "track", "half"), TEXT),
    "seed_sets": whole(1, MOST_PAIRS),
    **dict.fromkeys(("seeds", "batch"), COUNT),
}
_RESULTS: Final = {
    "about": _ABOUT,
    "webs": [_WEB],
    "policies": [{"name": TEXT, "looks_ahead": FLAG}],
    "crawls": [CRAWL],
    "failures": [{"web": TEXT, "policy": TEXT, "set": COUNT, "error": TEXT}],
}
_RECALLS: Final = tuple(f"recall at {mark}%" for mark in MARKS)
_QUARTER: Final = 25
"""The mark at which the ranking shows mean influence."""
_CLOSED_COLUMNS: Final = (*(f"Closed at {mark}%" for mark in CLOSED_AT), f"Least, at {CLOSED_AT[-1]}%")
_AREA: Final = (
    "Area: the mean of recall over all numbers of pages crawled up to half of those in reach. Recall: the share of "
    "the oracle set in reach (the tenth of the web's pages with the highest influence; Craw4LLM, section 3) among the "
    "first 5, 10, 25 and 50% of the pages in reach that were crawled. Means over webs of means over seed sets"
)


@dataclass(frozen=True)
class Results:
    """The measurements, as plain JSON values; everything else follows from them."""

    about: Mapping[str, Any]
    """Version, digest of the code, and the facts of the track."""
    webs: Sequence[Mapping[str, Any]]
    policies: Sequence[Mapping[str, Any]]
    crawls: Sequence[Mapping[str, Any]]
    """By web, policy and set of seeds; those of policies that failed are there as far as they came."""
    failures: Sequence[Mapping[str, Any]]
    """The first crawl of each policy that failed, and why."""

    @property
    def sets(self) -> int:
        """The number of pairs of crawls from the same seeds that two policies have, on all webs together."""
        return len(self.webs) * int(self.about["seed_sets"])

    def of(self, policy: str) -> list[list[Mapping[str, Any]]]:
        """Return the crawls by a policy, for each web by the sets of seeds."""
        crawls = sorted((crawl for crawl in self.crawls if crawl["policy"] == policy), key=itemgetter("set"))
        return [[crawl for crawl in crawls if crawl["web"] == web["name"]] for web in self.webs]

    def recall(self, policy: str, per_cent: int) -> list[list[float]]:
        """Return the shares of the oracle set in reach that a policy had found at a point of its crawls, likewise."""
        return [
            [crawl["found"][per_cent - 1] / web["sets"][crawl["set"]]["oracle"] for crawl in crawls]
            for web, crawls in zip(self.webs, self.of(policy), strict=True)
        ]

    def influence(self, policy: str) -> float | None:
        """Return the mean influence of the pages crawled at _QUARTER, over all crawls by a policy."""
        means = [crawl["influence"][MARKS.index(_QUARTER)] for crawl in self.crawls if crawl["policy"] == policy]
        known = [value for value in means if value is not None]
        return math.fsum(known) / len(known) if known else None

    @cached_property
    def measured(self) -> dict[str, dict[str, list[list[float]]]]:
        """The values by measure of the policies all of whose crawls are there, for each web by the sets of seeds."""
        done = Counter(crawl["policy"] for crawl in self.crawls)
        return {
            policy: {
                AREA: [[float(crawl["area"]) for crawl in crawls] for crawls in self.of(policy)],
                **{f"recall at {mark}%": self.recall(policy, mark) for mark in MARKS},
            }
            for policy in (one["name"] for one in self.policies)
            if done[policy] == self.sets
        }

    @cached_property
    def ranking(self) -> Ranking:
        """The ranking, with the bounds after it."""
        bounds = {policy["name"] for policy in self.policies if policy["looks_ahead"]}
        return ranking_of(self.measured, bounds, self.sets)

    @cached_property
    def closed(self) -> dict[str, dict[int, Closed]]:
        """The share of the gap from BASE to BOUND that each other policy closes, by policy and mark; nothing if one of
        the two is missing."""
        if not {BASE, BOUND} <= self.measured.keys():
            return {}
        return {
            policy: {
                mark: closed(*(self.measured[one][f"recall at {mark}%"] for one in (policy, BASE, BOUND)))
                for mark in CLOSED_AT
            }
            for policy in self.measured
            if policy not in (BASE, BOUND)
        }


def write_results(results: Results, out: Path) -> dict[str, str]:
    """Write the report and two files, whose texts are returned by name; the same results give the same bytes. Raises
    InputError."""
    files = {"contest.json": _json_of(results), "contest.md": _markdown_of(results)}
    with as_input_error(f"{out} cannot be written"):
        out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_text(out / name, text)
    write_report(_report_of(results), out)
    return files


def _json_of(results: Results) -> str:
    content = {
        "kind": KIND,
        "format": FORMAT,
        **asdict(results),
        "ranking": [asdict(standing) for standing in results.ranking.standings],
        "differences": [asdict(difference) for difference in results.ranking.differences],
        "closed": {
            policy: {f"{mark}%": one._asdict() for mark, one in marks.items()}
            for policy, marks in results.closed.items()
        },
    }
    return json.dumps(content, sort_keys=True) + "\n"


def read_results(path: Path) -> Results | None:
    """Return the results in a file; None if it says that it is something else. Raises InputError."""
    try:
        content = read_json(path, _LARGEST)
    except (OSError, ValueError):
        return None  # said by what reads a track
    if not isinstance(content, dict) or content.get("kind") != KIND:
        return None
    require_format(path, content.get("format"), FORMAT, command("evaluate", "--contest", "TRACK"))
    fault = misfit(content, _RESULTS)
    if fits([content], _RESULTS):
        results = Results(**{name: content[name] for name in _RESULTS})
        if _is_whole(results):
            return results
        fault = "its crawls are not those of its webs, policies and sets of seeds"
    raise InputError(f"{path} is damaged: {fault}; get it again, or repeat the contest")


def _is_whole(results: Results) -> bool:
    """Return whether names are distinct, and each crawl is of a web, policy and set of seeds that are there, once."""
    webs, policies = ([one["name"] for one in some] for some in (results.webs, results.policies))
    sets = results.about["seed_sets"]
    possible, crawls = (set(webs), set(policies)), {(one["web"], one["policy"], one["set"]) for one in results.crawls}
    return (
        all(0 < len(set(map(str.casefold, names))) == len(names) for names in (webs, policies))
        and results.sets <= MOST_PAIRS
        and all(len(web["sets"]) == sets for web in results.webs)
        and len(crawls) == len(results.crawls)
        and all(web in possible[0] and policy in possible[1] and place < sets for web, policy, place in crawls)
    )


# -- the report --------------------------------------------------------------------------------------------------------


def _report_of(results: Results) -> Report:
    """Return the report as figures and tables."""
    ranking = results.ranking
    return Report(
        title=f"Contest of crawl policies, track {results.about['track']}",
        notes=list(_notes(results)),
        sections=[
            _ranking(results),
            *(_curves(results, place) for place in range(len(results.webs))),
            _differences(results),
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
    for failure in results.failures:
        where = f"{failure['web']}, seed set {failure['set']}"
        yield f"{failure['policy']} failed on {where}, and is not ranked: {failure['error']}"


def _ranking(results: Results) -> Table:
    has_gap = bool(results.closed)
    webs = [str(web["name"]) for web in results.webs]
    return Table(
        id="ranking",
        title="Ranking",
        definition=f"{_AREA}; ± the standard error of the mean, from the seed sets. Ranked by area. "
        f"{NOT_DISTINGUISHED} Policies without a rank are bounds. Those that look ahead know the influence of each "
        "page that they discover, and are shown by pages crawled, as if to look had cost no fetch. The policy bound "
        f"has read a quarter of the web beforehand.{f' {CLOSED}.' if has_gap else ''}",
        columns=(
            *("Rank", "Policy", "Area", "±", *_RECALLS, f"Mean influence at {_QUARTER}%"),
            *(_CLOSED_COLUMNS if has_gap else ()),
            "Not distinguished from",
        ),
        rows=[
            [
                *(standing.rank, standing.policy, standing.means[AREA], standing.errors[AREA]),
                *(standing.means[name] for name in _RECALLS),
                results.influence(standing.policy),
                *(closed_cells(results.closed.get(standing.policy), webs) if has_gap else ()),
                results.ranking.alike(standing),
            ]
            for standing in results.ranking.standings
        ],
    )


def _curves(results: Results, place: int) -> Figure:
    def series(standing: Standing) -> Series:
        means = [statistics.fmean(results.recall(standing.policy, point)[place]) for point in POINTS]
        return Series(standing.policy, [0, *POINTS], [0.0, *means], kind="line" if standing.rank else "dashed")

    web = results.webs[place]["name"]
    return Figure(
        id=f"recall-{web}",
        title=f"Recall on {web}",
        definition="Recall of the oracle set in reach, mean over the seed sets. Dashed: bounds.",
        x_label="pages crawled, % of those in reach",
        y_label="recall",
        series=[series(standing) for standing in results.ranking.standings],
        part="Recall on each web",
    )


def _differences(results: Results) -> Table:
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
        part="In numbers",
    )


def _markdown_of(results: Results) -> str:
    """Return the ranking as a Markdown table, with the webs and the track behind it."""
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
