"""What it costs to pick the next document among owners that may be asked now, against frontiers that know no owners.

    python -m benchmarks.owners [--owners 10000] [--many 1000000] [--dir FOLDER]

The first part queues 20 documents of each of 10,000 owners and picks: time passes, some documents get new scores, the
best one is leased, and the exchange before it ends. Owners wait so long that all but 100 of them wait. What is leased
is given back outside the measurement. Peers are our frontiers without owners, in memory and on disk, which do the same
but for time and exchanges. The second part queues one document, with a short URL, of each of 1,000,000 owners, and
prints by how much that makes the anonymous memory of a process grow, with owners and without; and how long it takes to
open such a store. Each measurement has a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from benchmarks.frontier_measuring import anonymous_memory
from crawl4llm.base.domains import owner_of
from crawl4llm.frontier import Entry
from crawl4llm.frontier.composed import ComposedFrontier, StoredFrontier
from crawl4llm.frontier.opening import memory_frontier, open_frontier
from crawl4llm.frontier.store import Store

READY, DOCUMENTS, NEW_SCORES = 100, 20, 5
"""Owners that may be asked, documents an owner, and new scores a pick."""
PICKS = 10_000
MOST_MEDIAN, MOST_P99, MOST_BYTES = 100.0, 1000.0, 400.0
"""What the project asks for: µs, µs, bytes."""
MEMORY, MEMORY_OWNED, DISK, DISK_OWNED = "memory", "memory, owners", "disk", "disk, owners"


def entries(owners: int, documents: int) -> Iterator[Entry]:
    """Entries of so many owners each, all scores drawn."""
    draw = random.Random(0)
    for number in range(documents):
        for owner in range(owners):
            url = f"http://www.o{owner}.example/{number}"
            yield Entry(url, url, draw.random(), 1, None)


def frontier_of(name: str, folder: Path) -> ComposedFrontier:
    """An empty frontier of a kind."""
    if name in {MEMORY, MEMORY_OWNED}:
        return memory_frontier(by_owners=name == MEMORY_OWNED)
    store = Store(folder / "store.mdb", fsync=False)
    return open_frontier(store, by_owners=name == DISK_OWNED, reranks=True, clock=lambda: 0.0)


def pick(name: str, owners: int, folder: Path) -> tuple[list[float], list[float]]:
    """Return the µs of each pick, and of each with its new scores before it."""
    frontier = frontier_of(name, folder)
    keys = []
    for entry in entries(owners, DOCUMENTS):
        keys.append(entry.key)
        frontier.push([entry])
    asks = name in {MEMORY_OWNED, DISK_OWNED}
    owned = frontier.owners if asks else None
    draw = random.Random(1)
    picks, with_scores = [], []
    waiting = owners - READY
    exchange = ""
    for turn in range(waiting + PICKS):
        scores = [(draw.choice(keys), draw.random()) for _ in range(NEW_SCORES)]
        started = time.perf_counter()
        frontier.rerank(scores)
        scored = time.perf_counter()
        if owned is not None:
            owned.tick(float(turn))
            if exchange:
                owned.release(exchange, turn + waiting - 0.5)
        (lease,) = frontier.lease(1)
        ended = time.perf_counter()
        exchange = owner_of(lease.entry.url)
        if turn >= waiting:
            picks.append(1e6 * (ended - scored))
            with_scores.append(1e6 * (ended - started))
        frontier.give_back(lease, attempted=False)
    if owned is not None:
        assert owned.counts.waiting >= waiting - 2, owned.counts
    return picks, with_scores


def grow(name: str, owners: int, _folder: Path) -> tuple[float, float]:
    """Return the bytes an owner that one document of each takes in memory, and with a wait for each."""
    frontier = frontier_of(name, Path())
    before = anonymous_memory(os.getpid())
    for entry in entries(owners, 1):
        frontier.push([entry])
    queued = anonymous_memory(os.getpid())
    if name == MEMORY_OWNED:
        held = frontier.owners
        for number in range(owners):
            held.hold(f"o{number}.example", 5.0 + number)
    assert len(frontier) == owners
    waiting = anonymous_memory(os.getpid())
    return (queued - before) * (1 << 20) / owners, (waiting - before) * (1 << 20) / owners


def fill(name: str, owners: int, folder: Path) -> float:
    """Queue one document of each owner in a store; return the µs that one took."""
    frontier = cast("StoredFrontier", frontier_of(name, folder))
    started = time.perf_counter()
    for number, entry in enumerate(entries(owners, 1)):
        frontier.push([entry])
        if number % 100_000 == 99_999:
            frontier.save()
            frontier._store.commit()
    frontier.save()
    frontier._store.commit()
    return 1e6 * (time.perf_counter() - started) / owners


def take_up(name: str, owners: int, folder: Path) -> tuple[float, float]:
    """Return the seconds in which a store is opened, and the bytes an owner that it then takes in memory."""
    before, started = anonymous_memory(os.getpid()), time.perf_counter()
    frontier = frontier_of(name, folder)
    seconds = time.perf_counter() - started
    assert len(frontier) == owners
    return seconds, (anonymous_memory(os.getpid()) - before) * (1 << 20) / owners


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns in a process of its own."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, partial(work, *arguments)))
    process.start()
    sender.close()
    try:
        result = receiver.recv()
    except EOFError:
        sys.exit(f"{work.__name__} failed with {arguments}")
    process.join()
    return result


def _send(sender: Connection, work: Callable[[], Any]) -> None:
    sender.send(work())


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def yes(holds: bool) -> str:
    return "yes" if holds else "NO"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--owners", type=int, default=10_000, help="owners to pick from (%(default)s)")
    parser.add_argument("--many", type=int, default=1_000_000, help="owners in memory (%(default)s)")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="where to work (%(default)s)")
    args = parser.parse_args()

    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    print(f"{args.owners:,} owners with {DOCUMENTS} documents each, {READY} of them ready; {PICKS:,} picks, in µs")
    print(f"{'':16}{'pick':>8}{'p99':>8}{f'and {NEW_SCORES} new scores':>20}{'p99':>8}{'longest':>9}")
    for name in (MEMORY, MEMORY_OWNED, DISK, DISK_OWNED):
        with tempfile.TemporaryDirectory(dir=args.dir) as folder:
            picks, with_scores = apart(pick, name, args.owners, Path(folder))
        median, late = statistics.median(with_scores), p99(with_scores)
        line = f"{name:16}{statistics.median(picks):>8.1f}{p99(picks):>8.1f}{median:>20.1f}{late:>8.1f}"
        line += f"{max(with_scores):>9.0f}"
        if name in {MEMORY_OWNED, DISK_OWNED}:
            line += f"   (< {MOST_MEDIAN:.0f}, p99 < {MOST_P99:.0f}: {yes(median < MOST_MEDIAN and late < MOST_P99)})"
        print(line)

    print(f"\n{args.many:,} owners with one document each: bytes an owner, with its document")
    plain, _ = apart(grow, MEMORY, args.many, Path())
    ready, waiting = apart(grow, MEMORY_OWNED, args.many, Path())
    print(f"{MEMORY:16}{plain:>8.0f}")
    print(f"{MEMORY_OWNED:16}{ready:>8.0f}, {ready - plain:.0f} more than without owners; {waiting:.0f} and", end=" ")
    print(f"{waiting - plain:.0f} where all wait (< {MOST_BYTES:.0f} more: {yes(waiting - plain < MOST_BYTES)})")
    for name in (DISK, DISK_OWNED):
        with tempfile.TemporaryDirectory(dir=args.dir) as folder:
            push = apart(fill, name, args.many, Path(folder))
            size = (Path(folder) / "store.mdb").stat().st_blocks * 512 / args.many
            seconds, memory = apart(take_up, name, args.many, Path(folder))
        print(
            f"{name:16}{memory:>8.0f} in memory, {size:.0f} on disk; pushed in {push:.1f} µs; opened in {seconds:.1f} s"
        )


if __name__ == "__main__":
    main()
