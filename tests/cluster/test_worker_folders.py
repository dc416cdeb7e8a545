"""The output folder of a worker: the same command goes on in it, and a start that was refused leaves none."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from cluster_helpers import differing
from crawl_helpers import PROJECT, Web, begin, crawl, crawl_args, error_of, scrapy
from fake_slurm import fake_slurm
from forked_programs import forked_programs
from gated_scorer import GATE, SCORER, gate
from valkey_helpers import eventually, url_of, valkey_server

N = 120
COMMON = {"CRAWL_MAX_PAGES": N, "CRAWL_BATCH_SIZE": 10, "CRAWL_SEEDS": 10, "URL_POLICY": "breadth_first", **SCORER}
CONTINUOUS = {**COMMON, "CRAWL_BATCH_SIZE": 0, "COMMIT_INTERVAL_PAGES": 8}


def storage_at(folder: Path) -> dict[str, object]:
    folder.mkdir()
    return {"STORAGE": f"file://{folder}", "CRAWL_PARTITIONS": 4}


def has_begun(storage: Path, settings: dict[str, object]) -> bool:
    """Whether a few batches, or commits, are in the storage."""
    return len(list(storage.glob("i/*/*" if settings["CRAWL_BATCH_SIZE"] else "p/*/*/*"))) > 12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "number"),
    [
        (COMMON, signal.SIGTERM),
        (COMMON, signal.SIGKILL),
        (CONTINUOUS, signal.SIGINT),
        (CONTINUOUS, signal.SIGKILL),
    ],
    ids=["batches-SIGTERM", "batches-SIGKILL", "continuous-SIGINT", "continuous-SIGKILL"],
)
def test_the_same_command_goes_on(
    settings: dict[str, object], number: signal.Signals, demo_web: Web, tmp_path: Path
) -> None:
    storage, output = storage_at(tmp_path / "storage"), tmp_path / "worker"
    args = crawl_args(demo_web, output, **settings, **storage)
    with gate(tmp_path / "gate"):
        worker = begin(args)
        try:
            eventually(lambda: has_begun(tmp_path / "storage", settings), 120)
            os.killpg(worker.pid, number) if number == signal.SIGKILL else worker.send_signal(number)
            (tmp_path / "gate").unlink()
            said, _ = worker.communicate(timeout=600)
        finally:
            worker.kill()
    assert worker.returncode != 0
    if number != signal.SIGKILL:
        assert "Next: the same command resumes it" in said
    again = scrapy(*args)
    assert again.returncode == 0, again.stderr
    assert f"{N} of {N} pages" in again.stdout
    assert [path.name for path in (output / "scratch").rglob("*") if path.is_file()] == ["lock"]
    done = scrapy("cluster", "verify", str(storage["STORAGE"]))
    assert done.returncode == 0, done.stderr


def test_workers_do_not_share_a_folder(demo_web: Web, tmp_path: Path) -> None:
    """The second one is refused, and the first, in whose folder it looked, is not disturbed."""
    storage, output = storage_at(tmp_path / "storage"), tmp_path / "worker"
    args = crawl_args(demo_web, output, **COMMON, **storage)
    with gate(tmp_path / "gate"):
        worker = begin(args)
        try:
            eventually(lambda: has_begun(tmp_path / "storage", COMMON), 120)
            worker.send_signal(signal.SIGSTOP)  # so that it does not end meanwhile
            (tmp_path / "gate").unlink()
            assert error_of(scrapy(*args)).startswith(f"OUTPUT_DIR {output} is in use by another worker")
            worker.send_signal(signal.SIGCONT)
            assert worker.wait(120) == 0, worker.communicate()
        finally:
            worker.kill()
    other = storage_at(tmp_path / "other")
    said = error_of(scrapy(*crawl_args(demo_web, output, **COMMON, **other)))
    assert said.startswith(f"OUTPUT_DIR {output} is that of a worker of another crawl")
    alone = error_of(scrapy(*crawl_args(demo_web, output, **COMMON)))
    assert alone.startswith(f"OUTPUT_DIR {output} holds another crawl (settings.json)")
    assert scrapy(*args).returncode == 0


def test_a_refused_start_leaves_no_folder(demo_web: Web, tmp_path: Path) -> None:
    storage = storage_at(tmp_path / "storage")
    small = {**COMMON, "CRAWL_MAX_PAGES": 40}
    assert crawl(demo_web, tmp_path / "first", **small, **storage).returncode == 0
    output = tmp_path / "new/folder"
    for refused in (
        {"CLUSTER": "valkey://127.0.0.1:1/0"},
        {"STORAGE": "file:///nowhere/at/all"},
        {"CRAWL_MAX_PAGES": 50},
        {"URL_POLICY": "link"},
        {"CRAWL_PARTITIONS": 7},
    ):
        error_of(crawl(demo_web, output, **{**small, **storage, **refused}))
        assert not (tmp_path / "new").exists(), refused
    assert crawl(demo_web, output, **small, **storage).returncode == 0


def test_the_line_for_slurm(demo_web: Web, tmp_path: Path) -> None:
    """That of docs/cluster.md, submitted twice: the second time the jobs go on with a crawl that was stopped."""
    line = re.search(r"^sbatch .*$", (PROJECT / "docs/cluster.md").read_text(), re.MULTILINE)
    assert line is not None
    slurm = {**os.environ, **fake_slurm(tmp_path / "slurm"), "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests/helpers'}"}
    slurm["PATH"] = f"{tmp_path / 'bin'}:{slurm['PATH']}"
    storage = storage_at(tmp_path / "storage")
    given = crawl_args(demo_web, Path("unused"), **COMMON, CLUSTER_LEASE=2)[2:]
    settings = shlex.join(
        [word for pair in zip(given[::2], given[1::2], strict=True) if "OUTPUT" not in pair[1] for word in pair]
    )
    (tmp_path / "scrapy.cfg").write_text((PROJECT / "scrapy.cfg").read_text())
    (tmp_path / "settings").symlink_to(PROJECT / "settings")
    programs = forked_programs(tmp_path / "bin", "scrapy")
    with valkey_server() as server, gate(tmp_path / "gate", 0.15), programs:
        slurm[GATE] = str(tmp_path / "gate")
        command = line[0].replace("1-64", "1-2").replace("valkey://HEAD:6390/0", url_of(server))
        command = command.replace("s3://bucket/crawl", str(storage["STORAGE"]))
        command = command.replace("crawl influence", f"crawl influence {settings} -s CRAWL_PARTITIONS=4")
        for ended in (False, True):
            subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env=slurm, check=True, capture_output=True, timeout=60
            )
            number = 1 + ended
            if not ended:
                eventually(lambda: has_begun(tmp_path / "storage", COMMON), 120)
                stop = scrapy("cluster", "stop", str(storage["STORAGE"]), "-s", f"CLUSTER={url_of(server)}")
                assert stop.returncode == 0, stop.stderr
            queued = tmp_path / f"slurm/queued{number}"
            eventually(lambda queued=queued: not queued.exists(), 200)  # type: ignore[misc]
            said = [(tmp_path / f"slurm/out{number}.{task}").read_text() for task in (1, 2)]
            assert [f"{N} of {N} pages" in text for text in said] == [ended, ended], said
            (tmp_path / "gate").unlink(missing_ok=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["1", "2"]
    merged = scrapy("cluster", "merge", str(storage["STORAGE"]), "--out", str(tmp_path / "merged"))
    assert merged.returncode == 0, merged.stderr
    assert crawl(demo_web, tmp_path / "alone", **COMMON).returncode == 0
    assert differing(tmp_path / "alone", tmp_path / "merged") == []
    assert "storage_crawl" not in json.loads((tmp_path / "merged/settings.json").read_text())
