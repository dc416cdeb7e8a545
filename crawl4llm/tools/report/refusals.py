"""``scrapy report``: documents that were not fetched, or refused by their server, counted by owner and reason.

A simulation sent no requests, so its report has nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from heapq import nlargest
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from crawl4llm.base import crawl_log, reasons
from crawl4llm.base.domains import owner_of
from crawl4llm.base.run_folder import LIVE, SETTINGS, STATS, read_json
from crawl4llm.base.stats import PREFIX
from crawl4llm.base.tables import Fact, Line, Part, Rows
from crawl4llm.base.terminal import harmless
from crawl4llm.base.within import require_within
from crawl4llm.crawl import JOB, JobDir, StoredCrawl, find_output

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

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
_MOST_OWNERS: Final = 200_000
"""Owners that are counted at once; beyond, the half with the fewest documents is forgotten."""


def kind_of(reason: str) -> str | None:
    """Return the column in which a reason is counted; None for other failures and drops."""
    return _KINDS.get(reason) or _KINDS.get(reason.partition("/")[0])


def set_aside(jobdir: Path, owner: str | None = None) -> dict[str, Counter[str]]:
    """Count the documents of a crawl that wait for a budget, by owner and by scope. A scope is the owner or URL prefix
    whose budget is used up. ``owner``: count its documents alone. Raises InputError."""
    found: dict[str, Counter[str]] = {}
    with StoredCrawl(jobdir) as crawl:
        for scope, entry in crawl.set_aside(owner):
            name = owner_of(entry.url or entry.key)
            found.setdefault(name, Counter())[scope] += 1
    return found


def refused(
    output: Path, owner: str | None = None, aside: Mapping[str, Counter[str]] = MappingProxyType({})
) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Count the documents of a crawl's output by owner and kind, and by kind; of one owner alone, if it is given.
    ``aside``: what :func:`set_aside` returns.

    Raises InputError.
    """
    by_owner = {name: Counter({_BUDGET: scopes.total()}) for name, scopes in aside.items()}
    total = Counter({_BUDGET: sum(counts[_BUDGET] for counts in by_owner.values())})
    for line in crawl_log.read_log(output / crawl_log.FAILURES):
        kind = kind_of(str(line.get("reason")))
        name = "" if kind is None else owner_of(str(line.get("url") or line.get("id")))
        if kind is None or owner not in {None, name}:
            continue
        total[kind] += 1
        by_owner.setdefault(name, Counter())[kind] += 1
        if len(by_owner) > _MOST_OWNERS:
            by_owner = dict(nlargest(_MOST_OWNERS // 2, by_owner.items(), key=lambda item: item[1].total()))
    return by_owner, total


def refusals(output: Path, owners: int, aside: Mapping[str, Counter[str]] | None = None) -> Iterator[Part]:
    """Yield a table of owners by their documents that were not fetched: a row for each of the first ``owners``, those
    with the most first, and one for all. A table of owners and URL prefixes without budget follows.

    ``aside``: the return value of :func:`set_aside` for a JOBDIR; None without one. Raises InputError.
    """
    by_owner, total = refused(output, aside=aside or {})
    links = _not_followed(output)
    if aside is None:
        total[_BUDGET] = links.get("parked/budget", 0)
    rows = nlargest(owners, by_owner.items(), key=lambda item: (item[1].total(), item[0]))
    shown = [(name or "(no owner)", *columns(counts).values()) for name, counts in rows]
    title = "\nDocuments that were not fetched, or refused by their server"
    in_all = ("in all", *columns(total).values())
    yield Rows("refused", ("owner", *COLUMNS), shown, title, in_all)
    spent = {(name, scope): count for name, scopes in (aside or {}).items() for scope, count in scopes.items()}
    most = nlargest(owners, spent.items(), key=lambda item: (item[1], item[0]))
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
    corpus, given = facts.get("corpus"), facts.get("settings")
    if corpus in (None, LIVE):
        return None
    named = given.get("CORPUS") if isinstance(given, dict) else None
    return _of_simulation(harmless(str(named or corpus)), output, path if is_job else None, owners)


def _of_simulation(corpus: str, output: Path, jobdir: Path | None, owners: int) -> Iterator[Part]:
    yield Fact("simulation", corpus, "")
    yield Line(f"This crawl is a simulation of the corpus {corpus}: it sent no request to any site.")
    yield from refusals(output, owners, None if jobdir is None else set_aside(jobdir))
