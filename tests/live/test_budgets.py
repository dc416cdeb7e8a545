"""A live crawl leaves a maze when its budget is spent, over a kill too; what is left of it is counted and kept."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from addon_site import Answer
from crawl_helpers import crawl_log, scrapy, stats
from live_helpers import crawl_live, start_live, text_page, wait_for
from owner_sites import serve_owners

from crawl4llm.base.domains import owner_of
from crawl4llm.crawl.stored_crawl import StoredCrawl
from crawl4llm.tools.dashboard import child

SETTINGS = {
    "CRAWL_BATCH_SIZE": 0,
    "DELAY_FACTOR": 0,
    "DOWNLOAD_DELAY": 0.02,
    "URL_BUDGET": 10,
    "NEAR_DUPLICATES": "off",
    "COMMIT_INTERVAL_PAGES": 5,
}


class Maze(dict[str, Answer]):
    """Pages without an end: each leads to four more."""

    url = ""

    def get(self, path: str, default: object = None) -> Any:
        number = path.removeprefix("/m/")
        return maze_page(self.url, int(number)) if number.isdecimal() else default


def maze_page(url: str, number: int) -> Answer:
    return text_page(number, [f"{url}/m/{child}" for child in range(4 * number + 1, 4 * number + 5)])


def tell_what_is_set_aside(job: Path, output: Path, url: str, waiting: int) -> None:
    """explain, report and dashboard tell of it by owner, and by the owner or prefix whose budget is used up."""
    owner = owner_of(url)
    with StoredCrawl(job) as crawl:
        found = list(crawl.set_aside())
    by_scope = Counter(scope for scope, _ in found)
    assert by_scope.total() == waiting
    host = url.removeprefix("http://")
    assert by_scope.keys() <= {owner, f"{host}/", f"{host}/m/", f"{host}/m/#"}
    scope, entry = found[0]
    told = scrapy("explain", entry.key, "--run", str(output), "-s", f"JOBDIR={job}", "-s", "SCORER=length")
    assert told.returncode == 0, told.stderr
    assert f"{scope}" in told.stdout
    assert "has no budget left (URL_BUDGET)" in told.stdout
    assert "redirect" not in told.stdout
    report = json.loads(scrapy("report", str(job), "--json").stdout)
    assert {row["owner"]: row["budget"] for row in report["refused"]} == {owner: waiting}
    assert report["refused_in_all"]["budget"] == waiting
    assert {row["scope"]: row["documents"] for row in report["set_aside"]} == by_scope
    assert {row["owner"] for row in report["set_aside"]} == {owner}
    of_owner = json.loads(scrapy("report", str(job), "--owner", owner, "--json").stdout)
    assert of_owner["summary"]["refused"]["budget"] == waiting
    of_output = json.loads(scrapy("report", str(output), "--json").stdout)
    assert of_output["refused_in_all"]["budget"] == waiting
    assert dict(map(tuple, child.run("frontier", str(job))["aside"])) == by_scope


def test_a_maze_is_left(tmp_path: Path) -> None:
    job, output = tmp_path / "job", tmp_path / "run"
    settings = {**SETTINGS, "JOBDIR": job}
    with serve_owners(2) as (honest, maze):
        honest.pages = {
            f"/{number}": text_page(number, [f"{honest.url}/{(number + step) % 25}" for step in (1, 2, 3)])
            for number in range(25)
        }
        honest.pages["/0"] = text_page(0, [f"{honest.url}/1", f"{honest.url}/2", f"{maze.url}/m/0"])
        maze.pages = endless = Maze()
        endless.url = maze.url
        process = start_live([f"{honest.url}/0"], output, **settings)
        wait_for(lambda: len(maze.paths()) >= 8)
        process.kill()
        process.communicate()
        result = crawl_live([f"{honest.url}/0"], output, **settings)
        assert result.returncode == 0, result.stderr
        assert "(only documents of owners and URL prefixes without budget remain)" in result.stdout
        asked = len(maze.paths())
    crawled = Counter(line["id"].rpartition(":")[0] for line in crawl_log(output))
    assert crawled["http://127.0.0.11"] == 25
    assert 10 <= crawled["http://127.0.0.12"] <= 60
    assert asked <= 60 + 7, "what was fetched after the last commit was fetched again"
    waiting = int(stats(output)["parked/budget"])
    assert waiting > 20
    assert f"  without budget   {waiting} documents" in result.stdout

    tell_what_is_set_aside(job, output, maze.url, waiting)

    shown = scrapy("frontier", str(job)).stdout
    assert f"parked     {waiting} (budget {waiting})" in shown, shown
    assert scrapy("frontier", str(job), "--verify").stdout.startswith("sound: ")
    exported = scrapy("frontier", str(job), "--export", "-").stdout.splitlines()
    assert len([line for line in map(json.loads, exported) if line["url"].startswith(maze.url)]) == waiting
    result = scrapy("frontier", str(job), "--purge", "127.0.0.12", "--yes")
    assert f"queued     {waiting} dropped" in result.stdout, result.stdout + result.stderr
    shown = scrapy("frontier", str(job)).stdout
    assert "parked     0\n" in shown
    assert f"opt_out {waiting}" in shown
