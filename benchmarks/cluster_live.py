"""A live crawl by several workers that are killed and paused: ``python -m benchmarks.cluster_live --help``.

Workers (processes, with a Valkey server) crawl a local web together, of which one owner in ten is slow, asks for time,
or has a Crawl-delay. Meanwhile workers are killed, paused for longer than the lease, and the server is wiped, at random
times. Ends with status 1 if ``scrapy cluster verify`` finds something lost or there twice, if the merged archive is not
sound, or if the access log shows that an owner was asked early, or twice at once.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.cluster import Crawl, add_faults, bucket_if, chosen_faults
from benchmarks.live_web import EvenPages, politeness, served, some_misbehave
from benchmarks.results import Figure, Result, Table, add_output, publish
from crawl4llm.tools.report import Log
from tests.testweb import LocalWeb, read_log

_KINDS = ("slow:1", "retry-after:5", "status:503", "refusing")
_CRAWL_DELAY = 3


class LiveCrawl(Crawl):
    """A live crawl of a local web."""

    def __init__(self, folder: Path, given: argparse.Namespace, draw: random.Random, web: LocalWeb) -> None:
        super().__init__(folder, given, draw)
        self._web = web

    @property
    def has_begun(self) -> bool:
        begun = sum(name.endswith("/log/00000002") for name in self.objects.names("p"))
        return 2 * begun >= int(self._given.partitions)

    def start(self, output: Path, settings: Sequence[str]) -> subprocess.Popen[bytes]:
        values = [f"OUTPUT_DIR={output}", f"DNS_HOSTS={self._web.hosts_file}", *self._given.settings, *settings]
        options = [part for value in values for part in ("-s", value)]
        command = [
            sys.executable,
            "-m",
            "scrapy",
            "crawl",
            "influence",
            "-a",
            f"seeds={self._web.seeds_file}",
            *options,
        ]
        env = {**os.environ, "SCRAPY_SETTINGS_MODULE": "benchmarks.live_settings"}
        log = output.with_suffix(".err").open("wb")
        return subprocess.Popen(command, env=env, start_new_session=True, stdout=log, stderr=log)


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; exit status 1 if something is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster_live", description=str(__doc__).split("\n\n", 2)[1]
    )
    parser.add_argument("settings", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--owners", type=int, default=100)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--delay", type=float, default=1.0, help="seconds between two requests to an owner")
    parser.add_argument("--folder", type=Path, help="keep everything here")
    add_faults(parser)
    add_output(parser)
    given = parser.parse_args(argv)
    given.settings = [
        f"CRAWL_MAX_PAGES={given.pages}",
        f"DOWNLOAD_DELAY={given.delay}",
        f"DOWNLOAD_TIMEOUT={2.5 * given.lease}",
        *given.settings,
    ]
    with tempfile.TemporaryDirectory(prefix="crawl4llm-") as scratch, bucket_if(given.bucket) as given.bucket:
        folder = given.folder or Path(scratch)
        site = EvenPages(given.owners, 10_000)
        misbehaving = some_misbehave(list(site.homes), 0.1, _KINDS)
        with served(folder / "web", site, misbehaving, _robots(list(site.homes))) as servers:
            draw = random.Random(given.seed)
            crawl = LiveCrawl(folder / "crawl", given, draw, servers.web)
            crawl.run(given.workers, chosen_faults(given, draw))
        requests = read_log(servers.web.log_file)
        _, verified = _cluster("verify", crawl.storage)
        merged = folder / "merged"
        _cluster("merge", crawl.storage, "--out", str(merged))
        checked = subprocess.run(
            [sys.executable, "-m", "scrapy", "archive", "check", str(merged)],
            capture_output=True,
            text=True,
            check=False,
        )
        put = crawl.bytes_put(pages := sum(1 for _ in (merged / "crawl.jsonl").open()))
        asked = [f"{one.host}{one.path}" for one in requests if one.status == 200 and one.path != "/robots.txt"]
        places = [urlsplit(request.url) for request in Log(merged).requests()]
        kept = Counter(f"{place.hostname}{place.path}" for place in places)
    lost = (Counter(f"{one.host}{one.path}" for one in requests) - kept).total()
    seen = politeness(requests, given.delay)
    rows: list[list[str | float | None]] = [
        ["kills", given.kills],
        ["pauses", given.pauses],
        ["wipes", given.wipes],
        ["pages", pages],
        ["requests", len(requests)],
        ["pages asked for again", len(asked) - len(set(asked))],
        ["requests not on record, as workers were killed", lost],
        ["shortest wait, s", seen.shortest],
    ]
    unsound = (not verified.startswith("sound")) + (checked.returncode != 0)
    result = Result(
        "cluster_live",
        [f"{given.owners} owners, {given.workers} workers at a time, {crawl.started} started"],
        [Table("Crawl", ["", "number"], rows)],
        [Figure("early requests", len(seen.early), 0), Figure("unsound storages and archives", unsound, 0)],
        [verified.strip(), f"Archive: {(checked.stdout or checked.stderr).strip()}", f"Storage: {put}"],
    )
    result.notes += [f"Asked early: {owner}" for owner in seen.early[:5]]
    publish(result, given)
    return 0 if result.met else 1


def _robots(hosts: Sequence[str]) -> dict[str, str]:
    """Return the robots.txt of the hosts of which one in ten has a Crawl-delay."""
    return dict.fromkeys(hosts[5::10], f"User-agent: *\nCrawl-delay: {_CRAWL_DELAY}\n")


def _cluster(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "cluster", *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout or done.stderr


if __name__ == "__main__":
    sys.exit(main())
