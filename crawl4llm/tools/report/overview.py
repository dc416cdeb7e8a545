"""``scrapy report JOBDIR``: requests, pages, bytes and errors by day, and of the largest owners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from heapq import nlargest
from operator import itemgetter
from typing import Final

from crawl4llm.base.tables import Fact, Line, Part, Rows
from crawl4llm.tools.report.requests import Log, Request

_MOST_OWNERS: Final = 200_000
"""Owners that are counted at once; beyond, the half with the fewest requests is forgotten."""


@dataclass(slots=True)
class Sums:
    """Requests and answers of a day or of an owner."""

    requests: int = 0
    """That went out."""
    pages: int = 0
    """Answers with status 200 to requests for documents."""
    bytes: int = 0
    errors: int = 0
    """Requests that went out and had no answer, and answers with a status from 400 on."""
    least_delay: float | None = None
    """Seconds between the end of an exchange and the next request to that owner, the shortest."""
    unsent: int = 0
    """Requests of which nothing went out."""

    def add(self, request: Request) -> None:
        """Count a request."""
        if not request.sent:
            self.unsent += 1
            return
        self.requests += 1
        self.pages += request.status == 200 and request.purpose not in {"robots.txt", "tdmrep.json"}
        self.bytes += request.size
        self.errors += (request.status or 999) >= 400
        if request.waited is not None and (self.least_delay is None or request.waited < self.least_delay):
            self.least_delay = request.waited


SUMS: Final = tuple(field.name for field in fields(Sums))
"""Their names."""


def overview(log: Log, owners: int) -> Iterator[Part]:
    """Yield a row for each day, and for the ``owners`` largest owners. Raises InputError."""
    by_day: dict[str, Sums] = {}
    by_owner: dict[str, Sums] = {}
    forgot = False
    for request in log.requests():
        by_day.setdefault(request.day, Sums()).add(request)
        by_owner.setdefault(request.owner, Sums()).add(request)
        if len(by_owner) > _MOST_OWNERS:
            kept = nlargest(_MOST_OWNERS // 2, by_owner.items(), key=lambda item: item[1].requests)
            by_owner, forgot = dict(kept), True
    largest = nlargest(owners, by_owner.items(), key=lambda item: (item[1].requests, item[0]))
    tables = {"day": sorted(by_day.items(), key=itemgetter(0)), "owner": largest}
    for kind, rows in tables.items():
        yield Rows(f"{kind}s", (kind, *SUMS), [(name or "(no owner)", *astuple(sums)) for name, sums in rows])
        yield ""
    about = "at least " if forgot else ""
    yield Fact("all_owners", len(by_owner), "")
    yield Line(f"{about}{len(by_owner):,} owners; {len(largest):,} are shown; least delay is in seconds")
    yield Line("requests were sent; unsent requests ended before, because a look-up or a connection failed")
    if log.damaged:
        yield f"{log.damaged:,} damaged lines were skipped"
