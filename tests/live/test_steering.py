"""A live crawl is steered while it runs, by its JOBDIR alone; and its log of requests is what the servers saw."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from crawl_helpers import crawl_log, error_of, scrapy
from live_helpers import crawl_live, start_live, text_page

from tests.testweb import FewPages, LocalWeb, Logged, read_log, running, waits

DELAY, LONGER = 0.15, 0.9
PAGES = 200
HOSTS = ("www.calm.test", "shop.noisy.test", "late.test")
SETTINGS = {
    "CRAWL_BATCH_SIZE": 0,
    "DOWNLOAD_DELAY": DELAY,
    "DELAY_FACTOR": 0,
    "COMMIT_INTERVAL_SECONDS": 1,
    "CRAWL_MAX_PAGES": 10_000,
    "PROGRESS_BAR": "off",
    "WARC_REVISITS": 0,
}


def site() -> dict[str, bytes]:
    """Pages of which the first one links to all."""
    links = [f"/{number}" for number in range(1, PAGES)]
    return {f"/{number}": text_page(number, links if not number else []).body for number in range(PAGES)}


def wait_for(what: Callable[[], object], seconds: float = 600.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


class Steered(NamedTuple):
    """What was seen of a crawl that was steered, killed, and resumed until control.json ended it."""

    job: Path
    output: Path
    asked: list[Logged]
    """All requests, as the servers saw them."""
    blocked_at: float
    """A second after ``--block`` had returned, by the monotonic clock."""
    slowed_at: float
    """When control.json had asked for a longer delay, and the log had said so, likewise."""
    broken: subprocess.CompletedProcess[str]
    """``--block`` while control.json was broken."""
    logs: list[str]
    """Of the process that was killed, and of the one that went on."""
    done: list[str]
    """Files in inject/done/."""
    live: str
    """``scrapy report --owner`` while the crawl ran."""

    def of(self, *hosts: str) -> list[Logged]:
        return [one for one in self.asked if one.host in hosts]


@pytest.fixture(scope="module")
def steered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Steered]:
    folder = tmp_path_factory.mktemp("steered")
    job, output = folder / "job", folder / "run"
    control, inject = job / "control.json", job / "inject"
    web = LocalWeb(folder / "web", FewPages({host: site() for host in HOSTS}))
    with running(web), ExitStack() as stack:
        settings = {**SETTINGS, "JOBDIR": job, "DNS_HOSTS": web.hosts_file, "LOG_FILE": folder / "log"}

        def start() -> subprocess.Popen[str]:
            process = start_live([web.url(host) for host in HOSTS[:2]], output, **settings)
            stack.callback(process.communicate)
            stack.callback(process.kill)
            return process

        def asked(host: str) -> int:
            return sum(one.host == host for one in read_log(web.log_file))

        def said(text: str) -> bool:
            return (folder / "log").exists() and text in (folder / "log").read_text()

        process = start()
        wait_for(lambda: all(asked(host) > 3 for host in HOSTS[:2]))
        control.write_text('{"delay": "long"}')
        wait_for(lambda: said("delay must be"))
        broken = scrapy("frontier", str(job), "--block", "noisy.test")
        control.write_text(json.dumps({"delays": {"calm.test": LONGER}}))
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: said("delays of 1"))
        slowed_at = time.monotonic()
        blocked = scrapy("frontier", str(job), "--block", "noisy.test")
        assert blocked.returncode == 0, blocked.stderr
        time.sleep(1.2)
        blocked_at = time.monotonic()
        seeds = folder / "more"
        seeds.write_text(f"{web.url(HOSTS[2])}\nnonsense\nhttp://noisy.test/never\n")
        os.utime(seeds, (0, 0))
        seeds.rename(inject / "more.txt")
        wait_for(lambda: (inject / "done/more.txt").exists() and asked(HOSTS[2]) > 2)
        live = scrapy("report", str(job), "--owner", "calm.test").stdout
        process.kill()
        process.wait()
        logs = [(folder / "log").read_text()]
        (folder / "log").unlink()
        process = start()
        resumed_at = time.monotonic()
        wait_for(lambda: sum(one.arrived > resumed_at for one in read_log(web.log_file)) > 6)
        content = json.loads(control.read_text())
        control.write_text(json.dumps({**content, "max_pages": 1}))
        assert process.wait(timeout=600) == 0, process.communicate()
        logs.append((folder / "log").read_text())
        done = sorted(path.name for path in (inject / "done").iterdir())
    yield Steered(job, output, read_log(web.log_file), blocked_at, slowed_at, broken, logs, done, live)


def place(url: str) -> str:
    """Host and path."""
    parts = urlsplit(url)
    return f"{parts.hostname}{parts.path}"


def failures(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "failures.jsonl").read_text().splitlines()]


def test_a_blocked_domain_gets_no_request_more(steered: Steered) -> None:
    """Neither from the process that went on after kill -9; what was queued is dropped, and counted."""
    noisy = steered.of("shop.noisy.test")
    assert noisy
    assert max(one.arrived for one in noisy) < steered.blocked_at
    assert max(one.arrived for one in steered.asked) > steered.blocked_at + 1
    dropped = [line["id"] for line in failures(steered.output) if line["reason"] == "opt_out"]
    crawled = [line["id"] for line in crawl_log(steered.output) if "noisy.test" in line["id"]]
    assert len(dropped) == len(set(dropped)) == PAGES + 1 - len(crawled)
    assert all("noisy.test" in url for url in dropped)
    assert scrapy("frontier", str(steered.job), "--verify").stdout.startswith("sound: ")


def test_exports_leave_it_out_until_it_is_unblocked(steered: Steered, tmp_path: Path) -> None:
    pages = Counter("noisy.test" in line["id"] for line in crawl_log(steered.output))
    export = ("export", str(steered.output), "--format", "jsonl", "--keep-duplicates", "--out")
    result = scrapy(*export, str(tmp_path / "without"))
    assert result.returncode == 0, result.stderr
    assert f"Wrote {pages[False]:,} documents" in result.stdout
    assert f"left out: {pages[True]:,} opt_out" in result.stdout
    assert "noisy.test" not in "".join(path.read_text() for path in tmp_path.glob("without/documents/*"))
    told = scrapy("frontier", str(steered.job), "--unblock", "noisy.test").stdout
    assert told == "noisy.test is not blocked: when the crawl goes on; in all 0 domains\n"
    assert f"Wrote {pages.total():,} documents" in scrapy(*export, str(tmp_path / "with")).stdout
    assert scrapy("frontier", str(steered.job), "--block", "noisy.test").returncode == 0


def test_a_delay_of_the_control_file_holds_for_its_owner(steered: Steered) -> None:
    """From when it was read on, though it waited for less already, and after a restart; for others nothing changes."""
    calm = sorted(steered.of("www.calm.test"))
    before = [one for one in calm if one.arrived < steered.slowed_at]
    assert min(waits(calm[len(before) - 1 :])["calm.test"]) >= LONGER
    assert min(waits(before)["calm.test"]) < LONGER
    assert DELAY <= min(waits(steered.of("late.test"))["late.test"]) < LONGER


def test_what_is_wrong_is_one_line_and_what_held_before_holds(steered: Steered) -> None:
    wrong = f"{steered.job / 'control.json'}: delay must be a number of seconds, from 0 to 86400"
    assert error_of(steered.broken) == wrong
    said = [line for line in steered.logs[0].splitlines() if "delay must be" in line]
    assert len(said) == 1
    assert said[0].endswith(f"{wrong}; the earlier instructions stay in force")
    assert not any("Traceback" in log for log in steered.logs)


def test_injected_seeds_are_crawled(steered: Steered) -> None:
    assert steered.done == ["more.txt"]
    assert len(steered.of("late.test")) > 3
    stats = json.loads((steered.output / "stats.json").read_text())
    assert stats["crawl4llm/seeds/malformed"] == 1
    assert stats["crawl4llm/seeds/given"] == 5
    assert any("//late.test" in line["id"] for line in crawl_log(steered.output))


def test_the_report_has_each_request_that_the_servers_saw(steered: Steered) -> None:
    """Apart from those that were on the wire when the process was killed."""
    found: Counter[tuple[str, int]] = Counter()
    for owner in ("calm.test", "noisy.test", "late.test"):
        told = scrapy("report", str(steered.job), "--owner", owner, "--json")
        assert told.returncode == 0, told.stderr
        report = json.loads(told.stdout)
        requests, summary = report["requests"], report["summary"]
        found.update(
            (request["url"].split(":")[1][2:] + "/" + request["url"].split("/", 3)[3], request["status"])
            for request in requests
        )
        assert summary["requests"] == len(requests)
        assert summary["robots_txt"] >= 1
        assert [request["time"] for request in requests] == sorted(request["time"] for request in requests)
    seen = Counter((f"{one.host}{one.path}", one.status) for one in steered.asked)
    assert not found - seen
    assert (seen - found).total() <= 3, "one for each owner"


def test_the_report_is_one_to_answer_a_complaint_with(steered: Steered) -> None:
    """It tells by which rule was waited, also while the crawl runs; the log is for its owner's eyes."""
    assert " DOWNLOAD_DELAY " in steered.live
    whole = scrapy("report", str(steered.job), "--owner", "www.calm.test").stdout
    assert " control.json " in whole
    assert whole.splitlines()[-2].startswith("calm.test: ")
    logs = list((steered.job / "requests").iterdir())
    assert logs
    assert all(log.stat().st_mode & 0o077 == 0 for log in logs)
    table = scrapy("report", str(steered.job)).stdout
    assert "calm.test" in table
    report = json.loads(scrapy("report", str(steered.job), "--json").stdout)
    sums = [sum(row["requests"] for row in report[kind]) for kind in ("owners", "days")]
    assert sums[0] == sums[1] > 0


def test_a_crawl_in_batches_heeds_it_from_its_beginning(tmp_path: Path) -> None:
    """What was blocked before it is never asked; a finished crawl goes on with seeds; one with a broken file does not
    start."""
    job, output = tmp_path / "job", tmp_path / "run"
    (job / "inject").mkdir(parents=True)
    (job / "control.json").write_text('{"blocked": ["b.test"]}')
    page = {"/": text_page(1, []).body}
    web = LocalWeb(tmp_path / "web", FewPages(dict.fromkeys(("a.test", "b.test", "c.test"), page)))
    with running(web):
        settings = {**SETTINGS, "CRAWL_BATCH_SIZE": 10, "JOBDIR": job, "DNS_HOSTS": web.hosts_file}

        def crawl() -> subprocess.CompletedProcess[str]:
            return crawl_live([web.url("a.test"), web.url("b.test")], output, **settings)

        assert crawl().returncode == 0
        (job / "inject/c.txt").write_text(web.url("c.test"))
        os.utime(job / "inject/c.txt", (0, 0))
        assert crawl().returncode == 0
        (job / "control.json").write_text('{"delay": 1,}')
        refused = crawl()
    assert refused.returncode == 1
    assert f"{job / 'control.json'} is not JSON" in error_of(refused)
    assert [place(line["id"]) for line in crawl_log(output)] == ["a.test/", "c.test/"]
    assert [(place(line["id"]), line["reason"]) for line in failures(output)] == [("b.test/", "opt_out")]
    asked = Counter(one.host for one in read_log(web.log_file))
    assert asked == {"a.test": 3, "c.test": 3}, "robots.txt, the page, and tdmrep.json"
    report = json.loads(scrapy("report", str(job), "--json").stdout)
    assert {row["owner"]: row["requests"] for row in report["owners"]} == asked
