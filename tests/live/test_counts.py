"""What a live crawl says that it has sent, against the logs of the servers that it was sent to."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from addon_site import Answer
from crawl_helpers import crawl_log, scrapy, stats
from live_helpers import live_args, moved, start_live, text_page, wait_for
from owner_sites import serve_hang_ups, serve_owners
from tls_helpers import make_certificate, serve_tls

from crawl4llm.crawl.request_files import days, lines

CLOSED, NO_HOST = "http://127.0.0.18:9/", "http://no-such-host.invalid/"
SLOW = 2.0
SETTINGS = {
    "CRAWL_MAX_PAGES": 500,
    "RETRY_WAITS": "0.1,0.2",
    "CRAWL_MAX_ATTEMPTS": 2,
    "SHUTDOWN_GRACE": 0,
    "DELAY_FACTOR": 0,
    "DOWNLOAD_DELAY": 0.02,
}


def of_site(dead: Iterable[str]) -> dict[str, Answer | list[Answer]]:
    """Pages, redirects, errors that pass and errors that do not, and a page that takes its time."""
    links = [f"/{n}" for n in range(1, 8)]
    more = ["/moved", "/twice", "/gone", "/busy", "/private/a", "/slow", "/notes.txt"]
    return {
        "/": text_page(0, [*links, *more, *dead]),
        **{f"/{n}": text_page(n, ["/", f"/{n + 1}"]) for n in range(1, 9)},
        "/moved": moved("/target"),
        "/target": text_page(20, ["/"]),
        "/twice": moved("/moved-on"),
        "/moved-on": moved("/9"),
        "/9": text_page(21, ["/"]),
        "/busy": [Answer(b"busy", 503), text_page(22, ["/"])],
        "/slow": [text_page(23, ["/"])._replace(seconds=SLOW), text_page(23, ["/"])],
        "/private/a": text_page(24, ["/"]),
        "/notes.txt": Answer(b"Only text.", content_type="text/plain"),
        "/robots.txt": Answer(b"User-agent: *\nDisallow: /private/\n", content_type="text/plain"),
    }


def logged(job: Path) -> list[dict[str, object]]:
    return [json.loads(line) for day in days(job) for line in lines(job, day)]


@pytest.mark.parametrize("batch", [0, 4])
def test_a_servers_log_equals_our_counts(tmp_path: Path, batch: int) -> None:
    """Of all sites together, over a stop by SIGTERM: lines of the request log that were sent, stats, summary, report
    and crawl log. Look-ups, connections and handshakes that failed are told apart, and what was refused is neither."""
    expired, for_another = make_certificate(tmp_path, expired=True), make_certificate(tmp_path, address="127.0.0.2")
    trusted = make_certificate(tmp_path)
    (tmp_path / "ca.pem").write_bytes(b"".join(path.read_bytes() for path in (expired, for_another, trusted)))
    env = {"SSL_CERT_FILE": str(tmp_path / "ca.pem"), "SCRAPY_PROJECT": "live"}
    page = {"/": text_page(30, [])}
    with (
        serve_owners(3) as sites,
        serve_hang_ups("127.0.0.17") as (hangs_up, hung_up),
        serve_tls(expired, page) as (unsafe, never),
        serve_tls(for_another, page) as (wrong, never_too),
        serve_tls(trusted, page) as (safe, safely),
    ):
        dead = [CLOSED, NO_HOST, f"{hangs_up}/", f"{unsafe}/", f"{wrong}/", f"{safe}/"]
        for site in sites:
            site.pages = of_site(dead)
        job, output = tmp_path / "job", tmp_path / "out"
        given = {**SETTINGS, "JOBDIR": job, "CRAWL_BATCH_SIZE": batch}
        seeds = [f"{site.url}/" for site in sites]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SSL_CERT_FILE", env["SSL_CERT_FILE"])
            stopped = start_live(seeds, output, **given)
        wait_for(lambda: any("/slow" in site.begun for site in sites))
        os.kill(stopped.pid, signal.SIGTERM)
        stopped.communicate(timeout=600)
        resumed = scrapy(*live_args(seeds, output, **given), env=env)
        assert resumed.returncode == 0, resumed.stderr[-3000:]
        wait_for(lambda: all(len(site.log) == len(site.begun) for site in sites))
        seen = Counter(path for site in sites for path in site.begun) + Counter(f"tls {path}" for path in safely)
        seen["hung up"] += len(hung_up)
    assert never == never_too == []
    check(job, output, resumed.stdout, seen)
    assert sum(site.begun.count("/slow") for site in sites) > len(sites), "what was broken off was sent again"


def check(job: Path, output: Path, told: str, seen: Counter[str]) -> None:
    """All that tells of requests must tell the same as the servers."""
    requests = logged(job)
    sent = [line for line in requests if line["sent"]]
    assert len(sent) == seen.total()
    apart = Counter(str(line["error"]) for line in requests if not line["sent"])
    assert {"dns", "refused", "certificate"} <= apart.keys() <= {"dns", "refused", "certificate", "stopped"}
    figures = stats(output)
    purposes = Counter(str(line["for"]) for line in sent)
    assert {key.partition("/")[2]: n for key, n in figures.items() if key.startswith("requests/")} == dict(purposes)
    assert {key.partition("/")[2]: n for key, n in figures.items() if key.startswith("unsent/")} == dict(apart)
    assert purposes["robots.txt"] == seen["/robots.txt"] + seen["tls /robots.txt"] + robots_of_hang_ups(sent)
    documents = sum(purposes[kind] for kind in ("document", "redirect", "retry"))
    assert figures["pages/fetched"] == documents
    assert f"  fetched          {documents:,} requests for documents, {purposes['robots.txt']:,} for robots.txt" in told
    assert f"; {apart.total():,} not sent (" in told
    assert 0 < crawl_log(output)[-1]["fetched"] <= documents
    report = json.loads(scrapy("report", str(job), "--json").stdout)
    assert sum(row["requests"] for row in report["owners"]) == seen.total()
    assert sum(row["unsent"] for row in report["days"]) == apart.total()


def robots_of_hang_ups(sent: list[dict[str, object]]) -> int:
    return sum(line["for"] == "robots.txt" and line["owner"] == "127.0.0.17" for line in sent)
