"""A crawl opens no port: by Scrapy's telnet console and remote control others could run code in it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from addon_site import serve
from crawl_helpers import Web, begin, crawl_args
from live_helpers import start_live, text_page
from scrapy.settings import default_settings

DOORS = ("TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED")
SLOW = 60.0


def listening(process: subprocess.Popen[str]) -> set[int]:
    """Ports at which a crawl or one of its workers listens."""
    crawl = psutil.Process(process.pid)
    sockets = (socket for one in (crawl, *crawl.children(recursive=True)) for socket in one.net_connections("inet"))
    return {socket.laddr.port for socket in sockets if socket.status == psutil.CONN_LISTEN}


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def listening_of_live_crawl(tmp_path: Path, **settings: object) -> set[int]:
    """Ports of a live crawl that waits for a page."""
    with serve({"/": text_page(0, [])._replace(seconds=SLOW)}) as site:
        settings = {"ROBOTSTXT_OBEY": 0, "JOBDIR": tmp_path / "job", "REMOTE_CONTROL_JOBS_DIR": tmp_path, **settings}
        with ended(start_live([f"{site.url}/"], tmp_path / "run", **settings)) as process:
            end = time.monotonic() + 600
            while not site.asked:
                assert time.monotonic() < end
                time.sleep(0.05)
            site.asked.clear()
            return listening(process)


def test_live_crawl(tmp_path: Path) -> None:
    assert listening_of_live_crawl(tmp_path) == set()


@pytest.mark.parametrize("door", [door for door in DOORS if hasattr(default_settings, door)])
def test_what_the_profile_turns_off_would_listen(tmp_path: Path, door: str) -> None:
    """So that the test of what is off can fail."""
    assert len(listening_of_live_crawl(tmp_path, **{door: 1})) == 1


def test_simulation(demo_web: Web, tmp_path: Path) -> None:
    args = crawl_args(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=1400, CRAWL_BATCH_SIZE=1)
    with ended(begin(args)) as process:
        end = time.monotonic() + 600
        log = tmp_path / "run/crawl.jsonl"
        while not log.exists() or not log.stat().st_size:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert listening(process) == set()
        assert process.poll() is None, "it was looked at while it ran"
