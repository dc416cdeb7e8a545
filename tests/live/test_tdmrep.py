"""``/.well-known/tdmrep.json``: small sites are asked for it too, before anything of theirs is kept."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from addon_site import Answer
from continuous_cluster import begin, storage_at
from crawl_helpers import crawl_log, scrapy, stats
from export_helpers import ids, run_export
from live_helpers import crawl_live, live_args, moved, start_live, text_page, wait_for
from owner_sites import serve_owners
from stranger import Verdicts

from crawl4llm.optouts.tdmrep import PATH
from crawl4llm.warc import cdxj

ROBOTS = "/robots.txt"
RESERVED = Answer(b'[{"location": "/", "tdm-reservation": 1}]', content_type="application/json")
OPEN = Answer(b'[{"location": "/", "tdm-reservation": 0}]', content_type="application/json")
CONTINUOUS = {"CRAWL_BATCH_SIZE": 0, "CRAWL_MAX_PAGES": 500, "DELAY_FACTOR": 0}
DELAY = 0.3


def reserving() -> dict[str, Answer]:
    """A site of one page, which links to another."""
    return {"/": text_page(1, ["/next"]), "/next": text_page(2, []), PATH: RESERVED}


def ends(output: Path) -> dict[str, str]:
    lines = map(json.loads, (output / "failures.jsonl").read_text().splitlines())
    return {line["id"]: line["reason"] for line in lines} | {line["id"]: "archived" for line in crawl_log(output)}


@pytest.mark.parametrize("batch", [0, 10])
def test_a_small_site_that_reserves_its_rights_is_left_out(tmp_path: Path, batch: int) -> None:
    """Its first page is dropped before it is archived, scored, or followed, by the archived record of the file."""
    output = tmp_path / "out"
    settings = {**CONTINUOUS, "CRAWL_BATCH_SIZE": batch, "DOWNLOAD_DELAY": DELAY, "URL_BUDGET": 10}
    with serve_owners(2) as (site, other):
        site.pages, other.pages = reserving(), {"/": text_page(3, []), PATH: OPEN}
        result = crawl_live([f"{site.url}/", f"{other.url}/"], output, **settings)
        assert result.returncode == 0, result.stderr[-3000:]
        assert site.begun == [ROBOTS, "/", PATH]
        assert other.begun == [ROBOTS, "/", PATH]
        least = 0.95 if batch == 0 else 0.5  # in batches Scrapy's delay runs from the sending
        assert min(site.gaps()) >= least * DELAY, "one at a time, and no sooner than it is due"
    assert ends(output) == {f"{site.url}/": "opt_out", f"{other.url}/": "archived"}
    assert stats(output)["requests/tdmrep.json"] == 2
    assert [entry.url for entry in cdxj.read(output / "warc/index.cdxj", redirects=True) if site.url in entry.url] == [
        f"{site.url}{ROBOTS}",
        f"{site.url}{PATH}",
    ]
    found = Verdicts(output, "testbot", opt_outs=True)
    assert (found.problems, found.derived["refusals"]) == ([], 1)
    told = scrapy("explain", f"{site.url}/", "--run", str(output), "-s", "SCORER=length").stdout
    assert "tdmrep.json: tdm-reservation: 1 (/, for *)" in told
    assert f"{site.url}{PATH}, asked for at" in told
    run_export(tmp_path / "export", output)
    assert ids(tmp_path / "export") == [f"{other.url}/"]


@pytest.mark.parametrize("batch", [0, 10])
def test_a_site_of_which_nothing_is_kept_is_not_asked(tmp_path: Path, batch: int) -> None:
    """Redirects, errors, what is no page, and pages that opt out by themselves."""
    optout = text_page(5, [])._replace(headers={"X-Robots-Tag": "noai"})
    meta = text_page(6, [])
    meta = meta._replace(body=meta.body.replace(b"</head>", b'<meta name="tdm-reservation" content="1"></head>'))
    with serve_owners(2) as (site, kept):
        kept.pages = {"/": text_page(7, [])}
        site.pages = {
            "/moved": moved(f"{kept.url}/"),
            "/text": Answer(b"Only text.", content_type="text/plain"),
            "/optout": optout,
            "/meta": meta,
            "/broken": Answer(b"<p>out of order", 500),
            PATH: OPEN,
        }
        seeds = [f"{site.url}{path}" for path in ("/moved", "/text", "/optout", "/meta", "/broken", "/missing")]
        result = crawl_live(seeds, tmp_path / "out", **{**CONTINUOUS, "CRAWL_BATCH_SIZE": batch, "RETRY_WAITS": "0.1"})
        assert result.returncode == 0, result.stderr[-3000:]
        assert set(site.begun) == {ROBOTS, "/moved", "/text", "/optout", "/meta", "/broken", "/missing"}
        assert kept.begun == [ROBOTS, "/", PATH]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("batch", [0, 10])
def test_a_stop_between_page_and_file_loses_nothing(tmp_path: Path, number: int, batch: int) -> None:
    """The page goes back, and it is asked for again, and so is the file; nothing is archived before."""
    settings = {**CONTINUOUS, "CRAWL_BATCH_SIZE": batch, "JOBDIR": tmp_path / "job", "SHUTDOWN_GRACE": 0}
    with serve_owners(2) as (site, other):
        site.pages = {**reserving(), PATH: [RESERVED._replace(seconds=3), RESERVED]}
        other.pages = {"/": text_page(3, []), PATH: [OPEN._replace(seconds=3), OPEN]}
        seeds = [f"{site.url}/", f"{other.url}/"]
        process = start_live(seeds, tmp_path / "out", **settings)
        wait_for(lambda: PATH in site.begun and PATH in other.begun)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert "Traceback" not in err, err
        assert crawl_log(tmp_path / "out") == []
        result = crawl_live(seeds, tmp_path / "out", **settings)
        assert result.returncode == 0, result.stderr[-3000:]
        assert [path for path in site.begun if path != ROBOTS] == ["/", PATH] * 2
        assert [path for path in other.begun if path != ROBOTS] == ["/", PATH] * 2
    assert ends(tmp_path / "out") == {f"{site.url}/": "opt_out", f"{other.url}/": "archived"}


def test_a_worker_of_a_cluster_asks_too(tmp_path: Path) -> None:
    with serve_owners(2) as (site, other):
        site.pages, other.pages = reserving(), {"/": text_page(3, []), PATH: OPEN}
        given = {**CONTINUOUS, **storage_at(tmp_path / "storage")}
        arguments = live_args([f"{site.url}/", f"{other.url}/"], tmp_path / "run", **given)
        crawling = begin(arguments, SCRAPY_PROJECT="live")
        _, errors = crawling.communicate(timeout=120)
        assert crawling.returncode == 0, errors
        assert site.begun == other.begun == [ROBOTS, "/", PATH]
    merged = tmp_path / "merged"
    done = scrapy("cluster", "merge", (tmp_path / "storage").as_uri(), "--out", str(merged))
    assert done.returncode == 0, done.stderr
    assert ends(merged) == {f"{site.url}/": "opt_out", f"{other.url}/": "archived"}
    figures = stats(merged)
    assert (figures["pages/fetched"], figures["requests/tdmrep.json"], figures["requests/robots.txt"]) == (2, 2, 2)
