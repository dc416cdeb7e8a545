"""Known links in a live crawl, by the servers' own log: nothing is sent for known pages, whose links are followed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from crawl_helpers import crawl_log, error_of, scrapy
from live_helpers import crawl_live, text_page

from tests.testweb import FewPages, LocalWeb, read_log, running


@pytest.mark.parametrize("batch", [0, 10])
def test_nothing_is_sent_for_known_pages(tmp_path: Path, batch: int) -> None:
    """Made of the archive of an earlier crawl. Since then pages have appeared behind the known ones; a seed is known
    too, and redirects lead to known pages of the same owner and of another."""
    first = {
        "hub.test": {"/": text_page(0, ["http://one.test/a", "http://dead.test/"]).body},
        "one.test": {"/a": text_page(1, ["/b", "/c"]).body, "/b": text_page(2, ["/moved", "/away"]).body},
        "dead.test": {"/": text_page(3, ["http://two.test/new"]).body},
    }
    pages = {
        **first,
        "one.test": {**first["one.test"], "/c": text_page(4, ["/a"]).body},
        "two.test": {"/new": text_page(5, []).body, "/more": text_page(6, []).body},
    }
    rules = {"one.test/moved": "to:one.test/a", "one.test/away": "to:dead.test/"}
    run, known = tmp_path / "first", tmp_path / "known"
    settings = {"CRAWL_BATCH_SIZE": batch, "JOBDIR": tmp_path / "job"}
    web = LocalWeb(tmp_path / "web", FewPages(pages), misbehaving=rules)
    with running(web):
        names = ("hub.test", "one.test", "dead.test")
        seeds = [web.url("hub.test")]
        done = crawl_live(
            seeds,
            run,
            DNS_HOSTS=web.hosts_file,
            CRAWL_BATCH_SIZE=batch,
            SCOPE_DENY="/(c|moved|away)$,two[.]test",
            CRAWL_SEEDS=len(names),
        )
        assert done.returncode == 0, done.stderr
        assert len(crawl_log(run)) == 4
        made = scrapy("corpus", "known", "--links", str(known), str(run))
        assert made.returncode == 0, made.stderr
        before = len(list(read_log(web.log_file)))
        again = crawl_live(
            seeds, tmp_path / "run", DNS_HOSTS=web.hosts_file, KNOWN_LINKS=known / "links.known", **settings
        )
        assert again.returncode == 0, again.stderr
        asked = [f"{one.host}{one.path}" for one in list(read_log(web.log_file))[before:]]

    def short(url: str) -> str:
        return url.removeprefix("http://").replace(f":{web.port}", "")

    pages_asked = {one for one in asked if not one.endswith((".txt", ".json"))}
    assert pages_asked == {"one.test/c", "one.test/moved", "one.test/away", "two.test/new"}
    assert {short(line["url"]) for line in crawl_log(tmp_path / "run")} == {"one.test/c", "two.test/new"}
    ended = [json.loads(line) for line in (tmp_path / "run/failures.jsonl").read_text().splitlines()]
    reasons = {short(line["id"]): line["reason"] for line in ended}
    assert {one for one, reason in reasons.items() if reason == "known_page"} == {
        "hub.test/",
        "one.test/a",
        "one.test/b",
        "dead.test/",
    }
    assert reasons["one.test/moved"] == reasons["one.test/away"] == "visited"
    key = next(line["id"] for line in ended if line["reason"] == "known_page")
    told = scrapy("explain", key, "--run", str(tmp_path / "run"), env={"SCRAPY_PROJECT": "live"})
    assert told.returncode == 0, told.stderr
    assert "nothing was requested: KNOWN_LINKS " in told.stdout


def test_a_bad_file_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "links").write_bytes(b"nothing")
    result = crawl_live(["http://one.test/"], tmp_path / "run", KNOWN_LINKS=tmp_path / "links")
    assert error_of(result).startswith(f"KNOWN_LINKS {tmp_path}/links is no file of known links; make one: ")


def test_a_known_page_costs_no_delay(tmp_path: Path) -> None:
    """Of forty known pages of one owner, one after the other, and the one page behind them."""
    links = {f"/{number}": text_page(number, [f"/{number + 1}"]).body for number in range(40)}
    web = LocalWeb(tmp_path / "web", FewPages({"one.test": {**links, "/40": text_page(41, []).body}}))
    with running(web):
        given = {"DNS_HOSTS": web.hosts_file, "CRAWL_BATCH_SIZE": 0}
        done = crawl_live([web.url("one.test", "/0")], tmp_path / "first", SCOPE_DENY="/40$", **given)
        assert done.returncode == 0, done.stderr
        made = scrapy("corpus", "known", "--links", str(tmp_path / "known"), str(tmp_path / "first"))
        assert made.returncode == 0, made.stderr
        given |= {"KNOWN_LINKS": tmp_path / "known/links.known", "DOWNLOAD_DELAY": 1, "URL_BUDGET": 1}
        again = crawl_live([web.url("one.test", "/0")], tmp_path / "run", JOBDIR=tmp_path / "job", **given)
        assert again.returncode == 0, again.stderr
    assert [line["depth"] for line in crawl_log(tmp_path / "run")] == [40]
    figures = json.loads((tmp_path / "run/stats.json").read_text())
    assert figures["crawl4llm/dropped/known_page"] == 40
    assert figures["elapsed_time_seconds"] < 20, "at a second each it would take 40"
