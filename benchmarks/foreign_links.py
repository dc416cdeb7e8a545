"""What links of strangers to dead places of an owner cost its site: requests that reach it, with them and without.

    python -m benchmarks.foreign_links [--seconds 200] [--delay 1] [--links 100] [--out FOLDER]

A site of many pages, and a page of another owner that links to it and to 100 places of its owner at which nobody
answers: closed ports, hosts without an address, hosts that refuse connections, and hosts that never answer a SYN. The
settings are those of the live profile, but for the delay. Each crawl is stopped after the same time. The numbers are
the server's; ends with status 1 if less than nine tenths reach the site, or its owner was asked early.
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.live_runs import INTERRUPTED, crawl
from benchmarks.live_web import EvenPages, politeness, served
from benchmarks.results import Figure, Result, Table, add_output, publish
from tests.testweb import Logged, read_log

SHARE = 0.9
_PAGES = 10_000
_SITE = "site-0.test"
_OTHER = "strange.test"
_SILENT = "127.255.255.2"
_CLOSED = range(2, 1002)
"""Ports at which nobody listens."""


class WithForeignLinks:
    """The pages of one site, and a page of another owner with links."""

    def __init__(self, links: list[str]) -> None:
        self._site = EvenPages(1, _PAGES)
        self._links = "".join(f'<p>A link to <a href="{link}">some place</a>.' for link in links).encode()
        self.homes = {_SITE: "/0", _OTHER: "/"}

    def find(self, host: str, path: str) -> bytes | None:
        """Return the HTML of a page; None where there is none."""
        if host == _OTHER:
            return b"<html><body><p>Links, and nothing but links." + self._links if path == "/" else None
        return self._site.find(host, path)


@contextmanager
def silent_port() -> Iterator[int]:
    """A port that answers no SYN, since its queue is full."""
    with socket.socket() as listening:
        listening.bind((_SILENT, 0))
        listening.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        try:
            yield listening.getsockname()[1]
        finally:
            for one in waiting:
                one.close()


def dead_links(number: int, silent: int) -> tuple[list[str], list[str]]:
    """Return URLs of the owner at which nobody answers, and lines for the hosts file."""
    links, lines = [], []
    for one in range(number):
        kind = one % 4
        if kind == 0:
            links.append(f"http://{_SITE}:{_CLOSED[one]}/")
        elif kind == 1:
            links.append(f"http://nowhere-{one}.{_SITE}/")
        elif kind == 2:
            links.append(f"http://refusing-{one}.{_SITE}/")
            lines.append(f"127.255.255.1 refusing-{one}.{_SITE}\n")
        else:
            links.append(f"http://silent-{one}.{_SITE}:{silent}/")
            lines.append(f"{_SILENT} silent-{one}.{_SITE}\n")
    return links, lines


def measure(links: int, delay: float, seconds: float) -> list[Logged]:
    """Crawl for some seconds; return the requests that reached the site."""
    with tempfile.TemporaryDirectory(prefix="crawl4llm-") as scratch, silent_port() as silent:
        folder = Path(scratch)
        dead, lines = dead_links(links, silent)
        settings = {"DOWNLOAD_DELAY": delay, "URL_BUDGET": 10, "DELAY_FACTOR": 5, "IP_RATE": 2}
        with served(folder / "web", WithForeignLinks(dead)) as servers:
            with servers.web.hosts_file.open("a") as hosts:
                hosts.writelines(lines)
            process = crawl(servers.web, folder / "crawl", settings, JOBDIR=folder / "crawl/job")
            log = servers.web.log_file
            while not log.read_text():
                time.sleep(0.05)
            time.sleep(seconds)
            process.send_signal(signal.SIGTERM)
            if process.wait(60) != INTERRUPTED:
                raise RuntimeError((folder / "crawl/log").read_text()[-2000:])
            return [one for one in read_log(log) if one.host == _SITE]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=200.0, help="of each crawl")
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--links", type=int, default=100)
    add_output(parser)
    args = parser.parse_args()
    without, beside = (measure(links, args.delay, args.seconds) for links in (0, args.links))
    early = [one for requests in (without, beside) for one in politeness(requests, args.delay).early]
    result = Result(
        "foreign_links",
        [f"{args.links} links to dead places of a site's owner; {args.seconds:g} s at a delay of {args.delay:g} s"],
        [Table("To the site", ["", "requests"], [["without links", len(without)], ["with links", len(beside)]])],
        [
            Figure("requests with links / without", len(beside) / len(without), SHARE, least=True),
            Figure("early requests", len(early), 0),
        ],
    )
    publish(result, args)
    return 0 if result.met else 1


if __name__ == "__main__":
    sys.exit(main())
