"""Delays of owners whose servers say that they have too much to do, by those servers' logs."""

from __future__ import annotations

import json
from pathlib import Path

from addon_site import Answer
from live_helpers import check_archive, crawl_live, start_live, text_page, wait_for
from owner_sites import serve_owners

from crawl4llm.frontier.opening import memory_frontier
from crawl4llm.live.backoff import Backoff

DELAY = 0.1
SETTINGS = {
    "CRAWL_BATCH_SIZE": 0,
    "DOWNLOAD_DELAY": DELAY,
    "DELAY_FACTOR": 0,
    "RETRY_WAITS": "0.1",
    "ROBOTSTXT_OBEY": 0,
}


def backoff() -> Backoff:
    """One that nothing but delays is asked of."""
    return Backoff(None, memory_frontier(by_owners=True).owners, [60.0], None)  # type: ignore[arg-type]


def test_too_much_to_do_doubles_the_delay() -> None:
    """Up to a minute; fifty answers halve it, one that is slow anyway keeps its delay."""
    one = backoff()
    seen = []
    for status in (429, 503, 503, 429, 503):
        one.heard("a.test", status, 5.0, 0.0)
        seen.append(one.slowed("a.test", 5.0))
    assert seen == [10.0, 20.0, 40.0, 60.0, 60.0]
    for _ in range(49):
        one.heard("a.test", 200, 5.0, 0.0)
    assert one.slowed("a.test", 5.0) == 60.0
    for expected in (40.0, 20.0, 10.0, 5.0, 5.0):
        for _ in range(50):
            one.heard("a.test", 404, 5.0, 0.0)
        one.heard("a.test", 503, 5.0, 120.0)  # that says for how long, and is no answer of the fifty
        assert one.slowed("a.test", 5.0) == expected or expected == 40.0
    one.heard("b.test", 503, 90.0, 0.0)
    assert one.slowed("b.test", 90.0) == 90.0
    assert one.slowed("a.test", 5.0) == 5.0


def test_a_delay_stays_doubled_over_a_kill(tmp_path: Path) -> None:
    """By the server's log: 0.1 s, then 0.2 and 0.4 s after each 503, and still in the process that goes on."""
    busy = Answer(b"<p>not now", 503)
    settings = {**SETTINGS, "JOBDIR": tmp_path / "job", "COMMIT_INTERVAL_PAGES": 1}
    with serve_owners(1) as (site,):
        paths = [f"/{page}" for page in range(10)]
        site.pages = {path: text_page(number, []) for number, path in enumerate(paths)}
        site.pages = {**site.pages, "/0": (busy, busy, text_page(0, []))}
        seeds = [f"{site.url}{path}" for path in paths]
        process = start_live(seeds, tmp_path / "run", **settings)
        wait_for(lambda: len(site.log) >= 7)
        process.kill()
        process.communicate()
        asked = len(site.log)
        result = crawl_live(seeds, tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert len(check_archive(tmp_path / "run")) == 10
    second = max(number for number, path in enumerate(site.begun) if path == "/0") - 1
    gaps = site.gaps()
    assert min(gaps) >= DELAY
    assert min(gaps[second + 1 : asked - 1], default=9) >= 4 * DELAY
    assert min(gaps[asked:]) >= 4 * DELAY, "also in the process that goes on"
    rules = [json.loads(line)["rule"] for path in (tmp_path / "job/requests").iterdir() for line in path.open()]
    assert "429, 503" in rules
