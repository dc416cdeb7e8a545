"""What benchmarks/frontier.py does with one store: fill it, open it anew, crawl, drain it, each phase by the clock."""

from __future__ import annotations

import math
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from benchmarks.frontier_stores import STORES, entries
from crawl4llm.frontier import Entry

TURN_POPS, TURN_PUSHES = 1000, 5000
MOST_POPS = 1_000_000
"""The drain ends here, unless there were no more than that to begin with."""


class Task(NamedTuple):
    """What a store is measured with."""

    size: int
    batch: int
    turns: int = 40
    limit: float = math.inf
    """Seconds after which filling ends."""
    levels: int = 0
    """Distinct scores; 0: any."""


@dataclass
class Figures:
    """What one store did."""

    filled: float
    """URLs pushed in the first phase."""
    pushes: float
    """A second, in the first phase."""
    pops: float
    """A second, in the last phase."""
    push_cpu: float
    """µs of user and system time for a push."""
    pop_cpu: float
    """The same for a pop."""
    crawled: float
    """Pops a second with five pushes each."""
    disk: float
    """Bytes a URL, after the first phase."""
    commit: float
    """Seconds of the longest one."""
    cold: float
    """Seconds to open it with its files on the disk alone."""
    warm: float
    """The same with them in the page cache."""
    url_bytes: float
    """Mean length of a URL."""
    scores: float
    """Distinct ones, where they were limited."""
    checksum: float
    """Of the documents popped, in order."""
    memory: float = 0.0
    """Peak of anonymous memory, in MiB; the interpreter and a batch of entries are in it."""


class Clock:
    """Wall and CPU seconds of what runs under it."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def __enter__(self) -> None:
        self.wall -= time.perf_counter()
        self.cpu -= time.process_time()

    def __exit__(self, *raised: object) -> None:
        self.wall += time.perf_counter()
        self.cpu += time.process_time()


class Measurement:
    """The phases on one store. Raises AssertionError where it loses documents or their order."""

    def __init__(self, name: str, folder: Path, task: Task) -> None:
        self._make = STORES[name]
        self._folder = folder
        self._task = task
        self._source = entries(task.levels)
        self._checksum = 0
        self._scores: set[float] = set()
        self._longest_commit = 0.0

    def run(self) -> Figures:
        self._queue = self._make(self._folder)
        fill, filled, url_bytes = self._fill()
        self._queue.close()
        disk = sum(path.stat().st_blocks * 512 for path in self._files())
        self._leave_page_cache()
        cold = self._open()
        self._queue.close()
        warm = self._open()
        crawl = self._crawl()
        drain, popped = self._drain(filled)
        self._queue.close()
        return Figures(
            filled=filled,
            pushes=filled / fill.wall,
            pops=popped / drain.wall,
            push_cpu=1e6 * fill.cpu / filled,
            pop_cpu=1e6 * drain.cpu / popped,
            crawled=self._task.turns * TURN_POPS / crawl.wall,
            disk=disk / filled,
            commit=self._longest_commit,
            cold=cold,
            warm=warm,
            url_bytes=url_bytes / filled,
            scores=len(self._scores),
            checksum=self._checksum,
        )

    def _fill(self) -> tuple[Clock, int, int]:
        clock, filled, url_bytes = Clock(), 0, 0
        while filled < self._task.size and clock.wall < self._task.limit:
            batch = list(islice(self._source, min(self._task.batch, self._task.size - filled)))
            filled += len(batch)
            url_bytes += sum(len(entry.url) for entry in batch)
            self._turn(clock, batch, 0)
        return clock, filled, url_bytes

    def _open(self) -> float:
        """Seconds to open the store."""
        started = time.perf_counter()
        self._queue = self._make(self._folder)
        return time.perf_counter() - started

    def _crawl(self) -> Clock:
        clock = Clock()
        for _ in range(self._task.turns):
            assert self._turn(clock, list(islice(self._source, TURN_PUSHES)), TURN_POPS) == TURN_POPS
        return clock

    def _drain(self, filled: int) -> tuple[Clock, int]:
        clock, popped = Clock(), 0
        left = filled + self._task.turns * (TURN_PUSHES - TURN_POPS)
        wanted = left if filled <= MOST_POPS else MOST_POPS
        while popped < wanted and (got := self._turn(clock, [], self._task.batch)):
            popped += got
        assert popped >= wanted, f"{wanted - popped} documents lost"
        return clock, popped

    def _turn(self, clock: Clock, batch: list[Entry], pops: int) -> int:
        """Pop, push and commit; how many were popped."""
        items = self._queue.prepare(batch)
        commit = Clock()
        with clock:
            popped = self._queue.pop(pops) if pops else []
            if batch:
                self._queue.push(items)
            with commit:
                self._queue.commit()
        self._longest_commit = max(self._longest_commit, commit.wall)
        order = [self._queue.order(item) for item in popped]
        assert all(first[0] >= second[0] for first, second in pairwise(order)), "out of order"
        self._checksum = zlib.crc32("\n".join(url for _, url in order).encode(), self._checksum)
        self._scores.update(score for score, _ in order if self._task.levels)
        return len(popped)

    def _files(self) -> list[Path]:
        return [path for path in self._folder.rglob("*") if path.is_file()]

    def _leave_page_cache(self) -> None:
        """As if the machine had been started anew."""
        os.sync()
        for path in self._files():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(name: str, folder: str, task: Task) -> Figures:
    """Measure a store in this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # Scrapy's queues keep a file for each priority open
    with tempfile.TemporaryDirectory(dir=folder) as place:
        return Measurement(name, Path(place), task).run()


def measure_apart(name: str, folder: str, task: Task) -> Figures:
    """Measure a store in a process of its own."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, name, folder, task))
    process.start()
    sender.close()
    peak = 0.0
    while not receiver.poll(0.02):
        peak = max(peak, anonymous_memory(process.pid))
    try:
        figures: Figures = receiver.recv()
    except EOFError:
        sys.exit(f"{name} failed with {task}")
    process.join()
    return replace(figures, memory=peak)


def _send(sender: Connection, name: str, folder: str, task: Task) -> None:
    sender.send(measure(name, folder, task))


def anonymous_memory(pid: int | None) -> float:
    """RssAnon of a process in MiB; 0 where it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("RssAnon:")), 0.0)
