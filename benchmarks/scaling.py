"""Whether a page costs more in a larger web, and how fast the durable frontier is at five million URLs.

    python -m benchmarks.scaling [--runs 3] [--urls 5M] [--dir FOLDER] [--out FOLDER]

Three tenths of generated webs of 20,000 and 200,000 pages are crawled by influence in turn, n = 1,000, archive off; CPU
is of all processes, start-up (a crawl of the seeds alone) apart. Then the frontier with its visited set is filled with
``--urls`` and emptied of a million, in synced transactions of 20,000: pushes and pops a second of CPU time.
"""

from __future__ import annotations

import argparse
import tempfile

from benchmarks.frontier import number
from benchmarks.frontier_measuring import Task, measure_apart
from benchmarks.frontier_stores import WITH_VISITED
from benchmarks.results import Figure, Result, Table, add_output, publish
from benchmarks.simulation import OFF, SIZES, START, Crawls

SMALL, LARGE = "20k", "200k"
MOST_GROWTH, LEAST_RATE = 1.15, 50_000
_BATCH = 20_000


def pages(runs: int, result: Result) -> None:
    """Add what a page costs in webs of two sizes."""
    crawls = {name: Crawls(SIZES[name]) for name in (SMALL, LARGE)}
    for _ in range(runs):
        for of_size in crawls.values():
            of_size.run(OFF)
            of_size.run(START, CRAWL_MAX_PAGES=1)
    rows, costs = [], []
    for name, of_size in crawls.items():
        size, medians = SIZES[name], of_size.medians
        cpu = medians[OFF].cpu - medians[START].cpu
        costs.append(1000 * cpu / size.pages)
        rows.append((size.web().what, size.pages, of_size.visited, cpu, costs[-1], 1000 * cpu / of_size.visited))
    columns = ("", "pages crawled", "visited", "CPU s, start-up apart", "ms a page crawled", "ms a page visited")
    result.tables.append(Table(f"Crawls by influence, n = 1,000, medians of {runs}", columns, rows))
    what = "CPU a crawled page at 200,000 pages / at 20,000"
    result.figures.append(Figure(what, costs[1] / costs[0], MOST_GROWTH))


def frontier(urls: int, folder: str, result: Result) -> None:
    """Add what the durable frontier does with many URLs."""
    figures = measure_apart(WITH_VISITED, folder, Task(urls, _BATCH))
    rates = {"pushes": 1e6 / figures.push_cpu, "pops": 1e6 / figures.pop_cpu}
    rows = [
        ("pushes", rates["pushes"], figures.pushes),
        ("pops", rates["pops"], figures.pops),
    ]
    title = f"Durable frontier with visited set, {urls:,} URLs"
    result.tables.append(Table(title, ("", "a CPU second", "a second"), rows))
    for name, rate in rates.items():
        what = f"durable frontier with visited set at {urls:,} URLs: {name} a CPU second"
        result.figures.append(Figure(what, rate, LEAST_RATE, least=True))
    result.notes.append(f"longest commit {figures.commit:.2f} s, anonymous memory at most {figures.memory:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="crawls of each web; medians count")
    parser.add_argument("--urls", type=number, default=number("5M"), help="such as 500k (default: 5M)")
    parser.add_argument("--dir", default=tempfile.gettempdir(), help="where the frontier lies; on a disk (%(default)s)")
    add_output(parser)
    args = parser.parse_args()
    result = Result("scaling", [])
    pages(args.runs, result)
    frontier(args.urls, args.dir, result)
    publish(result, args)


if __name__ == "__main__":
    main()
