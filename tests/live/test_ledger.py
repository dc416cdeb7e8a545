"""The ledger: why each document was fetched or not, by what a live crawl has stored, also over ``kill -9``."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from addon_site import Answer
from crawl_helpers import crawl_log, scrapy, stats
from export_helpers import documents, manifest, run_export
from live_helpers import check_archive, crawl_live, moved, start_live, text_page, wait_for
from owner_sites import serve_owners
from stranger import Verdicts

from crawl4llm.base.pages import utc_date
from crawl4llm.warc import cdxj

SETTINGS = {
    "CRAWL_BATCH_SIZE": 0,
    "DOWNLOAD_DELAY": 0.05,
    "DELAY_FACTOR": 0,
    "RETRY_WAITS": "0.1,0.1,0.1",
    "COMMIT_INTERVAL_PAGES": 3,
    "WARC_REVISITS": 100,
    "NOINDEX": "count",  # the export leaves it out
}
PAGES = 18
"""Of the site that has a tdmrep.json. They are asked for in the order of their names."""
OWN_GROUP = b"User-agent: *\nDisallow: /\n\nUser-agent: TestBot\nAllow: /private/open\nDisallow: /private/\n"
SIGNALS = (
    b"User-agent: *\nContent-Usage: /usage/ train-ai=n\nAllow: /\n\n"
    b"User-agent: GPTBot\nDisallow: /gpt/\nAllow: /gpt/open/\n"
)
TDM_FILE = b'[{"location": "/reserved/*", "tdm-reservation": 1}]'
PRICE = {"crawler-price": "USD 0.01", "Link": '<http://x.example/l>; rel="license"; type="application/rsl+xml"'}
PRICE_SAID = 'crawler-price: USD 0.01; link: <http://x.example/l>; rel="license"; type="application/rsl+xml"'


def with_meta(number: int, content: str) -> Answer:
    """A page whose head has a robots meta."""
    page = text_page(number, [])
    return page._replace(
        body=page.body.replace(b"<head>", b'<head><meta name="robots" content="%b">' % content.encode())
    )


class Ran(NamedTuple):
    """A crawl that was killed once and went on to its end."""

    output: Path
    job: Path
    restarted: str
    """When the process began that went on, in UTC."""
    sites: Mapping[str, str]
    """URLs of the sites, without a slash at the end."""
    failures: Mapping[str, dict[str, Any]]

    def url(self, place: str) -> str:
        """The URL of ``site/path``."""
        name, _, path = place.partition("/")
        return f"{self.sites[name]}/{path}"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("ledger")
    names = ("own", "none", "moving", "broken", "refusing", "signals", "heads")
    with serve_owners(len(names)) as owners:
        own, none, moving, broken, refusing, signals, heads = owners
        sites = dict(zip(names, owners, strict=True))
        links = [f"{own.url}/private/{name}" for name in ("open", "closed", "?query")] + [f"{own.url}/to-private"]
        links += [f"{moving.url}/page", f"{moving.url}/private/page", f"{broken.url}/page"]
        links += [f"{refusing.url}/{status}" for status in (401, 402, 403, 404, 451)]
        links += [f"{none.url}/{number}" for number in range(PAGES)]
        links += [f"{signals.url}/{path}" for path in ("page", "usage/page", "gpt/page", "gpt/open/page")]
        links += [f"{heads.url}/{path}" for path in ("field", "meta", "other", "index")]
        robots = Answer(OWN_GROUP, content_type="text/plain")
        own.pages = {"/robots.txt": robots, "/": text_page(0, links), "/to-private": moved("/private/other")}
        own.pages |= {"/private/open": text_page(1, [])}  # type: ignore[operator]
        none.pages = {f"/{number}": text_page(number, ["/reserved/page"] * (number == 9)) for number in range(PAGES)}
        none.pages |= {"/.well-known/tdmrep.json": Answer(TDM_FILE), "/reserved/page": text_page(25, [])}
        signals.pages = {"/robots.txt": Answer(SIGNALS, content_type="text/plain")}
        signals.pages |= {f"/{path}": text_page(30, []) for path in ("page", "gpt/open/page")}
        heads.pages = {
            "/field": text_page(40, [])._replace(headers={"X-Robots-Tag": "noai"}),
            "/meta": with_meta(41, "noai"),
            "/other": text_page(42, [])._replace(headers={"X-Robots-Tag": "otherbot: noai"}),
            "/index": with_meta(43, "noindex"),
        }
        moving.pages = {"/robots.txt": moved(f"{own.url}/robots.txt"), "/page": text_page(20, [])}
        broken.pages = {"/robots.txt": Answer(b"<p>broken", 503), "/page": text_page(21, [])}
        refusing.pages = {f"/{status}": Answer(b"<p>no", status, headers=PRICE) for status in (401, 402, 403, 451)}
        settings = {**SETTINGS, "JOBDIR": folder / "job"}
        process = start_live([f"{own.url}/"], folder / "run", **settings)
        wait_for(lambda: len(none.paths()) >= 5)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=600)
        before = Counter(path for site in owners for path in site.begun)
        restarted = utc_date()
        result = crawl_live([f"{own.url}/"], folder / "run", **settings)
        assert result.returncode == 0, result.stderr
        assert "Traceback" not in result.stderr
        assert before["/robots.txt"] >= 2
    lines = [json.loads(line) for line in (folder / "run/failures.jsonl").read_text().splitlines()]
    urls = {name: site.url for name, site in sites.items()}
    yield Ran(folder / "run", folder / "job", restarted, urls, {line["id"]: line for line in lines})


def test_all_that_is_archived_is_there_once(ran: Ran) -> None:
    assert len(check_archive(ran.output)) == 7 + PAGES == stats(ran.output)["pages/crawled"]
    assert scrapy("archive", "check", str(ran.output)).returncode == 0
    verified = scrapy("frontier", str(ran.job), "--verify").stdout
    assert verified.startswith("sound: "), verified
    asked = Counter(entry.url for entry in cdxj.read(ran.output / "warc/index.cdxj", redirects=True) if not entry.id)
    assert 1 <= asked.pop(ran.url("broken/robots.txt")) <= 4, "of those before the kill some were not committed"
    assert set(asked.values()) == {1}


def test_a_stranger_can_tell_why_by_the_archive(ran: Ran) -> None:
    found = Verdicts(ran.output, "testbot", opt_outs=True)
    assert found.problems == []
    assert found.derived == {"fetches": 7 + PAGES + 4 + 2, "refusals": 8 + 5}


def test_each_request_was_allowed_when_it_was_sent(ran: Ran) -> None:
    """By the log of requests, those of the process that was killed apart: what it had heard last was lost with it."""
    found = Verdicts(ran.output, "testbot", requests=ran.job / "requests", opt_outs=True)
    sent = [re.search(r" was asked for at ([^ ,]+)", problem) for problem in found.problems]
    assert all(at is not None and at[1] < ran.restarted for at in sent), found.problems
    assert found.derived["requests"] >= PAGES


def test_each_refusal_names_the_rule_and_the_record(ran: Ran) -> None:
    expected = {
        "own/private/closed": "disallow: /private/",
        "own/private/?query": "disallow: /private/",
        "own/to-private": f"disallow: /private/, for {ran.url('own/private/other')}",
        "moving/private/page": "disallow: /private/",
        "broken/page": f"{ran.sites['broken']}/robots.txt is unavailable",
        "refusing/401": "HTTP 401",
        "refusing/402": f"HTTP 402, {PRICE_SAID}",
        "refusing/404": None,
        "signals/usage/page": "robots.txt: Content-Usage: train-ai=n (/usage/, for *)",
        "signals/gpt/page": "robots.txt: AI-crawler: disallow (/gpt/, for gptbot)",
        "heads/field": "header: robots: noai (page, for *)",
        "heads/meta": "meta: robots: noai (page, for *)",
        "none/reserved/page": "tdmrep.json: tdm-reservation: 1 (/reserved/*, for *)",
    }
    assert {place: ran.failures[ran.url(place)].get("rule") for place in expected} == expected


def test_explain_tells_the_rule_and_where_it_stands(ran: Ran) -> None:
    refused = ran.failures[ran.url("moving/private/page")]
    told = scrapy("explain", refused["id"], "--run", str(ran.output)).stdout
    assert "\ndropped    robots\n" in told
    assert "\nrule       disallow: /private/\n" in told
    assert f"\nsaid by    {ran.url('own/robots.txt')}, asked for at {refused['time']}\n" in told
    assert f", {refused['digest']}\n" in told
    page = crawl_log(ran.output)[-1]["id"]
    told = scrapy("explain", page, "--run", str(ran.output)).stdout
    assert "\nallowed    by robots.txt\nsaid by    " in told
    never = scrapy("explain", "http://nobody.example/", "--run", str(ran.output), "-s", f"JOBDIR={ran.job}").stdout
    assert "\nnot found  it was never seen\n" in never


def test_an_export_leaves_out_what_was_kept_and_may_not_be_trained_on(ran: Ran, tmp_path: Path) -> None:
    run_export(tmp_path / "out", ran.output)
    left_out = manifest(tmp_path / "out")["left_out"]
    assert {reason: pages for reason, pages in left_out.items() if "opt_out" in reason} == {"opt_out/robots": 1}
    exported = {document["id"] for document in documents(tmp_path / "out")}
    assert ran.url("heads/index") not in exported
    assert not [url for url in exported if "robots.txt" in url or "tdmrep" in url]


def test_report_counts_refusals_apart(ran: Ran) -> None:
    report = json.loads(scrapy("report", str(ran.job), "--json").stdout)
    rows = {row["owner"]: row for row in report["refused"]}
    of_own = {kind: count for kind, count in rows["127.0.0.11"].items() if kind != "owner" and count}
    assert of_own == {"robots": 3}
    of_refusing = {kind: count for kind, count in rows["127.0.0.15"].items() if kind != "owner" and count}
    assert of_refusing == {"401, 403": 2, "402": 1, "451": 1}
    assert {kind: count for kind, count in report["refused_in_all"].items() if count} == {
        "robots": 4,
        "unknown": 1,
        "401, 403": 2,
        "402": 1,
        "451": 1,
        "opt-out": 5,
    }
    of_one = scrapy("report", str(ran.job), "--owner", "127.0.0.15")
    assert f"({PRICE_SAID})" in of_one.stdout, of_one.stderr
    assert "documents that were not fetched, or refused: 401, 403: 2; 451: 1; 402: 1\n" in of_one.stdout
    of_output = scrapy("report", str(ran.output)).stdout
    assert of_output.startswith("\nDocuments that were not fetched, or refused")
    assert of_output.splitlines()[-1].startswith("in all ") or "links that were not followed" in of_output
    moved_away = scrapy("report", str(ran.job), "-s", f"OUTPUT_DIR={ran.job}")
    assert moved_away.returncode == 0, moved_away.stderr
    assert "\ndocuments that were not fetched are not counted: " in moved_away.stdout
