"""The durable frontier against SQLite and Scrapy's own disk queues: rates, disk, memory, commits, start-up.

    python -m benchmarks.frontier [--sizes 1M,10M] [--rounds 3] [--visited] [--btree] [--dir FOLDER]

Each store in turn, in a process of its own, on the same entries:

1. fill: pushes in transactions of ``--batch``, each synced to the disk;
2. open: with the files on the disk alone, as after a restart of the machine, and once more; ours is read as a whole
   and checked, the peers are not;
3. crawl: turns of 1,000 pops and 5,000 pushes, each turn one transaction;
4. drain: pops in transactions of ``--batch``, of all URLs up to 1 M, of 1 M beyond.

Rates are by wall time of push, pop and commit; making the entries is not in it. A URL is its own document key, and its
parent is another URL. Scores are as fastText gives them: most are next to 0 or 1, many are equal. All stores that keep
the exact order must give the same documents in the same order. ``--visited`` adds the frontier with the visited set in
the same transactions: for each new URL it is also asked about one that it knows.

Peers: SQLite, a table kept in the frontier's order (WITHOUT ROWID), WAL, synchronous=FULL, 64 MiB of cache and a
checkpoint each 80 MB; ``--btree``: LMDB's own B-tree, one pair an entry. One that needs longer than ``--limit`` to fill
is measured with what it holds by then, which flatters it. Scrapy's ScrapyPriorityQueue, as its scheduler makes it for
JOBDIR, has a file for each integer priority, and syncs nothing: it is measured apart, with scores of 10,000 levels.

Figures for 100 M are extrapolated: times of operations and bytes a URL grow by as much from 10 M to 100 M as from 1 M
to 10 M, as they do where work is in proportion to log N; memory and times of opening grow with N.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import astuple
from typing import NamedTuple

from benchmarks.frontier_measuring import Figures, Task, measure_apart
from benchmarks.frontier_stores import LEVELS, OURS, SCRAPY, WITH_VISITED

MILLION = 1_000_000
LEVELS_SIZE = 200_000
"""URLs where Scrapy's queues are compared."""

SPARE_FILES = 100
"""Open files beside those of Scrapy's queues."""


class Row(NamedTuple):
    """A line of the tables."""

    label: str
    figure: str
    form: str
    growth: str = ""
    """What it is extrapolated by; if not at all, nothing."""


ROWS = (
    Row("pushes/s", "pushes", ",.0f", "log N"),
    Row("pops/s", "pops", ",.0f", "log N"),
    Row("CPU µs a push", "push_cpu", ",.1f", "log N"),
    Row("CPU µs a pop", "pop_cpu", ",.1f", "log N"),
    Row("crawling: pops/s, 5 pushes each", "crawled", ",.0f", "log N"),
    Row("bytes a URL on disk", "disk", ",.0f", "log N"),
    Row("anonymous memory, MiB, peak", "memory", ",.0f", "N"),
    Row("longest commit, s", "commit", ",.3f"),
    Row("opening from disk, s", "cold", ",.3f", "N"),
    Row("opening from page cache, s", "warm", ",.3f", "N"),
)
RATES = ("pushes", "pops", "crawled")


def compare(names: Sequence[str], folder: str, task: Task, rounds: int) -> dict[str, Figures]:
    """Measure stores in turn, print the medians and their ratios, ours / peer, and return the medians."""
    runs: dict[str, list[Figures]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            own = name in {OURS, WITH_VISITED}
            runs[name].append(measure_apart(name, folder, task._replace(limit=math.inf) if own else task))
    exact = {(run.filled, run.checksum) for name in names if name != SCRAPY for run in runs[name]}
    assert len(exact) == len({filled for filled, _ in exact}), "the stores popped different documents"
    medians = {name: median(figures) for name, figures in runs.items()}

    ours = medians[OURS]
    levels = f", {ours.scores:,.0f} distinct scores" if task.levels else ""
    print(f"\n{task.size:,} URLs of {ours.url_bytes:.0f} bytes{levels}; rounds: {rounds}; in brackets, durable / peer")
    print(f"{'':32}" + "".join(f"{name:>{11 if name == OURS else 20}}" for name in names))
    for row in ROWS:
        values = {name: getattr(figures, row.figure) for name, figures in medians.items()}
        cells = [f"{values[OURS]:>11{row.form}}"]
        cells += [f"{values[name]:>11{row.form}} {ratio(values[OURS], values[name]):>8}" for name in names[1:]]
        print(f"{row.label:32}" + "".join(cells))
    for name, figures in medians.items():
        if figures.filled < task.size:
            print(
                f"{name} held {figures.filled:,.0f} URLs after {task.limit:.0f} s of pushes; the figures are for these"
            )
    return medians


def median(runs: Sequence[Figures]) -> Figures:
    """The medians of several runs, figure by figure."""
    return Figures(*(statistics.median(values) for values in zip(*map(astuple, runs), strict=True)))


def ratio(ours: float, peer: float) -> str:
    return f"({ours / peer:{',.0f' if ours > 100 * peer else '.2f'}})" if peer else ""


def extrapolate(row: Row, smaller: Figures, larger: Figures, size: float) -> float:
    """A figure at another size, as the module says; never better than at the larger one of those measured."""
    start, end = getattr(smaller, row.figure), getattr(larger, row.figure)
    if row.growth == "log N":
        steps = math.log(size / larger.filled) / math.log(larger.filled / smaller.filled)
    else:
        steps = (size - larger.filled) / (larger.filled - smaller.filled)
    if row.figure in RATES:
        end, start = 1 / end, 1 / start
        return float(1 / (end + steps * max(0.0, end - start)))
    return float(end + steps * max(0.0, end - start))


def print_growth(name: str, by_size: dict[int, Figures]) -> None:
    """Print a store's figures by size, with those for 100 M extrapolated where two sizes were measured."""
    sizes = sorted(by_size)
    extrapolated = len(sizes) > 1 and sizes[-1] < 100 * MILLION
    print(f"\n{name:32}" + "".join(f"{short(size):>11}" for size in sizes) + "  100 M (extrapolated)" * extrapolated)
    for row in ROWS:
        line = f"{row.label:32}" + "".join(f"{getattr(by_size[size], row.figure):>11{row.form}}" for size in sizes)
        if extrapolated and row.growth:
            value = extrapolate(row, by_size[sizes[-2]], by_size[sizes[-1]], 100 * MILLION)
            line += f"{value:>22{row.form}}"
        print(line)


def print_requirements(size: int, figures: dict[str, Figures], scrapy: dict[str, Figures]) -> None:
    """Print what the project asks for, at this size."""
    for name in (name for name in (OURS, WITH_VISITED) if name in figures):
        ours, which = figures[name], f"{short(size)}, {name}"
        for what, rate, cpu in (("pushes", ours.pushes, ours.push_cpu), ("pops", ours.pops, ours.pop_cpu)):
            enough = yes(rate >= 50_000)
            print(f"{which}: {rate:,.0f} {what}/s (>= 50,000): {enough}; {1e6 / cpu:,.0f} a CPU second")
        print(f"{which}: {ours.memory:,.0f} MiB, of it alone (crawler: < 400): {yes(ours.memory < 400)}")
        print(f"{which}: opened from disk in {ours.cold:.1f} s (resume: < 10): {yes(ours.cold < 10)}")
    ours, peer = scrapy[OURS], scrapy[SCRAPY]
    times, cpu_times = ours.pops / peer.pops, peer.pop_cpu / ours.pop_cpu
    print(
        f"{short(LEVELS_SIZE)}, {ours.scores:,.0f} distinct scores: {times:.1f} times the pops/s of Scrapy's (>= 20): "
        f"{yes(times >= 20)}; {cpu_times:.1f} times by CPU time"
    )


def yes(holds: bool) -> str:
    return "yes" if holds else "NO"


def short(size: int) -> str:
    return f"{size / MILLION:g} M"


def number(text: str) -> int:
    """What 10M or 100k stand for."""
    factor = {"k": 1000, "M": MILLION}.get(text[-1:], 1)
    return int(float(text.rstrip("kM")) * factor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1M,10M", help="URLs, such as 100k,1M (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds up to 1 M URLs; beyond, 1 (%(default)s)")
    parser.add_argument("--batch", type=number, default=20_000, help="URLs a transaction (%(default)s)")
    parser.add_argument("--limit", type=float, default=90, help="seconds for a peer to fill (%(default)s)")
    parser.add_argument("--visited", action="store_true", help="measure the frontier with the visited set too")
    parser.add_argument("--btree", action="store_true", help="measure LMDB's own B-tree too")
    parser.add_argument("--dir", default=tempfile.gettempdir(), help="where to work; on a disk (%(default)s)")
    args = parser.parse_args()

    names = [OURS, *[WITH_VISITED] * args.visited, "SQLite", *["B-tree"] * args.btree]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start; in {args.dir}")
    print(f"transactions of {args.batch:,} URLs, synced")
    measured: dict[int, dict[str, Figures]] = {}
    for size in sorted(map(number, args.sizes.split(","))):
        rounds = args.rounds if size <= MILLION else 1
        measured[size] = compare(names, args.dir, Task(size, args.batch, limit=args.limit), rounds)
    levels = min(LEVELS, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_FILES)
    scrapy = compare([OURS, SCRAPY], args.dir, Task(LEVELS_SIZE, args.batch, turns=5, levels=levels), 1)
    if levels < LEVELS:
        print(f"this system allows {levels + SPARE_FILES} open files, so there are no {LEVELS:,} distinct scores")
    for name in (name for name in names if name in {OURS, WITH_VISITED}):
        print_growth(name, {size: figures[name] for size, figures in measured.items()})
    print(f"\nload over the last 15 minutes: {os.getloadavg()[2]:.1f}, of which this benchmark's is about 1")
    print_requirements(size, measured[size], scrapy)


if __name__ == "__main__":
    main()
