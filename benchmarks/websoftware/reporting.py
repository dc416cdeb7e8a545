"""Tables and figures of the measurements."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import Figure, Result, Table
from benchmarks.websoftware.crawls import CRAWLERS, PEERS, POLICIES
from benchmarks.websoftware.measuring import Record
from crawl4llm.base.errors import InputError

LEAST_USEFUL, LEAST_TIMES, LEAST_OF_BETTER, MOST_MISSED = 0.75, 1.35, 0.95, 0.5
_KINDS = 25


def result(records: Sequence[Record], digest: str, codes: tuple[str, str], before: Path | None) -> Result:
    """Return what was measured, by the code of crawl4llm and that of the peers. Raises InputError if figures of before
    are of another composition."""
    code, peers = codes
    found = Result("websoftware", [f"a web of real software, composition {digest}, crawl4llm {code}"])
    whole = {record["crawler"]: record for record in records if record["of"] == "all"}
    if whole:
        found.tables += [_overview(whole), _of_software(whole), _chaff(whole)]
        for policy in POLICIES:
            if policy in whole:
                share = whole[policy]["verdicts"]["all"]["useful per request"]
                found.figures.append(Figure(f"{policy}: useful per request", share, LEAST_USEFUL, least=True))
    own = [record for record in records if record["of"] != "all"]
    if own:
        table, figures = _alone(own)
        found.tables.append(table)
        found.figures += figures
    if before:
        found.figures += _against(whole, digest, json.loads(before.read_text()))
    found.notes += [f"composition: {digest}", f"code of crawl4llm: {code}", f"code of the peers: {peers}"]
    return found


def _overview(whole: dict[str, Record]) -> Table:
    columns = (
        "",
        "requests",
        "useful",
        "useful per request",
        "good texts",
        "not brought",
        "known, not fetched",
        "seconds",
    )
    rows: list[Sequence[str | float | None]] = []
    for crawler, record in whole.items():
        told = record["verdicts"]["all"]
        dropped = sum(told["left"].values()) if crawler in POLICIES else None
        rows.append(
            [
                *(crawler, told["requests"], told["useful"], told["useful per request"], told["good"]),
                *(told["missed"], dropped, record["seconds"]),
            ]
        )
    return Table("The whole web", columns, rows)


def _of_software(whole: dict[str, Record]) -> Table:
    names = sorted({name for record in whole.values() for name in record["verdicts"]} - {"all"})
    columns = ("useful/requests by software", *whole)
    rows: list[Sequence[str | float | None]] = []
    for name in names:
        told = [record["verdicts"].get(name) for record in whole.values()]
        rows.append([name, *(f"{one['useful']}/{one['requests']}" if one else "-" for one in told)])
    return Table("Where useful requests went", columns, rows)


def _chaff(whole: dict[str, Record]) -> Table:
    kinds: Counter[str] = Counter()
    for record in whole.values():
        kinds.update(record["verdicts"]["all"]["chaff"])
    rows = [
        [kind, *(record["verdicts"]["all"]["chaff"].get(kind, 0) for record in whole.values())]
        for kind, _ in kinds.most_common(_KINDS)
    ]
    return Table("Requests that were not useful, by kind", ("", *whole), rows)


def _alone(own: Sequence[Record]) -> tuple[Table, list[Figure]]:
    """Return the means of crawls of each software by itself, and how the policies compare with the better Scrapy.

    Useful texts are divided by the requests that were asked for: a crawl that ends sooner has done no better. Means are
    of the sets of seeds from which all crawlers have crawled that have crawled the software at all.
    """
    shares: dict[str, dict[str, dict[tuple[int, int], float]]] = {}
    for record in own:
        of, seeds = shares.setdefault(record["of"], {}), (record["requests"], record["seed"])
        of.setdefault(record["crawler"], {})[seeds] = record["verdicts"]["all"]["useful"] / record["requests"]
    rows: list[Sequence[str | float | None]] = []
    worst: dict[str, tuple[float, str]] = {}
    for software, of in sorted(shares.items()):
        sets = set.intersection(*map(set, of.values()))
        means = {crawler: statistics.mean(found[one] for one in sets) for crawler, found in of.items() if sets}
        rows.append([software, *(means.get(crawler) for crawler in CRAWLERS), float(len(sets))])
        better = max((means.get(peer, 0.0) for peer in PEERS), default=0.0)
        for policy in POLICIES:
            if policy in means and better:
                worst[policy] = min(worst.get(policy, (9.0, "")), (means[policy] / better, software))
    table = Table("Useful per request asked for in crawls of its own", ("", *CRAWLERS, "seed sets"), rows)
    figures = [
        Figure(f"{policy}: of the better Scrapy at worst ({software})", ratio, LEAST_OF_BETTER, least=True)
        for policy, (ratio, software) in worst.items()
    ]
    return table, figures


def _against(whole: dict[str, Record], digest: str, former: dict[str, Any]) -> list[Figure]:
    """Compare with what was measured before."""
    if f"composition: {digest}" not in former["notes"]:
        raise InputError(f"the figures of before are of another composition than {digest}; measure that commit again")
    rows = {row[0]: row for table in former["tables"] if table["title"] == "The whole web" for row in table["rows"]}
    figures = []
    for policy in POLICIES:
        if policy in whole and policy in rows:
            told = whole[policy]["verdicts"]["all"]
            times = told["useful per request"] / rows[policy][3]
            figures.append(Figure(f"{policy}: times as useful as before", times, LEAST_TIMES, least=True))
            dropped = sum(told["left"].values()) / max(rows[policy][6], 1)
            figures.append(Figure(f"{policy}: good texts known and not fetched, of those before", dropped, MOST_MISSED))
    return figures
