"""A local web for benchmarks of live crawls: as many owners as are wanted, each with as many pages, in a process of its
own, and what its servers' log says of a crawl."""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import signal
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import psutil

from simulate.demo.text import page_html
from simulate.demo.web import Web
from tests.testweb import LocalWeb, Logged, Pages, waits

_TEMPLATES = 400
_HREF = re.compile(rb'href="[^"]*"')
_OTHER_SITES = 2
"""Links of a page that lead to other sites."""


class EvenPages:
    """Sites of equal size, with the texts of the demo web: a crawl has something to ask each owner for until its end.

    Page k of a site leads to pages 2k + 1 and 2k + 2, to two other sites, and for the rest to pages before it.
    """

    def __init__(self, sites: int, pages: int) -> None:
        self._pages = pages
        self._hosts = [f"site-{number}.test" for number in range(sites)]
        self._numbers = {host: number for number, host in enumerate(self._hosts)}
        self.homes = dict.fromkeys(self._hosts, "/0")
        web = Web(_TEMPLATES, 10, 0)
        texts = (page_html(page, web.sites[page.site], web.blocks(page), web.links[page.number]) for page in web.pages)
        self._templates = [_HREF.split(text.encode()) for text in texts]

    def find(self, host: str, path: str) -> bytes | None:
        """Return the HTML of a page; None where there is none."""
        site, number = self._numbers.get(host), int(path[1:]) if path[1:].isdecimal() else self._pages
        if site is None or number >= self._pages:
            return None
        template = self._templates[(31 * site + number) % _TEMPLATES]
        targets = [f"/{child}" for child in (2 * number + 1, 2 * number + 2) if child < self._pages]
        others = ((site + 1 + (number + 1) * (7 * link + 1)) % len(self._hosts) for link in range(_OTHER_SITES))
        targets += [f"//{self._hosts[other]}/{number}" for other in others]
        targets += [f"/{max(number - link, 0)}" for link in range(len(template))]
        parts = [template[0]]
        for part, target in zip(template[1:], targets, strict=False):
            parts += [f'href="{target}"'.encode(), part]
        missing = [f'<a href="{target}">more</a>'.encode() for target in targets[len(template) - 1 : 2 + _OTHER_SITES]]
        return b"".join([*parts, *missing])


class Servers(NamedTuple):
    """A web that is served."""

    web: LocalWeb
    pid: int

    @property
    def cpu(self) -> float:
        """User and system seconds so far."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)


@contextmanager
def served(
    folder: Path,
    pages: Pages,
    misbehaving: Mapping[str, str] | None = None,
    robots: Mapping[str, str] | None = None,
) -> Iterator[Servers]:
    """Serve a web in a process of its own. Raises RuntimeError where it does not start."""
    web = LocalWeb(folder, pages, misbehaving=misbehaving, robots=robots)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_serve, args=(web, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        web.port = ours.recv()
    except EOFError:
        raise RuntimeError("the test web did not start") from None
    assert process.pid is not None
    try:
        yield Servers(web, process.pid)
    finally:
        process.terminate()
        process.join()


def _serve(web: LocalWeb, ready: Connection) -> None:
    async def serve() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the benchmark's, which ends this process too
        await web.start()
        ready.send(web.port)
        ready.close()
        await stop.wait()
        await web.stop()

    asyncio.run(serve())


def some_misbehave(hosts: Sequence[str], share: float, kinds: Sequence[str]) -> dict[str, str]:
    """Return kinds of misbehaviour for a share of the hosts, evenly drawn."""
    wanted = round(share * len(hosts))
    chosen = [hosts[number * len(hosts) // wanted] for number in range(wanted)] if wanted else []
    return {host: kinds[number % len(kinds)] for number, host in enumerate(chosen)}


class Rates(NamedTuple):
    """How fast pages were fetched, by the servers' log."""

    pages: int
    robots: int
    """Requests for robots.txt."""
    whole: float
    """Pages a second from the first request to the last page."""
    steady: float
    """Pages a second without the first and last parts of the crawl."""


def rates(requests: Sequence[Logged], *, skip: float = 0.1, tail: float = 0.02) -> Rates:
    """Return the rates of a crawl; ``skip`` and ``tail`` are the shares of its pages that the steady part has not."""
    ends = sorted(one.ended for one in requests if one.status == 200 and one.whole and one.path != "/robots.txt")
    first, last = int(skip * len(ends)), len(ends) - 1 - int(tail * len(ends))
    whole = len(ends) / (ends[-1] - min(one.arrived for one in requests))
    steady = (last - first) / (ends[last] - ends[first])
    return Rates(len(ends), sum(one.path == "/robots.txt" for one in requests), whole, steady)


class Waits(NamedTuple):
    """How long owners were left alone, in seconds from the end of one exchange to the next request."""

    exchanges: int
    shortest: float
    middle: float
    early: list[str]
    """Owners that were asked sooner than after the delay, with the seconds."""


def politeness(requests: Sequence[Logged], delay: float) -> Waits:
    """Return what the servers saw of the delays, robots.txt included."""
    found = waits(requests)
    every = [seconds for of_owner in found.values() for seconds in of_owner]
    early = [
        f"{owner} after {seconds:.3f} s" for owner, of_owner in found.items() for seconds in of_owner if seconds < delay
    ]
    return Waits(len(requests), min(every), statistics.median(every), early)
