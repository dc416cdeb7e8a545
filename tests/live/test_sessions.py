"""A live crawl of a site that writes a new session id into each answer's links, stopped politely; then its replay."""

from __future__ import annotations

import signal
from collections import Counter
from itertools import count
from pathlib import Path

import pytest
from addon_site import Answer
from crawl_helpers import crawl_log, scrapy
from live_helpers import crawl_live, start_live, text_page, wait_for
from owner_sites import OwnerSite, serve_owners

PAGES = 24
SETTINGS: dict[str, object] = {
    "CRAWL_BATCH_SIZE": 0,
    "DELAY_FACTOR": 0,
    "COMMIT_INTERVAL_PAGES": 5,
    "URL_POLICY": "breadth_first",
}


def with_sessions(site: OwnerSite) -> None:
    """Let each page lead to three others, under URLs with the id of the session that its answer begins."""
    ids = count()

    def answer(path: str) -> Answer:
        site.begun.append(path)
        if not path.startswith("/p"):  # robots.txt
            return Answer(b"<p>not here", 404)
        page, session = int(path.partition("?")[0].removeprefix("/p")), f"{next(ids):026d}"
        links = [f"/p{(page * 3 + step) % PAGES}?wiki={session}" for step in (1, 2, 3)]
        return text_page(page, links)._replace(headers={"Set-Cookie": f"wiki={session}; path=/; HttpOnly"})

    site.answer = answer  # type: ignore[method-assign]


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGKILL])
def test_each_page_is_asked_for_once_and_held_for_a_replay(tmp_path: Path, stop: signal.Signals) -> None:
    given = {**SETTINGS, "JOBDIR": tmp_path / "job"}
    with serve_owners(1) as (site,):
        with_sessions(site)
        seeds = [f"{site.url}/p0"]
        process = start_live(seeds, tmp_path / "run", **{**given, "DOWNLOAD_DELAY": 0.05})
        wait_for(lambda: len(site.begun) >= PAGES // 2)
        process.send_signal(stop)
        process.communicate(timeout=120)
        result = crawl_live(seeds, tmp_path / "run", **{**given, "DOWNLOAD_DELAY": 0.01})
        assert result.returncode == 0, result.stdout + result.stderr
        asked = Counter(path for path in site.begun if path.startswith("/p"))
    assert set(asked) == {f"/p{number}" for number in range(PAGES)}
    assert stop is signal.SIGKILL or set(asked.values()) == {1}
    log = [line["id"] for line in crawl_log(tmp_path / "run")]
    assert len(log) == PAGES

    settings = {
        "CORPUS": tmp_path / "run",
        "OUTPUT_DIR": tmp_path / "replay",
        "SCORER": "length",
        "CRAWL_BATCH_SIZE": 0,
    }
    settings |= {"URL_POLICY": "breadth_first", "SIMULATION_TEXT": "extracted"}
    words = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    done = scrapy("crawl", "influence", "-a", f"seeds={tmp_path / 'run/seeds.txt'}", *words)
    assert done.returncode == 0, done.stderr
    assert [line["id"] for line in crawl_log(tmp_path / "replay")] == log
