"""robots.txt in live crawls of real servers: what each answer allows, when it is asked for again, and how often."""

from __future__ import annotations

import gzip
import json
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from addon_site import Answer, Site, serve
from crawl_helpers import crawl_log, scrapy, stats
from live_helpers import USER_AGENT, crawl_live, moved, small_web, start_live, text_page
from owner_sites import serve_owners
from robots_helpers import Raw, faster, serve_bytes, stepping
from stranger import Verdicts
from warcio.archiveiterator import ArchiveIterator

from crawl4llm.live.robots_store import RobotsStore
from crawl4llm.optouts.robots_rules import LIMIT
from crawl4llm.warc import cdxj
from simulate.warcs.corpus import WarcCorpus

PAGES = {"/page": text_page(1, []), "/private/page": text_page(2, [])}
RULES = b"User-agent: *\nDisallow: /private/\n"
CLOSED = b"User-agent: *\nDisallow: /\n"


def robots(body: bytes = RULES, status: int = 200, **headers: str) -> Answer:
    return Answer(body, status, "text/plain", headers)


def ends(output: Path) -> dict[str, str]:
    """How each document of a crawl has ended, by its key."""
    failed = [json.loads(line) for line in (output / "failures.jsonl").read_text().splitlines()]
    reasons = {line["id"]: line["reason"] for line in failed}
    return {**{line["id"]: "crawled" for line in crawl_log(output)}, **reasons}


# -- one crawl of many sites ------------------------------------------------------------------------------------------

ALL, SOME, NONE, UNKNOWN = ("crawled", "crawled"), ("crawled", "robots"), ("robots", "robots"), ("robots_unknown",) * 2
"""How the two pages of a site end."""

SITES: Mapping[str, tuple[Answer | Sequence[Answer], tuple[str, ...]]] = {
    "200": (robots(), SOME),
    "closed": (robots(CLOSED), NONE),
    "empty": (robots(b""), ALL),
    "203": (robots(status=203), SOME),
    "204": (robots(b"", 204), ALL),
    **{f"{status}": (robots(CLOSED, status), ALL) for status in (400, 401, 402, 403, 404, 408, 410, 418, 451)},
    **{f"{status}": (robots(b"User-agent: *\nAllow: /\n", status), UNKNOWN) for status in (429, 500, 502, 503, 599)},
    "300": (robots(CLOSED, 300), ALL),
    "304": (robots(b"", 304), ALL),
    "moved to nowhere": (robots(CLOSED, 301), ALL),
    "moved to javascript": (moved("javascript:alert()"), ALL),
    "moved to no url": (moved("http://[::/"), ALL),
    "moved to a user": (moved("http://me:secret@127.0.0.1:9/robots.txt"), ALL),
    "moved to no port": (moved("http://127.0.0.1:99999/robots.txt"), ALL),
    "moved to no name": (moved("http://a..b/robots.txt"), UNKNOWN),
    "moved to a long name": (moved(f"http://{'a' * 300}.example/robots.txt"), UNKNOWN),
    "moved far": (moved("/" + "a" * 10_000), ALL),
    "moved too far": (moved("/" + "a" * 300_000), UNKNOWN),
    "loop": (moved("/robots.txt"), ALL),
    "dead end": (moved("http://127.0.0.1:9/robots.txt"), UNKNOWN),
    "dead host": (moved("http://no-such-host.invalid/robots.txt"), UNKNOWN),
    "html": (Answer(b"<!DOCTYPE html><title>No</title><p>Disallow: /"), ALL),
    "binary": (robots(bytes(range(256)) * 100), ALL),
    "utf-16": (robots(RULES.decode().encode("utf-16")), SOME),
    "bom": (robots(b"\xef\xbb\xbf" + RULES), SOME),
    "cr": (robots(RULES.replace(b"\n", b"\r")), SOME),
    "chunked": (robots()._replace(chunked=True), SOME),
    "10 MB": (robots(RULES + b"#" * LIMIT + b"\n" + b"Disallow: /page\n" * 600_000), SOME),
    "10 MB in chunks": (robots(RULES + b"Disallow: /x\n" * 800_000)._replace(chunked=True), SOME),
    "compressed": (robots(gzip.compress(RULES), **{"Content-Encoding": "gzip"}), SOME),
    "bomb": (robots(gzip.compress(RULES + b"#" * 100_000_000), **{"Content-Encoding": "gzip"}), UNKNOWN),
    "another coding": (robots(b"\0\1\2", **{"Content-Encoding": "compress"}), UNKNOWN),
    "no coding": (robots(**{"Content-Encoding": "UTF-8"}), SOME),
    "not compressed": (robots(RULES, **{"Content-Encoding": "gzip"}), UNKNOWN),
    "slow": (robots()._replace(seconds=30), UNKNOWN),
    "by name": (robots(b"User-agent: *\nDisallow: /\nUser-agent: TestBot/2\nDisallow: /private\n"), SOME),
    "another's delay": (robots(RULES + b"User-agent: SlowBot\nCrawl-delay: 3600\n"), SOME),
    "by part of a name": (robots(b"User-agent: test\nDisallow: /\nUser-agent: testbots\nDisallow: /\n"), ALL),
}
RAW = {
    "nothing": b"",
    "cut off": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nUser-agent: *\nDisallow: /x\n",
    "cut off in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nUser-agent: *\nDi",
    "no http": b"220 smtp.example ESMTP\r\n",
}
HTTP_1_0 = b"HTTP/1.0 200 OK\r\n\r\n"
"""What follows until the connection ends is whole."""


class Crawled(NamedTuple):
    """A finished crawl of many sites, which are served no longer."""

    output: Path
    ends: Mapping[str, str]
    sites: Mapping[str, Site | Raw]
    seconds: float

    def of(self, name: str) -> tuple[str, ...]:
        """How the two pages of a site have ended."""
        return tuple(self.ends[f"{self.sites[name].url}{path}"] for path in PAGES)

    def asked(self, name: str) -> list[str]:
        """Paths that a site was asked for, in order."""
        return [getattr(asked, "path", asked) for asked in self.sites[name].asked]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    output = tmp_path_factory.mktemp("robots") / "run"
    with ExitStack() as serving:
        sites: dict[str, Site | Raw] = {}
        for name, (answer, _) in SITES.items():
            sites[name] = serving.enter_context(serve({**PAGES, "/robots.txt": answer}))
        for name, data in RAW.items():
            sites[name] = serving.enter_context(serve_bytes(data))
        head = HTTP_1_0 + b"User-agent: *\nDisallow: /private/\nDisallow: /page\n"
        sites["endless"] = serving.enter_context(serve_bytes(head, endless=b"# more\n" * 10_000))
        for hops in (5, 6):
            chain = {f"/{n}": moved(f"/{n + 1}") for n in range(1, hops)}
            web = {**PAGES, "/robots.txt": moved("/1"), **chain, f"/{hops}": robots(CLOSED)}
            sites[f"{hops} redirects"] = serving.enter_context(serve(web))
        for name, status in (("to 404", 404), ("to 503", 503)):
            sites[name] = serving.enter_context(
                serve({**PAGES, "/robots.txt": moved("/other"), "/other": robots(CLOSED, status)})
            )
        began = time.monotonic()
        seeds = [f"{site.url}{path}" for site in sites.values() for path in PAGES]
        result = crawl_live(seeds, output, DOWNLOAD_TIMEOUT=3, CONCURRENT_REQUESTS=200, CRAWL_MAX_PAGES=500)
        seconds = time.monotonic() - began
        assert result.returncode == 0, result.stderr
        assert "Traceback" not in result.stderr, result.stderr
    yield Crawled(output, ends(output), sites, seconds)


@pytest.mark.parametrize(("name", "expected"), [(name, expected) for name, (_, expected) in SITES.items()])
def test_what_an_answer_allows(crawled: Crawled, name: str, expected: tuple[str, ...]) -> None:
    assert crawled.of(name) == expected
    pages = [path for path, end in zip(PAGES, expected, strict=True) if end == "crawled"]
    assert sorted(path for path in crawled.asked(name) if path in PAGES) == pages


@pytest.mark.parametrize("name", RAW)
def test_an_answer_that_is_not_whole_is_none(crawled: Crawled, name: str) -> None:
    assert crawled.of(name) == UNKNOWN
    assert crawled.asked(name) == ["/robots.txt"]


def test_reading_stops_at_what_is_parsed(crawled: Crawled) -> None:
    endless = crawled.sites["endless"]
    assert isinstance(endless, Raw)
    assert crawled.of("endless") == NONE
    assert LIMIT <= endless.sent < 50_000_000, "what systems hold of a connection between two processes, and no more"


def test_five_redirects_are_followed(crawled: Crawled) -> None:
    assert crawled.of("5 redirects") == NONE
    assert crawled.asked("5 redirects") == ["/robots.txt", *(f"/{n}" for n in range(1, 6))]
    assert crawled.of("6 redirects") == ALL
    assert "/6" not in crawled.asked("6 redirects")
    assert crawled.of("to 404") == ALL
    assert crawled.of("to 503") == UNKNOWN


def test_each_site_is_asked_once(crawled: Crawled) -> None:
    """Both pages wait for the first request; a failure is remembered."""
    once = {name: crawled.asked(name).count("/robots.txt") for name in crawled.sites if name != "loop"}
    assert set(once.values()) == {1}
    assert crawled.asked("loop").count("/robots.txt") == 6
    assert crawled.seconds < 60


def test_documents_of_unknown_rules_are_tried_again(crawled: Crawled) -> None:
    failed = [json.loads(line) for line in (crawled.output / "failures.jsonl").read_text().splitlines()]
    unknown = [line for line in failed if line["reason"] == "robots_unknown"]
    figures = stats(crawled.output)
    assert figures["failed/robots_unknown"] == len(unknown) > 20
    assert {line["outcome"] for line in unknown} == {"failed"}
    assert figures["frontier/retried"] == 2 * len(unknown), "CRAWL_MAX_ATTEMPTS is 3"
    assert figures.get("errors", 0) == 0


def test_robots_txt_is_archived_and_is_no_page(crawled: Crawled, tmp_path: Path) -> None:
    purposes = {}
    for file in sorted((crawled.output / "warc").glob("*.warc.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type in {"response", "revisit"}:
                    head = record.rec_headers
                    purposes[head.get_header("WARC-Target-URI")] = head.get_header("Crawl4LLM-Purpose")
    for name, site in crawled.sites.items():
        answered = name == "endless" or (not isinstance(site, Raw) and name not in {"slow", "moved too far"})
        assert (purposes.get(f"{site.url}/robots.txt") == "robots.txt") >= answered, name
    pages = [url for url, end in crawled.ends.items() if end == "crawled"]
    assert sorted(url for url, purpose in purposes.items() if not purpose) == sorted(pages)
    assert stats(crawled.output)["pages/crawled"] == len(pages)
    assert [entry.id for entry in cdxj.read(crawled.output / "warc/index.cdxj")] == [
        line["id"] for line in crawl_log(crawled.output)
    ]
    assert scrapy("archive", "check", str(crawled.output)).returncode == 0
    held = WarcCorpus(str(crawled.output / "warc"), tmp_path / "index")
    assert [key for key in held.keys() if key.endswith("/robots.txt")] == []


def test_a_stranger_can_tell_why_by_the_archive(crawled: Crawled) -> None:
    """By a script that imports nothing of ours; and it finds what does not follow."""
    found = Verdicts(crawled.output, "testbot")
    assert found.problems == []
    refused = list(crawled.ends.values()).count("robots")
    assert found.derived == {"fetches": len(crawl_log(crawled.output)), "refusals": refused}
    against_another = f"{crawled.sites['by part of a name'].url}/page was fetched, and"
    assert any(problem.startswith(against_another) for problem in Verdicts(crawled.output, "testbots").problems)


def test_scrapys_figures_are_kept(crawled: Crawled) -> None:
    figures = json.loads((crawled.output / "stats.json").read_text())
    assert figures["robotstxt/forbidden"] == list(crawled.ends.values()).count("robots")
    assert figures["robotstxt/response_status_count/503"] == 2
    assert figures["robotstxt/request_count"] >= len(crawled.sites)


def test_requests_for_robots_txt_say_who_asks(crawled: Crawled) -> None:
    site = crawled.sites["200"]
    assert isinstance(site, Site)
    headers = site.headers[0]
    assert headers["User-Agent"] == USER_AGENT
    assert headers["Accept-Encoding"] == "identity"


# -- where it holds ---------------------------------------------------------------------------------------------------


def test_redirects_to_another_host_hold_for_the_site_first_asked(tmp_path: Path) -> None:
    with serve({**PAGES, "/robots.txt": robots(b"")}) as other:
        elsewhere = other.url.replace("127.0.0.1", "localhost")
        other._answers = {**other._answers, "/theirs.txt": robots()}  # type: ignore[dict-item]
        with serve({**PAGES, "/robots.txt": moved(f"{elsewhere}/theirs.txt")}) as site:
            seeds = [f"{where}{path}" for where in (site.url, other.url, elsewhere) for path in PAGES]
            result = crawl_live(seeds, tmp_path / "run")
    assert result.returncode == 0, result.stderr
    found = ends(tmp_path / "run")
    assert found == {url: "robots" if url == f"{site.url}/private/page" else "crawled" for url in seeds}
    assert [asked.path for asked in other.asked].count("/robots.txt") == 2, "one name of it is one site, one another"


def test_a_percent_sign_in_a_rule(tmp_path: Path) -> None:
    """The delay of another crawler does not park the site, as one for all does."""
    rules = b"User-agent: *\nDisallow: /50%-off/\nUser-agent: SlowBot\nCrawl-delay: 3600\n"
    pages = {"/50%25-off/a": text_page(1, []), "/50%-off/a": text_page(1, []), "/50": text_page(2, [])}
    with serve({**pages, "/robots.txt": robots(rules)}) as site:
        seeds = [f"{site.url}/50%-off/a", f"{site.url}/50"]
        result = crawl_live(seeds, tmp_path / "run", CRAWL_BATCH_SIZE=0)
    assert result.returncode == 0, result.stderr
    assert ends(tmp_path / "run") == {f"{site.url}/50%25-off/a": "robots", f"{site.url}/50": "crawled"}
    assert {asked.path for asked in site.asked} == {"/robots.txt", "/.well-known/tdmrep.json", "/50"}
    (failed,) = map(json.loads, (tmp_path / "run/failures.jsonl").read_text().splitlines())
    assert failed["rule"] == "disallow: /50%-off/"
    assert Verdicts(tmp_path / "run", "testbot").problems == []


def test_targets_of_redirects_are_checked(tmp_path: Path) -> None:
    with serve({**PAGES, "/robots.txt": robots()}) as other:
        web = {"/to-page": moved(f"{other.url}/page"), "/to-private": moved(f"{other.url}/private/page")}
        with serve(web) as site:
            result = crawl_live([f"{site.url}{path}" for path in web], tmp_path / "run")
    assert result.returncode == 0, result.stderr
    assert ends(tmp_path / "run") == {f"{other.url}/page": "crawled", f"{site.url}/to-private": "robots"}
    assert other.paths() == ["/page"]


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({}, {"/page": "crawled", "/private/page": "robots"}),
        ({"ROBOTSTXT_OBEY": 0}, {"/page": "crawled", "/private/page": "crawled"}),
        ({"ROBOTSTXT_USER_AGENT": "OtherBot/3.0"}, {"/page": "robots", "/private/page": "crawled"}),
    ],
)
def test_scrapys_settings(tmp_path: Path, settings: Mapping[str, object], found: Mapping[str, str]) -> None:
    text = RULES + b"User-agent: otherbot\nDisallow: /page\n"
    with serve({**PAGES, "/robots.txt": robots(text)}) as site:
        result = crawl_live([f"{site.url}{path}" for path in PAGES], tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert {url.removeprefix(site.url): end for url, end in ends(tmp_path / "run").items()} == found
    assert ("/robots.txt" in {asked.path for asked in site.asked}) is ("ROBOTSTXT_OBEY" not in settings)


def test_the_delay_holds_for_robots_txt_too(tmp_path: Path) -> None:
    times = []

    class Timed(Site):
        def answer(self, asked: object) -> Answer:
            times.append(time.monotonic())
            return super().answer(asked)  # type: ignore[arg-type]

    with serve({**PAGES, "/robots.txt": moved("/there"), "/there": robots(b"")}) as site:
        site.__class__ = Timed
        result = crawl_live([f"{site.url}{path}" for path in PAGES], tmp_path / "run", DOWNLOAD_DELAY=0.5)
    assert result.returncode == 0, result.stderr
    asked = [asked.path for asked in site.asked]
    assert asked[:2] == ["/robots.txt", "/there"]
    assert sorted(asked[2:]) == sorted([*PAGES, "/.well-known/tdmrep.json"])
    assert min(after - before for before, after in pairwise(times)) > 0.3


def test_the_delay_holds_where_a_redirect_leads(tmp_path: Path) -> None:
    """A redirect to another host waits for its turn there; Scrapy leaves it among the requests to the first."""
    times: dict[str, list[float]] = {}

    class Timed(Site):
        def answer(self, asked: object) -> Answer:
            times.setdefault(self.url, []).append(time.monotonic())
            return super().answer(asked)  # type: ignore[arg-type]

    with serve({**PAGES, "/other": text_page(3, [])}) as site, serve({}) as first:
        elsewhere = first.url.replace("127.0.0.1", "localhost")
        first._answers = {"/moved": moved(f"{site.url}/page")}
        site.__class__ = Timed
        seeds = [f"{elsewhere}/moved", f"{site.url}/other", f"{site.url}/private/page"]
        result = crawl_live(seeds, tmp_path / "run", DOWNLOAD_DELAY=0.5, CONCURRENT_REQUESTS_PER_DOMAIN=1)
    assert result.returncode == 0, result.stderr
    expected = ["/.well-known/tdmrep.json", "/other", "/page", "/private/page", "/robots.txt"]
    assert sorted(asked.path for asked in site.asked) == expected
    assert min(after - before for before, after in pairwise(times[site.url])) > 0.3


# -- when it is asked for again ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [0, 5])
def test_it_is_asked_for_again_after_a_failure(tmp_path: Path, batch: int) -> None:
    """With a clock on which the first wait takes a millisecond; the second attempt of the pages finds an answer."""
    env, settings = faster(60_000)
    answers = (robots(status=503), robots())
    with serve({**PAGES, "/robots.txt": answers}) as site:
        seeds = [f"{site.url}{path}" for path in PAGES]
        result = crawl_live(seeds, tmp_path / "run", env, CRAWL_BATCH_SIZE=batch, RETRY_WAITS="0.5", **settings)
    assert result.returncode == 0, result.stderr
    assert ends(tmp_path / "run") == {seeds[0]: "crawled", seeds[1]: "robots"}
    assert [asked.path for asked in site.asked] == ["/robots.txt", "/robots.txt", "/page", "/.well-known/tdmrep.json"]


@pytest.mark.parametrize("failure", [b"", RAW["cut off"]])
def test_it_is_asked_for_again_after_a_network_error(tmp_path: Path, failure: bytes) -> None:
    env, settings = faster(60_000)
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\n\r\n"
    with serve_bytes(failure, head + RULES, head + PAGES["/page"].body) as site:
        seeds = [f"{site.url}{path}" for path in PAGES]
        result = crawl_live(seeds, tmp_path / "run", env, CRAWL_BATCH_SIZE=0, RETRY_WAITS="0.1,0.1,0.1", **settings)
    assert result.returncode == 0, result.stderr
    assert ends(tmp_path / "run") == {seeds[0]: "crawled", seeds[1]: "robots"}
    assert site.asked == ["/robots.txt", "/robots.txt", "/page", "/.well-known/tdmrep.json"]


def test_a_server_says_when_to_ask_again(tmp_path: Path) -> None:
    """Retry-After, of the statuses that are failures; what was noted tells for how long."""
    date = format_datetime(datetime.now(timezone.utc) + timedelta(hours=2), usegmt=True)
    waits = {"7200": 7200, "5": 5, "9" * 30: 86400, date: 7200, "soon": 60, "-1": 60, "": 60}
    with ExitStack() as serving:
        sites = {}
        for value in waits:
            answer = robots(status=503 if value == date else 429, **{"Retry-After": value})
            sites[value] = serving.enter_context(serve({**PAGES, "/robots.txt": (answer, robots())}))
        seeds = [f"{site.url}/page" for site in sites.values()]
        result = crawl_live(seeds, tmp_path / "run", JOBDIR=tmp_path / "job")
    assert "no page was crawled" in result.stderr
    assert set(ends(tmp_path / "run").values()) == {"robots_unknown"}
    store = RobotsStore(tmp_path / "job")
    noted = {value: store.get(site.url) for value, site in sites.items()}
    store.close()
    assert {
        value: kept and pytest.approx(kept.wait, abs=4 if value == "5" else 30) for value, kept in noted.items()
    } == waits
    assert {kept and kept.failures for kept in noted.values()} == {1}


def test_an_old_answer_is_asked_for_again_and_a_file_outlasts_failures(tmp_path: Path) -> None:
    """A request each 8 hours, one after another: other rules come after a day, and then nothing but errors."""
    env, settings = stepping(8 * 3600)
    pages = {f"/page-{number}": text_page(number, []) for number in range(10)}
    answers = (
        robots(b"User-agent: *\nDisallow: /.well-known/\nDisallow: /page-1\n"),
        robots(b"User-agent: *\nDisallow: /.well-known/\nDisallow: /page-4\n"),
        robots(status=500),
    )
    with serve({**pages, "/robots.txt": answers}) as site:
        seeds = [f"{site.url}{path}" for path in pages]
        result = crawl_live(seeds, tmp_path / "run", env, CRAWL_BATCH_SIZE=0, CRAWL_CONCURRENT_LEASES=1, **settings)
    assert result.returncode == 0, result.stderr
    asked = [asked.path for asked in site.asked]
    expected = "robots.txt page-0 page-2 page-3 robots.txt page-5 page-6 page-7 robots.txt page-8 robots.txt page-9"
    assert asked == [f"/{name}" for name in expected.split()], "the error was remembered for less than 8 hours"
    found = {url.removeprefix(site.url): end for url, end in ends(tmp_path / "run").items()}
    assert found == {path: "robots" if path in {"/page-1", "/page-4"} else "crawled" for path in pages}


# -- resumption -------------------------------------------------------------------------------------------------------


def test_a_resumed_crawl_asks_for_none_again(tmp_path: Path) -> None:
    settings = {"CRAWL_BATCH_SIZE": 0, "JOBDIR": tmp_path / "job"}
    with serve(small_web()) as site, serve_owners(1) as (broken,):
        broken.pages = {**PAGES, "/robots.txt": robots(status=503)}
        seeds = [f"{site.url}/page-0", f"{broken.url}/page"]
        for pages in (12, 30):  # less than there are: the last one waits for the broken site
            result = crawl_live(seeds, tmp_path / "run", CRAWL_MAX_PAGES=pages, **settings)
            assert result.returncode == 0, result.stderr
    assert [asked.path for asked in site.asked].count("/robots.txt") == 1
    assert broken.begun == ["/robots.txt"]
    assert not [asked.path for asked in site.asked if asked.path.startswith("/private")]


def test_a_stop_is_no_failure_of_robots_txt(tmp_path: Path) -> None:
    settings = {"JOBDIR": tmp_path / "job", "SHUTDOWN_GRACE": 0.5, "CRAWL_BATCH_SIZE": 0}
    with serve({**PAGES, "/robots.txt": (robots()._replace(seconds=30), robots())}) as site:
        seeds = [f"{site.url}{path}" for path in PAGES]
        process = start_live(seeds, tmp_path / "run", **settings)
        end = time.monotonic() + 600
        while not site.asked:
            assert time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 130, err
        assert "Traceback" not in err, err
        assert "never retrieved" not in err
        result = crawl_live(seeds, tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert ends(tmp_path / "run") == {seeds[0]: "crawled", seeds[1]: "robots"}
    assert [asked.path for asked in site.asked] == ["/robots.txt", "/robots.txt", "/page", "/.well-known/tdmrep.json"]


# -- many at once -----------------------------------------------------------------------------------------------------


def test_dead_hosts_leave_no_traceback(tmp_path: Path) -> None:
    """A few look-ups a host, and one line at most for all of it."""
    hosts = [f"http://no-such-host-{number}.invalid" for number in range(12)]
    (tmp_path / "hosts").write_text("127.0.0.1 nobody.test\n")
    with serve(PAGES) as site:
        seeds = [f"{site.url}/page", *(f"{host}/{number}" for host in hosts for number in range(5))]
        settings = {"CRAWL_BATCH_SIZE": 0, "RETRY_WAITS": "0.1,0.1", "DNS_HOSTS": tmp_path / "hosts"}
        result = crawl_live(seeds, tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert Counter(ends(tmp_path / "run").values()) == {"crawled": 1, "dns": 60}
    assert "Traceback" not in result.stderr
    told = [line for line in result.stderr.splitlines() if re.search("no-such-host|robots", line)]
    assert all("Nothing is left but" in line for line in told[:1])
    assert len(told) <= 1
    figures = json.loads((tmp_path / "run/stats.json").read_text())
    assert figures["crawl4llm/frontier/retried"] == figures["crawl4llm/given_up/dns"] == 12
