"""The results of a contest as one JSON file, from which its report can be made again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import read_json
from crawl4llm.tools.evaluate.contest.crawling import MARKS, POINTS
from crawl4llm.tools.evaluate.contest.ranking import AREA, MOST_PAIRS, Paired, Standing, paired, standings
from crawl4llm.tools.evaluate.contest.track import NAME
from crawl4llm.tools.evaluate.figures import Cell
from crawl4llm.tools.evaluate.shares import BASE, BOUND, CLOSED_AT, Closed, closed

KIND: Final = "crawl4llm contest"
FORMAT: Final = 1
LEARNT: Final = "learnt"
"""In ``about``, if it was asked for: for each target the mean loss of models by policy."""
_LARGEST: Final = 1 << 26
"""Bytes of the file."""
_LARGEST_NUMBER: Final = 1e15
_PARTS: Final[Mapping[str, type]] = {"about": dict, "webs": list, "policies": list, "crawls": list, "failures": list}
_OF_ABOUT: Final[Mapping[str, type]] = {
    "version": str,
    "code": str,
    "track": str,
    "half": str,
    "seed_sets": int,
    "seeds": int,
    "batch": int,
}
_OF_WEB: Final[Mapping[str, type]] = {"name": str, "digest": str, "pages": int, "links": int, "sets": list}
_OF_POLICY: Final[Mapping[str, type]] = {"name": str, "looks_ahead": bool}
_OF_CRAWL: Final[Mapping[str, type]] = {"web": str, "policy": str, "set": int, "found": list, "influence": list}
_OF_FAILURE: Final[Mapping[str, type]] = {"web": str, "policy": str, "set": int, "error": str}


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

    def sets(self) -> int:
        """Return how many pairs of crawls from the same seeds two policies have, on all webs together."""
        number: int = len(self.webs) * self.about["seed_sets"]
        return number

    def complete(self) -> list[str]:
        """Return the policies all of whose crawls are there, in the order in which they were given."""
        done = [crawl["policy"] for crawl in self.crawls]
        return [policy["name"] for policy in self.policies if done.count(policy["name"]) == self.sets()]

    def bounds(self) -> set[str]:
        """Return the bounds, which are not ranked."""
        return {policy["name"] for policy in self.policies if policy["looks_ahead"]}

    def of(self, policy: str, web: str) -> list[Mapping[str, Any]]:
        """Return the crawls of a web by a policy, by the sets of seeds."""
        crawls = [crawl for crawl in self.crawls if crawl["policy"] == policy and crawl["web"] == web]
        return sorted(crawls, key=itemgetter("set"))

    def recall(self, crawl: Mapping[str, Any], per_cent: int) -> float:
        """Return the share of the oracle set in reach that a crawl had found at a point of it."""
        (web,) = (web for web in self.webs if web["name"] == crawl["web"])
        share: float = crawl["found"][per_cent - 1] / web["sets"][crawl["set"]]["oracle"]
        return share

    def measured(self, policy: str) -> dict[str, list[list[float]]]:
        """Return a policy's values by measure: for each web those of its sets of seeds."""
        of_webs = [self.of(policy, web["name"]) for web in self.webs]
        values = {AREA: [[float(crawl["area"]) for crawl in crawls] for crawls in of_webs]}
        for mark in MARKS:
            values[f"recall at {mark}%"] = [[self.recall(crawl, mark) for crawl in crawls] for crawls in of_webs]
        return values

    def influence(self, policy: str, mark: int) -> list[list[float | None]]:
        """Return the mean influence of the pages crawled at a mark, for each web by the sets of seeds."""
        place = MARKS.index(mark)
        return [[crawl["influence"][place] for crawl in self.of(policy, web["name"])] for web in self.webs]

    def closed(self) -> dict[str, dict[int, Closed]]:
        """Return the share of the gap from BASE to BOUND that each other policy closes, by policy and mark; nothing if
        one of the two is missing."""
        done = self.complete()
        if not {BASE, BOUND} <= set(done):
            return {}
        measured = {policy: self.measured(policy) for policy in done}
        return {
            policy: {
                mark: closed(*(measured[one][f"recall at {mark}%"] for one in (policy, BASE, BOUND)))
                for mark in CLOSED_AT
            }
            for policy in done
            if policy not in (BASE, BOUND)
        }

    def differences(self) -> list[Paired]:
        """Return the paired differences of all pairs of policies that are ranked, by each measure."""
        ranked = [policy for policy in self.complete() if policy not in self.bounds()]
        return paired({policy: self.measured(policy) for policy in ranked})

    def standings(self, differences: Sequence[Paired]) -> list[Standing]:
        """Return the ranking, the bounds after it."""
        return standings({policy: self.measured(policy) for policy in self.complete()}, self.bounds(), differences)


def results_json(results: Results) -> str:
    """Return the file's text: the same results give the same bytes."""
    differences = results.differences()
    content = {
        "kind": KIND,
        "format": FORMAT,
        **asdict(results),
        "ranking": [asdict(standing) for standing in results.standings(differences)],
        "differences": [asdict(difference) for difference in differences],
        "closed": {
            policy: {f"{mark}%": one._asdict() for mark, one in marks.items()}
            for policy, marks in results.closed().items()
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
    require_format(path, content.get("format"), FORMAT, command("evaluate", "contest", "TRACK"))
    try:
        return _checked(Results(**{name: _typed(content[name], kind) for name, kind in _PARTS.items()}))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({error}); get it again, or repeat the contest") from None


def _checked(results: Results) -> Results:
    """Return results that have everything that the report needs. Raises ValueError, and the errors of look-ups."""
    _check_fields(results)
    sets = results.about["seed_sets"]
    for web in results.webs:
        if len(web["sets"]) != sets or not all(_typed(start["oracle"], int) > 0 for start in web["sets"]):
            raise ValueError("the sets of seeds of a web")
    expected = {(web["name"], number) for web in results.webs for number in range(sets)}
    for policy in results.policies:
        crawls = [(crawl["web"], crawl["set"]) for crawl in results.crawls if crawl["policy"] == policy["name"]]
        if len(set(crawls)) < len(crawls) or not expected.issuperset(crawls):
            raise ValueError(f"the crawls of {policy['name']:.100}")
    return results


def _check_fields(results: Results) -> None:
    """Check each part separately."""
    for losses in _typed(results.about.get(LEARNT, {}), dict).values():
        _check_numbers(losses.values())
    kinds = ((results.webs, _OF_WEB), (results.policies, _OF_POLICY), (results.crawls, _OF_CRAWL))
    for described, fields in (([results.about], _OF_ABOUT), *kinds, (results.failures, _OF_FAILURE)):
        for one in described:
            for field, kind in fields.items():
                _typed(one[field], kind)
    for named in (results.webs, results.policies):
        names = [one["name"].casefold() for one in named]
        if not names or len(set(names)) < len(names):
            raise ValueError("the names of webs or policies")
    if not 0 < results.about["seed_sets"] * len(results.webs) <= MOST_PAIRS:
        raise ValueError("the number of sets of seeds")
    for web in results.webs:
        if not NAME.fullmatch(web["name"]):
            raise ValueError("the name of a web")
        for start in web["sets"]:
            _typed(start["reach"], int)
    for crawl in results.crawls:
        numbers = [*crawl["found"], crawl["area"], *(one for one in crawl["influence"] if one is not None)]
        if len(crawl["found"]) != len(POINTS) or len(crawl["influence"]) != len(MARKS):
            raise ValueError("the points of a crawl")
        _check_numbers(numbers)


def _check_numbers(numbers: Iterable[Any]) -> None:
    if not all(type(number) in {int, float} and abs(number) < _LARGEST_NUMBER for number in numbers):
        raise ValueError("the numbers of a crawl")


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{value!r:.100} is no {kind.__name__}")
    return value


def mean(values: Sequence[float | None]) -> Cell:
    """Return the mean of the defined values, for a table."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
