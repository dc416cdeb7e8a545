"""``scrapy report JOBDIR --owner DOMAIN``: every request to an owner, to answer a complaint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime
from typing import Any, Final

from crawl4llm.base.tables import Fact, Line, Part, Rows
from crawl4llm.tools.report.overview import SUMS, Sums
from crawl4llm.tools.report.requests import Log, Request

_REFUSALS: Final = {401, 403, 429, 503}
_NAMES: Final = {"purpose": "for", "size": "bytes", "milliseconds": "ms"}
"""Fields that the log names differently."""
_HEADINGS: Final = (
    f"{'time (UTC)':<24} {'status':>8} {'bytes':>10} {'ms':>7} {'waited':>10}  {'rule':<15} {'for':<10} URL"
)


def owner_report(log: Log, owner: str, refused: Mapping[str, int]) -> Iterator[Part]:
    """Yield a row for each request, the oldest first, then sums by day and a summary. Raises InputError.

    ``refused``: how many documents of the owner were not fetched, or refused, by the columns of the report.
    """
    by_day: dict[str, Sums] = {}
    delays: Counter[float] = Counter()
    robots = refusals = 0
    ended: float | None = None
    """When the last exchange ended, in seconds since 1970."""

    def rows() -> Iterator[Sequence[object]]:
        nonlocal robots, refusals, ended
        for found in log.requests(owner):
            began = _seconds(found.time)
            request = found
            if found.waited is None and ended is not None:  # of another process, or long ago
                request = found._replace(waited=max(round(began - ended, 3), 0.0))
            ended = began + request.milliseconds / 1000
            by_day.setdefault(request.day, Sums()).add(request)
            if request.sent and request.waited is not None:
                delays[float(f"{request.waited:.4g}")] += 1
            robots += request.sent and request.purpose == "robots.txt"
            refusals += request.status in _REFUSALS
            yield request

    columns = [_NAMES.get(name, name) for name in Request._fields]
    yield Rows("requests", columns, rows(), _HEADINGS, line=_line)
    total, unsent = sum(sums.requests for sums in by_day.values()), sum(sums.unsent for sums in by_day.values())
    summary = {
        "owner": owner,
        "requests": total,
        "unsent": unsent,
        "least_delay": min(delays, default=None),
        "median_delay": _median(delays),
        "robots_txt": robots,
        "refusals": refusals,
        "refused": refused,
    }
    yield Fact("summary", summary, "")
    yield ""
    yield Rows("days", ("day", *SUMS), [(day, *astuple(sums)) for day, sums in by_day.items()])
    if not_fetched := "; ".join(f"{name}: {count:,}" for name, count in refused.items() if count):
        yield Line(f"documents that were not fetched, or refused: {not_fetched}")
    of_robots = f"{robots:,} of them for robots.txt"
    not_sent = f"; {unsent:,} more were not sent" if unsent else ""
    yield Line(f"{owner}: {total:,} requests, {of_robots}; {refusals:,} refused (401, 403, 429, 503){not_sent}")
    if delays:
        least, median = min(delays), _median(delays)
        yield Line(f"waited between two requests: {least:,.3f} s at least, {median:,.3f} s in the median")
    if log.damaged:
        yield f"{log.damaged:,} damaged lines were skipped"


def _line(*values: Any) -> str:
    request = Request(*values)
    waited = "-" if request.waited is None else f"{request.waited:,.3f} s"
    left = f"{request.time:<24} {request.outcome:>8} {request.size:>10,} {request.milliseconds:>7,} {waited:>10}"
    price = f"  ({request.price})" if request.price else "" if request.sent else "  (not sent)"
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
