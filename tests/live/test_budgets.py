"""A live crawl leaves a maze when its budget is spent, over a kill too; what is left of it is counted and kept."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from crawl_helpers import crawl_log, scrapy, stats
from live_helpers import crawl_live, start_live, text_page, wait_for
from owner_sites import serve_owners

SETTINGS = {
    "CRAWL_BATCH_SIZE": 0,
    "DELAY_FACTOR": 0,
    "DOWNLOAD_DELAY": 0.05,
    "URL_BUDGET": 10,
    "NEAR_DUPLICATES": "off",
    "COMMIT_INTERVAL_PAGES": 5,
}


def test_a_maze_is_left(tmp_path: Path) -> None:
    job, output = tmp_path / "job", tmp_path / "run"
    settings = {**SETTINGS, "JOBDIR": job}
    with serve_owners(2) as (honest, maze):
        honest.pages = {
            f"/{number}": text_page(number, [f"{honest.url}/{(number + step) % 25}" for step in (1, 2, 3)])
            for number in range(25)
        }
        honest.pages["/0"] = text_page(0, [f"{honest.url}/1", f"{honest.url}/2", f"{maze.url}/m/0"])
        maze.pages = {
            f"/m/{number}": text_page(
                number, [f"{maze.url}/m/{child}" for child in range(4 * number + 1, 4 * number + 5)]
            )
            for number in range(500)
        }
        process = start_live([f"{honest.url}/0"], output, **settings)
        wait_for(lambda: len(maze.paths()) >= 8)
        process.kill()
        process.communicate()
        result = crawl_live([f"{honest.url}/0"], output, **settings)
        assert result.returncode == 0, result.stderr
        assert "(all that is left is of owners and URL prefixes without budget)" in result.stdout
        asked = len(maze.paths())
    crawled = Counter(line["id"].rpartition(":")[0] for line in crawl_log(output))
    assert crawled["http://127.0.0.11"] == 25
    assert 10 <= crawled["http://127.0.0.12"] <= 30
    assert asked <= 30 + 7, "what was fetched after the last commit was fetched again"
    waiting = int(stats(output)["parked/budget"])
    assert waiting > 20
    assert f"  without budget   {waiting} documents" in result.stdout

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
