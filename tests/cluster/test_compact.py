"""Compaction of the archive in a storage: killed anywhere, it leaves a storage that can be read, and what was there."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from cluster_helpers import differing, merged
from crawl_helpers import Web, begin, begin_python, crawl, crawl_args
from scrapy_server import Process
from valkey_helpers import eventually

from crawl4llm.base.errors import InputError
from crawl4llm.cluster.history import History
from crawl4llm.tools.cluster import COMPACT

MOST = 40_000
COMMON: dict[str, object] = {
    "CRAWL_MAX_PAGES": 150,
    "CRAWL_PARTITIONS": 3,
    "CRAWL_SEEDS": 20,
    "COMMIT_INTERVAL_PAGES": 15,
    "URL_POLICY": "parent_first",
    "WARC_MAX_BYTES": MOST,
}
MORTAL = """
import argparse, os, signal, sys
from crawl4llm.cluster import archive, storage
from crawl4llm.tools.cluster import COMPACT

archive._PIECE = storage._PART = 5000
left = int(sys.argv[2])

def mortal(real):
    def call(*given):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given)
    return call

for name in sys.argv[3:] or ("put", "put_pieces", "get_range", "delete"):
    setattr(storage.Storage, name, mortal(getattr(storage.Storage, name)))
list(COMPACT.run({}, argparse.Namespace(arguments=[sys.argv[1]])))
"""


def mortal(storage: Path, steps: int, *names: str) -> Process:
    """Compact in a process that ends by SIGKILL when it has taken so many steps, or steps of these names."""
    return begin_python("-c", MORTAL, f"file://{storage}", steps, *names, silent=["out", "err"])


def compact(storage: Path) -> list[Any]:
    return list(COMPACT.run({}, argparse.Namespace(arguments=[f"file://{storage}"])))  # type: ignore[arg-type]


def files(storage: Path) -> dict[str, bytes]:
    """Return the objects of a storage; a process that is killed leaves what it had begun to write, as NAME#NUMBER."""
    paths = [path for path in storage.rglob("*") if path.is_file() and "#" not in path.name]
    return {str(path.relative_to(storage)): path.read_bytes() for path in paths}


def segments_of(history: History) -> list[str]:
    if history.is_continuous:
        names = [commit.head.pages for _, commit in history.commits()]
    else:
        names = [exchange.head["pages"] for batch in history.batches() for exchange in batch.exchanges]
    return [name for name in names if name is not None]


@pytest.fixture(scope="module", params=[0, 20], ids=["continuous", "batches"])
def ended(request: pytest.FixtureRequest, demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a storage; beside it, ``half``: one where a worker was killed, compacted as far as it was."""
    folder = tmp_path_factory.mktemp("ended")
    storage = folder / "storage"
    storage.mkdir()
    given = {**COMMON, "CRAWL_BATCH_SIZE": request.param, "STORAGE": f"file://{storage}"}
    worker = begin(crawl_args(demo_web, folder / "first", **given), silent=["out", "err"])
    eventually(lambda: len(list(storage.glob("*/*/pages-*.warc.gz"))) > 9, 120)
    os.killpg(worker.pid, signal.SIGKILL)
    worker.communicate()
    shutil.copytree(storage, folder / "half")
    assert compact(folder / "half")[0].value > 0, "while the crawl goes on"
    assert crawl(demo_web, folder / "again", **given).returncode == 0
    merged(f"file://{storage}", folder / "merged")
    return folder


@pytest.mark.slow
def test_a_compaction_that_is_killed_at_each_step(ended: Path, tmp_path: Path) -> None:
    storage, whole = tmp_path / "storage", tmp_path / "whole"
    shutil.copytree(ended / "storage", storage)
    shutil.copytree(ended / "storage", whole)
    reader = History(f"file://{whole}")
    segments = {name: reader.pages.get(name) for name in segments_of(reader)}
    facts = {fact.name: fact.value for fact in compact(whole)[:3]}
    assert (facts["segments"], facts["left"]) == (len(segments), 0)
    assert {name: reader.pages.get(name) for name in segments} == segments, "to one that began before, too"
    kills = 0
    for steps in range(1, 99):
        process = mortal(storage, 2 * steps)
        if process.wait(60) == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
        out = merged(f"file://{storage}", tmp_path / f"merged{steps}", verifies=False)
        assert differing(ended / "merged", out) == []
    assert kills > 5
    assert files(storage) == files(whole)
    # The worker that was killed may have written a segment whose commit it did not live to write.
    assert {name.partition(".")[0] for name in segments}.isdisjoint(name.partition(".")[0] for name in files(storage))
    sizes = [path.stat().st_size for path in storage.glob("warc/*.warc.gz")]
    assert len(sizes) > 3
    assert max(sizes) <= MOST
    at_half = {name for name in files(ended / "half") if name.startswith("warc/")}
    assert at_half
    assert at_half <= files(storage).keys(), "where each begins does not depend on when it was run"
    assert compact(storage)[0].value == 0


def test_two_at_once(ended: Path, tmp_path: Path) -> None:
    for name in ("one", "both"):
        shutil.copytree(ended / "storage", tmp_path / name)
    compact(tmp_path / "one")
    both = [mortal(tmp_path / "both", 1_000_000) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert files(tmp_path / "both") == files(tmp_path / "one")


@pytest.mark.parametrize("ended", [0], indirect=True, ids=["continuous"])
def test_one_that_did_not_see_the_last_commit(ended: Path, tmp_path: Path) -> None:
    """Killed before its list: the object is of no use to one that sees more, and is deleted; nothing else is."""
    storage, whole = tmp_path / "storage", tmp_path / "whole"
    for folder in (storage, whole):
        shutil.copytree(ended / "storage", folder)
    compact(whole)
    last = max(storage.glob("p/0000/log/*"))
    content = last.read_bytes()
    last.unlink()
    lists = -1
    while not (strays := files(storage).keys() - files(whole).keys() - files(ended / "storage").keys()):
        lists += 1
        shutil.rmtree(storage)
        shutil.copytree(ended / "storage", storage)
        last.unlink()
        assert mortal(storage, lists, "put").wait(60) == -signal.SIGKILL
    assert not any(name.endswith(".segments") for name in strays), "it was killed before"
    last.write_bytes(content)
    compact(storage)
    assert files(storage) == files(whole)


def test_a_damaged_segment_stays_where_it_is(ended: Path, tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    shutil.copytree(ended / "storage", storage)
    segment = min(storage.glob("*/*/pages-*.warc.gz"))
    segment.write_bytes(segment.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match=rf"{segment.name} is damaged: it has another digest"):
        compact(storage)
    assert segment.exists()
    assert not list(storage.glob("warc/*.segments"))
