"""Redirects in live crawls by owners: those to another owner end the lease, and their target waits for its turn."""

from __future__ import annotations

import json
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from crawl_helpers import crawl_log, scrapy, stats
from dataset_helpers import done
from export_helpers import ids, run_export
from live_helpers import check_archive, crawl_live, start_live, text_page, wait_for

from crawl4llm.base.run_folder import SEEDS
from crawl4llm.warc import cdxj
from tests.testweb import FewPages, LocalWeb, read_log, running, waits

DELAY = 0.15
CONTINUOUS = {"CRAWL_BATCH_SIZE": 0, "DOWNLOAD_DELAY": DELAY, "DELAY_FACTOR": 0, "COMMIT_INTERVAL_PAGES": 1}
CRAWL_DELAY = 0.5
HOPS = [f"hop{number}.test" for number in range(7)]


def body(number: int) -> bytes:
    return text_page(number, []).body


class Ran(NamedTuple):
    """A crawl of a web that leads from owner to owner."""

    web: LocalWeb
    output: Path
    job: Path

    def failures(self) -> dict[str, dict[str, Any]]:
        """What ended without a page, by its URL without scheme and port."""
        lines = map(json.loads, (self.output / "failures.jsonl").read_text().splitlines())
        return {self.short(line["id"]): line for line in lines}

    def short(self, url: str) -> str:
        return url.removeprefix("http://").replace(f":{self.web.port}", "")

    def asked(self, host: str) -> list[str]:
        """Paths asked for, in order."""
        return [one.path for one in sorted(read_log(self.web.log_file)) if one.host == host]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("redirects")
    rules = {
        "one.test/go": "to:target.test/page",
        "one.test/forbidden": "to:target.test/private/x",
        "one.test/twice": "to:www.one.test/on",
        "www.one.test/on": "to:target.test/second",
        "one.test/page": "to:www.one.test/page",
        "one.test/back": "to:start.test/",
        "a.test": "to:b.test/",
        "b.test": "to:a.test/",
        "loop.test/1": "to:loop.test/2",
        "loop.test/2": "to:loop.test/1",
        "maze.test": "maze",
        **{host: f"to:{following}/" for host, following in pairwise(HOPS)},
    }
    pages = {"target.test": {"/page": body(1), "/second": body(2)}, "www.one.test": {"/page": body(3)}}
    places = [place for place in rules if place.startswith("one.test")]
    links = [*(f"http://{place}" for place in places), "http://loop.test/1", "http://maze.test/", "http://a.test/"]
    links.append(f"http://{HOPS[0]}/")
    start = b"".join(b'<a href="%b">x</a> ' % link.encode() for link in links)
    robots = {"target.test": f"User-agent: *\nCrawl-delay: {CRAWL_DELAY}\nDisallow: /private\n"}
    web = LocalWeb(
        folder / "web",
        FewPages({"start.test": {"/": body(0) + start}, "one.test": {}, "loop.test": {}, **pages, HOPS[-1]: {}}),
        misbehaving=rules,
        robots=robots,
    )
    with running(web):
        settings = {**CONTINUOUS, "JOBDIR": folder / "job", "DNS_HOSTS": web.hosts_file, "REDIRECT_MAX_TIMES": 2}
        result = crawl_live(web.seeds[:1], folder / "run", **settings)
        assert result.returncode == 0, result.stderr
        assert "Traceback" not in result.stderr
        yield Ran(web, folder / "run", folder / "job")


def test_the_target_is_asked_for_in_turn_with_its_owner(ran: Ran) -> None:
    """After its own robots.txt, whose delay and rules hold; and nobody is asked early."""
    assert ran.asked("target.test")[0] == "/robots.txt"
    assert sorted(ran.asked("target.test")[1:]) == ["/.well-known/tdmrep.json", "/page", "/second"]
    found = waits(read_log(ran.web.log_file))
    assert min(found["target.test"]) >= CRAWL_DELAY
    assert min(seconds for of_owner in found.values() for seconds in of_owner) >= DELAY
    assert ran.failures()["target.test/private/x"]["reason"] == "robots"


def test_a_target_takes_the_place_of_what_led_to_it(ran: Ran) -> None:
    lines = {ran.short(line["id"]): line for line in crawl_log(ran.output)}
    assert set(lines) == {"start.test/", "target.test/page", "target.test/second", "www.one.test/page"}
    source, target = ran.failures()["one.test/go"], lines["target.test/page"]
    assert (source["outcome"], source["reason"], ran.short(source["target"])) == (
        "redirected",
        "queued",
        "target.test/page",
    )
    assert (target["parent"], target["depth"]) == (source["id"], source["depth"])
    assert target["priority"] == lines["start.test/"]["influence"]
    assert lines["www.one.test/page"]["parent"] == lines["start.test/"]["id"], "within an owner as ever"
    told = scrapy("explain", source["id"], "--run", str(ran.output)).stdout
    assert f"redirected queued; it led to {source['target']}\n" in told


def test_redirects_have_an_end(ran: Ran) -> None:
    """Five owners further, at what was visited, at what was asked for on the way, and at REDIRECT_MAX_TIMES."""
    reasons = {place: (line["outcome"], line["reason"]) for place, line in ran.failures().items()}
    assert reasons["a.test/"] == ("redirected", "queued")
    assert reasons["b.test/"] == reasons["one.test/back"] == ("redirected", "visited")
    assert reasons["loop.test/1"] == ("failed", "redirect_loop")
    assert reasons["maze.test/"] == ("failed", "too_many_redirects")
    assert [reasons[f"{host}/"] for host in HOPS[:-1]] == [
        *[("redirected", "queued")] * 5,
        ("failed", "too_many_redirects"),
    ]
    assert ran.asked(HOPS[-1]) == []
    for host in ("a.test", "b.test", *HOPS[:-1]):
        assert ran.asked(host) == ["/robots.txt", "/"]
    assert ran.asked("loop.test") == ["/robots.txt", "/1", "/2"]
    assert len(ran.asked("maze.test")) == 1 + 3


def test_the_equation_is_told(ran: Ran) -> None:
    figures = stats(ran.output)
    redirected = figures["redirected/queued"] + figures["redirected/visited"] + figures["redirects/followed"]
    failed, dropped = (
        sum(count for key, count in figures.items() if key.startswith(f"{what}/")) for what in ("failed", "dropped")
    )
    assert figures["frontier/parked"] == figures["frontier/leased"] == 0
    assert figures["redirects/followed"] == 2, "www.one.test has two pages that one.test led to"
    equation = f"{figures['pages/visited']} discovered = 4 archived + {redirected} redirected + {failed} failed + "
    equation += f"{dropped} dropped + 0 queued + 0 leased + 0 parked"
    assert figures["pages/visited"] == 4 + redirected + failed + dropped
    shown = scrapy("frontier", str(ran.job)).stdout
    assert f"{equation}\n" in shown
    assert f"redirected {redirected} (queued 9, visited 2, within an owner 2)" in shown
    assert scrapy("frontier", str(ran.job), "--verify").stdout == f"sound: {equation}\n"


def test_their_exchanges_are_archived_without_a_page(ran: Ran, tmp_path: Path) -> None:
    pages = check_archive(ran.output)
    entries = list(cdxj.read(ran.output / "warc/index.cdxj", redirects=True))
    of_no_page = [ran.short(entry.url) for entry in entries if not entry.id]
    hops = Counter(url for url in of_no_page if not url.endswith(("/robots.txt", "/tdmrep.json")))
    ended = [place for place, line in ran.failures().items() if line["outcome"] == "redirected"]
    assert hops == Counter([*ended, "www.one.test/on", "one.test/page"])
    assert done("check", ran.output).startswith("sound")
    assert "nothing to repair" in done("repair", ran.output)
    run_export(tmp_path / "out", ran.output)
    assert sorted(ids(tmp_path / "out")) == sorted(pages)

    copy = tmp_path / "copy"
    shutil.copytree(ran.output, copy)
    (copy / "warc/index.cdxj").unlink()
    done("repair", copy)
    assert (copy / "warc/index.cdxj").read_bytes() == (ran.output / "warc/index.cdxj").read_bytes()
    done("purge", "one.test", copy)
    assert done("check", copy).startswith("sound")
    left = [ran.short(entry.url) for entry in cdxj.read(copy / "warc/index.cdxj", redirects=True)]
    everything = [ran.short(entry.url) for entry in entries]
    assert left == [url for url in everything if "one.test" not in url]


def test_a_replay_follows_them(ran: Ran, tmp_path: Path) -> None:
    settings = {"SCORER": "length", "SCORING_WORKERS": 1, "CORPUS": ran.output, "OUTPUT_DIR": tmp_path / "replay"}
    settings |= {"URL_POLICY": "parent_first", "SIMULATION_TEXT": "extracted", "CRAWL_BATCH_SIZE": 1}
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = settings.simulation\n")
    result = scrapy("crawl", "influence", "-a", f"seeds={ran.output / SEEDS}", *options, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert {line["id"] for line in crawl_log(tmp_path / "replay")} == {line["id"] for line in crawl_log(ran.output)}


def test_what_is_stopped_or_killed_goes_on(tmp_path: Path) -> None:
    """Nothing is lost, nothing archived twice, and nobody asked early, over stops among many redirects."""
    hosts = [f"host{place}.test" for place in range(4)]
    around = [*pairwise(hosts), (hosts[-1], hosts[0])]
    rules = {f"{host}/r{n}": f"to:{after}/{n}" for host, after in around for n in range(4)}
    links = "".join(f'<a href="http://{place}">x</a> ' for place in rules).encode()
    pages = {host: {f"/{n}": body(n) for n in range(4)} for host in hosts}
    pages[hosts[0]]["/"] = body(9) + links
    settings = {**CONTINUOUS, "JOBDIR": tmp_path / "job", "ROBOTSTXT_OBEY": 0}
    with running(LocalWeb(tmp_path / "web", FewPages(pages), misbehaving=rules)) as web:
        settings["DNS_HOSTS"] = web.hosts_file
        seeds = [web.url(hosts[0], "/")]
        for asked, number in ((10, signal.SIGTERM), (20, signal.SIGKILL)):
            process = start_live(seeds, tmp_path / "run", **settings)
            wait_for(lambda asked=asked: len(read_log(web.log_file)) >= asked)  # type: ignore[misc]
            process.send_signal(number)
            _, err = process.communicate(timeout=600)
            assert process.returncode == (130 if number == signal.SIGTERM else -number), err
            assert "Traceback" not in err, err
        result = crawl_live(seeds, tmp_path / "run", **settings)
        assert result.returncode == 0, result.stderr
    assert len(check_archive(tmp_path / "run")) == 1 + 4 * len(hosts)
    assert min(seconds for of_owner in waits(read_log(web.log_file)).values() for seconds in of_owner) >= DELAY
    assert stats(tmp_path / "run")["redirected/queued"] == 4 * len(hosts)
    assert done("check", tmp_path / "run").startswith("sound")
    verified = scrapy("frontier", str(tmp_path / "job"), "--verify").stdout
    assert verified.startswith("sound: 33 discovered = 17 archived + 16 redirected + 0 failed"), verified


def test_with_cookies_a_url_may_lead_to_itself(tmp_path: Path) -> None:
    """The cookie that comes with it may change the answer; where it does not, REDIRECT_MAX_TIMES is the end."""
    rules = {"wall.test": "cookie-wall", "loop.test": "loop"}
    with running(LocalWeb(tmp_path / "web", FewPages({}), misbehaving=rules)) as web:
        settings = {"DNS_HOSTS": web.hosts_file, "ROBOTSTXT_OBEY": 0, "COOKIES_ENABLED": 1, "REDIRECT_MAX_TIMES": 3}
        result = crawl_live(web.seeds, tmp_path / "run", **settings)
        assert result.returncode == 0, result.stderr
        assert [line["id"] for line in crawl_log(tmp_path / "run")] == [web.url("wall.test")]
    assert stats(tmp_path / "run")["failed/too_many_redirects"] == 1
    assert Counter(one.host for one in read_log(web.log_file)) == {"wall.test": 2, "loop.test": 4}
