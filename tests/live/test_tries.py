"""Sites that never answered hold up no other site of their owner, by the servers' logs and the log of requests."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise, product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest
from addon_site import Answer
from crawl_helpers import crawl_log, scrapy, stats
from live_helpers import check_archive, crawl_live, start_live, text_page, wait_for
from owner_sites import serve_at, serve_owners

from tests.testweb import FewPages, LocalWeb, read_log, running, waits

DELAY = 0.1
CONTINUOUS: dict[str, Any] = {"CRAWL_BATCH_SIZE": 0, "DOWNLOAD_DELAY": DELAY}
CLEAN, STRANGE = "clean.test", "strange.test"


def requests(jobdir: Path) -> list[dict[str, Any]]:
    """The lines of the request log, so far as they are whole."""
    whole = [path.read_text().rpartition("\n")[0] for path in sorted(jobdir.glob("requests/*"))]
    return [json.loads(line) for text in whole for line in text.splitlines()]


def failed(jobdir: Path) -> list[dict[str, Any]]:
    """Those of requests without an answer."""
    return [line for line in requests(jobdir) if line["error"]]


@contextmanager
def listening(address: str, backlog: int = 8) -> Iterator[int]:
    """A port that accepts connections and says nothing; with no backlog it answers no SYN once that is full."""
    with socket.socket() as server, socket.socket() as first, socket.socket() as second:
        server.bind((address, 0))
        server.listen(backlog)
        for one in (first, second) if not backlog else ():
            one.setblocking(False)
            one.connect_ex(server.getsockname())
        yield server.getsockname()[1]


def test_links_of_strangers_cost_a_site_little(tmp_path: Path) -> None:
    """A hundred links to dead places of an owner: at most one of its turns in twenty goes to one of them, with the
    settings of the profile, budgets included; and each page is fetched, though each leads to the next one alone."""
    number, delay = 70, 0.05
    dead = [f"http://nowhere-{link}.{CLEAN}/" for link in range(50)]
    dead += [f"http://{CLEAN}:{port}/" for port in range(2, 52)]
    names = [f"/{first}{second}" for first, second in product(ascii_lowercase, repeat=2)]  # numbers have one budget
    pages = {names[page]: text_page(page, [names[page + 1]]).body for page in range(number)}
    web = FewPages({CLEAN: {"/": pages[names[0]], **pages}, STRANGE: {"/": text_page(7, dead).body}})
    settings = {**CONTINUOUS, "URL_BUDGET": None, "JOBDIR": tmp_path / "job", "CLOSESPIDER_TIMEOUT": 300}
    settings["DOWNLOAD_DELAY"] = delay
    with running(LocalWeb(tmp_path / "web", web)) as local:
        settings |= {"DNS_HOSTS": local.hosts_file, "CRAWL_MAX_PAGES": number + 1}
        result = crawl_live(local.seeds, tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert "all that were asked for" in result.stdout, result.stdout
    assert len(check_archive(tmp_path / "run")) == number + 1
    sent = [line for line in requests(tmp_path / "job") if line["owner"] == CLEAN]
    tries = [place for place, line in enumerate(sent) if line["error"] is not None]
    assert 3 <= len(tries) <= 1 + len(sent) // 20
    assert all(after - before >= 20 for before, after in pairwise(tries))
    assert min(waits(read_log(local.log_file))[CLEAN]) >= delay
    assert stats(tmp_path / "run")["parked/unanswered"] > 50


def test_a_try_ends_without_a_connection(tmp_path: Path) -> None:
    """A host that answers no SYN, one that never does its part of a handshake; the time counts for no delay of the
    next try of its owner, at which nobody listens."""
    factor = {"DELAY_FACTOR": 60, "JOBDIR": tmp_path / "job", "RETRY_WAITS": "600", "DOWNLOAD_TIMEOUT": 120}
    address, other, job = "127.0.0.11", "127.0.0.12", tmp_path / "job"
    with serve_owners(1) as (site,), listening(address, 0) as silent, listening(other) as mute:
        dead = [f"http://{address}:{silent}/", f"http://{address}:65535/", f"https://{other}:{mute}/"]
        site.pages = {f"/{page}": text_page(page, [f"/{page + 1}"] * (page < 2)) for page in range(3)}
        site.pages["/0"] = text_page(0, ["/1", *dead])  # as seeds they might come first, and nobody had answered then
        process = start_live([f"{site.url}/0"], tmp_path / "run", **CONTINUOUS, **factor)
        wait_for(lambda: process.poll() is not None or len(failed(job)) == 3)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert len(check_archive(tmp_path / "run")) == 3
    found = {line["url"].removesuffix("robots.txt"): line for line in failed(job)}
    assert set(found) == set(dead)
    first, then, elsewhere = (found[url] for url in dead)
    assert (first["error"], then["error"], elsewhere["error"]) == ("timeout", "refused", "timeout")
    assert all(4_000 < line["ms"] < 60_000 for line in (first, elsewhere))
    assert first["time"] < then["time"]
    assert then["waited"] < 60, "60 times 5 seconds"


def test_what_is_known_of_sites_outlives_a_kill(tmp_path: Path) -> None:
    """One that never answered is left alone for its wait by the process that goes on, one that did is asked on."""
    settings = {**CONTINUOUS, "JOBDIR": tmp_path / "job", "RETRY_WAITS": "600", "COMMIT_INTERVAL_PAGES": 1}
    with serve_owners(1) as (site,):
        dead = [f"http://127.0.0.11:1/{page}" for page in range(5)]
        site.pages = {f"/{page}": text_page(page, [f"/{page + 1}", *dead]) for page in range(25)}
        settings["CRAWL_MAX_PAGES"] = 25
        process = start_live([f"{site.url}/0"], tmp_path / "run", **settings)
        wait_for(lambda: len(site.begun) > 12)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        result = crawl_live([f"{site.url}/0"], tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert len(check_archive(tmp_path / "run")) == 25
    assert [line["url"] for line in failed(tmp_path / "job")] == ["http://127.0.0.11:1/robots.txt"]
    verified = scrapy("frontier", str(tmp_path / "job"), "--verify")
    assert verified.stdout.startswith("sound: "), verified.stderr


@pytest.mark.parametrize(("leases", "pages"), [(1, 32), (256, 3)])
def test_a_try_that_nobody_else_may_be_asked_beside_holds_up_nothing(tmp_path: Path, leases: int, pages: int) -> None:
    """While it is the last document that may be handed out, no answer of others is waited for."""
    dead = [f"http://nowhere-{number}.invalid/" for number in range(3)]
    with serve_owners(2) as (one, other):
        one.pages = {"/0": text_page(0, ["/1"]), "/1": text_page(1, [])}
        other.pages = {"/0": text_page(0, [*dead, *(f"/{page}" for page in range(1, 30))])}
        other.pages |= {f"/{page}": text_page(page, []) for page in range(1, 30)}
        settings = {**CONTINUOUS, "CRAWL_CONCURRENT_LEASES": leases, "CRAWL_MAX_PAGES": pages}
        began = time.monotonic()
        result = crawl_live([f"{one.url}/0", f"{other.url}/0"], tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert stats(tmp_path / "run")["unsent/dns"] > 0
    assert time.monotonic() - began < 25


def test_a_crawl_that_waits_for_the_unanswered_ends(tmp_path: Path) -> None:
    """After CRAWL_WAIT, with a line that says for whom; the same command goes on, and finds who answers now."""
    settings = {**CONTINUOUS, "JOBDIR": tmp_path / "job", "RETRY_WAITS": "3,3,3", "CRAWL_WAIT": 1.5}
    with listening("127.0.0.12") as port:
        pass
    lost = [f"http://127.0.0.12:{port}/{page}" for page in range(3)]
    with serve_owners(1) as (site,):
        site.pages = {"/0": text_page(0, lost), "/1": text_page(1, [])}
        seeds = [f"{site.url}/0", f"{site.url}/1"]
        result = crawl_live(seeds, tmp_path / "run", **settings)
        assert result.returncode == 0, result.stderr
        assert "(only documents of sites that never answered remain)" in result.stdout
        assert "unanswered       3 documents" in result.stdout
        assert "Next: the same command resumes it" in result.stdout
        assert len(crawl_log(tmp_path / "run")) == 2
        said = [line for line in result.stderr.splitlines() if "Nothing is left but 3 documents" in line]
        assert len(said) == 1, result.stderr
        assert "127.0.0.12" in said[0]
        assert "(CRAWL_WAIT)" in said[0]
        assert json.loads((tmp_path / "run/stats.json").read_text())["finish_reason"] == "unanswered"
        with serve_at("127.0.0.12", port) as found:
            found.pages = {f"/{page}": text_page(page, []) for page in range(3)}
            result = crawl_live(seeds, tmp_path / "run", **{**settings, "CRAWL_WAIT": 60})
    assert result.returncode == 0, result.stderr
    assert sorted(check_archive(tmp_path / "run")) == sorted([*seeds, *lost])
    assert "(the frontier is empty" in result.stdout


def test_a_site_that_answered_holds_its_owner(tmp_path: Path) -> None:
    """As ever: a page that is never answered keeps its owner from being asked."""
    settings = {**CONTINUOUS, "RETRY_WAITS": "1.5", "DOWNLOAD_TIMEOUT": 1, "CRAWL_MAX_ATTEMPTS": 1}
    with serve_owners(1) as (site,):
        site.pages = {f"/{page}": text_page(page, []) for page in range(3)}
        site.pages = {"/0-slow": Answer(b"<p>late", seconds=3.0), **site.pages}
        seeds = [f"{site.url}{path}" for path in ("/0", "/0-slow", "/1", "/2")]
        result = crawl_live(seeds, tmp_path / "run", **settings)
        wait_for(lambda: len(site.log) == len(site.begun))
    assert result.returncode == 0, result.stderr
    place = site.begun.index("/0-slow")
    began = {one.path: one.began for one in site.log}
    after = [began[path] for path in site.begun[place + 1 :] if path != "/robots.txt"]  # by which the network is tried
    assert len(after) == 2
    assert min(after) - began["/0-slow"] >= 2.5, "a second and its wait"
