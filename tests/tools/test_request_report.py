"""The files of the request log over days and through kills, and what ``scrapy report`` tells by them."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, crawl, error_of, scrapy

from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import Part, json_lines, text_lines
from crawl4llm.crawl.jobdir import JobDir
from crawl4llm.crawl.request_files import RequestFiles, days, lines
from crawl4llm.tools.report import Log, overview, owner_report

DAY = 86_400
FIRST = 20_000 * DAY
"""2024-10-04."""


def content(parts: Iterable[Part]) -> dict[str, Any]:
    """What --json prints."""
    (line,) = json_lines(parts)
    told: dict[str, Any] = json.loads(line)
    return told


def line(owner: str = "a.example", at: str = "2024-10-04T00:00:00.000Z", **more: Any) -> bytes:
    fields = {"time": at, "owner": owner, "url": f"http://{owner}/", "for": "document", "status": 200, "error": None}
    fields |= {"bytes": 100, "ms": 500, "waited": None, "rule": None, "sent": True, **more}
    return json.dumps(fields).encode() + b"\n"


def wait_for(what: Callable[[], object]) -> None:
    end = time.monotonic() + 600
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    jobdir = JobDir(tmp_path)
    jobdir.begin({"crawl_id": "x", "output": "/x", "digests": {}, "settings": {}})
    jobdir.close()
    return tmp_path


def write(job: Path, at: float, *some: bytes) -> None:
    files = RequestFiles(job)
    for one in some:
        files.append(one, at)
    files.close()


def test_days_that_are_over_are_compressed(job: Path) -> None:
    files = RequestFiles(job)
    files.append(b"1\n", FIRST + DAY - 0.001)
    files.append(b"2\n", FIRST + DAY)
    wait_for(lambda: sorted(path.name for path in (job / "requests").iterdir())[:1] == ["2024-10-04.jsonl.gz"])
    wait_for(lambda: not (job / "requests/2024-10-04.jsonl").exists())
    files.append(b"3\n", FIRST)  # the clock was set back
    files.close()
    assert days(job) == ["2024-10-04", "2024-10-05"]
    assert [list(lines(job, day)) for day in days(job)] == [[b"1\n"], [b"2\n", b"3\n"]]
    assert all(path.stat().st_mode & 0o077 == 0 for path in (job / "requests").iterdir())
    assert (job / "requests").stat().st_mode & 0o077 == 0


def test_a_line_that_was_cut_is_passed_over(job: Path) -> None:
    write(job, FIRST, b"1\n", b'{"half')
    write(job, FIRST, b"2\n")
    assert list(lines(job, "2024-10-04")) == [b"1\n", b'{"half\n', b"2\n"]
    with (job / "requests/2024-10-04.jsonl").open("ab") as file:
        file.write(b"x" * (1 << 17) + b"\n3\n4")
    assert list(lines(job, "2024-10-04")) == [b"1\n", b'{"half\n', b"2\n", b"3\n"]


@pytest.mark.parametrize("more", [b"", b"2\n"], ids=["killed-before-removal", "gone-on-with"])
def test_a_day_that_lies_in_both_forms_is_read_once(job: Path, more: bytes) -> None:
    write(job, FIRST, b"1\n")
    plain = job / "requests/2024-10-04.jsonl"
    packed = plain.with_name(f"{plain.name}.gz")
    packed.write_bytes(gzip.compress(b"1\n"))
    plain.write_bytes(more or b"1\n")
    whole = [b"1\n", *([more] if more else [])]
    assert list(lines(job, "2024-10-04")) == whole
    write(job, FIRST + DAY, b"3\n")
    wait_for(lambda: not plain.exists())
    assert list(lines(job, "2024-10-04")) == whole


def test_an_owners_report_tells_what_was_waited(job: Path) -> None:
    """Also over the end of a process, from the times of the lines; in order, and with what was passed over."""
    rule = {"waited": 9.5, "rule": "Crawl-delay"}
    write(
        job,
        FIRST,
        line(**{"for": "robots.txt"}),
        line("b.example"),
        line(at="2024-10-04T00:00:10.000Z", **rule),
        b'{"owner": "a.example", "time": 3}\n',
        line(at="2024-10-04T00:00:11.000Z", url="http://a.example/\x1b[2J"),
        line(at="2024-10-04T00:01:10.500Z", status=None, error="timeout"),
        line(at="2024-10-04T00:02:00.000Z", status=403, waited=49.0, rule="DOWNLOAD_DELAY"),
        line(at="2024-10-04T00:02:01.000Z", status=None, error="timeout", waited=0.5, sent=False),
        line(at="2024-10-04T00:02:02.000Z", sent="yes"),
    )
    log = Log(job)
    report = content(owner_report(log, "a.example", {"robots": 2}))
    requests, summary = report["requests"], report["summary"]
    assert [request["waited"] for request in requests] == [None, 9.5, 60.0, 49.0, 0.5]
    assert [request["status"] for request in requests] == [200, 200, None, 403, None]
    assert [request["sent"] for request in requests] == [True, True, True, True, False]
    assert log.damaged == 3
    assert {name: summary[name] for name in ("requests", "least_delay", "median_delay", "robots_txt", "refusals")} == {
        "requests": 4,
        "least_delay": 9.5,
        "median_delay": 49.0,
        "robots_txt": 1,
        "refusals": 1,
    }
    assert summary["unsent"] == 1
    told = list(text_lines(owner_report(Log(job), "a.example", {})))
    assert (
        told[2].split() == "2024-10-04T00:00:10.000Z 200 100 500 9.500 s Crawl-delay document http://a.example/".split()
    )
    assert told[3].split()[1] == "timeout"
    assert told[5].endswith(" http://a.example/  (not sent)")
    assert (
        "a.example: 4 requests, 1 of them for robots.txt; 1 refused (401, 403, 429, 503); 1 more were not sent" in told
    )


def test_the_overview_adds_up_by_day_and_owner(job: Path) -> None:
    write(job, FIRST, line(), line("b.example", waited=3.0), line("b.example", status=404, waited=2.0))
    write(job, FIRST + DAY, line("b.example", at="2024-10-05T00:00:00.000Z", status=None, error="dns", sent=False))
    report = content(overview(Log(job), 1))
    assert report["days"] == [
        {"day": "2024-10-04", "requests": 3, "pages": 2, "bytes": 300, "errors": 1, "least_delay": 2.0, "unsent": 0},
        {"day": "2024-10-05", "requests": 0, "pages": 0, "bytes": 0, "errors": 0, "least_delay": None, "unsent": 1},
    ]
    assert report["owners"] == [
        {"owner": "b.example", "requests": 2, "pages": 1, "bytes": 200, "errors": 1, "least_delay": 2.0, "unsent": 1},
    ]
    report = content(overview(Log(job, "2024-10-05"), 9))
    assert [row["unsent"] for row in (*report["days"], *report["owners"])] == [1, 1]


def test_what_is_wrong_is_said_in_a_line(job: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(InputError, match="has no log of requests"):
        Log(job)
    with pytest.raises(InputError, match="not one of crawl4llm"):
        Log(tmp_path_factory.mktemp("other"))
    write(job, FIRST, line())
    (job / "requests/2024-10-03.jsonl.gz").write_bytes(gzip.compress(line())[:-9])
    with pytest.raises(InputError, match=r"2024-10-03.jsonl.gz is damaged"):
        list(overview(Log(job), 1))


@pytest.mark.parametrize("day", ["x", "", "2026-13-01", "2026-02-30", "20260201", "2026-02-01T00:00", "1 day"])
@pytest.mark.parametrize("of", ["job", "output"])
def test_a_day_that_is_none(of: str, day: str, job: Path, tmp_path: Path) -> None:
    """Of an OUTPUT_DIR too, which has no log of requests."""
    output = tmp_path / "output"
    output.mkdir()
    (output / "failures.jsonl").touch()
    given = job if of == "job" else output
    assert error_of(scrapy("report", str(given), f"--since={day}")) == f"--since {day!r} is not a day like 2026-05-31"
    whole = error_of(scrapy("report", str(output), "--since=2026-05-31"))
    assert whole == f"{output} is an OUTPUT_DIR; --since needs the log of requests in a JOBDIR: give that"


def test_a_simulation_says_that_it_is_one(demo_web: Web, tmp_path: Path) -> None:
    """In the first line, of OUTPUT_DIR and JOBDIR; it has no requests that options could choose from."""
    job, output = tmp_path / "job", tmp_path / "run"
    result = crawl(demo_web, output, JOBDIR=job, CRAWL_MAX_PAGES=40, CRAWL_SEEDS=20, FRONTIER_MAX_URLS=50)
    assert result.returncode == 0, result.stderr
    said = f"This crawl is a simulation of the corpus {demo_web.corpus}: it sent no request to any site."
    for path in (job, output):
        report = scrapy("report", str(path))
        assert report.returncode == 0, report.stderr
        assert report.stdout.splitlines()[0] == said
        assert "Documents that were not fetched" in report.stdout
        for option in ("--owner=example.org", "--since=2026-05-31"):
            refused = error_of(scrapy("report", str(path), option))
            assert refused == f"{path} is a simulation: it sent no requests, so leave out --owner and --since"
