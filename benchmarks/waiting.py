"""What it costs that owners make a crawl wait, and what CRAWL_PATIENCE gives for it.

    python -m benchmarks.waiting [--policies NAME,...] [--patient NAME,...] [--seed-sets N] [--processes N]

Crawls ../shared/clueweb22-real by ../shared/scorers/prose.bin in continuous order, on the virtual clock of a simulation
(SIMULATION_OWNER_DELAY), from the sets of seeds of benchmarks.policies. Owners in reach are those of the documents to
which links lead from the seeds. The delay is such that as many fetches fit into it as x times the owners in reach; with
x = 0 nobody waits. Recall is the share of the oracle pages in reach, as in benchmarks.policies, that are crawled by the
time that so many of the pages in reach are fetched; of a policy that looks ahead, crawled.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.policies import SEEDS, Subject, _subjects, prepare
from crawl4llm.base.domains import owner_of
from crawl4llm.crawl.opening import open_crawl
from crawl4llm.crawl.page_writer import CrawlLog
from crawl4llm.frontier import OwnerFrontier, Patience
from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.frontier.opening import memory_frontier
from crawl4llm.options import Options
from crawl4llm.parts import open_parts
from crawl4llm.policies._ordering import make_policy
from crawl4llm.scoring.rating import PageRater
from crawl4llm.scoring.workers import PageWorkers, rate_by_key
from crawl4llm.warc import NullArchive
from simulate.virtual_clock import VirtualClock

WEB = "whole"
POLICIES = ("link", "parent_first", "host", "breadth_first", "influence")
TIMES = (0.0, 1 / 3, 1.0, 3.0)
"""Fetches that fit into the delay, in multiples of the owners in reach."""
PATIENCES = (0.0, 0.25, 0.5, 0.75, 0.9)
CAPACITY = 10.0
SHARES = (0.10, 0.25)
MOST_LOST = (0.10, 0.05)
"""Of the oracle pages at each of SHARES, with x = 1/3."""


class Task(NamedTuple):
    """One crawl."""

    policy: str
    times: float
    patience: float
    seed_set: int


class Found(NamedTuple):
    """What a crawl found."""

    recall: tuple[float, ...]
    """At each of SHARES."""
    pages_per_second: float
    """Of the virtual clock."""
    owners: int
    """In reach."""


def crawl(task: Task) -> Found:
    """One crawl, to the last of SHARES."""
    subject = _subjects[WEB]
    seeds = subject.web.sample(SEEDS, task.seed_set)
    reachable = subject.web.reachable(seeds)
    owners = len({owner_of(subject.web.page(key).url) for key in reachable})
    pages = [int(share * len(reachable)) for share in SHARES]
    options = Options(
        url_policy=task.policy,
        crawl_max_pages=pages[-1],
        crawl_batch_size=0,
        crawl_patience=task.patience,
        crawl_seed=task.seed_set,
    )
    clock = VirtualClock(task.times * owners / CAPACITY, CAPACITY)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(_run(subject, options, clock, seeds, Path(folder)))
    oracle = subject.oracle & reachable
    recall = tuple(len(oracle.intersection(found[:count])) / len(oracle) for count in pages)
    return Found(recall, len(found) / clock.statistics()["simulation/seconds"], owners)


async def _run(
    subject: Subject, options: Options, clock: VirtualClock, seeds: Sequence[str], folder: Path
) -> list[str]:
    """Keys of the pages crawled, in their order."""
    workers = PageWorkers(PageRater(subject.web, subject.scorer, extractor=None), processes=0, time_limit=60.0)
    frontier: OwnerFrontier = memory_frontier(by_owners=True, patience=Patience(options.crawl_patience))
    parts = open_parts(options)
    crawling = open_crawl(
        options,
        policy=make_policy(workers, options),
        rate=partial(rate_by_key, workers, signature=parts.needs().signature),
        frontier=frontier,
        by_owners=frontier,
        visited=MemoryVisited(),
        archive=NullArchive(),
        log=(log := CrawlLog(folder)),
        provenance={},
        parts=parts,
        clock=clock,
        url_of_seed=lambda key: subject.web.page(key).url,
    )
    await crawling.begin(seeds)
    while not crawling.finished:
        clock.tick(frontier.owners)
        for lease in crawling.dequeue():
            crawling.fetched(lease, subject.web.page(lease.entry.key), 200)
        while crawling.can_advance:
            await crawling.advance()
    log.close()
    return [json.loads(line)["id"] for line in (folder / "crawl.jsonl").read_text().splitlines()]


# -- what is printed --------------------------------------------------------------------------------------------------

Crawls = dict[Task, Found]


def print_waits(crawls: Crawls, policies: Sequence[str], sets: range) -> None:
    """Recall and speed where owners wait, by policy, and whether that is what the project asks for."""
    owners = statistics.mean(found.owners for found in crawls.values())
    print(f"{owners:.0f} owners in reach, {CAPACITY:g} fetches a second, {len(sets)} sets of {SEEDS} seeds")
    print("recall at 10% and 25% of the pages in reach, and pages a second")
    print(f"{'':<15}" + "".join(f"{f'x = {times:.2g}':>22}" for times in TIMES))
    for policy in policies:
        cells = (_cell(_of(crawls, policy, times, 0.0, sets)) for times in TIMES)
        print(f"{policy:<15}" + "".join(f"{cell:>22}" for cell in cells))
    for place, share in enumerate(SHARES):
        for policy in policies:
            before, after = (_of(crawls, policy, times, 0.0, sets) for times in TIMES[:2])
            parts = [two.recall[place] / one.recall[place] for one, two in zip(before, after, strict=True)]
            lost, spread = 1 - statistics.mean(parts), statistics.stdev(parts) if len(parts) > 1 else 0.0
            what = f"{policy}: lost at {share:.0%}, x = 1/3: {lost:.1%}±{spread:.1%}, at most {MOST_LOST[place]:.0%}"
            _print_demand(what, lost <= MOST_LOST[place])
        if {"link", "parent_first"} <= set(policies):
            for times in TIMES[1:]:
                link, other = (
                    statistics.mean(found.recall[place] for found in _of(crawls, policy, times, 0.0, sets))
                    for policy in ("link", "parent_first")
                )
                what = f"link not below parent_first at {share:.0%}, x = {times:.2g}: {link:.3f}, {other:.3f}"
                _print_demand(what, link >= other)


def print_patience(crawls: Crawls, policies: Sequence[str], sets: range) -> None:
    """Recall and speed by CRAWL_PATIENCE."""
    for times in TIMES[2:]:
        print(f"\nCRAWL_PATIENCE, x = {times:g}")
        print(f"{'':<15}" + "".join(f"{patience:>22g}" for patience in PATIENCES))
        for policy in policies:
            cells = (_cell(_of(crawls, policy, times, patience, sets)) for patience in PATIENCES)
            print(f"{policy:<15}" + "".join(f"{cell:>22}" for cell in cells))


def _of(crawls: Crawls, policy: str, times: float, patience: float, sets: range) -> list[Found]:
    return [crawls[Task(policy, times, patience, number)] for number in sets]


def _cell(found: Sequence[Found]) -> str:
    first, last = (statistics.mean(one.recall[place] for one in found) for place in range(len(SHARES)))
    return f"{first:.3f} {last:.3f} {statistics.mean(one.pages_per_second for one in found):5.2f}/s"


def _print_demand(what: str, met: bool) -> None:
    print(f"  {'met     ' if met else 'NOT MET '} {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--policies", default=",".join(POLICIES), help="names (%(default)s)")
    parser.add_argument("--patient", default="link,parent_first", help="policies with CRAWL_PATIENCE (%(default)s)")
    parser.add_argument("--seed-sets", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1)
    args = parser.parse_args()
    policies = args.policies.split(",")
    patient = [policy for policy in args.patient.split(",") if policy in policies]
    sets = range(args.seed_sets)
    tasks = [Task(policy, times, 0.0, number) for policy in policies for times in TIMES for number in sets]
    tasks += [
        Task(policy, times, patience, number)
        for policy in patient
        for times in TIMES[2:]
        for patience in PATIENCES[1:]
        for number in sets
    ]
    with tempfile.TemporaryDirectory() as folder:
        prepare([WEB], Path(folder))
        with ProcessPoolExecutor(args.processes, multiprocessing.get_context("fork")) as pool:
            futures: dict[Task, Future[Found]] = {task: pool.submit(crawl, task) for task in tasks}
            crawls = {task: future.result() for task, future in futures.items()}
    print_waits(crawls, policies, sets)
    print_patience(crawls, patient, sets)


if __name__ == "__main__":
    main()
