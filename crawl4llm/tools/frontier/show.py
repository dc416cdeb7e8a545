"""``scrapy frontier JOBDIR``: a summary of the crawl in a JOBDIR."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from crawl4llm.base.errors import InputError
from crawl4llm.base.run_folder import SETTINGS, read_json
from crawl4llm.base.terminal import harmless
from crawl4llm.base.urls import host_of
from crawl4llm.crawl.page_writer import REDIRECTS, ended_documents
from crawl4llm.crawl.stored_crawl import StoredCrawl
from crawl4llm.frontier import Outcome
from crawl4llm.frontier.durable_owned import DurableOwnerFrontier
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
        help="show the K hosts with the most documents in the frontier (default: 20); 0 saves reading all of it",
    )
    parser.add_argument("--best", type=_count, default=10, metavar="K", help="show the K best documents (default: 10)")


def _run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Describe the last commit; the crawl may be running. Raises InputError, at the end, where documents are lost."""
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


def _identity(crawl: StoredCrawl, settings: BaseSettings) -> Iterator[str]:
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
    yield f"crawl      {crawl.job['crawl_id']}"
    yield f"output     {place}"
    yield f"now        {'not running' if crawl.holder is None else f'in use by process {crawl.holder}'}"
    yield f"committed  {committed:%Y-%m-%d %H:%M:%S} UTC"
    yield f"crawled    {crawl.pages:,}{f' of {wanted:,}' if isinstance(wanted, int) else ''} pages"
    yield f"size       {size / 1e6:,.1f} MB on disk"


def _states(crawl: StoredCrawl) -> Iterator[str]:
    """Yield counts of documents by state."""
    states, ended = crawl.balance, ended_documents(crawl.frontier, crawl.counts)
    ended[Outcome.REDIRECTED]["within an owner"] += crawl.counts.get(REDIRECTS, 0)
    yield f"queued     {states.queued:,}"
    yield f"parked     {states.parked:,}{f' (budget {waiting:,})' if (waiting := len(crawl.aside)) else ''}"
    yield f"leased     {states.leased:,}"
    yield f"archived   {states.archived:,}"
    for outcome in (Outcome.REDIRECTED, Outcome.FAILED, Outcome.DROPPED):
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(ended[outcome].items()) if count)
        yield f"{outcome.value:<11}{sum(ended[outcome].values()):,}{f' ({reasons})' if reasons else ''}"
    yield str(states)
    if crawl.state.seeds:
        yield f"injected   {len(crawl.state.seeds):,} seeds, taken up when the crawl is resumed"


def _parked(crawl: StoredCrawl) -> Iterator[str]:
    """Yield the owners that are parked, those with the most documents first."""
    if not isinstance(crawl.frontier, DurableOwnerFrontier):
        return
    owners = crawl.frontier.owners
    parked = sorted((-owners.queued_of(name), name, delay) for name, delay in owners.parked())
    if parked:
        shown = f"{min(_PARKED, len(parked))} of {len(parked):,}, {owners.documents.parked:,} documents"
        yield f"\n{'queued':>12}  parked owner ({shown}), Crawl-delay"
    for queued, name, delay in parked[:_PARKED]:
        yield harmless(f"{-queued:>12,}  {name}  {delay:,.0f} s" if delay else f"{-queued:>12,}  {name}")


def _hosts(crawl: StoredCrawl, most: int) -> Iterator[str]:
    queued = tqdm(crawl.frontier, "Reading the frontier", len(crawl.frontier), unit=" documents", disable=None)
    counts = Counter(host_of(entry.url or entry.key) for entry in queued)
    if counts:
        yield f"\n{'queued':>12}  host ({min(most, len(counts)):,} of {len(counts):,})"
    for host, count in nsmallest(most, counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"{count:>12,}  {harmless(host) or '(known by id alone)'}"


def _best(crawl: StoredCrawl, most: int) -> Iterator[str]:
    for place, entry in enumerate(islice(crawl.frontier, most)):
        if not place:
            yield f"\n{'score':>12}  best documents"
        yield harmless(f"{entry.score:>12.6f}  {entry.key}  {entry.url if entry.url != entry.key else ''}".rstrip())


def _leases(crawl: StoredCrawl) -> Iterator[str]:
    leases = crawl.frontier.leases()
    if leases:
        yield f"\n{'score':>12}  on lease ({min(_LEASES, len(leases))} of {len(leases):,}), by attempt"
    for entry, _ in leases[:_LEASES]:
        yield harmless(f"{entry.score:>12.6f}  {entry.attempts}  {entry.key}  {entry.url}".rstrip())


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not 0 or a positive integer")
    return int(text)


SHOW = Action("Show what the crawl holds.", _run, add_options=_add_options)
