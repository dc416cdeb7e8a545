"""Indexing WARC files against an empty FastWARC loop over the same files, on one core; and look-ups in the index.

    python -m benchmarks.indexing [--rounds N] [CORPUS]

Both run in turn, each time in a fresh process; CPU seconds are those of the work, without start-up. The project asks
for a ratio of at least 0.8: an index in at most 1.25 times what it takes to go through the records and do nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy  # noqa: F401 - the index loads it when it needs it, and start-up is not measured
from fastwarc.warc import ArchiveIterator

from simulate.warcs.corpus import WarcCorpus
from simulate.warcs.files import list_files
from simulate.warcs.index_build import build_warc_index

SHARED = Path(__file__).resolve().parents[2] / "shared" / "corpora" / "real-web"
LOOK_UPS = 2000


def fastwarc(corpus: str) -> float:
    """CPU seconds of an empty loop."""
    collection = list_files(corpus)
    start = time.process_time()
    for file in collection.files:
        with (collection.root / file.name).open("rb") as stream:
            for _ in ArchiveIterator(stream):
                pass
    return time.process_time() - start


def indexing(corpus: str, canonical_links: bool = False) -> float:
    """CPU seconds of making an index."""
    collection = list_files(corpus)
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        build_warc_index(collection, Path(folder), canonical_links, processes=1)
        return time.process_time() - start


def indexing_canonical_links(corpus: str) -> float:
    """CPU seconds of making an index that also knows canonical links."""
    return indexing(corpus, canonical_links=True)


def look_ups(corpus: str) -> None:
    """Print how many look-ups a CPU second are done, on documents drawn at random."""
    with tempfile.TemporaryDirectory() as folder:
        opened = WarcCorpus(corpus, Path(folder))
        keys = opened.sample(min(LOOK_UPS, len(opened)), 0)
        for look_up in (opened.resolve, opened.html, opened.page):
            start = time.process_time()
            for key in keys:
                look_up(key)
            print(f"{look_up.__name__ + '()':26}{len(keys) / (time.process_time() - start):10,.0f} a CPU second")


def in_new_process(work: Callable[[str], float], corpus: str) -> float:
    """What ``work`` returns in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, corpus).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", nargs="?", default=str(SHARED), help="WARC file, folder, glob or list")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    works = (fastwarc, indexing, indexing_canonical_links)
    seconds: dict[str, list[float]] = {work.__name__: [] for work in works}
    for _ in range(args.rounds):
        for work in works:
            seconds[work.__name__].append(in_new_process(work, args.corpus))
    baseline = statistics.median(seconds["fastwarc"])
    size = sum(file.size for file in list_files(args.corpus).files)
    print(f"{args.corpus}: {size / 1e6:,.0f} MB compressed; medians of {args.rounds} rounds")
    for name, measured in seconds.items():
        median = statistics.median(measured)
        print(f"{name:26}{median:7.3f} CPU s  {size / 1e6 / median:6,.0f} MB/s  ratio {baseline / median:.2f}")
    look_ups(args.corpus)


if __name__ == "__main__":
    main()
