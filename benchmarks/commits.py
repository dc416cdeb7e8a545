"""What a commit of a crawl with JOBDIR costs, by documents queued, and what JOBDIR adds to the CPU of a crawl.

    python -m benchmarks.commits [--queued 100000,1000000] [--policies host,parent_mean,link] [--runs 5]

The first part crawls a web made up as it goes: hubs fill the frontier, then a commit follows each 1,000 pages of 25
links (4 to documents not seen before and 14 to others of the host, 7 to other hosts: about the shares of
../shared/corpora/real-web; how often a document of another host is linked to follows Zipf's law, home pages first). It
prints the median of 13 such commits, what was written, and the memory of the process. The second part runs
`URL_POLICY=parent_mean` on ../shared/clueweb22-real with and without JOBDIR, in turn, and prints the medians of CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import resource
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from benchmarks.corpora import PROJECT
from benchmarks.processes import measure
from benchmarks.simulation import SIZES, our_command
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.base.run_folder import SETTINGS, write_json
from crawl4llm.crawl.crawl import Crawl
from crawl4llm.crawl.job import Job
from crawl4llm.crawl.opening import open_crawl
from crawl4llm.crawl.page_writer import CrawlLog
from crawl4llm.options import Options
from crawl4llm.parts import Parts
from crawl4llm.policies import load_policy
from crawl4llm.policies._ordering import make_policy
from crawl4llm.scoring.rating import Rating
from crawl4llm.warc import NullArchive

HUB_LINKS = 1000
PAGES, BATCH, COMMITS = 1000, 100, 13
MOST_RATIO, MOST_CPU = 1.5, 1.10


class EndlessWeb:
    """Hosts with a hundred documents at first, and more as pages are crawled; pages are a function of their key."""

    def __init__(self, queued: int) -> None:
        self._queued = queued
        self._hosts = queued // 100

    def hubs(self) -> list[str]:
        """Keys of the pages that link to the first documents."""
        return [f"https://hub{number}.example/" for number in range(self._queued // HUB_LINKS)]

    def page(self, key: str) -> PageRecord:
        """A page and its links."""
        if key.startswith("https://hub"):
            first = HUB_LINKS // 100 * int(key[11:].partition(".")[0])
            links = [_link(host, place) for host in range(first, first + HUB_LINKS // 100) for place in range(100)]
        else:
            host, place = map(int, key[13:].split(".example/p"))
            draw = random.Random(key)
            links = [_link(host, 4 * place + 100 + number) for number in range(4)]
            links += [_link(host, int((place + 100) * draw.random() ** 3)) for _ in range(14)]
            ranks = [int(self._queued ** draw.random()) for _ in range(7)]
            links += [_link(rank % self._hosts, rank // self._hosts) for rank in ranks]
        return PageRecord(key, key, outlinks=links)


def _link(host: int, place: int) -> Link:
    url = f"https://www.h{host}.example/p{place}"
    return Link(url, url, f"page {place % 7}", boilerplate=False)


async def _rate(pages: Sequence[PageRecord]) -> list[Rating]:
    """A score that is alike for pages of one host."""
    return [Rating(_share(page.key.partition("/p")[0], 0.7) + _share(page.key, 0.3)) for page in pages]


def _share(text: str, most: float) -> float:
    """A number below ``most`` that looks drawn."""
    return crc32(text.encode()) / 2**32 * most


class Commit(NamedTuple):
    """Medians of the commits of a crawl."""

    seconds: float
    queued: int
    written: float
    """MB by this process, as the system counts."""
    memory: float
    """MB, the peak of the process."""


async def _crawl(crawl: Crawl, web: EndlessWeb, pages: int) -> None:
    while pages > 0:
        for lease in crawl.dequeue():
            crawl.fetched(lease, web.page(lease.entry.key), 200)
            pages -= 1
        while crawl.can_advance:
            await crawl.advance()


def commits_of(policy_name: str, queued: int, folder: Path) -> Commit:
    """Fill a frontier, then crawl on, with a commit after each 1,000 pages."""
    options = Options(
        url_policy=policy_name,
        crawl_max_pages=sys.maxsize,
        crawl_batch_size=BATCH,
        commit_interval_pages=sys.maxsize,
        commit_interval_seconds=1e9,
        output_dir=str(folder / "run"),
    )
    web = EndlessWeb(queued)
    job = Job(folder / "job", options)
    crawl_id = str(uuid.uuid4())
    job.settle(crawl_id, {})
    write_json(job.output / SETTINGS, {"crawl_id": crawl_id})
    job.open(reranks=load_policy(policy_name).reranks)
    log, archive = CrawlLog(job.output), NullArchive()
    commits = job.commits(log, archive)
    policy = make_policy(None, options)  # type: ignore[arg-type]
    job.take_up(policy)
    crawl = open_crawl(
        options,
        policy=policy,
        rate=_rate,  # type: ignore[arg-type]
        frontier=job.store.frontier,
        visited=job.store.visited,
        archive=archive,
        log=log,
        commits=commits,
        provenance={},
        parts=Parts(),
    )

    async def run() -> Commit:
        hubs = web.hubs()
        await crawl.begin(hubs)
        for _ in range(0, len(hubs), BATCH):
            await _crawl(crawl, web, BATCH)
        crawl.commit_now()
        seconds, written = [], []
        for _ in range(COMMITS):
            await _crawl(crawl, web, PAGES)
            before, started = resource.getrusage(resource.RUSAGE_SELF).ru_oublock, time.perf_counter()
            crawl.commit_now()
            seconds.append(time.perf_counter() - started)
            written.append((resource.getrusage(resource.RUSAGE_SELF).ru_oublock - before) / 2048)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return Commit(statistics.median(seconds), len(job.store.frontier), statistics.median(written), memory)

    return asyncio.run(run())


def _apart(told: Connection, policy: str, queued: int) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        told.send(commits_of(policy, queued, Path(folder)))


def commits_apart(policy: str, queued: int) -> Commit:
    """The same in a process of its own, whose memory is measured."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=_apart, args=(sender, policy, queued))
    process.start()
    sender.close()
    commit: Commit = receiver.recv()
    process.join()
    return commit


def cpu_of(*, durable: bool) -> float:
    """CPU seconds of a crawl of clueweb22-real by ``parent_mean``."""
    with tempfile.TemporaryDirectory() as folder:
        job = f"{folder}/job" if durable else ""
        command = our_command(Path(folder) / "run", SIZES["n100"], URL_POLICY="parent_mean", JOBDIR=job)
        return measure(command, PROJECT, {"PYTHONPATH": str(PROJECT)}).cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--queued", default="100000,1000000")
    parser.add_argument("--policies", default="host,parent_mean,link")
    parser.add_argument("--runs", type=int, default=5, help="crawls with JOBDIR, and as many without")
    args = parser.parse_args()
    for policy in args.policies.split(","):
        seconds = []
        for queued in map(int, args.queued.split(",")):
            commit = commits_apart(policy, queued)
            seconds.append(commit.seconds)
            print(
                f"{policy:12} {commit.queued:>9,} queued: a commit takes {commit.seconds * 1000:7.0f} ms, writes "
                f"{commit.written:5.0f} MB; memory {commit.memory:,.0f} MB",
                flush=True,
            )
        print(f"{policy:12} ratio {seconds[-1] / seconds[0]:.2f} (at most {MOST_RATIO})", flush=True)
    costs: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(args.runs):
        for durable, cpu in costs.items():
            cpu.append(cpu_of(durable=durable))
    if args.runs:
        without, with_jobdir = map(statistics.median, costs.values())
        print(f"CPU of parent_mean: {without:.1f} s without JOBDIR, {with_jobdir:.1f} s with, ", end="")
        print(f"ratio {with_jobdir / without:.3f} (at most {MOST_CPU})")


if __name__ == "__main__":
    main()
