"""Live crawls in continuous order ask each owner in turn, by the servers' own logs, and nobody early."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from addon_site import Answer
from changing_dns import EXTENSIONS, LOG
from crawl_helpers import scrapy, stats
from live_helpers import check_archive, crawl_live, moved, start_live, text_page, wait_for
from owner_sites import Pages, serve_hang_ups, serve_owners
from slow_scorer import SECONDS

from tests.testweb import FewPages, LocalWeb, read_log, running, waits

DELAY = 0.2
CONTINUOUS = {"CRAWL_BATCH_SIZE": 0, "DOWNLOAD_DELAY": DELAY, "DELAY_FACTOR": 0}
ROBOTS = Answer(b"User-agent: *\nDisallow: /private\n", content_type="text/plain")


def pages(number: int, links: Sequence[str] = (), **more: Answer | Sequence[Answer]) -> Pages:
    """A site of so many pages, all of which the first one leads to; ``more`` by path without the slash."""
    found: dict[str, Answer | Sequence[Answer]] = {f"/{page}": text_page(page, []) for page in range(number)}
    found["/0"] = text_page(0, [*found, *(f"/{path}" for path in more), *links])
    found["/robots.txt"] = ROBOTS
    return {**found, **{f"/{path}": answer for path, answer in more.items()}}


def failures(output: Path) -> dict[str, str]:
    """Reasons of the documents that were not crawled, by URL."""
    lines = (output / "failures.jsonl").read_text().splitlines()
    return {line["id"]: line["reason"] for line in map(json.loads, lines)}


def test_a_site_gets_the_delay_that_its_robots_txt_asks_for(tmp_path: Path) -> None:
    """Also from a process that goes on where another was killed; sites without one are not held up by it."""
    slow = Answer(b"User-agent: *\nCrawl-delay: 0.8\n", content_type="text/plain")
    settings = {**CONTINUOUS, "DOWNLOAD_DELAY": 0.1, "JOBDIR": tmp_path / "job"}
    with serve_owners(2) as (careful, other):
        careful.pages = {**pages(3), "/robots.txt": slow}
        other.pages = pages(3)
        seeds = [f"{careful.url}/0", f"{other.url}/0"]
        process = start_live(seeds, tmp_path / "run", **settings)
        wait_for(lambda: len(careful.log) >= 2)
        process.kill()
        process.communicate(timeout=600)
        done = crawl_live(seeds, tmp_path / "run", **settings)
        assert done.returncode == 0, done.stderr
        assert len(check_archive(tmp_path / "run")) == 6
        assert min(careful.gaps()) >= 0.8
        assert len(other.log) >= 4
        assert max(one.ended for one in other.log) < max(one.ended for one in careful.log) - 1


def test_nobody_is_asked_early(tmp_path: Path) -> None:
    """robots.txt, redirects, also to another owner, and retries included; and the crawl ends when all is done."""
    with serve_owners(4) as sites:
        for site, other in zip(sites, [*sites[1:], sites[0]], strict=True):
            site.pages = pages(
                3,
                [f"{other.url}/0", "/private/a"],
                moved=moved("/target"),
                target=text_page(10, []),
                away=moved(f"{other.url}/only-from-away"),
                broken=Answer(b"<p>out of order", 500),
                **{"only-from-away": text_page(11, [])},
            )
        result = crawl_live([f"{sites[0].url}/0"], tmp_path / "run", **CONTINUOUS)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    for site in sites:
        assert min(site.gaps()) >= DELAY
        assert site.begun.count("/broken") == 3
        assert site.begun.count("/robots.txt") == 1
        assert len(site.log) >= 9
    crawled = check_archive(tmp_path / "run")
    assert {f"{site.url}/{page}" for site in sites for page in ("0", "1", "2", "target")} <= set(crawled)
    reasons = set(failures(tmp_path / "run").values())
    assert {"http_500", "robots", "duplicate"} <= reasons <= {"http_500", "robots", "duplicate", "visited", "queued"}
    assert stats(tmp_path / "run")["frontier/queued"] == stats(tmp_path / "run")["frontier/leased"] == 0


def test_a_slow_owner_holds_up_nobody(tmp_path: Path) -> None:
    """And is left alone the longer the slower it is."""
    with serve_owners(3) as sites:
        for site in sites:
            site.pages = pages(4)
        slow = sites[0]
        slow.pages = {**slow.pages, "/0": text_page(0, ["/1"])._replace(seconds=1.2)}
        seeds = [f"{site.url}/0" for site in sites]
        result = crawl_live(seeds, tmp_path / "run", **{**CONTINUOUS, "DELAY_FACTOR": 2}, CONCURRENT_REQUESTS=2)
    assert result.returncode == 0, result.stderr
    log = check_archive(tmp_path / "run")
    assert len(log) == 10
    assert log.index(f"{slow.url}/0") > 1, "others were archived while it was waited for"
    after = slow.gaps()[slow.begun.index("/0")]
    assert after >= 2.4
    assert min(gap for site in sites for gap in site.gaps()) >= DELAY


def test_a_page_that_is_slow_to_score_holds_up_nobody(tmp_path: Path) -> None:
    """Nor are there more pages than are asked for, though they are leased while it is scored."""
    settings = {**CONTINUOUS, "SCORER": "slow_scorer.SlowScorer", "SCORING_WORKERS": 2, "CRAWL_MAX_PAGES": 7}
    with serve_owners(2) as (first, second):
        page = text_page(0, [])
        first.pages = {"/0": page._replace(body=page.body.replace(b"<p>", b"<p>It takes a while to score this. ", 1))}
        second.pages = pages(10)
        result = crawl_live(
            [f"{first.url}/0", *(f"{second.url}/{number}" for number in range(10))], tmp_path / "run", **settings
        )
    assert result.returncode == 0, result.stderr
    assert len(check_archive(tmp_path / "run")) == 7
    began, taken = min(one.ended for one in first.log if one.path == "/0"), SECONDS
    assert sum(began < one.began < began + taken for one in second.log) >= 3
    assert len(second.paths()) == 6


def test_owners_in_turn_take_no_longer_than_one(tmp_path: Path) -> None:
    """Six owners of three pages each, with one place in the downloader for every two of them."""
    delay = 1.0
    with serve_owners(6) as sites:
        for site in sites:
            site.pages = pages(3)
        seeds = [f"{site.url}/0" for site in sites]
        result = crawl_live(seeds, tmp_path / "run", **{**CONTINUOUS, "DOWNLOAD_DELAY": delay}, CONCURRENT_REQUESTS=3)
    assert result.returncode == 0, result.stderr
    assert len(check_archive(tmp_path / "run")) == 18
    assert min(gap for site in sites for gap in site.gaps()) >= delay
    first = min(one.began for site in sites for one in site.log)
    last = max(one.ended for site in sites for one in site.log)
    assert last - first < 2 * 4 * delay, "four delays, and not eight: who waits after robots.txt takes nobody's place"


def test_retry_after_holds_over_a_kill(tmp_path: Path) -> None:
    seconds = 3.0
    later = Answer(b"<p>later", 503, headers={"Retry-After": f"{seconds:.0f}"})
    settings = {**CONTINUOUS, "JOBDIR": tmp_path / "job", "ROBOTSTXT_OBEY": 0}
    with serve_owners(2) as (busy, other):
        busy.pages = {**pages(1), "/0": (later, text_page(0, []))}
        other.pages = pages(12)
        seeds = [f"{busy.url}/0", f"{other.url}/0"]
        process = start_live(seeds, tmp_path / "run", **settings)
        wait_for(lambda: len(busy.log) == 1 and len(other.log) >= 3)
        process.kill()
        process.communicate()
        result = crawl_live(seeds, tmp_path / "run", **settings)
        assert result.returncode == 0, result.stderr
    assert busy.begun == ["/0", "/0"]
    assert seconds <= busy.gaps()[0] < seconds + 30
    assert f"{busy.url}/0" in check_archive(tmp_path / "run")
    assert min(other.gaps()) >= DELAY


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_is_stopped_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    """Nothing is lost, nothing archived twice, and nobody asked early, over two stops."""
    settings = {**CONTINUOUS, "JOBDIR": tmp_path / "job", "COMMIT_INTERVAL_PAGES": 3}
    killed: list[float] = []
    with serve_owners(3) as sites:
        for site, other in zip(sites, [*sites[1:], sites[0]], strict=True):
            site.pages = pages(8, [f"{other.url}/0"])
        sites[1].pages = {**sites[1].pages, "/5": text_page(5, [])._replace(seconds=0.3)}
        seeds = [f"{sites[0].url}/0"]
        for asked in (9, 18):
            process = start_live(seeds, tmp_path / "run", **settings)
            wait_for(lambda asked=asked: sum(len(site.begun) for site in sites) >= asked)  # type: ignore[misc]
            process.send_signal(number)
            _, err = process.communicate(timeout=600)
            if number == signal.SIGKILL:
                killed.append(time.monotonic())
            assert process.returncode == (130 if number == signal.SIGTERM else -number), err
            assert "Traceback" not in err, err
        result = crawl_live(seeds, tmp_path / "run", **settings)
        assert result.returncode == 0, result.stderr
    assert sorted(check_archive(tmp_path / "run")) == sorted(
        f"{site.url}/{page}" for site in sites for page in range(8)
    )
    assert min(gap for site in sites for gap in site.gaps(killed)) >= DELAY
    verified = scrapy("frontier", str(settings["JOBDIR"]), "--verify")
    assert verified.stdout.startswith("sound: "), verified.stderr
    if number == signal.SIGTERM:
        assert max(Counter(path for path in sites[0].paths()).values()) == 1


def test_a_dead_owner_costs_a_few_exchanges(tmp_path: Path) -> None:
    """Three documents' worth, however many there are; all end with the one reason."""
    settings = {**CONTINUOUS, "RETRY_WAITS": "0.6,0.8", "ROBOTSTXT_OBEY": 0}
    with serve_hang_ups("127.0.0.99") as (url, asked), serve_owners(1) as (site,):
        site.pages = pages(6, [f"{url}/{number}" for number in range(10)])
        result = crawl_live([f"{site.url}/0"], tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert len(check_archive(tmp_path / "run")) == 6
    assert failures(tmp_path / "run") == {f"{url}/{number}": "connection" for number in range(10)}
    assert len(asked) == 3
    assert asked[1] - asked[0] >= 0.6
    assert asked[2] - asked[1] >= 0.8
    assert stats(tmp_path / "run")["failed/connection"] == 10


def test_no_request_is_repeated_at_once(tmp_path: Path) -> None:
    """Not even one over a connection that was used before, and is closed without an answer: it may have come."""
    site = FewPages({"a.test": {"/": b"<p>A page with <a href='/gone'>a link</a>."}})
    with running(LocalWeb(tmp_path / "web", site, misbehaving={"a.test/gone": "reset"})) as web:
        settings = {**CONTINUOUS, "RETRY_WAITS": "0.6", "DNS_HOSTS": web.hosts_file, "NETWORK_ALLOWED": "127.0.0.0/8"}
        result = crawl_live(web.seeds, tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    requests = read_log(web.log_file)
    asked = [one.path for one in requests if one.path != "/robots.txt"]  # by which the network is tried
    assert asked == ["/", "/.well-known/tdmrep.json", "/gone", "/gone", "/gone"], "each once an attempt"
    assert min(waits(requests)["a.test"]) >= DELAY
    assert failures(tmp_path / "run") == {web.url("a.test", "/gone"): "connection"}


def test_a_host_without_an_address_is_looked_up_as_often_as_there_are_waits(tmp_path: Path) -> None:
    """However many documents it has, whether or not its owner has other hosts; and once more for none of them."""
    hosts = ["no-such-host.invalid", "a.several.invalid", "b.several.invalid"]
    seeds = [f"http://{host}/{number}" for host in hosts for number in range(10)]
    with serve_owners(1) as (site,):
        site.pages = pages(2)
        result = crawl_live(
            [*seeds, f"{site.url}/0"],
            tmp_path / "run",
            {LOG: str(tmp_path / "look-ups")},
            **{**CONTINUOUS, "RETRY_WAITS": "0.2,0.3", "ROBOTSTXT_OBEY": 0, "CRAWL_MAX_ATTEMPTS": 5},
            EXTENSIONS=EXTENSIONS,
            DNSCACHE_ENABLED=0,
        )
    assert result.returncode == 0, result.stderr
    assert failures(tmp_path / "run") == dict.fromkeys(seeds, "dns")
    assert Counter((tmp_path / "look-ups").read_text().split()) == dict.fromkeys(hosts, 2)
    assert stats(tmp_path / "run")["given_up/dns"] == 3


def test_patience_leaves_nothing_out(tmp_path: Path) -> None:
    """What is not good enough now is asked for when there is nothing better to wait for."""
    with serve_owners(3) as sites:
        for site in sites:
            site.pages = pages(4)
        settings = {**CONTINUOUS, "DOWNLOAD_DELAY": 0.2, "CRAWL_PATIENCE": 0.9}
        result = crawl_live([f"{site.url}/0" for site in sites], tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert len(check_archive(tmp_path / "run")) == 12
    assert min(gap for site in sites for gap in site.gaps()) >= 0.2
