"""The stall watchdog, and what servers say in Retry-After, as tables."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from driven_crawl import Driven, scored
from scrapy.http import Response

from crawl4llm.frontier.opening import memory_frontier
from crawl4llm.live.places import retry_after
from crawl4llm.live.stalls import Stalls

DAY = 86_400


def test_a_stall_is_said_once_a_minute(tmp_path: Path) -> None:
    frontier = memory_frontier(by_owners=True)
    frontier.owners.tick(0)
    keys = [f"http://{number}.example/{number}" for number in range(1, 6)]
    driven = Driven(scored({key: [] for key in keys}), tmp_path, by_owners=frontier, crawl_batch_size=0, leases=1)
    driven.start(*keys)
    stalls = Stalls(driven.crawl, frontier.owners, now=0)
    driven.dequeue()
    for number in (1, 2):
        frontier.owners.hold(f"{number}.example", 100 * number)
    frontier.owners.park("3.example")
    frontier.owners.occupy("4.example")
    assert stalls.line(29) is None
    assert stalls.line(31) == (
        "Nothing fetched for 31 s: 4 documents wait. Of their owners, 2 wait (the first 69 s more), "
        "0 are ready for a request, 2 have one in flight, 1 are parked"
    )
    assert stalls.line(32) is None
    assert stalls.line(90) is None
    assert stalls.line(95) is not None
    driven.close()


def test_nothing_is_said_of_an_empty_frontier(tmp_path: Path) -> None:
    frontier = memory_frontier(by_owners=True)
    driven = Driven(scored({"1": []}), tmp_path, by_owners=frontier, crawl_batch_size=0)
    assert Stalls(driven.crawl, frontier.owners, now=0).line(100) is None
    driven.close()


@pytest.mark.parametrize(
    ("status", "field", "seconds"),
    [
        (503, "120", 120),
        (429, " 7 ", 7),
        (429, "0", 0),
        (503, "999999999999", DAY),
        (503, "-5", 0),
        (503, "1.5", 0),
        (503, "soon", 0),
        (503, "", 0),
        (503, "1" * 5000, 0),
        (503, "²", 0),
        (503, "%a, %d %b %Y %H:%M:%S GMT", 600),  # in ten minutes, by the three forms of RFC 9110, 5.6.7
        (503, "%A, %d-%b-%y %H:%M:%S GMT", 600),
        (503, "%a %b %e %H:%M:%S %Y", 600),
        (503, "Sun, 06 Nov 1994 08:49:37 GMT", 0),
        (503, "Fri, 31 Dec 9999 23:59:59 GMT", DAY),
        (503, "Fri, 99 Dec 99999 99:59:59 GMT", 0),
        (200, "120", 0),
        (301, "120", 0),
        (500, "120", 0),
    ],
)
def test_retry_after(status: int, field: str, seconds: float) -> None:
    """RFC 9110, 5.6.7 and 10.2.3: a number of seconds, or a date in three forms."""
    if "%" in field:
        field = time.strftime(field, time.gmtime(time.time() + seconds))
    response = Response("http://a.example/", status=status, headers={"Retry-After": field})
    assert retry_after(response) == pytest.approx(seconds, abs=60 if seconds == 600 else 0)


def test_no_retry_after() -> None:
    assert retry_after(Response("http://a.example/", status=503)) == 0
