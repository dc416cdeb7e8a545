"""Errors of single sites, pages and robots.txt files in live crawls, by the servers' own logs: others do not suffer."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

from addon_site import Answer
from live_helpers import check_archive, crawl_live, moved, start_live, text_page, wait_for
from owner_sites import OwnerSite, serve_hang_ups, serve_owners

CONTINUOUS = {"CRAWL_BATCH_SIZE": 0, "DOWNLOAD_DELAY": 0.1, "DELAY_FACTOR": 0}


def fill(site: OwnerSite, number: int, *links: str) -> list[str]:
    """Give a site pages, all of which the first one leads to; returns their URLs."""
    paths = [f"/{page}" for page in range(number)]
    site.pages = {path: text_page(page, []) for page, path in enumerate(paths)}
    site.pages = {**site.pages, "/0": text_page(0, [*paths, *links])}
    return [f"{site.url}{path}" for path in paths]


def failures(output: Path) -> dict[str, str]:
    """Reasons of the documents that were not crawled, by URL."""
    lines = (output / "failures.jsonl").read_text().splitlines()
    return {line["id"]: line["reason"] for line in map(json.loads, lines)}


def test_links_to_dead_ports_end_no_other_documents(tmp_path: Path) -> None:
    """Nor do slow pages: a site that answers keeps its documents, one that never did has few exchanges."""
    with serve_owners(2) as (victim, evil), serve_hang_ups("127.0.0.11") as (dead, asked):
        good = fill(victim, 8, "/slow-0", "/slow-1")
        slow = text_page(9, [])._replace(seconds=1.5)
        victim.pages = {**victim.pages, "/slow-0": slow, "/slow-1": slow}
        bad = ["http://127.0.0.11:1/", *(f"{dead}/{number}" for number in range(6))]
        fill(evil, 1, *bad)
        settings = {**CONTINUOUS, "RETRY_WAITS": "0.2", "DOWNLOAD_TIMEOUT": 1, "CRAWL_MAX_ATTEMPTS": 2}
        result = crawl_live([good[0], f"{evil.url}/0"], tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert set(check_archive(tmp_path / "run")) == {*good, f"{evil.url}/0"}
    found = failures(tmp_path / "run")
    assert Counter(found.values()) == {"refused": 1, "connection": 6, "timeout": 2}
    assert all(found[f"{dead}/{number}"] == "connection" for number in range(6))
    assert 2 <= len(asked) <= 4, "the second document that fails is the last one asked for"


def test_a_server_that_is_too_busy_is_left_alone(tmp_path: Path) -> None:
    """Without Retry-After too; what answers 500 waits in the frontier, and neither costs another document."""
    with serve_owners(1) as (site,):
        good = fill(site, 4, "/busy", "/broken")
        busy = [Answer(b"<p>not now", status) for status in (503, 429)]
        site.pages = {**site.pages, "/busy": [*busy, text_page(5, [])], "/broken": Answer(b"<p>out of order", 500)}
        result = crawl_live([good[0]], tmp_path / "run", **CONTINUOUS, RETRY_WAITS="0.6,0.3")
    assert result.returncode == 0, result.stderr
    assert set(check_archive(tmp_path / "run")) == {*good, f"{site.url}/busy"}
    assert failures(tmp_path / "run") == {f"{site.url}/broken": "http_500"}
    assert Counter(site.begun)["/broken"] == Counter(site.begun)["/busy"] == 3
    after = [gap for path, gap in zip(site.begun, site.gaps(), strict=False) if path == "/busy"]
    assert min(after[:2]) >= 0.6, "the second failure of one document is its own"


def test_a_redirect_that_would_wait_long_is_queued(tmp_path: Path) -> None:
    """And a delay of a slow server that is longer than DOWNLOAD_DELAY is written down."""
    settings = {**CONTINUOUS, "DELAY_FACTOR": 5, "JOBDIR": tmp_path / "job", "CONCURRENT_REQUESTS": 1}
    with serve_owners(2) as (first, other), serve_owners(1) as (second,):
        others = fill(other, 5)
        careful = Answer(b"User-agent: *\nCrawl-delay: 200\n", content_type="text/plain")
        second.pages = {"/target": text_page(1, []), "/robots.txt": careful}
        first.pages = {"/from": moved(f"{second.url}/target")}
        other.pages = {**other.pages, "/4": text_page(4, [])._replace(seconds=1.0)}
        process = start_live([f"{first.url}/from", others[0]], tmp_path / "run", **settings)
        log = tmp_path / "run/crawl.jsonl"
        wait_for(lambda: log.exists() and log.read_text().count("\n") == 5)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=600)
    assert "Traceback" not in err
    assert failures(tmp_path / "run") == {f"{first.url}/from": "queued"}
    assert second.begun == ["/robots.txt"]
    holds = [json.loads(line.partition(" ")[2]) for line in (tmp_path / "job/owners.holds").read_text().splitlines()]
    assert max(wait for owner, _, wait, *_ in holds if owner == "127.0.0.12") > 4.5


def test_one_robots_txt_of_many_sites_is_asked_for_once(tmp_path: Path) -> None:
    """And two that redirect to each other are none."""
    with serve_owners(8) as (hub, one, two, *sites):
        hub.pages = {"/robots.txt": Answer(b"User-agent: *\nDisallow: /1\n", content_type="text/plain", seconds=0.5)}
        allowed, forbidden = [], []
        for site, target in [*((site, hub) for site in sites), (one, two), (two, one)]:
            urls = fill(site, 2)
            site.pages = {**site.pages, "/robots.txt": moved(f"{target.url}/robots.txt")}
            allowed += urls if target is not hub else urls[:1]
            forbidden += [] if target is not hub else urls[1:]
        settings = {**CONTINUOUS, "JOBDIR": tmp_path / "job"}
        seeds = [f"{site.url}/0" for site in (one, two, *sites)]
        result = crawl_live(seeds, tmp_path / "run", **settings)
        assert result.returncode == 0, result.stderr
        assert hub.begun == ["/robots.txt"]
        assert [site.begun.count("/robots.txt") for site in (one, two, *sites)] == [1] * 7
    assert set(check_archive(tmp_path / "run")) == set(allowed)
    assert failures(tmp_path / "run") == dict.fromkeys(forbidden, "robots")
