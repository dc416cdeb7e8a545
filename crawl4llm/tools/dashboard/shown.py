"""Turns the points of a series into the columns of the page's charts and the rows of its tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from crawl4llm.base import reasons

_PARTS: Final = 200
"""Parts of the crawl's time, or of its pages if times are unknown; a point of a chart covers at least one."""
_REFUSALS: Final = {
    *(reasons.OPT_OUT, reasons.BLOCKLIST, reasons.ROBOTS, reasons.ROBOTS_UNKNOWN, reasons.REFUSED_ADDRESS),
    *("http_401", "http_402", "http_403", "http_451"),
}
"""Reasons by which a site, or whoever runs the crawl, did not want the document fetched or used."""
_STATES: Final = {
    "ready": "ready for a request",
    "waiting": "waiting: politeness delay, Retry-After or back-off",
    "busy": "with a request in flight",
    "parked": "parked: Crawl-delay above CRAWL_DELAY_CAP",
}

Point = Mapping[str, Any]


def charts(points: Sequence[Point]) -> dict[str, list[float | None]]:
    """Return the columns of the charts. Each row covers the time since the point before; the first row covers the time
    since the beginning, as far as known."""
    chosen = list(points[:1])
    axis = "crawled" if points and points[-1]["seconds"] is None else "seconds"
    for point in points[1:]:
        if point is points[-1] or point[axis] - chosen[-1][axis] >= points[-1][axis] / _PARTS:
            chosen.append(point)
    rows = [_row(before, point) for before, point in zip([None, *chosen], chosen, strict=False)]
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    return {**columns, "busy": list(_busy(chosen))} if columns else {}


def _row(before: Point | None, point: Point) -> dict[str, float | None]:
    def more(name: str) -> float:
        """Return the increase since the point before; a count that a new process began at 0 counts whole."""
        earlier = (before or {}).get(name) or 0
        return float(point[name] if point[name] < earlier else point[name] - earlier)

    seconds = None if point["seconds"] is None else more("seconds")
    scored = more("scored")
    memory = point["memory"]
    return {
        "seconds": point["seconds"],
        "crawled": point["crawled"],
        "visited": point["visited"],
        "queued": point["queued"],
        "rate": _ratio(more("crawled"), seconds),
        "influence": _ratio(point["influence"] - ((before or {}).get("influence") or 0.0), scored),
        "good": None if point["good"] is None else _ratio(more("good"), scored),
        "received": _ratio(more("received"), seconds) if point["received"] else None,
        "crawler": memory[0],
        "workers": memory[1],
    }


def _ratio(part: float, whole: float | None) -> float | None:
    return float(f"{part / whole:.5g}") if whole else None


def _busy(points: Iterable[Point]) -> Iterator[float | None]:
    """Yield the share of the time in which the worker processes were at work; CPU time is looked at now and then."""
    last: Point | None = None
    share: float | None = None
    for point in points:
        spent = point["cpu"][1]
        if spent is None or not point["workers"]:
            last = share = None
        elif last is None or spent < last["cpu"][1]:
            last, share = point, None
        elif spent > last["cpu"][1] and point["seconds"] > last["seconds"]:
            used = (spent - last["cpu"][1]) / (point["seconds"] - last["seconds"]) / point["workers"]
            last, share = point, min(round(used, 4), 1.0)
        yield share


def waits(point: Point) -> list[list[Any]]:
    """Return the waiting documents: a row of reason, owners and documents."""
    counts = point["counts"]
    owners = point["owners"]
    if owners is not None:
        rows = [[f"owners {_STATES[state]}", *owners[state]] for state in _STATES]
    else:
        rows = [["in the frontier, behind better documents", None, point["queued"]]]
    budget = counts.get("parked/budget", 0)
    rows += [["set aside: no budget left (URL_BUDGET)", None, budget]]
    rows += [["in flight", None, counts.get("frontier/leased", 0)]]
    rows += [["fetched, waiting for a worker process or for an earlier page", None, point["behind"]]]
    return [row for row in rows if row[1] or row[2]]


def ended(counts: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the reasons for documents that ended without a page, the most frequent first."""
    rows = []
    for key, count in counts.items():
        outcome, _, reason = key.partition("/")
        if outcome in reasons.TABLES and reason:
            table = reasons.TABLES[outcome]
            meaning = table.get(reason) or table.get(re.sub(r"_\d{3}$", "_<status>", reason), "")
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", meaning)
            refusal = reason in _REFUSALS
            rows.append({"outcome": outcome, "reason": reason, "count": count, "why": plain, "refusal": refusal})
    return sorted(rows, key=lambda row: (-row["count"], row["outcome"], row["reason"]))
