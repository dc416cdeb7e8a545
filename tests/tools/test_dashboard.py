"""The dashboard's server and what it says of real crawls."""

from __future__ import annotations

import fcntl
import json
import shutil
import socket
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, crawl, crawl_log, error_of, scrapy, stats
from dashboard_helpers import dashboard, events, get, read

from crawl4llm.base.crawl_log import FAILURES, read_log
from crawl4llm.tools.dashboard import child

SETTINGS: dict[str, Any] = {
    **{"CRAWL_MAX_PAGES": 300, "CRAWL_SEEDS": 30, "CRAWL_BATCH_SIZE": 20, "QUALITY_THRESHOLD": 0.5},
    **{"COMMIT_INTERVAL_PAGES": 50, "FRONTIER_MAX_URLS": 100},
}


@pytest.fixture(scope="module")
def finished(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the output, ``run``, and the JOBDIR, ``job``, of a crawl."""
    folder = tmp_path_factory.mktemp("dashboard")
    result = crawl(demo_web, folder / "run", **SETTINGS, JOBDIR=folder / "job")
    assert result.returncode == 0, result.stderr
    return folder


def ended(output: Path) -> dict[tuple[str, str], int]:
    return Counter((line["outcome"], line["reason"]) for line in read_log(output / FAILURES))


def check(shown: dict[str, Any], output: Path) -> None:
    """Check what is shown against the logs."""
    lines = crawl_log(output)
    scores = [line["influence"] for line in lines]
    assert shown["now"]["crawled"] == len(lines) == shown["charts"]["crawled"][-1]
    assert shown["now"]["visited"] == lines[-1]["visited"]
    assert shown["mean"] == pytest.approx(sum(scores) / len(scores))
    assert [page["influence"] for page in shown["best"]] == sorted(scores, reverse=True)[:10]
    assert all(lines[page["order"]]["url"] == page["url"] for page in shown["best"])
    counts = {(row["outcome"], row["reason"]): row["count"] for row in shown["ended"]}
    assert {key: count for key, count in counts.items() if key[0] != "redirected"} == ended(output)
    means = [
        (n, mean) for n, mean in zip(shown["charts"]["crawled"], shown["charts"]["influence"], strict=True) if mean
    ]
    begin = 0
    for crawled, mean in means:
        assert mean == pytest.approx(sum(scores[begin:crawled]) / (crawled - begin), rel=1e-3)
        begin = crawled


def test_a_jobdir_is_shown_with_its_frontier_and_texts(finished: Path) -> None:
    with dashboard(finished / "job") as url:
        for shown in events(url):
            if shown["frontier"] is not None:
                break
        text = read(f"{url}text?{shown['best'][0]['offset']}")["text"]
    check(shown, finished / "run")
    assert shown["jobdir"] is True
    assert (shown["runs"], shown["reason"], shown["threshold"]) == (False, "max_pages", 0.5)
    assert {row["reason"] for row in shown["ended"]} >= {"frontier_full"}
    frontier = shown["frontier"]
    queued = shown["now"]["queued"]
    assert frontier["read"] == frontier["queued"] == sum(n for *_, n in frontier["scores"]) == queued > 0
    assert 0 < sum(n for _, n in frontier["owners"]) <= queued
    explained = scrapy(
        "explain", shown["best"][0]["id"], "--run", str(finished / "run"), "-s", "SIMULATION_TEXT=extracted"
    )
    assert text.split() == explained.stdout.split("\n\n", 2)[2].split()
    assert len(text) > 100


def test_what_is_shown_after_the_end_is_final(demo_web: Web, tmp_path: Path) -> None:
    """Of a crawl whose frontier was read while it ran; one lock makes it run, and then it does go on."""
    given: dict[str, Any] = {**SETTINGS, "JOBDIR": tmp_path / "job"}
    assert crawl(demo_web, tmp_path / "run", **{**given, "CRAWL_MAX_PAGES": 100}).returncode == 0
    with dashboard(tmp_path / "job") as url:
        shown = events(url)
        with (tmp_path / "run/crawl.jsonl").open("rb") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            first = next(one for one in shown if one["runs"] and one["frontier"] is not None)
        assert crawl(demo_web, tmp_path / "run", **given).returncode == 0
        queued = stats(tmp_path / "run")["frontier/queued"]
        assert first["frontier"]["queued"] != queued
        last = next(one for one in shown if not one["runs"] and one["frontier"]["queued"] == queued)
    assert (first["pages"], last["pages"]) == (100, 300)
    assert (last["now"]["crawled"], last["reason"]) == (300, "max_pages")
    assert last["corpus"] == str(demo_web.corpus)


def test_a_storage_is_followed(demo_web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One into which workers put their work bit by bit; nobody knows whether they run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    whole, storage = tmp_path / "whole", tmp_path / "storage"
    whole.mkdir()
    given = {"CRAWL_MAX_PAGES": 60, "CRAWL_BATCH_SIZE": 20, "CRAWL_SEEDS": 20, "CRAWL_PARTITIONS": 2}
    assert crawl(demo_web, tmp_path / "worker", **given, STORAGE=f"file://{whole}").returncode == 0
    shutil.copytree(whole, storage, ignore=shutil.ignore_patterns("00000002", "end.json"))
    with dashboard(url := f"file://{storage}") as address:
        shown = events(address)
        first = next(one for one in shown if one["read"] == 1)
        shutil.copytree(whole, storage, dirs_exist_ok=True)
        last = next(one for one in shown if one["read"] == 1 and one["reason"])
    assert (first["name"], first["storage"], first["reason"], first["now"]["crawled"]) == (url, True, None, 20)
    assert (last["name"], last["reason"], last["now"]["crawled"]) == (url, "max_pages", 60)


@pytest.mark.parametrize("other", ["math.nextafter(0.1, 1)", "-1e308"])
def test_scores_of_a_frontier_that_cannot_be_divided(other: str, demo_web: Web, tmp_path: Path) -> None:
    """Close together, as means of the same scores are, or as far apart as numbers are."""
    (tmp_path / "two_scores.py").write_text(
        "import math\nfrom crawl4llm.policies import BasePolicy, Rating\n\nclass Policy(BasePolicy):\n"
        "    name = 'two_scores'\n    async def score(self, candidates):\n"
        f"        return [Rating(({other}, 0.1 if {other} > 0 else 1e308)[n % 2]) for n in range(len(candidates))]\n"
    )
    given: dict[str, Any] = {"CRAWL_MAX_PAGES": 5, "JOBDIR": tmp_path / "job", "URL_POLICY": "two_scores.Policy"}
    done = crawl(demo_web, tmp_path / "run", env={"PYTHONPATH": str(tmp_path)}, **given)
    assert done.returncode == 0, done.stderr
    found = child.run("frontier", str(tmp_path / "job"))
    assert [number for *_, number in found["scores"]] == [found["queued"]]


def test_damage_while_it_is_shown_is_told(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished / "run", run, ignore=shutil.ignore_patterns("warc"))
    with dashboard(run) as url:
        shown = events(url)
        assert "fault" not in next(shown)
        (run / "stats.json").write_text('{"finish_reason": 5}')
        told = next(shown)
    assert "stats.json is damaged" in told["fault"]
    assert (told["reason"], told["now"]["crawled"]) == ("max_pages", 300)
    assert "stats.json is damaged" in error_of(scrapy("dashboard", str(run), "--no-browser"))


def test_the_demo_web_is_called_so(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished / "run", run, ignore=shutil.ignore_patterns("warc"))
    facts = json.loads((run / "settings.json").read_text())
    for given, kind, name in (("demo", "clueweb22", "demo"), (None, "live", "live"), ("demo", "live", "live")):
        facts["settings"]["CORPUS"], facts["corpus"] = given, kind
        (run / "settings.json").write_text(json.dumps(facts))
        with dashboard(run) as url:
            assert next(events(url))["corpus"] == name


def test_without_a_series_the_log_is_read(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished / "run", run, ignore=shutil.ignore_patterns("series.jsonl", "warc"))
    with dashboard(run) as url:
        for shown in events(url):
            if shown["read"] == 1 and shown.get("ended"):
                break
        assert "fault" in read(f"{url}text?{shown['best'][0]['offset']}")
    check(shown, run)
    assert len(shown["charts"]["influence"]) > 5
    assert shown["charts"]["good"][-1] is not None
    assert shown["frontier"] is None
    with (run / "crawl.jsonl").open("a") as log:
        log.write('{"influence": 1e308}\n' * 2)
    with dashboard(run) as url:
        told = next(one for one in events(url) if one["read"] == 1)
    assert told["fault"] == "crawl.jsonl is damaged: it has impossible numbers"


def test_nobody_else_is_answered(finished: Path) -> None:
    with dashboard(finished / "run") as url:
        root = url.rsplit("/", 2)[0]
        port = root.rpartition(":")[2]
        host = {"Host": f"localhost:{port}"}
        for address, method, headers, status in (
            (url, "GET", {}, 200),
            (url, "GET", host, 200),
            (url, "GET", {"Host": f"evil.example:{port}"}, 421),
            (f"{url}events", "GET", {"Host": "evil.example"}, 421),
            (f"{root}/", "GET", {}, 404),
            (f"{root}/!{url[len(root) + 2 :]}", "GET", {}, 404),  # no token has that character
            (f"{url}../../../../etc/passwd", "GET", {}, 404),
            (f"{url}..%2f..%2fserver.py", "GET", {}, 404),
            (f"{url}text?../x", "GET", {}, 404),
            (url, "POST", {}, 501),
        ):
            answer, connection = get(address, method, headers)
            with closing(connection):
                assert answer.status == status, (address, method, headers)
                if status < 500:
                    assert "default-src 'none'" in str(answer.headers["Content-Security-Policy"])
                    assert answer.headers["Access-Control-Allow-Origin"] is None
        assert read(f"{url}text?999999999")["fault"]


def test_what_cannot_be_shown_is_said_in_a_line(finished: Path, tmp_path: Path) -> None:
    def error(path: Path, *args: str) -> str:
        return error_of(scrapy("dashboard", str(path), "--no-browser", *args))

    assert "holds no crawl" in error(tmp_path)
    assert "holds no crawl" in error(tmp_path / "nowhere")
    run, job = tmp_path / "run", tmp_path / "job"
    shutil.copytree(finished / "run", run, ignore=shutil.ignore_patterns("warc"))
    series = (run / "series.jsonl").read_text()
    (run / "series.jsonl").write_text(series.replace('{"format":1}', '{"format":2}', 1))
    assert "has format 2" in error(run)
    (run / "series.jsonl").write_text(f"{series}[]\n")
    assert "is damaged; remove it" in error(run)
    (run / "series.jsonl").unlink()
    facts = json.loads((run / "settings.json").read_text())
    (run / "settings.json").write_text(json.dumps({**facts, "format": 99}))
    assert "has format 99; this version reads format 1" in error(run)
    shutil.copytree(finished / "job", job)
    (job / "job.json").write_text(json.dumps({**json.loads((job / "job.json").read_text()), "format": 99}))
    assert "has format 99" in error(job)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert error(finished / "run", "--port", str(port)).startswith(f"--port {port} is taken")
    assert "--port 99999 cannot be used" in error(finished / "run", "--port", "99999")
