"""What a page of a live crawl costs its main process, and how fast a crawl without delays is, against plain Scrapy.

    python -m benchmarks.live [--runs 5] [--pages 1500] [--real PATH | --demo] [--dead-links] [--jobdir] [--out FOLDER]

Each round crawls a local web with pages of ``../shared/corpora/real-web`` (``--demo``: of the demo web) by the live
profile without delays, with trafilatura and with resiliparse, by its policy ``link``, which learns, and by
``parent_first``, which does not; pages are scored by fastText and archived. Links to what
is not there are taken out of the pages, as a sample has more of them than the web: with ``--dead-links`` they stay, and
a page comes with 0.8 requests for missing ones and half a dead host, which all count as the page's cost. Then, for each
policy, plain Scrapy spiders send the same requests to the same servers, with the same download handler and obeying
robots.txt too: an empty one, the same without Scrapy's middlewares, and one for each extractor that extracts in its
callback. What a policy crawls is compared with spiders that fetch the same pages: those that `link` chooses are larger,
and take 12% longer to extract, than those of `parent_first`. Figures are the medians of the rounds:

- CPU: user and system time of the main process a page, without the start of Python; worker processes are apart.
- pages a second, from the opening of the crawl to its end, and their ratio to plain Scrapy with trafilatura.

Ends with status 1 where a limit is not kept.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import NamedTuple

from benchmarks.corpora import SHARED, model
from benchmarks.live_runs import Cost, crawl, finish, start
from benchmarks.live_web import Servers, served
from benchmarks.results import Figure, Result, Table, add_output, publish
from tests.testweb import ClosedPages, DemoPages, Pages, RealPages, read_log

REAL = SHARED / "corpora/real-web"
MOST_MILLISECONDS = 0.8
LEAST = {"trafilatura": 1.8, "resiliparse": 5.0}
"""Times as many pages a second as plain Scrapy with trafilatura."""
_POLICIES = "link", "parent_first"
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
    urls: dict[str, tuple[str, int]] = {}
    log, hosts = servers.web.log_file, set(servers.web.hosts)
    for extractor, policy in product(LEAST, _POLICIES):
        name = f"{extractor}, {policy}"
        before, place = servers.cpu, folder / name
        settings = {"CRAWL_MAX_PAGES": pages, "DOWNLOAD_DELAY": 0, "TEXT_EXTRACTOR": extractor, "URL_POLICY": policy}
        settings |= {"SCORER": "fasttext", "SCORER_MODEL": model()}
        if jobdir:
            settings["JOBDIR"] = str(place / "job")
        logged = len(read_log(log))
        cost = finish(crawl(servers.web, place, settings), place, _LONGEST)
        asked = [one for one in read_log(log)[logged:] if one.path != "/robots.txt" and one.host in hosts]
        counted = sum(one.status == 200 for one in asked)
        found[f"crawl4llm, {name}"] = _figures(cost, counted, servers.cpu - before)
        urls[policy] = "".join(f"http://{one.host}:{servers.web.port}{one.path}\n" for one in asked), counted
    for policy, (lines, counted) in urls.items():
        (folder / "urls").write_text(lines)
        found |= _peers(servers, folder, counted, policy)
    return found


def _peers(servers: Servers, folder: Path, pages: int, policy: str) -> dict[str, Figures]:
    """Let plain spiders fetch what ``folder/urls`` has: the pages that a crawl by a policy has fetched."""
    found: dict[str, Figures] = {}
    peers = {"empty": ["empty"], "empty, no middlewares": ["empty", *_BARE]}
    peers |= {f"plain, {extractor}": ["extracting", "-a", f"extractor={extractor}"] for extractor in LEAST}
    for peer, spider in peers.items():
        name = f"{peer}, pages of {policy}"
        before, place = servers.cpu, folder / name
        options = ["-a", f"urls={folder / 'urls'}", "-s", f"DNS_HOSTS={servers.web.hosts_file}"]
        cost = finish(start("benchmarks.live_peers", ["crawl", *spider, *options], place), place, _LONGEST)
        found[name] = _figures(cost, pages, servers.cpu - before)
    return found


def _figures(cost: Cost, pages: int, servers: float) -> Figures:
    return Figures(1000 * cost.cpu / pages, pages / cost.seconds, 1000 * servers / pages)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--real", type=Path, default=REAL, help="WARC files whose pages are served")
    parser.add_argument("--demo", action="store_true", help="serve the demo web, as where there are no WARC files")
    parser.add_argument("--dead-links", action="store_true", help="serve real pages with links to what is not there")
    parser.add_argument("--jobdir", action="store_true", help="crawl with a JOBDIR")
    add_output(parser)
    args = parser.parse_args()
    demo = args.demo or not args.real.exists()
    site: Pages = DemoPages(2 * args.pages, 200, 0) if demo else RealPages(args.real)
    if isinstance(site, RealPages) and not args.dead_links:
        site = ClosedPages(site)
    runs: defaultdict[str, list[Figures]] = defaultdict(list)
    for _ in range(args.runs):
        with tempfile.TemporaryDirectory(prefix="crawl4llm-") as scratch, served(Path(scratch, "web"), site) as servers:
            for name, figures in one_round(servers, Path(scratch), args.pages, jobdir=args.jobdir).items():
                runs[name].append(figures)
    found = {name: Figures(*map(statistics.median, zip(*of, strict=True))) for name, of in runs.items()}
    peers = {policy: found[f"{_PEER}, pages of {policy}"].rate for policy in _POLICIES}
    rows = [
        (name, one.milliseconds, one.rate, one.rate / peers[name.split()[-1]], one.servers)
        for name, one in found.items()
    ]
    columns = ("", "main process, CPU ms a page", "pages/s", "of plain, trafilatura", "servers, CPU ms a page")
    pages = "pages of the demo web" if demo else "real pages (../shared/corpora/real-web)"
    if args.dead_links and not demo:
        pages += " with dead links"
    result = Result("live", [f"{args.pages:,} {pages} over loopback, no delays, medians of {args.runs} rounds"])
    result.tables.append(Table("Crawls", columns, rows))
    for (extractor, least), policy in product(LEAST.items(), _POLICIES):
        what = f"{policy}: pages/s with {extractor} / plain Scrapy with trafilatura"
        result.figures.append(
            Figure(what, found[f"crawl4llm, {extractor}, {policy}"].rate / peers[policy], least, least=True)
        )
    for policy, name in product(_POLICIES, ("empty", "empty, no middlewares")):
        above = statistics.median(
            ours.milliseconds - empty.milliseconds
            for ours, empty in zip(
                runs[f"crawl4llm, trafilatura, {policy}"], runs[f"{name}, pages of {policy}"], strict=True
            )
        )
        what = f"{policy}: main process, CPU a page above an empty Scrapy spider"
        if name == "empty":
            result.figures.append(Figure(what, above, MOST_MILLISECONDS, "ms"))
        else:
            result.notes.append(f"{what} without middlewares: {above:.2f} ms")
    publish(result, args)
    return 0 if result.met else 1


if __name__ == "__main__":
    sys.exit(main())
