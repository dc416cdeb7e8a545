"""``scrapy report JOBDIR --owner DOMAIN``: every request to an owner, with which a complaint is answered."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Final

from crawl4llm.tools.report.overview import Sums
from crawl4llm.tools.report.requests import Log, Request

_REFUSALS: Final = {401, 403, 429, 503}


def owner_report(log: Log, owner: str, refused: Mapping[str, int], *, as_json: bool) -> Iterator[str]:
    """Yield a line for each request, the oldest first, then sums by day and a summary. Raises InputError.

    ``refused``: how many documents of the owner were not fetched, or refused, by the columns of the report.
    """
    if not as_json:
        yield f"{'time (UTC)':<24} {'status':>8} {'bytes':>10} {'ms':>7} {'waited':>10}  {'rule':<15} {'for':<10} URL"
    by_day: dict[str, Sums] = {}
    delays: Counter[float] = Counter()
    robots = refusals = 0
    ended: float | None = None
    """When the last exchange ended, in seconds since 1970."""
    for found in log.requests(owner):
        began = _seconds(found.time)
        request = found
        if found.waited is None and ended is not None:  # of another process, or long ago
            request = found._replace(waited=max(round(began - ended, 3), 0.0))
        ended = began + request.milliseconds / 1000
        by_day.setdefault(request.day, Sums()).add(request)
        if request.waited is not None:
            delays[float(f"{request.waited:.4g}")] += 1
        robots += request.purpose == "robots.txt"
        refusals += request.status in _REFUSALS
        yield json.dumps(_fields(request)) if as_json else _line(request)
    total = sum(sums.requests for sums in by_day.values())
    summary = {
        "owner": owner,
        "requests": total,
        "least_delay": min(delays, default=None),
        "median_delay": _median(delays),
        "robots_txt": robots,
        "refusals": refusals,
        "refused": refused,
    }
    if as_json:
        yield json.dumps({"summary": {**summary, "days": {day: asdict(sums) for day, sums in by_day.items()}}})
        return
    yield ""
    for day, sums in by_day.items():
        yield f"{day}  {sums.requests:,} requests, {sums.pages:,} pages, {sums.bytes:,} bytes, {sums.errors:,} errors"
    if not_fetched := "; ".join(f"{name}: {count:,}" for name, count in refused.items() if count):
        yield f"documents that were not fetched, or refused: {not_fetched}"
    yield f"{owner}: {total:,} requests, {robots:,} of them for robots.txt; {refusals:,} refused (401, 403, 429, 503)"
    if delays:
        yield f"waited between two requests: {min(delays):,.3f} s at least, {_median(delays):,.3f} s in the median"
    if log.damaged:
        yield f"{log.damaged:,} damaged lines were passed over"


def _fields(request: Request) -> dict[str, object]:
    """Return the request as the log has it."""
    fields = {**request._asdict()}
    names = {"purpose": "for", "size": "bytes", "milliseconds": "ms"}
    return {names.get(name, name): value for name, value in fields.items()}


def _line(request: Request) -> str:
    waited = "-" if request.waited is None else f"{request.waited:,.3f} s"
    left = f"{request.time:<24} {request.outcome:>8} {request.size:>10,} {request.milliseconds:>7,} {waited:>10}"
    price = f"  ({request.price})" if request.price else ""
    return f"{left}  {request.rule or '-':<15} {request.purpose:<10} {' '.join(request.url.split())}{price}"


def _median(delays: Counter[float]) -> float | None:
    """Return the median of delays that are counted by their value (the lower one of two)."""
    half = (sum(delays.values()) + 1) // 2
    for delay in sorted(delays):
        half -= delays[delay]
        if half <= 0:
            return delay
    return None


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
