"""The crawls that are measured: crawl4llm by two policies, plain Scrapy with and without Nutch's filter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.corpora import model
from benchmarks.live_runs import PROJECT
from benchmarks.websoftware.access_logs import Asked, marks, since
from benchmarks.websoftware.planning import Plan
from benchmarks.websoftware.running import places
from benchmarks.websoftware.site import Site

POLICIES, PEERS = ("link", "parent_first"), ("breadth_first", "nutch_filter")
"""Policies of crawl4llm; spiders of plain Scrapy."""
CRAWLERS = POLICIES + PEERS
_ENDED_WELL = {0, 130, -2}
"""Statuses of a crawl that has come to its end or was interrupted."""
_SECONDS = 3600
_FLUSHED = 6
"""Seconds after which lighttpd has written its log."""
_OVER, _UNDER_WAY = 1.02, 20
"""Crawls are stopped a little later than they are judged, as requests under way are not logged yet."""


class Crawl(NamedTuple):
    """A crawl to be measured."""

    crawler: str
    hosts: Mapping[str, str]
    """Addresses of the names that are there for it."""
    seeds: Sequence[str]
    requests: int
    delay: float


def run(state: Path, crawl: Crawl, folder: Path) -> list[Asked]:
    """Crawl, and return what was asked of the servers, at most ``requests``. Raises RuntimeError if the crawl fails."""
    folder.mkdir(parents=True, exist_ok=True)
    at = places(state)
    (folder / "hosts").write_text("".join(f"{crawl.hosts[name]} {name}\n" for name in crawl.hosts))
    (folder / "seeds.txt").write_text("".join(f"{seed}\n" for seed in crawl.seeds))
    agent = f"benchmark-{crawl.crawler}-{os.getpid()}-{time.monotonic_ns()}"
    options = {
        "DNS_HOSTS": folder / "hosts",
        "USER_AGENT": f"{agent} (+mailto:benchmark@example.org)",
        "STOP_AFTER": int(_OVER * crawl.requests) + _UNDER_WAY,
        "DOWNLOAD_DELAY": crawl.delay,
    }
    spider = [crawl.crawler, "-a", f"seeds={folder / 'seeds.txt'}"]
    settings = "benchmarks.websoftware.peers"
    if crawl.crawler in POLICIES:
        options |= {"URL_POLICY": crawl.crawler, "SCORER_MODEL": model(), "OUTPUT_DIR": folder / "run"}
        options |= {"JOBDIR": folder / "job"}
        spider[0], settings = "influence", "benchmarks.websoftware.settings"
    began = marks(at.logs)
    _crawl(settings, spider, options, state / "tls/ca.pem", folder)
    if (at.logs / "lighttpd.log").exists():
        time.sleep(_FLUSHED)
    return since(at.logs, began, agent)[: crawl.requests]


def _crawl(settings: str, spider: Sequence[str], options: dict[str, object], authority: Path, folder: Path) -> None:
    env = {"PYTHONPATH": str(PROJECT), "SCRAPY_SETTINGS_MODULE": settings, "SSL_CERT_FILE": str(authority)}
    given = [part for name, value in options.items() for part in ("-s", f"{name}={value}")]
    with (folder / "log").open("w") as log:
        command = [sys.executable, "-m", "scrapy", "crawl", *spider, *given]
        process = subprocess.run(
            command, cwd=PROJECT, env={**os.environ, **env}, stdout=log, stderr=log, timeout=_SECONDS, check=False
        )
    if process.returncode not in _ENDED_WELL:
        raise RuntimeError(f"status {process.returncode}, {folder / 'log'}: {(folder / 'log').read_text()[-2000:]}")


def known(folder: Path) -> list[tuple[str, str]]:
    """Return what a crawl of crawl4llm knew and did not fetch: URLs, each with the reason for which it was dropped, or
    ``waiting``; nothing for other crawls. Raises RuntimeError if its JOBDIR cannot be read."""
    if not (folder / "job").exists():
        return []
    waiting = folder / "waiting.jsonl"
    command = [sys.executable, "-m", "scrapy", "frontier", str(folder / "job"), "--hosts=0", f"--export={waiting}"]
    command += ["-s", f"OUTPUT_DIR={folder / 'run'}"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"scrapy frontier: {done.stdout}{done.stderr[-2000:]}")
    failures = folder / "run/failures.jsonl"
    lines = [json.loads(line) for line in failures.read_text().splitlines()] if failures.exists() else []
    dropped = [(line["url"] or line["id"], line["reason"]) for line in lines if line["outcome"] == "dropped"]
    return dropped + [(json.loads(line)["url"], "waiting") for line in waiting.read_text().splitlines()]


def front_pages(sites: Sequence[Site], seed: int) -> list[str]:
    """Return what a user would begin with: the addresses of two sites in three, some as they are typed."""
    random = Random(f"front pages {seed}")
    some = random.sample(list(sites), k=max(1, round(2 * len(sites) / 3)))
    return [f"{random.choice(('http', 'https'))}://{random.choice(site.names)}/" for site in some]


def own_seeds(sites: Sequence[Site], planned: Plan, seed: int) -> list[str]:
    """Return seeds in one software: its front pages and a page of each of its sites."""
    random = Random(f"own seeds {seed}")
    found = [f"{site.url}/" for site in sites]
    return found + [site.url + random.choice(planned.fills[site.name]).path for site in sites]
