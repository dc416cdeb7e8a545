"""The measurements: one crawl of the whole web by each crawler, and crawls of each software by itself.

Each crawl is kept when it is done, so that a run that was broken off goes on. Crawls of crawl4llm are kept for this
composition and this code of crawl4llm. Crawls of the Scrapy peers are kept for this composition and for the peers' own
code, so that later code of crawl4llm is compared with them as they are.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from benchmarks.live_runs import PROJECT
from benchmarks.websoftware.composition import addresses
from benchmarks.websoftware.crawls import CRAWLERS, PEERS, Crawl, front_pages, known, own_seeds, run
from benchmarks.websoftware.judging import Judge
from benchmarks.websoftware.planning import Plan
from benchmarks.websoftware.site import Site

Record = dict[str, Any]
"""What one crawl brought: its name, and verdicts by software."""


def code() -> str:
    """Return what names the code of crawl4llm and its settings."""
    trees = ["HEAD:crawl4llm", "HEAD:settings"]
    command = ["git", "-C", str(PROJECT), "rev-parse", *trees]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    changed = ["git", "-C", str(PROJECT), "status", "--porcelain", "crawl4llm", "settings"]
    dirty = subprocess.run(changed, capture_output=True, text=True, check=True).stdout
    return "-".join(tree[:10] for tree in found) + ("-changed" if dirty else "")


def peers_code() -> str:
    """Return what names the code of the Scrapy peers: their module, and the versions of Scrapy and trafilatura."""
    told = hashlib.sha256(Path(__file__).with_name("peers.py").read_bytes()).hexdigest()[:10]
    return f"scrapy-{version('scrapy')}-trafilatura-{version('trafilatura')}-{told}"


class Measurements:
    """Crawls of a web that is served, by some crawlers, with those that were done before by all."""

    def __init__(self, state: Path, sites: Sequence[Site], planned: Plan, crawlers: Sequence[str] = CRAWLERS) -> None:
        self._state, self._sites, self._plan, self._crawlers = state, sites, planned, crawlers
        self._judge = Judge(sites, planned)
        self._lock = Lock()
        self._broken_off = False
        kept = state / "measured"
        kept.mkdir(parents=True, exist_ok=True)
        codes = dict.fromkeys(CRAWLERS, code()) | dict.fromkeys(PEERS, peers_code())
        self._kept = {crawler: kept / f"{planned.digest}-{codes[crawler]}.jsonl" for crawler in CRAWLERS}

    def records(self) -> list[Record]:
        """Return what was measured so far, by all crawlers, in their order."""
        files = dict.fromkeys(self._kept.values())
        found = [json.loads(line) for file in files if file.exists() for line in file.open()]
        return sorted(found, key=lambda record: CRAWLERS.index(record["crawler"]))

    def whole(self, requests: int, delay: float, seed: int) -> None:
        """Crawl the whole web by each crawler."""
        for crawler in self._crawlers:
            crawl = Crawl(crawler, self._hosts(self._sites), front_pages(self._sites, seed), requests, delay)
            self._measure({"of": "all", "crawler": crawler, "seed": seed, "requests": requests, "delay": delay}, crawl)

    def by_software(self, requests: int, seeds: int, jobs: int, only: Sequence[str] = ()) -> None:
        """Crawl each software by itself by each crawler from so many sets of seeds, some crawls at once, no delays."""
        with ThreadPoolExecutor(jobs) as pool:
            wanted = [crawl for seed in range(seeds) for crawl in self._own(requests, seed, only)]
            try:
                list(pool.map(self._measure, *zip(*wanted, strict=True)))
            except BaseException:
                self._broken_off = True  # crawls under way lose their servers
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _own(self, requests: int, seed: int, only: Sequence[str]) -> Iterator[tuple[Record, Crawl]]:
        """Yield the crawls of one set of seeds, with their names."""
        for software in dict.fromkeys(site.software for site in self._sites if site.good):
            if only and software not in only:
                continue
            sites = [site for site in self._sites if site.software == software]
            for crawler in self._crawlers:
                crawl = Crawl(crawler, self._hosts(sites), own_seeds(sites, self._plan, seed), requests, 0)
                yield {"of": software, "crawler": crawler, "seed": seed, "requests": requests, "delay": 0}, crawl

    def _hosts(self, sites: Sequence[Site]) -> dict[str, str]:
        """Return the addresses of some sites' names."""
        every = addresses(self._sites)
        return {name: every[name] for site in sites for name in site.names}

    def _measure(self, name: Record, crawl: Crawl) -> None:
        """Crawl, judge, and keep the verdicts, unless they are kept."""
        if any(name.items() <= record.items() for record in self.records()):
            return
        with tempfile.TemporaryDirectory(prefix="websoftware-") as scratch:
            asked = run(self._state, crawl, Path(scratch))
            verdicts = self._judge.judge(asked, known(Path(scratch)))
        if self._broken_off:
            return
        told = {software: verdict.told() for software, verdict in verdicts.items() if verdict.requests}
        seconds = asked[-1].time - asked[0].time if asked else 0.0
        with self._lock, self._kept[name["crawler"]].open("a") as file:
            file.write(json.dumps({**name, "seconds": round(seconds, 1), "verdicts": told}) + "\n")
        all_of_it = verdicts["all"]
        print(
            f"{name['of']}, {name['crawler']}, seeds {name['seed']}: {all_of_it.useful} of {all_of_it.requests} useful "
            f"({all_of_it.share:.3f}) in {seconds:.0f} s",
            flush=True,
        )
