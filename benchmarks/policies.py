"""How much of the oracle set each policy finds, by pages fetched.

    python -m benchmarks.policies [--webs whole,tuning,reporting,demo] [--policies NAME,...] [--seed-sets N] [--out DIR]

Crawls ../shared/clueweb22-real by ../shared/scorers/prose.bin: all of it, and each half of its hosts alone (by a hash
of the host's name; `link` was tuned on one half); and the demo web. Every policy starts from the same sets of 100
random seeds and goes on until half of the pages in reach are crawled; n = 100. Recall is the share of the oracle pages
in reach that are crawled by the time that so many of the pages in reach are fetched. A policy that looks ahead fetches
what it visits; it is also shown by pages crawled, as if it knew influence for nothing. Last, what `link` costs: CPU of
whole crawls of 5,600 pages, n = 10, by it and by `parent_first`, in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora import PROJECT, SHARED, real_pages
from benchmarks.policy_webs import MemoryWeb, RememberedScores, half_of, open_web
from benchmarks.processes import measure
from benchmarks.results import Figure, Result, Table, add_output, publish
from benchmarks.simulation import Size, our_command
from crawl4llm.base.crawl_log import CrawlLine
from crawl4llm.base.processes import cores
from crawl4llm.base.urls import host_of
from crawl4llm.crawl.web import load_scorers
from crawl4llm.options import Options
from crawl4llm.policies import known_policies, load_policy
from crawl4llm.policies._ordering import make_policy
from crawl4llm.scoring.rating import PageRater
from crawl4llm.scoring.workers import PageWorkers, rate_by_key
from crawl4llm.tools.evaluate.contest.crawling import crawl_in_memory
from crawl4llm.tools.evaluate.shares import BOUND
from simulate.centrality import page_ranks
from simulate.opening import demo_web

REAL, REAL_MODEL = SHARED / "clueweb22-real", SHARED / "scorers/prose.bin"
SHARES = (0.05, 0.10, 0.25, 0.50)
_QUARTER = 0.25
SEEDS = 100
WEBS = ("whole", "tuning", "reporting", "demo")
FEWEST_SETS = 2
COSTLY, COSTLY_BATCH = Size(real_pages, 5600, SEEDS), 10
"""The crawl by which the CPU of `link` is measured."""
MOST_SECONDS = 2.25
"""CPU that `link` may take above `parent_first` there: half of what it took before (4 to 5 s)."""


class Recalls(NamedTuple):
    """A crawl's recall of the oracle at each of SHARES."""

    by_fetched: tuple[float, ...]
    by_crawled: tuple[float, ...]
    links_per_second: float
    """Links of crawled pages by CPU second that the policy took."""
    on_hosts: dict[str, int]
    """Oracle pages in reach by host."""
    found_on: dict[str, int]
    """Those crawled by the time that a quarter of the pages in reach are fetched."""


@dataclass(frozen=True)
class Subject:
    """A web, and what all crawls of it share."""

    web: MemoryWeb
    scorer: RememberedScores
    oracle: set[str]
    ranks: Path
    """For ``harmonic``."""
    bound: str = ""
    """For ``bound``: the text of its file."""


_subjects: dict[str, Subject] = {}
"""Read before the processes are forked, which share them."""


class Clock:
    """Takes the CPU time of a policy's work: stands before each of its methods that a crawl calls."""

    def __init__(self, policy: Any) -> None:
        self.seconds = 0.0
        self.links = 0
        self._score, self._crawled = policy.score, policy.crawled
        policy.score, policy.crawled = self._timed_score, self._timed_crawled
        for name in ("reranked", "dequeued"):
            setattr(policy, name, partial(self._timed, getattr(policy, name)))

    def _timed_crawled(self, page: Any) -> None:
        self.links += len(page.links)
        self._timed(self._crawled, page)

    async def _timed_score(self, candidates: Any) -> Any:
        started = time.process_time()
        ratings = await self._score(candidates)
        self.seconds += time.process_time() - started
        return ratings

    def _timed(self, part: Any, *args: Any) -> Any:
        started = time.process_time()
        result = part(*args)
        self.seconds += time.process_time() - started
        return result


def crawl(
    web_name: str, policy_name: str, seed_set: int, until: float = SHARES[-1], number_of_seeds: int = SEEDS
) -> Recalls:
    """One crawl, until so much of the reachable pages is crawled; n is the number of seeds."""
    subject = _subjects[web_name]
    web = subject.web
    seeds = web.sample(number_of_seeds, seed_set)
    reachable = web.reachable(seeds)
    options = Options(
        url_policy=policy_name,
        crawl_max_pages=int(until * len(reachable)),
        crawl_seed=seed_set,
        crawl_batch_size=number_of_seeds,
        harmonic_ranks=str(subject.ranks),
        ensemble_weights="fasttext:1,length:0.5",
    )
    with tempfile.TemporaryDirectory() as folder:
        if policy_name == BOUND:
            (Path(folder) / BOUND).write_text(subject.bound, encoding="utf-8")
            options = replace(options, bound_scores=f"{folder}/{BOUND}")
        lines, clock = asyncio.run(_run(subject, options, seeds))
    found_before = [0]
    for line in lines:
        found_before.append(found_before[-1] + (line["id"] in subject.oracle))
    in_reach = len(subject.oracle & reachable)
    fetched = [line["fetched"] for line in lines]
    early = [line["id"] for line in lines if line["fetched"] <= _QUARTER * len(reachable)]
    return Recalls(
        tuple(found_before[sum(count <= share * len(reachable) for count in fetched)] / in_reach for share in SHARES),
        tuple(found_before[min(int(share * len(reachable)), len(lines))] / in_reach for share in SHARES),
        clock.links / clock.seconds if clock.seconds else 0.0,
        *(
            dict(Counter(host_of(web.page(key).url) for key in subject.oracle.intersection(keys)))
            for keys in (reachable, early)
        ),
    )


async def _run(subject: Subject, options: Options, seeds: Sequence[str]) -> tuple[list[CrawlLine], Clock]:
    """The crawl log of a crawl, and the clock of its policy."""
    others = load_scorers(load_policy(options.url_policy).scorers(options), options)
    rater = PageRater(subject.web, subject.scorer, extractor=None, others=others)
    workers = PageWorkers(rater, processes=0, time_limit=60.0)
    policy = make_policy(workers, options)
    clock, rate = Clock(policy), partial(rate_by_key, workers)
    return await crawl_in_memory(subject.web.page, options, policy=policy, rate=rate, seeds=seeds), clock


def prepare(names: Sequence[str], folder: Path, *, bound: bool = False) -> None:
    """Read the webs and score their pages; with ``bound``, learn what that policy knows."""
    sources: dict[str, tuple[MemoryWeb, RememberedScores]] = {}
    if set(names) & {"whole", "tuning", "reporting"}:
        whole, scores = open_web("whole", REAL), RememberedScores(REAL_MODEL)
        sources["whole"] = whole, scores
        sources["tuning"] = whole.of_hosts("tuning", lambda host: half_of(host) == 0), scores
        sources["reporting"] = whole.of_hosts("reporting", lambda host: half_of(host) == 1), scores
    if "demo" in names:
        paths = demo_web()
        sources["demo"] = open_web("demo", Path(paths.corpus)), RememberedScores(Path(paths.model))
    for name in names:
        web, scores = sources[name]
        ranks = folder / f"{name}.tsv"
        ranks.write_text("".join(f"{key}\t{rank!r}\n" for key, rank in page_ranks(web, progress=False).items()))
        known = web.bound(scores) if bound else ""
        _subjects[name] = Subject(web, scores, web.oracle(scores), ranks, known)


# -- what is printed --------------------------------------------------------------------------------------------------

Results = dict[str, list[Recalls]]
"""By policy, a crawl for each set of seeds."""


def looks_ahead(policy: str) -> bool:
    """Whether a policy fetches what it visits."""
    return load_policy(policy).looks_ahead


def web_table(name: str, results: Results) -> Table:
    """Return the recalls on one web, mean and standard deviation."""
    web = _subjects[name].web
    reached = statistics.mean(
        len(web.reachable(web.sample(SEEDS, number))) for number in range(len(next(iter(results.values()))))
    )
    title = f"{name}: {len(web):,} pages of {len(web.hosts())} hosts, {reached:,.0f} in reach of {SEEDS} seeds; recall"
    by_quarter = sorted(results, key=lambda policy: -_means(results[policy], crawled=False)[2])
    rows = [(policy, *_cells(results[policy], crawled=False)) for policy in by_quarter]
    rows += [
        (f"{policy}, by pages crawled", *_cells(results[policy], crawled=True))
        for policy in filter(looks_ahead, by_quarter)
    ]
    return Table(title, ("by pages fetched", *(f"{share:.0%}" for share in SHARES)), rows)


def learning_cost(runs: int) -> Figure:
    """Measure whole crawls by ``link`` and by ``parent_first`` in turn; returns the median difference in CPU."""
    differences = []
    for _ in range(runs):
        spent = []
        for policy in ("link", "parent_first"):
            with tempfile.TemporaryDirectory() as folder:
                command = our_command(Path(folder) / "run", COSTLY, URL_POLICY=policy, CRAWL_BATCH_SIZE=COSTLY_BATCH)
                spent.append(measure(command, PROJECT, {"PYTHONPATH": str(PROJECT)}).cpu)
        differences.append(spent[0] - spent[1])
    what = f"CPU of link above parent_first, {COSTLY.pages:,} pages, n = {COSTLY_BATCH}"
    return Figure(what, statistics.median(differences), MOST_SECONDS, "s")


def print_differences(results: Results) -> None:
    """``link`` against the others, seeds by seeds."""
    link = results["link"]
    print(
        "link minus another policy with the same seeds: mean and standard deviation of the differences; ratio of means"
    )
    for policy in results:
        if policy != "link":
            crawled = looks_ahead(policy)
            pairs = [
                (one.by_crawled, (two.by_crawled if crawled else two.by_fetched))
                for one, two in zip(link, results[policy], strict=True)
            ]
            cells = ""
            for place in range(len(SHARES)):
                differences = [one[place] - two[place] for one, two in pairs]
                ratio = sum(one[place] for one, _ in pairs) / max(sum(two[place] for _, two in pairs), 1e-9)
                cells += f"  {statistics.mean(differences):+.3f}±{_spread(differences):.3f} {ratio:4.2f}"
            print(f"{policy:<15}{cells}{'   by pages crawled' if crawled else ''}")
    speed = statistics.median(crawl.links_per_second for crawl in link)
    print(f"link: {speed:,.0f} links scored and learnt a CPU second")
    print_demands(results)


def print_demands(results: Results) -> None:
    """Whether ``link`` is what the project asks of it."""
    means = {policy: _means(crawls, crawled=looks_ahead(policy)) for policy, crawls in results.items()}
    link = means["link"]
    for other, least in (("parent_first", 1.2), ("breadth_first", 2.5)):
        if other in means:
            ratio = link[2] / means[other][2]
            _print_demand(f"at 25% at least {least} times {other}: {ratio:.2f}", ratio >= least)
    if "influence" in means:
        for place in (2, 3):
            _print_not_below(results, "influence", place)
    if {"parent_first", "host"} <= set(means):
        for place in range(len(SHARES)):
            _print_not_below(results, max("parent_first", "host", key=lambda one: means[one][place]), place)


def _print_not_below(results: Results, other: str, place: int) -> None:
    crawled = looks_ahead(other)
    differences = [
        one.by_crawled[place] - (two.by_crawled if crawled else two.by_fetched)[place]
        for one, two in zip(results["link"], results[other], strict=True)
    ]
    mean, spread = statistics.mean(differences), _spread(differences)
    what = f"at {SHARES[place]:.0%} not below {other}{' by pages crawled' if crawled else ''} beyond the paired spread"
    _print_demand(f"{what}: {mean:+.3f}±{spread:.3f}", mean >= -spread)


def _print_demand(what: str, met: bool) -> None:
    print(f"  {'met     ' if met else 'NOT MET '} {what}")


def _means(crawls: Sequence[Recalls], *, crawled: bool) -> list[float]:
    return [statistics.mean(column) for column in _columns(crawls, crawled=crawled)]


def _cells(crawls: Sequence[Recalls], *, crawled: bool) -> list[str]:
    return [f"{statistics.mean(column):.3f}±{_spread(column):.3f}" for column in _columns(crawls, crawled=crawled)]


def _columns(crawls: Sequence[Recalls], *, crawled: bool) -> list[tuple[float, ...]]:
    return list(zip(*(one.by_crawled if crawled else one.by_fetched for one in crawls), strict=True))


def _spread(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) >= FEWEST_SETS else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--webs", default=",".join(WEBS), help="some of these (default: all)")
    parser.add_argument("--policies", default=",".join(known_policies()), help="names (default: all)")
    parser.add_argument("--seed-sets", type=int, default=5)
    parser.add_argument("--processes", type=int, default=cores())
    parser.add_argument("--runs", type=int, default=5, help="pairs of crawls that tell the CPU of link; 0: none")
    add_output(parser)
    args = parser.parse_args()
    webs, policies = args.webs.split(","), args.policies.split(",")
    result = Result("policies", [f"{args.seed_sets} sets of {SEEDS} random seeds, n = 100"])
    if not REAL.exists():
        webs = ["demo"]
        result.data = [*result.data, f"{REAL} is not here: the demo web alone"]
    with tempfile.TemporaryDirectory() as folder:
        prepare(webs, Path(folder), bound=BOUND in policies)
        with ProcessPoolExecutor(args.processes, multiprocessing.get_context("fork")) as pool:
            crawls = {
                (web, policy): [pool.submit(crawl, web, policy, number) for number in range(args.seed_sets)]
                for web in webs
                for policy in policies
            }
            for web in webs:
                results = {policy: [future.result() for future in crawls[web, policy]] for policy in policies}
                result.tables.append(web_table(web, results))
                if "link" in results:
                    print(f"\n{web}")
                    print_differences(results)
    if args.runs:
        result.figures.append(learning_cost(args.runs))
    publish(result, args)


if __name__ == "__main__":
    main()
