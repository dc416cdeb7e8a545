"""What a page of a live crawl costs its main process, and how fast a crawl without delays is, against plain Scrapy.

    python -m benchmarks.live_cost [--runs 5] [--pages 3000] [--real PATH | --demo] [--jobdir]

Each round crawls a local web with pages of ``../shared/corpora/real-web`` (``--demo``: of the demo web) by the live
profile without delays, with trafilatura and with resiliparse. Then plain Scrapy spiders send the same requests, but for
robots.txt, to the same servers, with the same download handler: an empty one, the same without Scrapy's middlewares,
and one for each extractor that extracts in its callback. Figures are the medians of the rounds:

- CPU: user and system time of the main process a page, without the start of Python; worker processes are apart.
- pages a second, from the opening of the crawl to its end, and their ratio to plain Scrapy with trafilatura.

Ends with status 1 where a page costs more than 1.3 ms above the empty spider, or where the crawl has less than 1.6
times the pages a second of plain Scrapy with trafilatura, or with resiliparse less than 4 times.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from benchmarks.live_runs import Cost, crawl, finish, start
from benchmarks.live_web import Servers, served
from tests.testweb import DemoPages, Pages, RealPages, read_log

REAL = Path(__file__).resolve().parents[2] / "shared/corpora/real-web"
MOST_MILLISECONDS = 1.3
LEAST = {"trafilatura": 1.6, "resiliparse": 4.0}
"""Times as many pages a second as plain Scrapy with trafilatura."""
_PEER = "plain, trafilatura"
_BARE = ["-s", "DOWNLOADER_MIDDLEWARES_BASE={}", "-s", "SPIDER_MIDDLEWARES_BASE={}"]
_LONGEST = 3600.0


class Figures(NamedTuple):
    """Of one crawl."""

    milliseconds: float
    """CPU of the main process a page."""
    rate: float
    """Pages a second."""
    servers: float
    """CPU of the servers in milliseconds a page."""


def one_round(servers: Servers, folder: Path, pages: int, *, jobdir: bool) -> dict[str, Figures]:
    """Run all crawls once."""
    found: dict[str, Figures] = {}
    log, urls, hosts = servers.web.log_file, folder / "urls", set(servers.web.hosts)
    for extractor in LEAST:
        before, place = servers.cpu, folder / extractor
        settings = {"CRAWL_MAX_PAGES": pages, "DOWNLOAD_DELAY": 0, "TEXT_EXTRACTOR": extractor}
        if jobdir:
            settings["JOBDIR"] = str(place / "job")
        logged = len(read_log(log))
        cost = finish(crawl(servers.web, place, settings), place, _LONGEST)
        asked = [one for one in read_log(log)[logged:] if one.path != "/robots.txt" and one.host in hosts]
        counted = sum(one.status == 200 for one in asked)
        found[f"crawl4llm, {extractor}"] = _figures(cost, counted, servers.cpu - before)
    urls.write_text("".join(f"http://{one.host}:{servers.web.port}{one.path}\n" for one in asked))
    peers = {"empty": ["empty"], "empty, no middlewares": ["empty", *_BARE]}
    peers |= {f"plain, {extractor}": ["extracting", "-a", f"extractor={extractor}"] for extractor in LEAST}
    for name, spider in peers.items():
        before, place = servers.cpu, folder / name
        options = ["-a", f"urls={urls}", "-s", f"DNS_HOSTS={servers.web.hosts_file}"]
        cost = finish(start("benchmarks.live_peers", ["crawl", *spider, *options], place), place, _LONGEST)
        found[name] = _figures(cost, counted, servers.cpu - before)
    return found


def _figures(cost: Cost, pages: int, servers: float) -> Figures:
    return Figures(1000 * cost.cpu / pages, pages / cost.seconds, 1000 * servers / pages)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--real", type=Path, default=REAL, help="WARC files whose pages are served")
    parser.add_argument("--demo", action="store_true", help="serve the demo web")
    parser.add_argument("--jobdir", action="store_true", help="crawl with a JOBDIR")
    args = parser.parse_args()
    if not args.demo and not args.real.exists():
        sys.exit(f"needs {args.real}, which is not here; --demo serves the demo web")
    site: Pages = DemoPages(2 * args.pages, 200, 0) if args.demo else RealPages(args.real)
    runs: defaultdict[str, list[Figures]] = defaultdict(list)
    for _ in range(args.runs):
        with tempfile.TemporaryDirectory(prefix="crawl4llm-") as scratch, served(Path(scratch, "web"), site) as servers:
            for name, figures in one_round(servers, Path(scratch), args.pages, jobdir=args.jobdir).items():
                runs[name].append(figures)
    found = {name: Figures(*map(statistics.median, zip(*of, strict=True))) for name, of in runs.items()}
    above = {
        name: statistics.median(
            ours.milliseconds - empty.milliseconds
            for ours, empty in zip(runs["crawl4llm, trafilatura"], runs[name], strict=True)
        )
        for name in ("empty", "empty, no middlewares")
    }
    print(f"{'':<24} {'CPU, ms a page':>15} {'pages/s':>9} {'of plain':>9} {'servers, ms':>12}")
    for name, one in found.items():
        ratio = one.rate / found[_PEER].rate
        print(f"{name:<24} {one.milliseconds:>15.2f} {one.rate:>9.1f} {ratio:>9.2f} {one.servers:>12.2f}")
    for name, milliseconds in above.items():
        print(f"above {name}: {milliseconds:.2f} ms a page, median of {args.runs}")
    fast = all(found[f"crawl4llm, {name}"].rate >= least * found[_PEER].rate for name, least in LEAST.items())
    return 0 if fast and above["empty"] <= MOST_MILLISECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
