"""What it costs that owners make a crawl wait, and what CRAWL_PATIENCE gives for it.

    python -m benchmarks.waiting [--policies NAME,...] [--patient NAME,...] [--seed-sets N] [--processes N] [--out DIR]

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
from benchmarks.results import Figure, Result, Table, add_output, publish
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
from simulate.web import VirtualClock

WEB = "whole"
POLICIES = ("link", "parent_first", "host", "breadth_first", "influence")
TIMES = (0.0, 1 / 3, 1.0, 3.0)
"""Fetches that fit into the delay, in multiples of the owners in reach."""
PATIENCES = (0.0, 0.25, 0.5, 0.75, 0.9)
CAPACITY = 10.0
SHARES = (0.10, 0.25)
MOST_LOST = (0.10, 0.05)
"""Of the oracle pages at each of SHARES, with x = 1/3."""
_TOLD = "recall at 10% and 25% of the pages in reach, and pages a second"


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


# -- what is told -----------------------------------------------------------------------------------------------------

Crawls = dict[Task, Found]
Cells = list[list[str | float | None]]


def waits(crawls: Crawls, policies: Sequence[str], sets: range) -> tuple[Table, list[Figure]]:
    """Return recall and speed by policy if owners wait, and the figures that the project asks for."""
    rows: Cells = [[policy, *(_cell(_of(crawls, policy, times, 0.0, sets)) for times in TIMES)] for policy in policies]
    table = Table(f"Owners wait: {_TOLD}", ["", *(f"x = {times:.2g}" for times in TIMES)], rows)
    figures = []
    for place, share in enumerate(SHARES):
        for policy in policies:
            before, after = (_of(crawls, policy, times, 0.0, sets) for times in TIMES[:2])
            parts = [two.recall[place] / one.recall[place] for one, two in zip(before, after, strict=True)]
            what = f"{policy}: share of recall lost at {share:.0%}, x = 1/3"
            figures.append(Figure(what, 1 - statistics.mean(parts), MOST_LOST[place]))
        if {"link", "parent_first"} <= set(policies):
            for times in TIMES[1:]:
                link, other = (
                    statistics.mean(found.recall[place] for found in _of(crawls, policy, times, 0.0, sets))
                    for policy in ("link", "parent_first")
                )
                what = f"recall of link / parent_first at {share:.0%}, x = {times:.2g}"
                figures.append(Figure(what, link / other, 1, least=True))
    return table, figures


def patience(crawls: Crawls, policies: Sequence[str], sets: range) -> Table:
    """Return recall and speed by CRAWL_PATIENCE."""
    rows: Cells = [
        [f"{policy}, x = {times:g}", *(_cell(_of(crawls, policy, times, some, sets)) for some in PATIENCES)]
        for policy in policies
        for times in TIMES[2:]
    ]
    return Table(f"By CRAWL_PATIENCE: {_TOLD}", ["", *(f"{some:g}" for some in PATIENCES)], rows)


def _of(crawls: Crawls, policy: str, times: float, some: float, sets: range) -> list[Found]:
    return [crawls[Task(policy, times, some, number)] for number in sets]


def _cell(found: Sequence[Found]) -> str:
    first, last = (statistics.mean(one.recall[place] for one in found) for place in range(len(SHARES)))
    return f"{first:.3f}, {last:.3f}, {statistics.mean(one.pages_per_second for one in found):.2f}/s"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--policies", default=",".join(POLICIES), help="names (%(default)s)")
    parser.add_argument("--patient", default="link,parent_first", help="policies with CRAWL_PATIENCE (%(default)s)")
    parser.add_argument("--seed-sets", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1)
    add_output(parser)
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
    owners = statistics.mean(found.owners for found in crawls.values())
    told = f"{owners:.0f} owners in reach, {CAPACITY:g} fetches a second, {len(sets)} sets of {SEEDS} seeds"
    table, figures = waits(crawls, policies, sets)
    publish(Result("waiting", [told], [table, patience(crawls, patient, sets)], figures), args)


if __name__ == "__main__":
    main()
