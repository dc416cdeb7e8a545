"""The frontier and the visited set in memory: bytes a document, and CPU time of what is done with one.

    python -m benchmarks.frontier_memory [--sizes 100k,1M]

Bytes are tracemalloc's, less the UTF-8 bytes of key, URL (where it is not the key) and parent of each document queued;
of a visited one they are all there are. They are taken at each size in a process of its own, and after each batch of
1,000 on the way there, from 10,000 documents on: as tables grow by leaps, the most is what counts; the peak includes
what was freed at once. Queued documents are measured as they were pushed, and then while all of them get new scores.
What is known of owners, of whom there are 8,192, has a limit of its own (benchmarks/owners.py). CPU times are user and
system time in processes of their own, without tracemalloc.
"""

from __future__ import annotations

import argparse
import gc
import random
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from benchmarks.frontier import number, yes
from benchmarks.frontier_measuring import Clock
from benchmarks.frontier_stores import Urls, entries
from benchmarks.owners import apart
from crawl4llm.base.domains import owner_of
from crawl4llm.frontier import Entry, Outcome
from crawl4llm.frontier.composed import ComposedFrontier
from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.frontier.opening import memory_frontier

PLAIN, OWNED = "frontier", "frontier with owners"
FRONTIERS: dict[str, Callable[[], ComposedFrontier]] = {
    PLAIN: memory_frontier,
    OWNED: lambda: memory_frontier(by_owners=True),
}
MOST_QUEUED, MOST_VISITED = 150, 40
"""What the project asks for: bytes."""
BATCH, LEAST = 1000, 10_000
"""Documents at once, and those from which on the most bytes count."""


class Bytes(NamedTuple):
    """A document's, in the mean, besides its texts."""

    at_size: float
    most: float
    """At any size before."""
    peak: float
    """The same with what was freed at once, such as a table that was too small."""


class Row(NamedTuple):
    """A line of the table."""

    name: str
    documents: int
    bytes: Bytes
    limit: int | None
    """Of the most bytes."""


class Watch:
    """The memory that was taken since it was made."""

    def __init__(self) -> None:
        gc.collect()
        tracemalloc.start()
        self._before = tracemalloc.get_traced_memory()[0]
        self._most = self._peak = 0.0

    def look(self, documents: int, texts: int) -> Bytes:
        """Return the bytes a document of so many, which have texts of so many bytes in all."""
        now, peak = (size - self._before - texts for size in tracemalloc.get_traced_memory())
        tracemalloc.reset_peak()
        if documents >= LEAST:
            self._most, self._peak = max(self._most, now / documents), max(self._peak, peak / documents)
        return Bytes(now / documents, self._most, self._peak)

    def forget(self) -> None:
        """Let the most be of what comes."""
        tracemalloc.reset_peak()
        self._most = self._peak = 0.0


def batches(size: int, *, clueweb22: bool = False) -> Iterator[list[Entry]]:
    """Yield entries, with keys of their own as in ClueWeb22, or known by their URLs."""
    source = entries(0)
    for first in range(0, size, BATCH):
        batch = list(islice(source, BATCH))
        if clueweb22:
            for place, entry in enumerate(batch, first):
                entry.key = f"clueweb22-en{place // 10_000_000:04d}-{place // 100_000 % 100:02d}-{place % 100_000:05d}"
        yield batch


def text_bytes(entry: Entry) -> int:
    """Return the UTF-8 bytes of a document's texts."""
    texts = {entry.key, entry.url}
    return sum(len(text.encode()) for text in texts) + len((entry.parent or "").encode())


def queued_bytes(name: str, size: int, clueweb22: bool) -> tuple[Bytes, Bytes]:
    """Return what queued documents take, and what they take while each gets a new score."""
    made = batches(size, clueweb22=clueweb22)
    first, again = next(made), batches(size, clueweb22=clueweb22)
    rescored = [(entry.key, entry.score / 2) for entry in next(again)]
    frontier, watch, texts, done = FRONTIERS[name](), Watch(), 0, 0
    for batch in chain([first], made):
        frontier.push(batch)
        texts += sum(map(text_bytes, batch))
        done += len(batch)
        batch.clear()
        pushed = watch.look(done, texts)
    frontier.rerank(rescored)
    watch.forget()
    for batch in again:
        frontier.rerank([(entry.key, entry.score / 2) for entry in batch])
        batch.clear()
        reranked = watch.look(done, texts)
    return pushed, reranked


def visited_bytes(size: int) -> Bytes:
    """Return what visited documents take, whatever their keys are."""
    urls = Urls()
    visited, watch = MemoryVisited(), Watch()
    for first in range(0, size, BATCH):
        visited.add(urls[one] for one in range(first, first + BATCH))
        found = watch.look(first + BATCH, 0)
    return found


def queued_times(name: str, size: int) -> dict[str, float]:
    """Return the µs of a document."""
    frontier = FRONTIERS[name]()
    clocks = {"pushed": Clock(), "reranked": Clock(), "leased and settled": Clock()}
    push, rerank, lease = clocks.values()
    for batch in batches(size):
        with push:
            frontier.push(batch)
    for batch in batches(size):
        scores = [(entry.key, entry.score / 2) for entry in batch]
        with rerank:
            frontier.rerank(scores)
    if name == OWNED:
        frontier.owners.tick(1.0)
    with lease:
        while leases := frontier.lease(BATCH):
            for one in leases:
                frontier.settle(one, Outcome.ARCHIVED)
                if name == OWNED:
                    frontier.owners.release(owner_of(one.entry.url), 0.0)
    return {what: 1e6 * clock.cpu / size for what, clock in clocks.items()}


def visited_times(size: int) -> dict[str, float]:
    """Return the µs of a key."""
    visited, draw, urls = MemoryVisited(), random.Random(0), Urls()
    new, known = Clock(), Clock()
    for first in range(0, size, BATCH):
        keys = [urls[one] for one in range(first, first + BATCH)]
        with new:
            visited.add(keys)
        keys = [urls[draw.randrange(first + BATCH)] for _ in range(BATCH)]
        with known:
            assert not visited.add(keys)
    return {"new key": 1e6 * new.cpu / size, "known key": 1e6 * known.cpu / size}


def rows(sizes: list[int]) -> Iterator[Row]:
    """Measure all."""
    for size in sizes:
        for name, limit in ((PLAIN, MOST_QUEUED), (OWNED, None)):
            for keys, clueweb22 in (("keys are URLs", False), ("ClueWeb22-IDs", True)):
                pushed, reranked = apart(queued_bytes, name, size, clueweb22)
                yield Row(f"{name}, {keys}", size, pushed, limit)
                yield Row(f"{name}, {keys}, new scores", size, reranked, limit)
        yield Row("visited set", size, apart(visited_bytes, size), MOST_VISITED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100k,1M", help="documents, such as 100k,1M (%(default)s)")
    sizes = sorted(map(number, parser.parse_args().sizes.split(",")))
    print(f"{'bytes a document besides its texts':48}{'documents':>10}{'then':>7}{'most':>7}{'peak':>7}{'limit':>7}")
    for name, documents, found, limit in rows(sizes):
        verdict = "" if limit is None else f"{limit:>7}  {yes(found.most <= limit)}"
        print(
            f"{name:48}{documents:>10,}{found.at_size:>7.1f}{found.most:>7.1f}{found.peak:>7.1f}{verdict}", flush=True
        )
    print("\nCPU µs of a document")
    for size in sizes:
        for name in FRONTIERS:
            print_times(name, size, apart(queued_times, name, size))
        print_times("visited set", size, apart(visited_times, size))


def print_times(name: str, size: int, times: dict[str, float]) -> None:
    """Print one line."""
    print(f"{name:48}{size:>10,}  " + ", ".join(f"{what} {figure:.2f}" for what, figure in times.items()))


if __name__ == "__main__":
    main()
