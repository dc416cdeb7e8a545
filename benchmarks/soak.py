"""A long live crawl of a web that misbehaves: memory, stalls, and the states of all documents at each commit.

    python -m benchmarks.soak [--minutes 30] [--owners 300] [--delay 3] [--scratch FOLDER]

One owner in ten misbehaves, in every way that tests/testweb knows. What is kept up to a bound, of caches and of what
``link`` has learnt, is so little that it is full after five minutes, so that what grows has no bound. The crawl has a
JOBDIR, and is stopped at the end by SIGTERM. While it runs, each commit is read as ``scrapy frontier`` reads it. Judged
are

- anonymous memory of the main process (``Anonymous`` of /proc/PID/smaps_rollup): the median of the last five minutes
  is less than 10% above that of the second five (of a run below 20 minutes: of the last and the second quarter);
- the longest time in which no request reached the servers: less than 30 seconds, which the crawl itself calls a stall;
- each commit read: every visited document is in one state; and at the end ``scrapy frontier --verify``, with nothing
  archived twice;
- the servers' log: nobody was asked before the delay was over.

Prints a line a minute, then PASS or FAIL of each; ends with status 1 where one fails. Takes about 3 GB on the disk for
30 minutes at 100 pages a second.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from benchmarks.live_runs import INTERRUPTED, crawl, verify
from benchmarks.live_web import EvenPages, politeness, rates, served, some_misbehave
from crawl4llm.base.errors import InputError
from crawl4llm.crawl.stored_crawl import StoredCrawl
from crawl4llm.policies import link
from tests.testweb import read_log
from tests.testweb.misbehaviour import EXAMPLES

_GROWTH, _STALL = 0.1, 30.0
_SAMPLE_SECONDS = 2.0
_FULL_SOON = {"VISITED_CACHE": 20_000, "WARC_REVISITS": 5_000, "URL_POLICY": "benchmarks.soak.FullSoon"}
"""What the crawl fills in five minutes; as it is by default, up to 470 MB, it would grow for hours."""
_SETTLED = 300.0
"""Seconds after which memory is judged."""
_PAGES_OF_A_SITE = 100_000


class FullSoon(link.Policy):
    """The policy ``link`` with a fifth of its memory."""

    most = link.Policy.most // 5


class Sample(NamedTuple):
    """What was seen at one moment."""

    seconds: float
    """Since the crawl began."""
    memory: float
    """MiB."""
    pages: int
    """Crawled, by the last commit."""


class Watch:
    """Looks at a crawl that runs: its memory, and each of its commits."""

    def __init__(self, process: subprocess.Popen[str], job: Path) -> None:
        self._process, self._job = process, job
        self._began = time.monotonic()
        self._seen = 0.0
        """Time at which the commit that was read last was made."""
        self.samples: list[Sample] = []
        self.commits = 0
        self.problems: list[str] = []

    def run(self, seconds: float) -> None:
        """Look until the time is up. Raises RuntimeError where the crawl ends."""
        said = 0.0
        while (now := time.monotonic() - self._began) < seconds:
            if self._process.poll() is not None:
                raise RuntimeError(f"the crawl ended after {now:.0f} s with status {self._process.returncode}")
            pages = self._read_commit()
            self.samples.append(Sample(now, anonymous_memory(self._process.pid), pages))
            if now - said >= 60:
                said = now
                print(f"{now:>6.0f} s  {pages:>8,} pages  {self.samples[-1].memory:>6.1f} MiB", flush=True)
            time.sleep(_SAMPLE_SECONDS)

    def _read_commit(self) -> int:
        """Read the last commit if it is a new one; returns the pages crawled by then."""
        pages = self.samples[-1].pages if self.samples else 0
        try:
            made = (self._job / "store.mdb").stat().st_mtime
            if made == self._seen or not (self._job / "job.json").exists():
                return pages
            with StoredCrawl(self._job) as stored:
                pages = stored.pages
                stored.check_balance()
        except FileNotFoundError:
            return pages
        except InputError as error:
            self.problems.append(str(error))
        self._seen = made
        self.commits += 1
        return pages

    def growth(self) -> tuple[float, float]:
        """Return the anonymous memory in MiB when it had settled, and in the end."""
        last = self.samples[-1].seconds
        length = min(_SETTLED, last / 4)
        then, now = (
            statistics.median(one.memory for one in self.samples if end - length <= one.seconds <= end)
            for end in (2 * length, last)
        )
        return then, now


def anonymous_memory(pid: int) -> float:
    """Return the anonymous memory of a process, without its children's, in MiB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/PID/smaps_rollup does not tell anonymous memory")


def judge(what: str, *, good: bool) -> bool:
    """Print a verdict, and return it."""
    print(f"{'PASS' if good else 'FAIL'}  {what}", flush=True)
    return good


def soak(folder: Path, seconds: float, owners: int, delay: float) -> bool:
    """Run the crawl; returns whether all holds."""
    site = EvenPages(owners, _PAGES_OF_A_SITE)
    bad = some_misbehave(list(site.homes), 0.1, EXAMPLES)
    settings = {"CRAWL_MAX_PAGES": 10**9, "DOWNLOAD_DELAY": delay, "JOBDIR": folder / "crawl/job", **_FULL_SOON}
    with served(folder / "web", site, bad) as servers:
        process = crawl(servers.web, folder / "crawl", settings)
        watch = Watch(process, folder / "crawl/job")
        try:
            watch.run(seconds)
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(600)
    log = (folder / "crawl/log").read_text()
    requests = read_log(servers.web.log_file)
    found, waits = rates(requests), politeness(requests, delay)
    arrivals = sorted(one.arrived for one in requests)
    stall = max(after - before for before, after in pairwise(arrivals))
    then, now = watch.growth()
    print(f"{found.pages:,} pages, {found.steady:.1f} a second; {waits.exchanges:,} exchanges")
    good = judge(
        f"anonymous memory {then:.1f} MiB, then {now:.1f} MiB: {now / then - 1:+.1%}", good=now < (1 + _GROWTH) * then
    )
    good &= judge(f"longest time without a request {stall:.1f} s", good=stall < _STALL)
    good &= judge(f"{watch.commits} commits read{''.join(map('; {}'.format, watch.problems))}", good=not watch.problems)
    early = "".join(f"; {one} ({bad.get(one.partition(' ')[0], 'well-behaved')})" for one in waits.early[:5])
    good &= judge(f"shortest wait {waits.shortest:.3f} s, {len(waits.early)} early{early}", good=not waits.early)
    stopped_well = status == INTERRUPTED and "Traceback" not in log and " ERROR: " not in log
    good &= judge(f"stopped with status {status}, {log.count(' ERROR: ')} errors in the log", good=stopped_well)
    try:
        verify(folder / "crawl")
    except RuntimeError as error:
        return judge(str(error), good=False)
    return judge("the JOBDIR is sound, nothing is archived twice", good=True) and good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--owners", type=int, default=300)
    parser.add_argument("--delay", type=float, default=3.0, help="seconds")
    parser.add_argument("--scratch", type=Path, help="folder for what is written, which is removed")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crawl4llm-", dir=args.scratch) as folder:
        return 0 if soak(Path(folder), 60 * args.minutes, args.owners, args.delay) else 1


if __name__ == "__main__":
    sys.exit(main())
