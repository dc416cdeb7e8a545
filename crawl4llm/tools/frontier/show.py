"""``scrapy frontier JOBDIR``: a summary of the crawl in a JOBDIR."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from crawl4llm.base.errors import InputError
from crawl4llm.base.object_store import is_storage
from crawl4llm.base.run_folder import SETTINGS, read_json
from crawl4llm.base.tables import Fact, Part, Rows
from crawl4llm.base.urls import host_of
from crawl4llm.crawl import REDIRECTS, StoredCrawl, ended_documents
from crawl4llm.frontier import Outcome
from crawl4llm.tools._action import Action

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_LEASES = _PARKED = 20
"""Leases, and parked owners, that are shown."""


def _add_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--hosts",
        type=_count,
        default=20,
        metavar="K",
        help="show the K hosts with the most documents in the frontier (default: 20); 0 avoids reading all of it",
    )
    parser.add_argument("--best", type=_count, default=10, metavar="K", help="show the K best documents (default: 10)")


def _run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Describe the last commit; the crawl may be running. Raises InputError at the end if documents are lost."""
    if is_storage(opts.arguments[0]):
        # obstore is an extra
        from crawl4llm.tools.frontier.stored import show_stored

        yield from show_stored(opts.arguments[0].rstrip("/"), settings, opts.hosts, opts.best)
        return
    with StoredCrawl(Path(opts.arguments[0])) as crawl:
        yield from _identity(crawl, settings)
        yield ""
        yield from _states(crawl)
        yield from _parked(crawl)
        if opts.hosts:
            yield from _hosts(crawl, opts.hosts)
        if opts.best:
            yield from _best(crawl, opts.best)
        yield from _leases(crawl)
        crawl.check_balance()


def _identity(crawl: StoredCrawl, settings: BaseSettings) -> Iterator[Part]:
    committed = datetime.fromtimestamp(crawl.store_path.stat().st_mtime, tz=timezone.utc)
    size = 0
    for path in crawl.path.iterdir():
        with suppress(FileNotFoundError):  # a crawl that is running renames files
            size += path.lstat().st_size
    try:
        output = crawl.output(settings)
    except InputError as error:
        last_run, place = {}, f"unknown: {error}"
    else:
        last_run, place = read_json(output / SETTINGS), str(output)
    settings_then = last_run.get("settings")
    wanted = settings_then.get("CRAWL_MAX_PAGES") if isinstance(settings_then, dict) else None
    yield Fact("crawl", crawl.job["crawl_id"])
    yield Fact("output", place)
    yield Fact("now", crawl.holder, "not running" if crawl.holder is None else f"in use by process {crawl.holder}")
    yield Fact("committed", f"{committed:%Y-%m-%d %H:%M:%S} UTC")
    yield Fact("wanted", wanted if isinstance(wanted, int) else None, "")
    yield Fact("crawled", crawl.pages, f"{crawl.pages:,}{f' of {wanted:,}' if isinstance(wanted, int) else ''} pages")
    yield Fact("size", size, f"{size / 1e6:,.1f} MB on disk")


def _states(crawl: StoredCrawl) -> Iterator[Part]:
    """Yield counts of documents by state."""
    states, ended = crawl.balance, ended_documents(crawl.frontier, crawl.counts)
    ended[Outcome.REDIRECTED]["within an owner"] += crawl.counts.get(REDIRECTS, 0)
    yield Fact("queued", states.queued)
    why = {"budget": len(crawl.aside) - crawl.unanswered, "unanswered": crawl.unanswered}
    listed = ", ".join(f"{name} {number:,}" for name, number in why.items() if number)
    yield Fact("parked", states.parked, f"{states.parked:,}{f' ({listed})' if listed else ''}")
    for name, number in why.items():
        yield Fact(f"parked_{name}", number, "")
    yield Fact("leased", states.leased)
    yield Fact("archived", states.archived)
    for outcome in (Outcome.REDIRECTED, Outcome.FAILED, Outcome.DROPPED):
        counts = {reason: count for reason, count in sorted(ended[outcome].items()) if count}
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
        total = sum(counts.values())
        yield Fact(outcome.value, {"all": total, **counts}, f"{total:,}{f' ({reasons})' if reasons else ''}")
    yield str(states)
    if crawl.state.seeds:
        seeds = len(crawl.state.seeds)
        yield Fact("injected", seeds, f"{seeds:,} seeds, taken up when the crawl is resumed")


def _parked(crawl: StoredCrawl) -> Iterator[Part]:
    """Yield the owners that are parked, those with the most documents first."""
    if not crawl.frontier.by_owners:
        return
    owners = crawl.frontier.owners
    parked = sorted((-owners.queued_of(name), name, delay) for name, delay in owners.parked())
    shown = f"{min(_PARKED, len(parked))} of {len(parked):,}, {owners.documents.parked:,} documents"
    rows = [(-queued, name, delay or None) for queued, name, delay in parked[:_PARKED]]
    title = f"\nParked owners ({shown}), and their Crawl-delay in seconds"
    yield Rows("parked_owners", ("queued", "owner", "crawl_delay"), rows, title, digits=0)


def _hosts(crawl: StoredCrawl, most: int) -> Iterator[Part]:
    queued = tqdm(crawl.frontier, "Reading the frontier", len(crawl.frontier), unit=" documents", disable=None)
    counts = Counter(host_of(entry.url or entry.key) for entry in queued)
    largest = nsmallest(most, counts.items(), key=lambda item: (-item[1], item[0]))
    rows = [(count, host or "(no host)") for host, count in largest]
    yield Rows("hosts", ("queued", "host"), rows, f"\nHosts ({len(rows):,} of {len(counts):,})")


def _best(crawl: StoredCrawl, most: int) -> Iterator[Part]:
    rows = [(entry.score, entry.key, entry.url) for entry in crawl.frontier.best(most)]
    yield Rows("best", ("score", "id", "url"), rows, "\nThe best documents", digits=6)


def _leases(crawl: StoredCrawl) -> Iterator[Part]:
    leases = crawl.frontier.leases()
    rows = [(entry.score, entry.attempts, entry.key, entry.url) for entry, _ in leases[:_LEASES]]
    title = f"\nOn lease ({len(rows)} of {len(leases):,}), by attempt"
    yield Rows("leases", ("score", "attempts", "id", "url"), rows, title, digits=6)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not 0 or a positive integer")
    return int(text)


SHOW = Action("Show the crawl.", _run, add_options=_add_options)
