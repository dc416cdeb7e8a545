"""However many sites one address has, it gets requests at one rate, the best document first, and slows nobody else."""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations, pairwise
from pathlib import Path

from addon_site import page
from crawl_helpers import crawl_log, stats
from live_helpers import crawl_live

from crawl4llm.live.address_rate import AddressRate
from tests.testweb import FewPages, LocalWeb, Logged, read_log, running

RATE = 20
SLACK = 0.3
"""Seconds that a request may take to its server, at most."""
SOON = 2.0
"""Seconds after a request for an index in which its links are in the frontier."""
INDEXES, SITES, DEEPER = 8, 5, 4
"""Sites at addresses of their own; sites at the one address that each of them leads to; pages that each has besides."""


class OneServer(LocalWeb):
    """A web in which all hosts named ``site-...`` are at one address."""

    def address(self, host: str) -> str | None:
        return "127.2.0.1" if host.startswith("site-") else super().address(host)


def web_of_one_server(folder: Path) -> OneServer:
    """Indexes whose pages are the longer, and so their links the better, the higher their number is."""
    pages: dict[str, dict[str, bytes]] = {}
    for index in range(INDEXES):
        sites = [f"site-{index}-{site}.test" for site in range(SITES)]
        links = [*(f"http://{site}/" for site in sites), *(f"/{number}" for number in range(DEEPER))]
        words = b"<p>One more sentence, for the score.</p>" * (50 * index)
        home = page(0.5, links, seed=0).body.replace(b"</article>", words + b"</article>")
        deeper = {f"/{number}": page(0.5, [], seed=10 * index + number).body for number in range(DEEPER)}
        pages[f"index-{index}.test"] = {"/": home, **deeper}
        pages |= {site: {"/": page(0.5, [], seed=number).body} for number, site in enumerate(sites)}
    return OneServer(folder, FewPages(pages))


def sooner_than_allowed(requests: Sequence[Logged]) -> list[tuple[Logged, Logged]]:
    """Return pairs of requests between which there were too many for the time."""
    order = sorted(requests, key=lambda one: one.arrived)
    pairs = combinations(enumerate(order), 2)
    return [(a, b) for (i, a), (j, b) in pairs if b.arrived - a.arrived < (j - i) / RATE - SLACK]


def test_forty_sites_of_one_server(tmp_path: Path) -> None:
    """Requests for robots.txt and tdmrep.json included; with fewer places in the downloader than there are sites."""
    web = web_of_one_server(tmp_path / "web")
    settings = {"CRAWL_BATCH_SIZE": 0, "IP_RATE": RATE, "DELAY_FACTOR": 0, "CRAWL_MAX_ATTEMPTS": 1}
    settings |= {"URL_POLICY": "parent_first", "CRAWL_MAX_PAGES": 1000, "CONCURRENT_REQUESTS": 8}
    settings["NEAR_DUPLICATES_WORTHLESS"] = 0  # the indexes say the same, some more often
    with running(web):
        seeds = [web.url(f"index-{index}.test") for index in range(INDEXES)]
        result = crawl_live(seeds, tmp_path / "run", **settings, DNS_HOSTS=web.hosts_file)
    assert result.returncode == 0, result.stderr
    assert len(crawl_log(tmp_path / "run")) == INDEXES * (1 + SITES + DEEPER)
    assert stats(tmp_path / "run").get("frontier/retried", 0) == 0, "a document that waits was not tried"
    log = read_log(web.log_file)
    served = [one for one in log if one.host.startswith("site-")]
    assert len(served) == 3 * INDEXES * SITES
    assert sooner_than_allowed(served) == []
    others = [one.arrived for one in log if one.host.startswith("index-")]
    assert len(others) == INDEXES * (3 + DEEPER)
    assert max(others) < max(one.arrived for one in served)
    found = {one.host: one.arrived + SOON for one in log if one.host.startswith("index-") and one.path == "/"}
    asked = [(f"index-{one.host.split('-')[1]}.test", one.arrived) for one in served if one.path == "/"]
    # Pairs of sites that could both be asked when one of them was: a loaded machine finds some indexes late. It also
    # asks some sites late: with 20 other processes, 0.3 of the pairs were the wrong way round, with none 0.1.
    pairs = [(a, b) for (a, then), (b, _) in combinations(asked, 2) if a != b and max(found[a], found[b]) < then]
    assert len(pairs) > 100
    assert sum(a < b for a, b in pairs) < 0.4 * len(pairs), "the best first, but for those of about the same time"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_thousands_of_owners_of_one_address() -> None:
    """They are put aside a few times each, and come in about the order of their scores, however they were found."""
    clock, owners = Clock(), 5_000
    rate = AddressRate(None, 2, clock)
    found = random.Random(0).sample(range(owners), owners)
    left = [(clock.now + number / owners, -score) for number, score in enumerate(found)]
    sent: list[tuple[float, int]] = []

    async def sleep(seconds: float) -> None:
        sent.append((clock.now + seconds, -best))
        raise TimeoutError  # its place is taken; here nobody waits for it

    async def crawl() -> int:
        nonlocal best
        tries = 0
        while left:
            clock.now, best = heapq.heappop(left)
            tries += 1
            if (until := rate.put_aside("192.0.2.1", -best)) is None:
                with suppress(TimeoutError):
                    await rate.wait("192.0.2.1", sleep)
            else:
                heapq.heappush(left, (until, best))
        return tries

    best = 0
    tries = asyncio.run(crawl())
    assert tries < 6 * owners
    order = [score for _, score in sent]
    assert sum(abs(place - score) for place, score in enumerate(reversed(order))) / owners < owners / 40
    assert min(after - before for (before, _), (after, _) in pairwise(sent)) >= 0.5
    assert len(rate) == 1

    async def ask_others() -> None:
        for number in range(owners):
            with suppress(TimeoutError):
                await rate.wait(f"host-{number}", sleep)
            clock.now += 1

    asyncio.run(ask_others())
    assert len(rate) <= 1000, "who may be asked again is forgotten"
