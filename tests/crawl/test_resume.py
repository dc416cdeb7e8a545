"""A crawl with JOBDIR that is killed, stopped and resumed is the crawl that was never disturbed, to the last byte."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import PROJECT, Limits, Web, begin, crawl, crawl_args, crawl_log, error_of, scrapy, stats
from finished_runs import PAUSED, FinishedRuns
from scrapy_server import Process

SMALL = {"CRAWL_SEEDS": 30, "CRAWL_MAX_PAGES": 400, "COMMIT_INTERVAL_PAGES": 25, "WARC_MAX_BYTES": 200_000}


def files(output: Path) -> dict[str, bytes]:
    """What a crawl is judged by: log, failures, index and every WARC file."""
    found = {name: (output / name).read_bytes() for name in ("crawl.jsonl", "failures.jsonl")}
    return found | {path.name: path.read_bytes() for path in sorted((output / "warc").iterdir())}


def start(
    web: Web, output: Path, job: Path, limits: Limits | None = None, **settings: object
) -> Process | subprocess.Popen[str]:
    return begin(crawl_args(web, output, **settings, JOBDIR=job), limits=limits)


def finish(web: Web, output: Path, job: Path, **settings: object) -> str:
    """Run a crawl to its end; what it printed."""
    result = crawl(web, output, JOBDIR=job, **settings)
    assert result.returncode == 0, result.stderr
    return result.stdout


def kill_amid(process: Process | subprocess.Popen[str], output: Path, *, at_start: bool, draw: random.Random) -> bool:
    """Kill a crawl while it starts, or a little after it has begun to write; whether it was still alive."""
    if at_start:
        time.sleep(draw.uniform(0.1, 0.3))
    else:
        log = output / "crawl.jsonl"
        before = log.stat().st_size if log.exists() else 0
        while process.poll() is None and (not log.exists() or log.stat().st_size <= before):
            # a resumed process first cuts the log back
            before = min(before, log.stat().st_size if log.exists() else 0)
            time.sleep(0.001)
        time.sleep(draw.uniform(0.0, 0.06))
    alive = process.poll() is None
    process.kill()
    _, err = process.communicate(timeout=600)
    assert "Traceback" not in err, err
    return alive


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at_starts", "settings"),
    [
        pytest.param([False, True, False], {"CRAWL_BATCH_SIZE": 40}, id="small batches"),
        pytest.param([False], {"CRAWL_BATCH_SIZE": 0, "FRONTIER_MAX_URLS_PER_HOST": 5}, id="continuous, hosts capped"),
    ],
)
def test_killed_and_resumed(demo_web: Web, tmp_path: Path, at_starts: list[bool], settings: dict[str, Any]) -> None:
    """A few kills of processes; tests/crawl/test_power_cut.py takes each place of a commit, benchmarks.stopping many
    random moments."""
    settings = {**SMALL, **settings}
    assert crawl(demo_web, tmp_path / "whole", **settings).returncode == 0
    draw = random.Random(len(at_starts))
    output, job = tmp_path / "killed", tmp_path / "job"
    for at_start in at_starts:
        process = start(demo_web, output, job, **settings)
        assert kill_amid(process, output, at_start=at_start, draw=draw), "it was finished before the kill"
    finish(demo_web, output, job, **settings)
    assert files(output) == files(tmp_path / "whole")


def test_stopped_while_a_batch_is_taken(demo_web: Web, tmp_path: Path) -> None:
    """More of the batch could be taken at once, and the outlinks of what was taken are visited and not queued yet."""
    settings = {**SMALL, "CRAWL_BATCH_SIZE": 600, "CRAWL_MAX_PAGES": 900, "URL_POLICY": "hostile.Interrupting"}
    assert crawl(demo_web, tmp_path / "whole", **settings).returncode == 0
    for at in (3, 2):
        result = crawl(demo_web, tmp_path / "run", env={"INTERRUPT_AT": str(at)}, JOBDIR=tmp_path / "job", **settings)
        assert result.returncode == 130, result.stderr
        verified = scrapy("frontier", str(tmp_path / "job"), "--verify")
        assert verified.stdout.startswith("sound: "), verified.stderr
    finish(demo_web, tmp_path / "run", tmp_path / "job", **settings)
    assert files(tmp_path / "run") == files(tmp_path / "whole")


def test_owners_that_wait_go_on_waiting(demo_web: Web, tmp_path: Path) -> None:
    """On the virtual clock, whether a crawl is killed or stopped; and with another number of workers."""
    waits = {"CRAWL_BATCH_SIZE": 0, "SIMULATION_OWNER_DELAY": 3, "CRAWL_PATIENCE": 0.3, "URL_POLICY": "link"}
    settings = {**SMALL, "CRAWL_MAX_PAGES": 180, **waits}
    assert crawl(demo_web, tmp_path / "whole", **settings, SCORING_WORKERS=2).returncode == 0
    output, job = tmp_path / "run", tmp_path / "job"
    log = output / "crawl.jsonl"
    draw = random.Random(0)
    for number, end in enumerate((signal.SIGKILL, signal.SIGTERM), 1):
        process = start(demo_web, output, job, **settings)
        wait_for(lambda least=number: log.read_bytes().count(b"\n") > 40 * least, log)
        time.sleep(draw.uniform(0, 0.05))
        process.send_signal(end)
        _, err = process.communicate(timeout=600)
        assert process.returncode == {signal.SIGKILL: -9, signal.SIGTERM: 130}[end], err
    assert 80 < len(crawl_log(output)) < 180
    finish(demo_web, output, job, **settings)
    assert files(output) == files(tmp_path / "whole")
    seconds = [stats(folder)["simulation/seconds"] for folder in (output, tmp_path / "whole")]
    assert seconds[0] == seconds[1] > 20


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"CRAWL_BATCH_SIZE": 1, "CRAWL_MAX_PAGES": 120}, id="n = 1"),
        pytest.param({"CRAWL_BATCH_SIZE": 0, "CRAWL_MAX_PAGES": 10_000, "CRAWL_CONCURRENT_LEASES": 8}, id="n = 0"),
    ],
)
def test_stopped_politely(small_demo_web: Web, tmp_path: Path, settings: dict[str, Any]) -> None:
    """Ctrl-C or SIGTERM pauses a crawl, also amid a batch; killed while it shuts down it has lost nothing either.

    A crawl with eight leases at once takes pages in another order each time; until the frontier is empty it takes the
    same ones.
    """
    settings = {**SMALL, "CRAWL_SEEDS": 10, **settings}
    assert crawl(small_demo_web, tmp_path / "whole", **settings).returncode == 0
    draw = random.Random(2)
    output, job = tmp_path / "paused", tmp_path / "job"
    log = output / "crawl.jsonl"
    for stop in (signal.SIGTERM, signal.SIGINT):
        process = start(small_demo_web, output, job, **settings)
        pages = log.stat().st_size if log.exists() else 0
        wait_for(lambda at=pages: log.stat().st_size > at + 1000, log)
        time.sleep(draw.uniform(0, 0.05))
        process.send_signal(stop)
        if stop == signal.SIGTERM:
            time.sleep(0.02)
            process.kill()
        out, err = process.communicate(timeout=600)
        assert "Traceback" not in err, err
        verified = scrapy("frontier", str(job), "--verify", "-s", f"OUTPUT_DIR={output}")
        assert verified.stdout.startswith("sound: "), verified.stderr
    assert process.returncode == 130, err
    assert "resume" in out
    assert len(crawl_log(output)) < len(crawl_log(tmp_path / "whole"))
    finish(small_demo_web, output, job, **settings)
    if settings["CRAWL_BATCH_SIZE"]:
        assert files(output) == files(tmp_path / "whole")
    else:
        ids = [line["id"] for line in crawl_log(output)]
        assert len(set(ids)) == len(ids)
        assert sorted(ids) == sorted(line["id"] for line in crawl_log(tmp_path / "whole"))


def wait_for(condition: Callable[[], bool], path: Path) -> None:
    end = time.monotonic() + 600
    while not (path.exists() and condition()):
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.parametrize("batch_size", [20, 0])
def test_more_pages_are_asked_for_later(demo_web: Web, tmp_path: Path, batch_size: int) -> None:
    """The pages are those of the longer crawl, where N cut a batch short (60, 95) and where it ended one (70)."""
    settings = {**SMALL, "CRAWL_BATCH_SIZE": batch_size, "COMMIT_INTERVAL_PAGES": 1000}
    assert crawl(demo_web, tmp_path / "whole", **{**settings, "CRAWL_MAX_PAGES": 130}).returncode == 0
    output, job = tmp_path / "run", tmp_path / "job"
    for pages in (60, 70, 95, 130):
        finish(demo_web, output, job, **{**settings, "CRAWL_MAX_PAGES": pages})
        assert len(crawl_log(output)) == pages
        assert stats(output)["pages/crawled"] == pages
        assert not list((output / "warc").glob("*.open"))
    whole, grown = files(tmp_path / "whole"), files(output)
    assert {name for name in whole if whole[name] != grown[name]} <= {"crawl.jsonl"}  # there the counters differ
    for name in ("id", "iteration", "priority", "parent"):
        assert [page[name] for page in crawl_log(output)] == [page[name] for page in crawl_log(tmp_path / "whole")]
    said = finish(demo_web, output, job, **{**settings, "CRAWL_MAX_PAGES": 130})
    assert "This crawl is finished" in said
    assert "CRAWL_MAX_PAGES" in said
    assert files(output) == grown


@pytest.mark.parametrize("settings", [{}, {"FRONTIER_MAX_URLS": 60, "FRONTIER_MAX_URLS_PER_HOST": 4}])
def test_both_stores_give_the_same_crawl(demo_web: Web, tmp_path: Path, settings: dict[str, Any]) -> None:
    settings = {**SMALL, "CRAWL_MAX_PAGES": 200, **settings}
    assert crawl(demo_web, tmp_path / "memory", **settings).returncode == 0
    finish(demo_web, tmp_path / "disk", tmp_path / "job", **settings)
    assert files(tmp_path / "disk") == files(tmp_path / "memory")
    figures = [
        {name: value for name, value in stats(tmp_path / store).items() if not name.startswith("time")}
        for store in ("memory", "disk")
    ]
    assert figures[0] == figures[1]
    if settings.get("FRONTIER_MAX_URLS"):
        assert figures[0]["dropped/frontier_full"] > 10
        assert figures[0]["dropped/host_full"] > 10
        assert figures[0]["frontier/queued"] <= 60


@pytest.fixture
def paused(finished_runs: FinishedRuns, tmp_path: Path) -> dict[str, Any]:
    """A crawl of 60 pages in ``run`` with the JOBDIR ``job``; its settings."""
    finished_runs.copy("paused", tmp_path)
    return {**PAUSED}


def test_settings_that_may_not_change_are_named(paused: dict[str, Any], demo_web: Web, tmp_path: Path) -> None:
    changed = {**paused, "CRAWL_BATCH_SIZE": 31, "URL_POLICY": "random", "CRAWL_MAX_PAGES": 90}
    message = error_of(crawl(demo_web, tmp_path / "run", JOBDIR=tmp_path / "job", **changed))
    assert "CRAWL_BATCH_SIZE was 30, is 31; " in message
    assert "URL_POLICY was 'influence', is 'random'" in message
    assert "CRAWL_MAX_PAGES" not in message
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(crawl_log(tmp_path / "run")[0]["id"] + "\n")
    message = error_of(crawl(demo_web, tmp_path / "run", seeds, JOBDIR=tmp_path / "job", **paused))
    assert "seeds was 'sha256:" in message


def test_the_output_is_found_and_may_be_moved(paused: dict[str, Any], demo_web: Web, tmp_path: Path) -> None:
    more = {**paused, "CRAWL_MAX_PAGES": 120, "JOBDIR": tmp_path / "job"}
    (tmp_path / "run").rename(tmp_path / "moved")
    message = error_of(crawl(demo_web, tmp_path / "run", **more))
    assert "OUTPUT_DIR" in message
    assert not (tmp_path / "run").exists()
    assert crawl(demo_web, tmp_path / "moved", **more).returncode == 0
    assert len(crawl_log(tmp_path / "moved")) == 120
    (tmp_path / "moved").rename(tmp_path / "run")
    result = crawl(demo_web, Path(), **{**more, "OUTPUT_DIR": "", "CRAWL_MAX_PAGES": 180})
    assert result.returncode == 0, result.stderr
    assert len(crawl_log(tmp_path / "run")) == 180


@pytest.mark.parametrize("name", [b"two\nlines", b"tab\t", b"no UTF-8 \xff"])
def test_folders_may_have_any_name(demo_web: Web, tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / os.fsdecode(name)
    for pages in (20, 40):
        finish(demo_web, folder / "run", folder / "job", CRAWL_SEEDS=30, CRAWL_BATCH_SIZE=10, CRAWL_MAX_PAGES=pages)
        assert len(crawl_log(folder / "run")) == pages
    result = scrapy("frontier", str(folder / "job"), "--verify")
    assert "sound: " in result.stdout, result.stderr


def test_a_jobdir_is_for_one_process(demo_web: Web, tmp_path: Path) -> None:
    process = start(demo_web, tmp_path / "run", tmp_path / "job", **SMALL)
    wait_for(lambda: True, tmp_path / "run/crawl.jsonl")
    process.send_signal(signal.SIGSTOP)  # that it does not end before the other one has looked
    message = error_of(crawl(demo_web, tmp_path / "other", JOBDIR=tmp_path / "job", **SMALL))
    assert f"in use by process {process.pid}" in message
    process.kill()
    process.communicate()


def test_fewer_pages_than_there_are(paused: dict[str, Any], demo_web: Web, tmp_path: Path) -> None:
    def contents() -> dict[Path, bytes]:
        found = [path for name in ("run", "job") for path in (tmp_path / name).rglob("*") if path.is_file()]
        return {path: path.read_bytes() for path in found if not path.name.endswith("lock")}

    before = contents()
    result = crawl(demo_web, tmp_path / "run", JOBDIR=tmp_path / "job", **{**paused, "CRAWL_MAX_PAGES": 59})
    assert (result.returncode, "crawl4llm: " in result.stderr) == (0, False)
    assert "has 60 pages; CRAWL_MAX_PAGES is 59, which is less: there is nothing to do" in result.stdout
    assert contents() == before


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("cut", "store.mdb is damaged"),
        ("foreign", "store.mdb is damaged: it does not belong to job.json"),
        ("old", "has format 0; this version reads format 5; make it again: "),
        ("log", "crawl.jsonl holds 100 bytes"),
    ],
)
def test_damage_is_named(paused: dict[str, Any], demo_web: Web, tmp_path: Path, damage: str, words: str) -> None:
    job = tmp_path / "job"
    store, described = job / "store.mdb", json.loads((job / "job.json").read_text())
    if damage == "cut":
        os.truncate(store, store.stat().st_size // 2)
    elif damage == "foreign":
        (job / "job.json").write_text(json.dumps({**described, "crawl_id": "another"}))
    elif damage == "old":
        (job / "job.json").write_text(json.dumps({**described, "format": 0, "version": "0.0.9"}))
    else:
        os.truncate(tmp_path / "run/crawl.jsonl", 100)
    before = {path.name: path.read_bytes() for path in job.iterdir() if not path.name.endswith("lock")}
    message = error_of(crawl(demo_web, tmp_path / "run", JOBDIR=job, **{**paused, "CRAWL_MAX_PAGES": 90}))
    assert words in message
    if damage != "log":
        assert {path.name: path.read_bytes() for path in job.iterdir() if not path.name.endswith("lock")} == before


def test_a_folder_of_something_else_is_refused(demo_web: Web, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job/requests.seen").touch()
    assert "requests.seen" in error_of(crawl(demo_web, tmp_path / "run", JOBDIR=tmp_path / "job", **SMALL))
    assert not (tmp_path / "run").exists()
    assert [path.name for path in (tmp_path / "job").iterdir()] == ["requests.seen"]


def test_a_crawl_whose_description_is_lost_is_not_begun_anew(
    paused: dict[str, Any], demo_web: Web, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    (job / "job.json").rename(tmp_path / "job.json")
    message = error_of(crawl(demo_web, tmp_path / "other", JOBDIR=job, **paused))
    assert "job.json is missing" in message
    assert not (tmp_path / "other").exists()
    (tmp_path / "job.json").rename(job / "job.json")
    assert "This crawl is finished" in finish(demo_web, tmp_path / "run", job, **paused)


def test_what_was_left_before_a_crawl_began_is_cleared(demo_web: Web, tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.mkdir()
    for name in ("job.json.open", "lock", "store.mdb", "store.mdb-lock", "visited.bloom"):
        (job / name).touch()
    finish(demo_web, tmp_path / "run", job, **PAUSED)


@pytest.mark.parametrize(
    ("file", "size"),
    [("crawl.jsonl", None), ("warc/index.cdxj", 10), ("warc/*.open", None)],
)
def test_files_that_others_remove_or_cut_stop_the_crawl(
    demo_web: Web, tmp_path: Path, file: str, size: int | None
) -> None:
    output = tmp_path / "run"
    process = start(demo_web, output, tmp_path / "job", **{**SMALL, "CRAWL_MAX_PAGES": 100_000, "CRAWL_BATCH_SIZE": 5})
    wait_for(lambda: (output / "crawl.jsonl").stat().st_size > 20_000, output / "crawl.jsonl")
    process.send_signal(signal.SIGSTOP)
    (changed,) = output.glob(file)
    if size is None:
        changed.unlink()
    else:
        os.truncate(changed, size)
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 1, err
    assert "Traceback" not in err
    (line,) = (line for line in err.splitlines() if line.startswith("crawl4llm: error: "))
    assert f"{changed.name} was {'removed' if size is None else 'cut'}" in line


def test_a_full_disk_loses_nothing(demo_web: Web, tmp_path: Path) -> None:
    """A limit on file size stands in for the disk: first a WARC file cannot grow, then the store."""
    settings = {**SMALL, "CRAWL_MAX_PAGES": 400}
    assert crawl(demo_web, tmp_path / "whole", **settings).returncode == 0
    output, job = tmp_path / "run", tmp_path / "job"
    for limit in (40_000, 150_000):
        process = start(demo_web, output, job, limits={"RLIMIT_FSIZE": limit}, **settings)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 1, err
        assert "Traceback" not in err, err
        assert len([line for line in err.splitlines() if line.startswith("crawl4llm: error: ")]) == 1, err
    finish(demo_web, output, job, **settings)
    assert files(output) == files(tmp_path / "whole")


@pytest.fixture
def two_disks(tmp_path: Path) -> Iterator[list[Path]]:
    """Folders on file systems of their own, with room for a little."""
    disks = [tmp_path / name for name in ("output", "state")]
    for disk in disks:
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=80k", "tmpfs", str(disk)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("cannot mount small file systems")
    yield disks
    for disk in disks:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_disk_without_space_is_named_once(
    two_disks: list[Path], finished_runs: FinishedRuns, demo_web: Web, tmp_path: Path
) -> None:
    """First that of the output, then that of JOBDIR; given room, the same command finishes the crawl."""
    output, state = two_disks
    settings = {**PAUSED, "JOBDIR": state / "job", "COMMIT_INTERVAL_PAGES": 10}
    for full, file in ((output, "run/"), (state, "job/store.mdb")):
        said = error_of(crawl(demo_web, output / "run", **settings))
        assert said.startswith(f"cannot write {full / file}")
        assert said.count("No space left on device") == 1
        subprocess.run(["mount", "-o", "remount,size=4m", str(full)], check=True)
    finish(demo_web, output / "run", state / "job", **PAUSED)
    assert files(output / "run") == files(finished_runs.output("paused"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux heeds a limit on address space")
def test_a_limit_on_address_space(finished_runs: FinishedRuns, demo_web: Web, tmp_path: Path) -> None:
    """``ulimit -v`` of 2 GB: the store's map is made as small as it must be."""
    output, job = tmp_path / "run", tmp_path / "job"
    args = [sys.executable, "-m", "scrapy", *crawl_args(demo_web, output, **PAUSED, JOBDIR=job)]
    limited = ["bash", "-c", 'ulimit -v 2000000 && exec "$@"', "bash", *args]
    result = subprocess.run(
        limited, cwd=PROJECT, capture_output=True, env={**os.environ, "PYTHONPATH": str(PROJECT)}, check=False
    )
    assert result.returncode == 0, result.stderr
    assert files(output) == files(finished_runs.output("paused"))
