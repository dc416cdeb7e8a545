"""A live crawl of a site with traps and copies, killed in the middle: what leads into a trap is never asked for."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from addon_site import Answer, page, serve
from crawl_helpers import crawl_log, stats
from live_helpers import check_archive, crawl_live, moved, start_live, wait_for

from crawl4llm.parts.url_traps.rules import RULES

CHAIN = 16
TRAPS = {
    "/cgi-bin/next.pl": "cgi_bin",
    "/a/b/a/b/a/b/": "repeated_path",
    "/calendar/2031/05/": "calendar",
    "/?month=5": "calendar",
    "/page;jsessionid=A1B2C3D4E5F6": "session_id",
    "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17": "deep_path",
    "/shop?f=1&f=2&f=3": "many_parameters",
}
SEED = "/cgi-bin/home.pl"


def site() -> dict[str, Answer]:
    """A chain of pages; the last copies the first, and only that leads to ``/behind-the-copy``."""
    web = {
        SEED: moved("/cgi-bin/welcome.pl"),
        "/cgi-bin/welcome.pl": page(0.5, ["/0", "/into-a-trap"], seed=100),
        "/into-a-trap": moved("/calendar/2031/06/"),
        "/behind-the-copy": page(0.5, seed=101),
    }
    for number in range(CHAIN):
        web[f"/{number}"] = page(0.5, [f"/{number + 1}", *TRAPS], seed=number)
    copied = page(0.5, ["/behind-the-copy"], seed=0)
    web[f"/{CHAIN}"] = copied._replace(body=copied.body.replace(b"</h1>", b"</h1><p>A copy of it.</p>"))
    return web


def test_traps_are_not_asked_for_and_copies_are_known_after_a_kill(tmp_path: Path) -> None:
    settings = {
        "JOBDIR": tmp_path / "job",
        "CRAWL_BATCH_SIZE": 0,
        "CRAWL_MAX_PAGES": 100,
        "COMMIT_INTERVAL_PAGES": 1,
        "DELAY_FACTOR": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "NEAR_DUPLICATES": "leave",
    }
    with serve(site()) as served:
        process = start_live([f"{served.url}{SEED}"], tmp_path / "run", **settings, DOWNLOAD_DELAY=0.2)
        wait_for(lambda: len(served.paths()) >= CHAIN // 2)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert f"/{CHAIN}" not in served.paths()
        result = crawl_live([f"{served.url}{SEED}"], tmp_path / "run", **settings)
        assert result.returncode == 0, result.stdout + result.stderr
    log = {line["id"].removeprefix(served.url): line for line in crawl_log(tmp_path / "run")}
    check_archive(tmp_path / "run")
    assert set(served.paths()) == {SEED, "/cgi-bin/welcome.pl", "/into-a-trap", *(f"/{n}" for n in range(CHAIN + 1))}
    assert log["/cgi-bin/welcome.pl"]["depth"] == 0, "a seed is no trap, nor is where it leads by the same rule"
    like = {path: line["near_duplicate_of"] for path, line in log.items() if line["near_duplicate_of"] is not None}
    assert like == {f"/{CHAIN}": log["/0"]["order"]}
    failures = map(json.loads, (tmp_path / "run/failures.jsonl").read_text().splitlines())
    dropped = {line["id"].removeprefix(served.url): line["reason"] for line in failures}
    assert dropped == dict.fromkeys([*TRAPS, "/into-a-trap"], "trap")
    figures = stats(tmp_path / "run")
    assert figures["dropped/trap"] == len(TRAPS) + 1
    rules = list(TRAPS.values())
    assert {rule: figures[f"links/trap/{rule}"] for rule in RULES} == {one: rules.count(one) for one in RULES}
    assert (figures["pages/near_duplicates"], figures["links/near_duplicate"]) == (1, 1)
