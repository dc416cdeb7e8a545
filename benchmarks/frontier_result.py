"""The benchmarks of the frontier as one result: benchmarks.frontier at one size, and benchmarks.frontier_memory.

python -m benchmarks.frontier_result [--size 1M] [--dir FOLDER] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from collections.abc import Mapping

from benchmarks import frontier_memory
from benchmarks.frontier import LEVELS_SIZE, ROWS, SPARE_FILES, compare, number
from benchmarks.frontier_measuring import Figures, Task
from benchmarks.frontier_stores import LEVELS, OURS, SCRAPY, WITH_VISITED
from benchmarks.results import Figure, Result, Table, add_output, publish

LEAST_RATE = 50_000
_BATCH, _LIMIT = 20_000, 90


def stores_table(title: str, stores: Mapping[str, Figures]) -> Table:
    """Return the figures of some stores side by side."""
    return Table(
        title, ("", *stores), [(row.label, *(getattr(of, row.figure) for of in stores.values())) for row in ROWS]
    )


def add_memory(sizes: list[int], result: Result) -> None:
    """Add the bytes of documents in the memory stores."""
    rows = []
    for name, documents, found, limit in frontier_memory.rows(sizes):
        rows.append((name, documents, *found))
        if limit is not None:
            what = f"{name}: bytes a document besides its texts, the most up to {documents:,}"
            result.figures.append(Figure(what, found.most, limit))
    columns = ("", "documents", "then", "most", "peak")
    result.tables.append(Table("In memory, bytes a document besides its texts (tracemalloc)", columns, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=number, default=number("1M"), help="URLs, such as 100k (default: 1M)")
    parser.add_argument("--dir", default=tempfile.gettempdir(), help="where to work; on a disk (%(default)s)")
    add_output(parser)
    args = parser.parse_args()
    result = Result("frontier", ["generated URLs and scores"])
    task = Task(args.size, _BATCH, limit=_LIMIT)
    stores = compare([OURS, WITH_VISITED, "SQLite"], args.dir, task, 1)
    levels = min(LEVELS, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_FILES)
    scrapy = compare([OURS, SCRAPY], args.dir, Task(LEVELS_SIZE, _BATCH, turns=5, levels=levels), 1)
    result.tables = [
        stores_table(f"On disk, {args.size:,} URLs", stores),
        stores_table(f"On disk, {LEVELS_SIZE:,} URLs of {levels:,} priorities", scrapy),
    ]
    for name in (OURS, WITH_VISITED):
        for what, rate in (("pushes", stores[name].pushes), ("pops", stores[name].pops)):
            result.figures.append(Figure(f"{name}, {args.size:,} URLs: {what} a second", rate, LEAST_RATE, least=True))
    times = scrapy[SCRAPY].pop_cpu / scrapy[OURS].pop_cpu
    result.notes.append(f"{times:.1f} pops in the CPU time of one of Scrapy's")
    add_memory([args.size // 10, args.size], result)
    publish(result, args)


if __name__ == "__main__":
    main()
