"""How live crawls in continuous order end, and what stops them: parked owners, no network, a full disk."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from addon_site import Answer
from crawl_helpers import begin_python, crawl_log, scrapy, stats
from live_helpers import crawl_live, start_live, text_page
from owner_sites import OwnerSite, serve_owners
from scrapy_server import Process

CONTINUOUS = {"CRAWL_BATCH_SIZE": 0, "DELAY_FACTOR": 0, "DOWNLOAD_DELAY": 0.1}
FAST = {**CONTINUOUS, "CRAWL_WAIT": 1.5, "RETRY_WAITS": "0.2,0.2,0.2"}


def fill(site: OwnerSite, robots: Answer, number: int = 4) -> list[str]:
    """Give a site pages; returns their URLs."""
    site.pages = {**{f"/{page}": text_page(page, []) for page in range(number)}, "/robots.txt": robots}
    return [f"{site.url}/{page}" for page in range(number)]


def rules(delay: float) -> Answer:
    return Answer(f"User-agent: *\nCrawl-delay: {delay:g}\n".encode(), content_type="text/plain")


def failures(output: Path) -> dict[str, str]:
    lines = (output / "failures.jsonl").read_text().splitlines()
    return {line["id"]: line["reason"] for line in map(json.loads, lines)}


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 600
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_who_asks_for_a_long_delay_is_parked(tmp_path: Path) -> None:
    """Over a kill before the commit too; the crawl ends with nothing lost, and goes on where the cap is greater."""
    settings = {**FAST, "JOBDIR": tmp_path / "job", "CRAWL_DELAY_CAP": 0.5, "COMMIT_INTERVAL_SECONDS": 600}
    with serve_owners(2) as (slow, other):
        seeds = [*fill(slow, rules(1), 2), *fill(other, rules(0.1), 12)]
        process = start_live(seeds, tmp_path / "run", **settings)
        holds = tmp_path / "job/owners.holds"
        wait_for(lambda: holds.exists() and "127.0.0.11" in holds.read_text() and len(other.begun) > 3)
        process.kill()
        process.communicate()
        result = crawl_live(seeds, tmp_path / "run", **settings)
        assert result.returncode == 0, result.stderr
        assert "(only documents of parked owners remain)" in result.stdout
        assert "2 documents of 1 owners" in result.stdout
        assert "Next: the same command resumes it" in result.stdout
        assert slow.begun == ["/robots.txt"], "nor again after the kill"
        assert len(crawl_log(tmp_path / "run")) == 12
        assert stats(tmp_path / "run")["frontier/parked"] == 2
        shown = scrapy("frontier", str(settings["JOBDIR"]))
        assert "     2  127.0.0.11            1" in shown.stdout, shown.stdout + shown.stderr
        result = crawl_live(seeds, tmp_path / "run", **{**settings, "CRAWL_DELAY_CAP": 1})
        assert result.returncode == 0, result.stderr
        assert "(the frontier is empty" in result.stdout
        assert min(slow.gaps()) >= 1
    assert len(crawl_log(tmp_path / "run")) == 14
    assert failures(tmp_path / "run") == {}


def test_a_site_without_robots_txt_ends_alone(tmp_path: Path) -> None:
    """Two sites of one owner: after the waits the documents of the broken one fail, with as many requests as there are
    waits and one; no attempt of a document is spent on it."""
    broken = Answer(b"out of order", 503)
    # Each 503 doubles the delay, so the last wait is long enough for the other documents of the owner.
    settings = {**FAST, "DOWNLOAD_DELAY": 0.05, "RETRY_WAITS": "0.2,2.5", "CRAWL_MAX_ATTEMPTS": 1}
    with serve_owners(1) as (first,), serve_owners(1) as (second,):
        lost, kept = fill(first, broken), fill(second, rules(0), 2)
        result = crawl_live([*lost, *kept], tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert first.begun == ["/robots.txt"] * 3
    assert failures(tmp_path / "run") == dict.fromkeys(lost, "robots_unknown")
    assert sorted(line["id"] for line in crawl_log(tmp_path / "run")) == sorted(kept)
    assert stats(tmp_path / "run")["given_up/robots_unknown"] == 1


def test_a_dead_owner_has_no_new_tries_after_a_restart(tmp_path: Path) -> None:
    settings = {**CONTINUOUS, "JOBDIR": tmp_path / "job", "RETRY_WAITS": "0.1,1.5", "ROBOTSTXT_OBEY": 0}
    site_of_dead = '"http://127.0.0.99:9"'
    with serve_owners(1) as (site,):
        seeds = [*fill(site, rules(0), 25), *(f"http://127.0.0.99:9/{number}" for number in range(5))]
        process = start_live(seeds, tmp_path / "run", **settings)
        holds = tmp_path / "job/owners.holds"
        wait_for(lambda: holds.exists() and holds.read_text().count(site_of_dead) == 2)
        process.kill()
        process.communicate()
        before = holds.read_text().count(site_of_dead)
        result = crawl_live(seeds, tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert Counter(failures(tmp_path / "run").values()) == {"refused": 5}
    assert holds.read_text().count(site_of_dead) == before + 1, "the third failure is the last"
    assert stats(tmp_path / "run")["given_up/refused"] == 1


@pytest.mark.parametrize("number", [1, 12])
def test_without_a_network_the_crawl_stops_and_keeps_its_seeds(tmp_path: Path, number: int) -> None:
    (tmp_path / "hosts").write_text("127.0.0.1 nobody.test\n")
    seeds = [f"http://host{host}.test/" for host in range(number)]
    settings = {**FAST, "JOBDIR": tmp_path / "job", "DNS_HOSTS": tmp_path / "hosts", "CRAWL_MAX_ATTEMPTS": 1}
    result = crawl_live(seeds, tmp_path / "run", **settings)
    assert result.returncode == 1
    assert "crawl4llm: error: no network: " in result.stderr
    assert "Traceback" not in result.stderr
    assert "(no_network)" in result.stdout
    assert failures(tmp_path / "run") == {}
    shown = scrapy("frontier", str(settings["JOBDIR"]))
    assert f"queued     {number}\n" in shown.stdout


def test_a_disk_that_is_nearly_full_stops_the_crawl(tmp_path: Path) -> None:
    settings = {**CONTINUOUS, "JOBDIR": tmp_path / "job"}
    with serve_owners(1) as (site,):
        seeds = fill(site, rules(0))
        much = 2 * shutil.disk_usage(tmp_path).free
        result = crawl_live(seeds, tmp_path / "run", **settings, DISK_MIN_FREE=much)
        assert result.returncode == 1
        assert "MB free, less than DISK_MIN_FREE" in result.stderr
        assert len(result.stderr.split("crawl4llm: error:")) == 2
        result = crawl_live(seeds, tmp_path / "run", **settings)
        assert result.returncode == 0, result.stderr
    assert len(crawl_log(tmp_path / "run")) == 4


@contextmanager
def web_of_its_own(folder: Path, *more: str) -> Iterator[Process]:
    """A local web in a process that can be stopped."""
    with begin_python("-m", "tests.testweb", "--folder", folder, *more, silent=["err"]) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()


def test_nobody_is_blamed_for_an_outage(tmp_path: Path) -> None:
    """No server answers for some seconds; who were blamed would not be asked again in this test."""
    settings = {**CONTINUOUS, "RETRY_WAITS": 600, "CRAWL_WAIT": 15, "DOWNLOAD_TIMEOUT": 1, "CRAWL_MAX_ATTEMPTS": 1}
    log = tmp_path / "log"
    with web_of_its_own(tmp_path / "web", "--pages=120", "--hosts=12") as web:
        hosts, seeds = tmp_path / "web/hosts", (tmp_path / "web/seeds.txt").read_text().split()
        process = start_live(seeds, tmp_path / "run", **settings, DNS_HOSTS=hosts, CRAWL_MAX_PAGES=60, LOG_FILE=log)
        wait_for(lambda: (tmp_path / "web/access.jsonl").read_text().count("\n") > 30)
        web.send_signal(signal.SIGSTOP)
        wait_for(lambda: "No network: " in log.read_text() or process.poll() is not None)
        time.sleep(2)  # a document is tried meanwhile, in vain
        web.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    err += log.read_text()
    assert "No network: " in err
    assert "The network is back after" in err
    assert "timeout" not in failures(tmp_path / "run").values()
    assert "Traceback" not in err


def test_a_web_of_which_a_third_is_dead_leaves_a_short_log(tmp_path: Path) -> None:
    """No traceback, and a line in some seconds, whatever has failed."""
    settings = {**CONTINUOUS, "RETRY_WAITS": "0.4,0.4,0.4", "DOWNLOAD_TIMEOUT": 1}
    kinds = ["nowhere", "refusing", "reset", "hang", "garbage"]
    dead = [f"--misbehave=dead{number}.test={kinds[number % 5]}" for number in range(10)]
    began = time.monotonic()
    with web_of_its_own(tmp_path / "web", "--pages=150", "--hosts=20", *dead):
        hosts, seeds = tmp_path / "web/hosts", (tmp_path / "web/seeds.txt").read_text().split()
        result = crawl_live(seeds, tmp_path / "run", **settings, DNS_HOSTS=hosts)
    seconds = time.monotonic() - began
    assert result.returncode == 0, result.stderr
    assert len(crawl_log(tmp_path / "run")) > 100
    assert "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) <= 12 + seconds / 3, result.stderr
    assert not (tmp_path / "run/errors.log").exists()
