"""Ctrl-C in a live crawl: nothing more is sent, nothing that was answered is asked for again."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from addon_site import Answer, Site, serve
from crawl_helpers import crawl_log, scrapy
from live_helpers import crawl_live, moved, start_live, text_page
from owner_sites import serve_owners

from crawl4llm.warc import cdxj

SLOW = 30.0
"""Seconds; longer than any test waits."""
BATCH = {
    "CRAWL_BATCH_SIZE": 10,
    "CRAWL_MAX_PAGES": 60,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "ROBOTSTXT_OBEY": 0,
    "SHUTDOWN_GRACE": 0.5,
}
SLOW_HEAD, MOVED_HEAD = "/page-00", "/moved"


def web(head: Mapping[str, Answer | Sequence[Answer]]) -> dict[str, Answer | Sequence[Answer]]:
    """Fifteen pages that lead to fifteen more, and what else is given."""
    pages = {f"/page-{number:02}": text_page(number, [f"/page-{number + 15}"] * (number < 15)) for number in range(30)}
    return {**pages, **head}


def seeds(site: Site, first: str = SLOW_HEAD) -> list[str]:
    """The first fifteen pages, all of the first batch; the first one of them is given."""
    return [f"{site.url}{first}", *(f"{site.url}/page-{number:02}" for number in range(1, 15))]


def wait_until_asked(site: Site, pages: int) -> None:
    """Wait until so many pages were asked for."""
    end = time.monotonic() + 600
    while len(site.paths()) < pages:
        assert time.monotonic() < end, site.paths()
        time.sleep(0.01)


def stop(process: subprocess.Popen[str], within: float) -> None:
    """Press Ctrl-C; it must end in time, and say that it was interrupted."""
    process.send_signal(signal.SIGINT)
    pressed = time.monotonic()
    out, err = process.communicate(timeout=600)
    assert time.monotonic() - pressed < within, err
    assert process.returncode == 130, err
    assert "Traceback" not in err, err
    assert "interrupted" in out


def resumed(site: Site, output: Path, first: str = SLOW_HEAD, **settings: object) -> list[str]:
    """Let the crawl end; returns the paths that were asked for anew."""
    before = len(site.paths())
    result = crawl_live(seeds(site, first), output, **{**BATCH, **settings})
    assert result.returncode == 0, result.stderr
    verified = scrapy("frontier", str(settings["JOBDIR"]), "--verify")
    assert verified.stdout.startswith("sound: "), verified.stderr
    return site.paths()[before:]


def paths(site: Site, output: Path) -> list[str]:
    """Paths of the pages crawled, in order."""
    return [line["id"].removeprefix(site.url) for line in crawl_log(output)]


@pytest.mark.parametrize("head", ["slow", "redirect"])
def test_answers_of_an_unfinished_batch_are_kept(tmp_path: Path, head: str) -> None:
    """All but the first document of the batch were answered: it alone is asked for again, where redirects had led."""
    first = SLOW_HEAD if head == "slow" else MOVED_HEAD
    slow = (text_page(0, ["/page-15"])._replace(seconds=SLOW), text_page(0, ["/page-15"]))
    job = {"JOBDIR": tmp_path / "job"}
    with serve(web({MOVED_HEAD: moved(SLOW_HEAD), SLOW_HEAD: slow})) as site:
        process = start_live(seeds(site, first), tmp_path / "run", **{**BATCH, **job})
        wait_until_asked(site, 15 + (head == "redirect"))
        time.sleep(0.3)  # for the last answers
        stop(process, within=25)
        assert not crawl_log(tmp_path / "run")
        asked = resumed(site, tmp_path / "run", first, **job)
    assert asked[0] == SLOW_HEAD
    assert not set(asked[1:]) & {f"/page-{number:02}" for number in range(15)}
    assert max(Counter(asked).values()) == 1

    undisturbed = tmp_path / "undisturbed"
    with serve(web({MOVED_HEAD: moved(SLOW_HEAD)})) as other:
        assert crawl_live(seeds(other, first), undisturbed, **BATCH).returncode == 0
    assert paths(site, tmp_path / "run") == paths(other, undisturbed)
    index = [list(cdxj.read(run / "warc/index.cdxj")) for run in (tmp_path / "run", undisturbed)]
    whole = [[(entry.digest, entry.status, entry.mime) for entry in entries] for entries in index]
    assert whole[0] == whole[1], "what was kept was archived as if it had just come"
    assert (tmp_path / "job/answers.spool").stat().st_size == 0
    assert (tmp_path / "job/answers.spool").stat().st_mode & 0o077 == 0


def test_requests_that_wait_are_withdrawn(tmp_path: Path) -> None:
    """One request a second: of sixteen that the downloader holds no more than the next one is sent."""
    settings = {"JOBDIR": tmp_path / "job", "DOWNLOAD_DELAY": 1, "CONCURRENT_REQUESTS": 16}
    with serve(web({})) as site:
        process = start_live(seeds(site), tmp_path / "run", **{**BATCH, **settings})
        wait_until_asked(site, 2)
        stop(process, within=25)
        assert len(site.paths()) <= 4
        asked = resumed(site, tmp_path / "run", JOBDIR=tmp_path / "job")
        assert max(Counter(site.paths()).values()) == 1
    assert len(asked) >= 26
    assert len(crawl_log(tmp_path / "run")) == 30


def test_a_second_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    settings = {"JOBDIR": tmp_path / "job", "SHUTDOWN_GRACE": 60, "CRAWL_BATCH_SIZE": 16}
    slow = (text_page(17, [])._replace(seconds=SLOW), text_page(17, []))
    with serve(web({"/page-17": slow})) as site:
        process = start_live(seeds(site), tmp_path / "run", **{**BATCH, **settings})
        wait_until_asked(site, 30)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None, "it did not wait"
        process.send_signal(signal.SIGINT)
        pressed = time.monotonic()
        _, err = process.communicate(timeout=600)
        assert time.monotonic() - pressed < 40
        assert process.returncode not in {0, None}
        assert "Traceback" not in err, err
        resumed(site, tmp_path / "run", **settings)
    log = crawl_log(tmp_path / "run")
    assert len({line["id"] for line in log}) == len(log) == 30


def test_continuous_order_gives_back_what_was_not_answered(tmp_path: Path) -> None:
    settings = {**BATCH, "JOBDIR": tmp_path / "job", "CRAWL_BATCH_SIZE": 0, "DOWNLOAD_DELAY": 0.3}
    with serve_owners(3) as (slow, *others):
        slow.pages = {SLOW_HEAD: (text_page(0, [])._replace(seconds=SLOW), text_page(0, []))}
        for site in others:
            site.pages = {f"/page-{number:02}": text_page(number, []) for number in range(10)}
        urls = [f"{slow.url}{SLOW_HEAD}", *(f"{site.url}{path}" for site in others for path in site.pages)]
        process = start_live(urls, tmp_path / "run", **settings)
        end = time.monotonic() + 600
        while not slow.begun or min(len(site.log) for site in others) < 4:
            assert time.monotonic() < end
            time.sleep(0.01)
        stop(process, within=25)
        begun = len(crawl_log(tmp_path / "run"))
        assert begun >= 6, "the slow one holds up no others"
        queue = tmp_path / "queue.jsonl"
        assert scrapy("frontier", str(tmp_path / "job"), "--export", str(queue)).returncode == 0
        attempts = [json.loads(line)["attempts"] for line in queue.read_text().splitlines()]
        assert attempts == [0] * (21 - begun)
        result = crawl_live(urls, tmp_path / "run", **settings)
        assert result.returncode == 0, result.stderr
        assert scrapy("frontier", str(tmp_path / "job"), "--verify").stdout.startswith("sound: ")
    assert slow.begun == [SLOW_HEAD] * 2
    assert [max(Counter(site.begun).values()) for site in others] == [1, 1]
    log = crawl_log(tmp_path / "run")
    assert len({line["id"] for line in log}) == len(log) == 21
