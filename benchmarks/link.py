"""Whether ``link`` keeps what it promises, on twelve webs, each crawled from the same sets of seeds by every policy.

    python -m benchmarks.link [--webs tuning,demo,...] [--seed-sets N] [--keep FILE] [--out DIR]

The webs: 6 draws of 25 hosts of the half of ../shared/clueweb22-real on which ``link`` is tuned, 3 demo webs, all
hosts, and either half. Crawls are those of benchmarks.policies, to a quarter of the pages in reach: sets of 100 random
seeds, n = 100. ``--keep`` is a JSON file of what was crawled before, which is not crawled again, but for ``link``.

Figures: what ``link`` finds above ``parent_mean``, as a share of what looking ahead finds above it (by pages crawled),
at 25%; and, at 5 and 10%, ``link`` minus the best of the others on a web, in standard errors of the mean difference.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks import policies
from benchmarks.policies import REAL, REAL_MODEL, SHARES, Recalls, Subject, crawl
from benchmarks.policy_webs import MemoryWeb, RememberedScores, half_of, open_web
from benchmarks.results import Figure, Result, Table, add_output, publish
from crawl4llm.base.processes import cores
from simulate import data_dir, ensure_demo

DRAWS, DRAWN_HOSTS = 6, 25
DEMO_SEEDS = (1, 2, 3)
DEMO_PAGES, DEMO_HOSTS = 20_000, 500
_DRAWN, _DEMOS = (f"tuning{number}" for number in range(DRAWS)), (f"demo{seed}" for seed in DEMO_SEEDS)
WEBS = (*_DRAWN, *_DEMOS, "tuning", "reporting", "whole")
BASE, AHEAD = "parent_mean", "influence"
OTHERS = ("parent_first", BASE, "host")
EARLY, QUARTER = (0, 1), 2
"""Places of marks in SHARES: 5 and 10%; 25%."""
LEAST_SHARE, LEAST_OF_ONE = 0.67, 0.5
MOST_ERRORS = 2.0
"""Standard errors by which ``link`` may be below the others at the early marks."""

Crawls = dict[str, dict[str, list[Recalls]]]
"""By web and policy, a crawl for each set of seeds."""


def webs(names: Sequence[str]) -> Iterator[tuple[MemoryWeb, RememberedScores]]:
    """Read the webs of some names."""
    real = [name for name in names if not name.startswith("demo")]
    if real:
        whole, scores = open_web("whole", REAL), RememberedScores(REAL_MODEL)
        hosts = sorted(host for host in whole.hosts() if half_of(host) == 0)
        for name in real:
            if name == "whole":
                yield whole, scores
            elif name in ("tuning", "reporting"):
                held = {host for host in whole.hosts() if half_of(host) == (name == "reporting")}
                yield whole.of_hosts(name, held.__contains__), scores
            else:
                drawn = set(random.Random(name).sample(hosts, DRAWN_HOSTS))
                yield whole.of_hosts(name, drawn.__contains__), scores
    for name in names:
        if name.startswith("demo"):
            seed = int(name.removeprefix("demo"))
            paths = ensure_demo(data_dir(), pages=DEMO_PAGES, hosts=DEMO_HOSTS, seed=seed)
            yield open_web(name, paths.corpus), RememberedScores(paths.model)


def share_of_ahead(crawls: Crawls, names: Sequence[str]) -> float:
    """Return what ``link`` finds above parent_mean at 25%, as a share of what looking ahead does, over some webs."""
    link, base, ahead = (
        sum(_recall(one, policy, QUARTER) for name in names for one in crawls[name][policy])
        for policy in ("link", BASE, AHEAD)
    )
    return (link - base) / (ahead - base)


def differences(results: dict[str, list[Recalls]], place: int) -> tuple[str, float, float]:
    """Return the best of the others at a mark, the mean of the paired differences to it and its standard error."""
    best = max(OTHERS, key=lambda policy: statistics.mean(one.by_fetched[place] for one in results[policy]))
    paired = [
        one.by_fetched[place] - two.by_fetched[place] for one, two in zip(results["link"], results[best], strict=True)
    ]
    return best, statistics.mean(paired), statistics.stdev(paired) / len(paired) ** 0.5


def judge(crawls: Crawls) -> tuple[Table, list[Figure]]:
    """Return a row for each web, and the figures that have a limit."""
    rows, worst_errors = [], 0.0
    for name, results in crawls.items():
        means = {
            policy: statistics.mean(_recall(one, policy, QUARTER) for one in found) for policy, found in results.items()
        }
        cells = [f"{means[policy]:.3f}" for policy in ("link", BASE, AHEAD)]
        cells.append(f"{share_of_ahead(crawls, [name]):.2f}")
        for place in EARLY:
            best, mean, error = differences(results, place)
            worst_errors = max(worst_errors, -mean / error if error else 0.0)
            cells.append(f"{mean:+.3f}±{error:.3f} {best}")
        rows.append((name, *cells))
    columns = ("web", "link", BASE, "ahead", "share", *(f"{SHARES[place]:.0%} minus best" for place in EARLY))
    shares = {name: share_of_ahead(crawls, [name]) for name in crawls}
    return Table("recall at 25%; differences with their standard errors", columns, rows), [
        Figure(
            "share of what looking ahead gains, all webs", share_of_ahead(crawls, list(crawls)), LEAST_SHARE, "", True
        ),
        Figure(
            f"on the worst web ({min(shares, key=shares.__getitem__)})", min(shares.values()), LEAST_OF_ONE, "", True
        ),
        Figure("standard errors below the best at 5 and 10%, worst web", worst_errors, MOST_ERRORS),
    ]


def _recall(one: Recalls, policy: str, place: int) -> float:
    return (one.by_crawled if policy == AHEAD else one.by_fetched)[place]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webs", default=",".join(WEBS), help="some of them (default: all)")
    parser.add_argument("--seed-sets", type=int, default=10)
    parser.add_argument("--processes", type=int, default=cores())
    parser.add_argument("--keep", type=Path, help="JSON of the crawls; those in it, but for link's, are not done again")
    add_output(parser)
    args = parser.parse_args()
    names, sets = args.webs.split(","), range(args.seed_sets)
    kept = json.loads(args.keep.read_text()) if args.keep and args.keep.exists() else {}
    for web, scores in webs(names):
        policies._subjects[web.title] = Subject(web, scores, web.oracle(scores), Path())
    crawls: Crawls = {}
    with ProcessPoolExecutor(args.processes, multiprocessing.get_context("fork")) as pool:
        asked = {
            (name, policy, number): pool.submit(crawl, name, policy, number, SHARES[QUARTER])
            for name in names
            for policy in ("link", *OTHERS, AHEAD)
            for number in sets
            if policy == "link" or f"{name} {policy} {number}" not in kept
        }
        for (name, policy, number), future in asked.items():
            kept[f"{name} {policy} {number}"] = future.result()
            if args.keep:
                args.keep.write_text(json.dumps(kept))
    for name in names:
        crawls[name] = {
            policy: [Recalls(*kept[f"{name} {policy} {number}"]) for number in sets]
            for policy in ("link", *OTHERS, AHEAD)
        }
    result = Result("link", [f"{args.seed_sets} sets of {policies.SEEDS} random seeds, n = 100"])
    table, result.figures = judge(crawls)
    result.tables.append(table)
    speeds = [one.links_per_second for results in crawls.values() for one in results["link"]]
    result.figures.append(
        Figure("links scored and learnt a CPU second, median", statistics.median(speeds), 10_000, "", True)
    )
    publish(result, args)


if __name__ == "__main__":
    main()
