"""How close a polite crawl comes to what its delays allow, and whether the servers saw anybody asked early.

    python -m benchmarks.politeness [--runs 1] [--pages 6000] [--pages-bound 20000] [--kills] [--only WHAT]
                                    [--out FOLDER]

Crawls of a local web with sites of equal size, of which one in twenty is slow (late answers, drips) or dead (never
answers, refuses connections, does not resolve):

- 200 owners at 5 s. The delays bind: 40 pages a second is what the owners would give if all of them answered at once.
- 1,000 owners at 1 s. The machine binds; the peer is the same crawl without delays, in turn with it.
- ``--kills``: 200 owners at 5 s, killed five times with SIGKILL and stopped three times with SIGTERM at random moments,
  in random order, and resumed. Then nothing may be archived twice, log and archive must have the same pages, and
  ``scrapy frontier --verify`` must find each document in one state after each of them.

Rates are the servers': of the whole crawl, and without its first tenth and last fiftieth. Whether anybody was asked
early is told by the servers' clock, from the end of one exchange to the next request, robots.txt included. Ends with
status 1 if a rate is below nine tenths, somebody was asked early, or something was lost.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.live_runs import INTERRUPTED, crawl, finish, verify
from benchmarks.live_web import EvenPages, Rates, Waits, politeness, rates, served, some_misbehave
from benchmarks.results import Figure, Result, Table, add_output, publish
from crawl4llm.warc import cdxj
from tests.testweb import Logged, read_log

SHARE = 0.9
_DEAD_OR_SLOW = ("slow:3", "drip:6", "hang", "refusing", "nowhere")
_SETTINGS = {"DOWNLOAD_TIMEOUT": 20}  # the last pages wait for a dead owner so long
_PAGES_OF_A_SITE = 10_000
_STOPS = [signal.SIGKILL] * 5 + [signal.SIGTERM] * 3
_SECONDS = (2.0, 20.0)
"""After which a crawl is stopped: from its start-up on."""
_LONGEST = 3600.0


class Measured(NamedTuple):
    """One crawl."""

    rates: Rates
    waits: Waits
    share: float
    """CPU of the servers, of that of servers and crawler's main process."""


def measure(owners: int, delay: float, pages: int) -> Measured:
    """Crawl so many pages of so many owners."""
    with tempfile.TemporaryDirectory(prefix="crawl4llm-") as scratch:
        folder, site = Path(scratch), EvenPages(owners, _PAGES_OF_A_SITE)
        with served(folder / "web", site, some_misbehave(list(site.homes), 0.05, _DEAD_OR_SLOW)) as servers:
            process = crawl(servers.web, folder / "crawl", _SETTINGS, CRAWL_MAX_PAGES=pages, DOWNLOAD_DELAY=delay)
            cost = finish(process, folder / "crawl", _LONGEST)
            spent = servers.cpu
        requests = read_log(servers.web.log_file)
    return Measured(rates(requests), politeness(requests, delay), spent / (spent + cost.cpu))


_COLUMNS = ("", "pages", "whole", "steady", "bound", "of it", "shortest wait, s", "early", "CPU of the servers")


def told(result: Result, name: str, runs: list[Measured], bound: float) -> list[str | float | None]:
    """Return the medians of some runs beside a bound in pages a second; adds their figures to the result."""
    whole, steady = (statistics.median(values) for values in zip(*(run.rates[2:] for run in runs), strict=True))
    early = [owner for run in runs for owner in run.waits.early]
    result.figures += [
        Figure(f"{name}: of the bound", steady / bound, SHARE, least=True),
        Figure(f"{name}: early", len(early), 0),
    ]
    result.notes += [f"{name}: asked early: {owner}" for owner in early[:5]]
    shortest, first = min(run.waits.shortest for run in runs), runs[0]
    return [name, first.rates.pages, whole, steady, bound, steady / bound, shortest, len(early), first.share]


def stopped(result: Result, pages: int, delay: float, draw: random.Random) -> None:
    """Stop a crawl again and again; adds what was found to the result."""
    stops = draw.sample(_STOPS, len(_STOPS))
    ends: list[float] = []
    """Times at which a process was gone, and with it its connections."""
    with tempfile.TemporaryDirectory(prefix="crawl4llm-") as scratch:
        folder, site = Path(scratch), EvenPages(200, _PAGES_OF_A_SITE)
        settings: dict[str, Any] = {**_SETTINGS, "JOBDIR": folder / "crawl/job", "DOWNLOAD_DELAY": delay}
        with served(folder / "web", site, some_misbehave(list(site.homes), 0.05, _DEAD_OR_SLOW)) as servers:
            for number in stops:
                process = crawl(servers.web, folder / "crawl", settings, CRAWL_MAX_PAGES=pages)
                time.sleep(draw.uniform(*_SECONDS))
                process.send_signal(number)
                status = process.wait(_LONGEST)
                ends.append(time.monotonic())
                if status not in {INTERRUPTED, -number}:  # before Scrapy runs, Python itself answers a signal
                    log = (folder / "crawl/log").read_text()
                    raise RuntimeError(f"status {status} after {number.name}, give more --pages? {log[-2000:]}")
                if (folder / "crawl/job/job.json").exists():
                    verify(folder / "crawl")
            finish(crawl(servers.web, folder / "crawl", settings, CRAWL_MAX_PAGES=pages), folder / "crawl", _LONGEST)
        verify(folder / "crawl")
        requests = read_log(servers.web.log_file)
        run = folder / "crawl/run"
        logged = [json.loads(line)["id"] for line in (run / "crawl.jsonl").open()]
        archived = [entry.id for entry in cdxj.read(run / "warc/index.cdxj") if entry.id]
    seen = politeness([_cut(one, ends) for one in requests], delay)
    twice = len(archived) - len(set(archived))
    asked = [f"{one.host}{one.path}" for one in requests]
    rows: list[list[str | float | None]] = [
        ["stops", len(stops)],
        ["pages in the log", len(logged)],
        ["pages archived", len(archived)],
        ["requests", len(asked)],
        ["requests repeated", len(asked) - len(set(asked))],
        ["shortest wait, s", seen.shortest],
    ]
    result.tables.append(Table("Stopped", ["", "number"], rows))
    result.figures += [
        Figure("stopped: archived twice", twice, 0),
        Figure("stopped: in log or archive only", len(set(logged) ^ set(archived)), 0),
        Figure("stopped: early", len(seen.early), 0),
    ]
    result.notes += [f"stopped: asked early: {owner}" for owner in seen.early[:5]]


def _cut(one: Logged, ends: list[float]) -> Logged:
    """Return an exchange that ended with its process: a server that is slow to answer goes on with it."""
    return one._replace(ended=min([one.ended, *(end for end in ends if end > one.arrived)]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1, help="of each crawl")
    parser.add_argument("--pages", type=int, default=6000, help="of the crawl of 200 owners (150 s)")
    parser.add_argument("--pages-bound", type=int, default=20_000, help="of the crawls of 1,000 owners")
    parser.add_argument("--kills", action="store_true", help="stop a crawl eight times, too")
    parser.add_argument("--only", choices=["delays", "machine", "kills"])
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which it is stopped")
    add_output(parser)
    args = parser.parse_args()
    result, rows = Result("politeness", ["a local web of sites of equal size, one in twenty slow or dead"]), []
    if args.only in {None, "delays"}:
        runs = [measure(200, 5.0, args.pages) for _ in range(args.runs)]
        rows.append(told(result, "200 owners at 5 s", runs, 200 / 5.0))
    if args.only in {None, "machine"}:
        pairs = [(measure(1000, 0.0, args.pages_bound), measure(1000, 1.0, args.pages_bound)) for _ in range(args.runs)]
        bound = statistics.median(free.rates.steady for free, _ in pairs)
        rows.append(told(result, "1,000 owners without delays", [free for free, _ in pairs], bound))
        rows.append(told(result, "1,000 owners at 1 s", [polite for _, polite in pairs], bound))
    if rows:
        result.tables.append(Table("Pages a second", _COLUMNS, rows))
    if args.kills or args.only == "kills":
        stopped(result, 3 * args.pages // 4, 5.0, random.Random(args.seed))
    publish(result, args)
    return 0 if result.met else 1


if __name__ == "__main__":
    sys.exit(main())
