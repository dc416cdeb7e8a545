"""A web to try a crawl on, by hand: ``python -m tests.testweb --help``; docs/first-live-crawl.md has its options."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections import Counter
from pathlib import Path

from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError
from tests.testweb.mazes import MazedPages
from tests.testweb.misbehaviour import EXAMPLES, check, host_of_example
from tests.testweb.pages import DemoPages, Pages, RealPages
from tests.testweb.server import read_log
from tests.testweb.web import LocalWeb, waits


def main() -> None:
    """Serve a web until Ctrl-C or SIGTERM, or sum up the access log of one."""
    args = _arguments()
    if args.sum_up:
        _sum_up(args.sum_up)
        return
    misbehaving = dict(rule.partition("=")[::2] for rule in args.misbehave)
    if args.misbehaving:
        misbehaving.update({host_of_example(kind): kind for kind in EXAMPLES})
    try:
        for kind in misbehaving.values():
            check(kind)
        size = args.pages, args.hosts or 100, 0
        pages: Pages = MazedPages(*size, args.mazes) if args.mazes else DemoPages(*size)
        if args.real:
            pages = RealPages(args.real, args.hosts)
        robots = {"*": args.robots.read_text()} if args.robots else {}
        addresses, port = args.addresses, args.port
        web = LocalWeb(args.folder, pages, misbehaving=misbehaving, robots=robots, addresses=addresses, port=port)
        asyncio.run(_serve(web))
    except (InputError, OSError, ValueError) as error:
        sys.exit(str(error))


async def _serve(web: LocalWeb) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await web.start()
    print(f"{len(web.hosts)} hosts at port {web.port}; a crawl of them:")
    settings = {"DNS_HOSTS": web.hosts_file, "NETWORK_ALLOWED": "127.0.0.0/8", "SCORER": "length"}
    settings |= {"CRAWL_MAX_PAGES": 300, "USER_AGENT": "crawl4llm (+https://example.org/crawler)"}
    crawl = command("crawl", "influence", "-a", f"seeds={web.seeds_file}", profile="live", **settings)
    print(crawl, flush=True)
    await stop.wait()
    await web.stop()


def _sum_up(log: Path) -> None:
    requests = read_log(log)
    counts = Counter(str(request.status or "no answer") for request in requests)
    print(f"{len(requests)} requests: {', '.join(f'{count} {status}' for status, count in sorted(counts.items()))}")
    shortest = sorted((min(seconds), owner) for owner, seconds in waits(requests).items() if seconds)
    for seconds, owner in shortest[:5]:
        print(f"{owner} was asked again {seconds:.3f} s after its last answer")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.testweb", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--folder", type=Path, default=Path("testweb"), help="gets hosts, seeds.txt and access.jsonl (testweb)")
    add("--real", type=Path, metavar="PATH", help="WARC files whose pages are served; without it the demo web's are")
    add("--pages", type=int, default=4000, help="of the demo web (4000)")
    add("--hosts", type=int, help="at most so many (demo web: 100)")
    add("--mazes", type=int, default=0, help="among the hosts of the demo web: endless, each linked to by a few pages")
    add("--addresses", type=int, help="over which the hosts are spread (one each)")
    add("--port", type=int, default=0, help="of all servers (any that is free)")
    add("--robots", type=Path, metavar="FILE", help="robots.txt of all hosts (none)")
    rule = "what HOST, HOST/PATH or /PATH does wrong, such as slow.test=slow:2; may be given several times"
    add("--misbehave", action="append", default=[], metavar="PLACE=KIND", help=rule)
    add("--misbehaving", action="store_true", help=f"add a host for each kind: {', '.join(EXAMPLES)}")
    add("--sum-up", type=Path, metavar="LOG", help="serve nothing; print what an access log has")
    return parser.parse_args()


if __name__ == "__main__":
    main()
