"""``scrapy report``: the requests of a live crawl, and the documents that a crawl did not fetch, with the reasons.

The log of requests is summed up by day and owner, or every request to one owner is listed, to answer a complaint. A
simulation sent no requests, so its report counts documents only: those not fetched, or refused by their server.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from datetime import date, datetime
from heapq import nlargest
from operator import itemgetter
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tqdm import tqdm

from crawl4llm.base import reasons
from crawl4llm.base.crawl_log import FAILURES, read_log
from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import parse_json
from crawl4llm.base.run_folder import LIVE, SETTINGS, STATS, read_json
from crawl4llm.base.stats import PREFIX
from crawl4llm.base.tables import Fact, Line, Part, Rows
from crawl4llm.base.terminal import harmless
from crawl4llm.base.within import require_within
from crawl4llm.crawl import JOB, REQUESTS, JobDir, StoredCrawl, days, find_output, lines

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_LARGEST: Final = 2**53
_FIELDS: Final = ("time", "owner", "url", "for", "status", "error", "bytes", "ms", "waited", "rule", "price", "sent")
"""Of a line of the log, in the order of a Request."""
_MOST_OWNERS: Final = 200_000
"""Owners that are counted at once; beyond, the half with the fewest requests or documents is forgotten."""
_REFUSALS: Final = {401, 403, 429, 503}
_HEADINGS: Final = (
    f"{'time (UTC)':<24} {'status':>8} {'bytes':>10} {'ms':>7} {'waited':>10}  {'rule':<15} {'for':<10} URL"
)


class Request(NamedTuple):
    """A line of the log; see :class:`crawl4llm.live.request_log.RequestLog`."""

    time: str
    owner: str
    url: str
    purpose: str
    status: int | None
    error: str | None
    size: int
    milliseconds: int
    waited: float | None
    rule: str | None
    price: str | None
    """The price in a 402 response; see :data:`crawl4llm.live.request_log.PRICES`."""
    sent: bool
    """False if no byte of it went out."""

    @property
    def day(self) -> str:
        """The day on which it was sent, in UTC."""
        return self.time[:10]


def is_merged(path: Path) -> bool:
    """Return whether a folder is the merged run of a crawl by several workers, which has its request log."""
    return (path / FAILURES).is_file() and (path / REQUESTS).is_dir()


@dataclass
class Log:
    """The log of a crawl, which may be running, from a day on (see checked_day). Raises InputError if there is no
    log."""

    jobdir: Path
    since: str | None = None
    damaged: int = 0
    """Lines that were passed over: they are no requests."""

    def __post_init__(self) -> None:
        self._job = None if is_merged(self.jobdir) else JobDir(self.jobdir, lock=False).job
        form = "{} ({}); live crawls keep one (RequestLog)"
        with as_input_error(f"JOBDIR {self.jobdir} has no log of requests", form=form, errors=InputError):
            self._days: Sequence[str] = days(self.jobdir)

    def output(self, settings: BaseSettings) -> Path:
        """Return the output directory of the crawl, or its new place in OUTPUT_DIR. Raises InputError."""
        return self.jobdir if self._job is None else find_output(self.jobdir, self._job, settings.get("OUTPUT_DIR"))

    def requests(self, owner: str | None = None) -> Iterator[Request]:
        """Yield the requests, of one owner if it is given, in the order in which they ended."""
        needle = b"" if owner is None else b'"owner": %b,' % json.dumps(owner).encode()
        for day in tqdm(self._days, "Reading", unit=" days", disable=None):
            if self.since is not None and day < self.since:
                continue
            for line in lines(self.jobdir, day):
                if needle not in line:
                    continue
                try:
                    request = _request(parse_json(line))
                except (AttributeError, TypeError, ValueError):
                    self.damaged += 1
                    continue
                if owner in {None, request.owner}:
                    yield request

    def told_damage(self) -> Iterator[str]:
        """Yield a line on the damaged ones, if there are any."""
        if self.damaged:
            yield f"{self.damaged:,} damaged lines were skipped"


def checked_day(text: str) -> str:
    """Return a day of the calendar. Raises InputError for any other text."""
    with suppress(ValueError):
        if date.fromisoformat(text).isoformat() == text:
            return text
    raise InputError(f"--since {text!r} is not a day like 2026-05-31")


def _request(given: Any) -> Request:
    """Return the request in a line. Raises AttributeError, TypeError or ValueError if it is no request."""
    request = Request(*map(given.get, _FIELDS))
    texts = [request.time, request.owner, request.url, request.purpose]
    texts += [text or "" for text in (request.error, request.rule, request.price)]
    numbers = (request.status or 0, request.size, request.milliseconds, request.waited or 0)
    sound = all(map(str.isprintable, texts)) and all(-_LARGEST < number < _LARGEST for number in numbers)
    if not sound or not isinstance(request.sent, bool):
        raise ValueError("no request")
    return request


# -- summed up ----------------------------------------------------------------------------------------------------


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
    yield from log.told_damage()


# -- one owner ----------------------------------------------------------------------------------------------------


def owner_report(log: Log, owner: str, refused: Mapping[str, int]) -> Iterator[Part]:
    """Yield a row for each request, the oldest first, then sums by day and a summary. Raises InputError.

    ``refused``: how many documents of the owner were not fetched, or refused, by the columns of the report.
    """
    by_day: dict[str, Sums] = {}
    delays: Counter[float] = Counter()
    counts = Counter[str]()
    ended: float | None = None
    """When the last exchange ended, in seconds since 1970."""

    def rows() -> Iterator[Sequence[object]]:
        nonlocal ended
        for found in log.requests(owner):
            began = _seconds(found.time)
            request = found
            if found.waited is None and ended is not None:  # of another process, or long ago
                request = found._replace(waited=max(round(began - ended, 3), 0.0))
            ended = began + request.milliseconds / 1000
            by_day.setdefault(request.day, Sums()).add(request)
            if request.sent and request.waited is not None:
                delays[float(f"{request.waited:.4g}")] += 1
            counts["robots_txt"] += request.sent and request.purpose == "robots.txt"
            counts["refusals"] += request.status in _REFUSALS
            yield request

    yield Rows("requests", _FIELDS, rows(), _HEADINGS, line=_line)
    median = median_low(delays.elements()) if delays else None
    total, unsent = sum(sums.requests for sums in by_day.values()), sum(sums.unsent for sums in by_day.values())
    summary = {
        "owner": owner,
        "requests": total,
        "unsent": unsent,
        "least_delay": min(delays, default=None),
        "median_delay": median,
        "robots_txt": counts["robots_txt"],
        "refusals": counts["refusals"],
        "refused": refused,
    }
    yield Fact("summary", summary, "")
    yield ""
    yield Rows("days", ("day", *SUMS), [(day, *astuple(sums)) for day, sums in by_day.items()])
    if not_fetched := "; ".join(f"{name}: {count:,}" for name, count in refused.items() if count):
        yield Line(f"documents that were not fetched, or refused: {not_fetched}")
    of_robots = f"{counts['robots_txt']:,} of them for robots.txt"
    not_sent = f"; {unsent:,} more were not sent" if unsent else ""
    yield Line(
        f"{owner}: {total:,} requests, {of_robots}; {counts['refusals']:,} refused (401, 403, 429, 503){not_sent}"
    )
    if delays:
        yield Line(f"waited between two requests: {min(delays):,.3f} s at least, {median:,.3f} s in the median")
    yield from log.told_damage()


def _line(*values: Any) -> str:
    request = Request(*values)
    waited = "-" if request.waited is None else f"{request.waited:,.3f} s"
    outcome = str(request.status or request.error or "?")
    left = f"{request.time:<24} {outcome:>8} {request.size:>10,} {request.milliseconds:>7,} {waited:>10}"
    price = f"  ({request.price})" if request.price else "" if request.sent else "  (not sent)"
    return f"{left}  {request.rule or '-':<15} {request.purpose:<10} {' '.join(request.url.split())}{price}"


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


# -- documents that were not fetched -----------------------------------------------------------------------------------

_KINDS: Final = {
    reasons.ROBOTS: "robots",
    reasons.ROBOTS_UNKNOWN: "unknown",
    reasons.REFUSED_ADDRESS: "network",
    reasons.REFUSED: "network",
    "http_401": "401, 403",
    "http_403": "401, 403",
    "http_451": "451",
    "http_402": "402",
    reasons.OPT_OUT: "opt-out",
    "blocklist": "blocklist",
    "trap": "trap",
    reasons.OFF_SCOPE: "off-scope",
}
"""Kinds of refusals by their reason, or by the first word of one with a slash; each a column of the report."""
_BUDGET: Final = "budget"
"""The kind of documents that have not ended: they wait for a budget."""
COLUMNS: Final = (*dict.fromkeys(_KINDS.values()), _BUDGET)
_NOT_FOLLOWED: Final = ("links/", "parked/")
_FOLLOWED: Final = {"links/seen", "links/new", "links/without_key"}


def set_aside(jobdir: Path, owner: str | None = None) -> Counter[tuple[str, str]]:
    """Count the documents of a crawl that wait for a budget, by owner and scope. A scope is the owner or URL prefix
    whose budget is used up. ``owner``: count its documents alone. Raises InputError."""
    with StoredCrawl(jobdir) as crawl:
        return Counter((owner_of(entry.url or entry.key), scope) for scope, entry in crawl.set_aside(owner))


def refused(
    output: Path, owner: str | None, aside: Mapping[tuple[str, str], int]
) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Count the documents of a crawl's output by owner and kind, and by kind; of one owner alone, if it is given.
    ``aside``: what :func:`set_aside` returns.

    Raises InputError.
    """
    by_owner: dict[str, Counter[str]] = {}
    for (name, _), count in aside.items():
        by_owner.setdefault(name, Counter())[_BUDGET] += count
    total = Counter({_BUDGET: sum(aside.values())})
    for line in read_log(output / FAILURES):
        reason = str(line.get("reason"))
        kind = _KINDS.get(reason) or _KINDS.get(reason.partition("/")[0])  # None: other failures and drops
        name = "" if kind is None else owner_of(str(line.get("url") or line.get("id")))
        if kind is None or owner not in {None, name}:
            continue
        total[kind] += 1
        by_owner.setdefault(name, Counter())[kind] += 1
        if len(by_owner) > _MOST_OWNERS:
            by_owner = dict(nlargest(_MOST_OWNERS // 2, by_owner.items(), key=lambda item: item[1].total()))
    return by_owner, total


def refusals(output: Path, owners: int, aside: Mapping[tuple[str, str], int] | None = None) -> Iterator[Part]:
    """Yield a table of owners by their documents that were not fetched: a row for each of the first ``owners``, those
    with the most first, and one for all. A table of owners and URL prefixes without budget follows.

    ``aside``: the return value of :func:`set_aside` for a JOBDIR; None without one. Raises InputError.
    """
    by_owner, total = refused(output, None, aside or {})
    links = _not_followed(output)
    if aside is None:
        total[_BUDGET] = links.get("parked/budget", 0)
    rows = nlargest(owners, by_owner.items(), key=lambda item: (item[1].total(), item[0]))
    shown = [(name or "(no owner)", *columns(counts).values()) for name, counts in rows]
    title = "\nDocuments that were not fetched, or refused by their server"
    in_all = ("in all", *columns(total).values())
    yield Rows("refused", ("owner", *COLUMNS), shown, title, in_all)
    most = nlargest(owners, (aside or {}).items(), key=lambda item: (item[1], item[0]))
    if most:
        title = "\nDocuments set aside, by the owner or URL prefix that has no budget left (URL_BUDGET)"
        places = [(*place, count) for place, count in most]
        yield Rows("set_aside", ("owner", "scope", "documents"), places, title)
    elif total[_BUDGET]:
        yield "to see the owners and URL prefixes without budget, give the JOBDIR"
    yield Fact("not_followed", links, "")
    if links:
        said = ", ".join(f"{count:,} {name}" for name, count in links.items())
        yield Line(f"links that were not followed (counted only): {said}")


def _not_followed(output: Path) -> dict[str, int]:
    """Return the counts of links that became no documents, as the crawl's last end has them."""
    path = output / STATS
    require_within(output, path)
    counts = {key.removeprefix(PREFIX): count for key, count in read_json(path).items()}
    return {
        key: count
        for key, count in counts.items()
        if key.startswith(_NOT_FOLLOWED) and key not in _FOLLOWED and isinstance(count, int) and count
    }


def columns(counts: Counter[str]) -> dict[str, int]:
    """Return the counts of all kinds, in the order of the report."""
    return {name: counts[name] for name in COLUMNS}


def simulation(path: Path, settings: BaseSettings, owners: int) -> Iterator[Part] | None:
    """Return the report on the simulation in a JOBDIR or OUTPUT_DIR; None for a live crawl, or if no file says. Raises
    InputError."""
    output, is_job = path, (path / JOB).is_file()
    if is_job:
        job = JobDir(path, lock=False).job
        assert job is not None  # its file is there
        if job["digests"].get("corpus_digest") == LIVE:
            return None
        output = find_output(path, job, settings.get("OUTPUT_DIR"))
    facts = read_json(output / SETTINGS)
    corpus = facts.get("corpus")
    if corpus in (None, LIVE):
        return None
    named = facts.get("settings", {}).get("CORPUS") or corpus
    return _of_simulation(harmless(str(named)), output, path if is_job else None, owners)


def _of_simulation(corpus: str, output: Path, jobdir: Path | None, owners: int) -> Iterator[Part]:
    yield Fact("simulation", corpus, "")
    yield Line(f"This crawl is a simulation of the corpus {corpus}: it sent no request to any site.")
    yield from refusals(output, owners, None if jobdir is None else set_aside(jobdir))
