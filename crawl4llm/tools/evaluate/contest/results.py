"""The results of a contest as one JSON file, from which its report can be made again."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import read_json
from crawl4llm.base.shapes import FLAG, If, Maybe, Where, fits, misfit, whole
from crawl4llm.tools.evaluate.contest.crawling import MARKS, POINTS
from crawl4llm.tools.evaluate.contest.track import NAME
from crawl4llm.tools.evaluate.ranking import AREA, MOST_PAIRS, Ranking, ranking_of
from crawl4llm.tools.evaluate.shares import BASE, BOUND, CLOSED_AT, Closed, closed

KIND: Final = "crawl4llm contest"
FORMAT: Final = 1
LEARNT: Final = "learnt"
"""In ``about``, if it was asked for: for each target the mean loss of models by policy."""
_LARGEST: Final = 1 << 26
"""Bytes of the file."""
_TEXT: Final = {str}
_COUNT: Final = whole(0, 10**15)
_NUMBER: Final = Where({int, float}, lambda number: abs(number) < 1e15)
_SET: Final = {"reach": _COUNT, "oracle": whole(1, 10**15)}
_WEB: Final = {
    "name": Where(_TEXT, NAME.fullmatch),
    "digest": _TEXT,
    "pages": _COUNT,
    "links": _COUNT,
    "sets": [_SET],
}
CRAWL: Final = {
    "web": _TEXT,
    "policy": _TEXT,
    "set": _COUNT,
    "area": _NUMBER,
    "found": Where([_COUNT], lambda found: len(found) == len(POINTS)),
    "influence": Where([Maybe(_NUMBER)], lambda means: len(means) == len(MARKS)),
}
"""The shape of a crawl's findings."""
_ABOUT: Final = {
    **dict.fromkeys(("version", "code", "track", "half"), _TEXT),
    "seed_sets": whole(1, MOST_PAIRS),
    "seeds": _COUNT,
    "batch": _COUNT,
    LEARNT: If({...: {...: _NUMBER}}),
}
_RESULTS: Final = {
    "about": _ABOUT,
    "webs": [_WEB],
    "policies": [{"name": _TEXT, "looks_ahead": FLAG}],
    "crawls": [CRAWL],
    "failures": [{"web": _TEXT, "policy": _TEXT, "set": _COUNT, "error": _TEXT}],
}


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
        number: int = len(self.webs) * self.about["seed_sets"]
        return number

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

    def influence(self, policy: str, mark: int) -> list[list[float | None]]:
        """Return the mean influence of the pages crawled at a mark, likewise."""
        place = MARKS.index(mark)
        return [[crawl["influence"][place] for crawl in crawls] for crawls in self.of(policy)]

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


def results_json(results: Results) -> str:
    """Return the file's text: the same results give the same bytes."""
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
    if not fits([content], _RESULTS):
        raise InputError(f"{path} is damaged: {misfit(content, _RESULTS)}; get it again, or repeat the contest")
    results = Results(**{name: content[name] for name in _RESULTS})
    if not _is_whole(results):
        raise InputError(
            f"{path} is damaged: its crawls are not those of its webs, policies and sets of seeds; get it again, or "
            "repeat the contest"
        )
    return results


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


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the defined values, for a table."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
