"""Objects that are sound JSON of something else: one line that names them, whoever reads them."""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from changed_json import OTHERS, places, with_other
from cluster_helpers import Died, Worker, random_web
from driven_crawl import pages_at_once

from crawl4llm.base.errors import InputError
from crawl4llm.base.shapes import Maybe, Where, fits
from crawl4llm.cluster import crawl as cluster_crawl, objects, partition, shapes, worker as cluster_worker
from crawl4llm.cluster.storage import Storage, pack, packed, sealed
from crawl4llm.tools.cluster import COMPACT, MERGE, STATUS, VERIFY

P = 3
WEB = random_web(5, 60)
SEEDS = WEB.sample(12, 5)
OPTIONS: dict[str, Any] = {"url_policy": "breadth_first", "crawl_batch_size": 6, "crawl_max_pages": 40}
Kind = tuple[str, str]
KINDS: list[Kind] = [
    ("crawl.json", "crawl.json"),
    ("end.json", "end.json"),
    ("plan", "i/*/plan"),
    *((kind, f"i/*/{kind}-*") for kind in ("offer", "whole", "exchange", "found")),
    ("snapshot", "p/*/*"),
    ("segments", "warc/*.segments"),
]


def work(storage: Path, folder: Path, puts: float) -> None:
    """Crawl until so many objects were put, or to the end."""
    worker = Worker(WEB, folder, f"file://{storage}", SEEDS, puts=puts, crawl_partitions=P, **OPTIONS)
    try:
        asyncio.run(worker._run(SEEDS, random.Random(1)))
    except Died:
        pass
    finally:
        worker.crawl.close()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cluster_crawl, "POLL", 0.002)
    monkeypatch.setattr(cluster_worker, "POLL", 0.002)
    monkeypatch.setattr(partition, "_AT_LEAST", -2)
    with pages_at_once(4):
        yield


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that is half done: a worker reads all kinds of objects to go on with it."""
    storage = tmp_path_factory.mktemp("begun")
    with pytest.MonkeyPatch.context() as patch, pages_at_once(4):
        patch.setattr(partition, "_AT_LEAST", -2)
        work(storage, tmp_path_factory.mktemp("worker") / "one", 42)
    return storage


@pytest.fixture(scope="module")
def ended(begun: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    storage = tmp_path_factory.mktemp("ended") / "storage"
    shutil.copytree(begun, storage)
    with pytest.MonkeyPatch.context() as patch, pages_at_once(4):
        patch.setattr(partition, "_AT_LEAST", -2)
        work(storage, tmp_path_factory.mktemp("worker") / "two", 1e9)
    return storage


def change(storage: Storage, path: Path, kind: str, draw: random.Random) -> None:
    """Put another value into an object."""
    name = path.relative_to(storage.url.removeprefix("file://")).as_posix()
    data = storage.unsealed(name, path.read_bytes())
    if kind == "snapshot":
        path.write_bytes(sealed(name, packed(draw.randbytes(draw.choice([0, 1, 7, 300])))))
        return
    if kind != "exchange":
        parts = [storage.read(name, data)]
    else:
        exchange = objects.read_exchange(storage, name, data)
        sections = exchange._sections
        parts = [exchange.head, *(storage.read(name, one) for one in sections.values())]
    number = draw.randrange(len(parts))
    at = draw.choice(list(places(parts[number])))
    parts[number] = with_other(parts[number], at, draw.choice(OTHERS))
    if kind == "exchange":
        changed = objects.encode(parts[0], (), dict(zip(sections, map(pack, parts[1:]), strict=True)))
    else:
        changed = pack(parts[0])
    path.write_bytes(sealed(name, changed))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "pattern"), KINDS, ids=[kind for kind, _ in KINDS])
def test_an_object_of_another_shape(kind: str, pattern: str, begun: Path, ended: Path, tmp_path: Path) -> None:
    """Whatever value stands in the place of another in any object, it is read, or refused in one line."""
    draw = random.Random(kind)
    said: list[str] = []
    merges: list[Callable[[Path, Path], object]] = [
        lambda storage, folder: run(MERGE, storage, out=str(folder / "merged"), index_only=False),
        lambda storage, folder: run(MERGE, storage, out=str(folder / "index"), index_only=True),
    ]
    actions: list[Callable[[Path, Path], object]] = [
        lambda storage, _: run(VERIFY, storage),
        lambda storage, _: run(STATUS, storage),
        lambda storage, folder: work(storage, folder / "worker", 30),
    ]
    for turn in range(10):
        folder = tmp_path / str(turn)
        storage = folder / "storage"
        is_ended = kind in ("end.json", "segments") or (turn % 2 and kind not in ("found", "snapshot"))
        shutil.copytree(ended if is_ended else begun, storage)
        if kind == "segments":
            run(COMPACT, storage)
        path = draw.choice(sorted(storage.glob(pattern)))
        if kind == "whole":  # nobody reads it again once there is a plan
            path = max(storage.glob(pattern))
            (path.parent / "plan").unlink()
            shutil.rmtree(storage / "p")
        change(Storage(f"file://{storage}"), path, kind, draw)
        for act in (*actions, *merges[turn % 3 : turn % 3 + 1]):
            try:
                act(storage, folder)
            except InputError as error:
                said.append(str(error))
    assert len(said) > 4
    assert not any("\n" in line for line in said)
    assert any(line.startswith("STORAGE") and f"{'p/' if kind == 'snapshot' else kind}" in line for line in said)


def run(action: Any, storage: Path, **options: Any) -> None:
    list(action.run({}, argparse.Namespace(arguments=[f"file://{storage}"], **options)))


@pytest.mark.parametrize(
    ("keyless", "fits_it"),
    [([3, 5], True), ([1 << 24], True), ([1 << 23, 1 << 23, 1], False), ([10**18], False), ([-1], False)],
)
def test_a_section_tells_of_no_more_links_than_there_is_room_for(keyless: list[int], fits_it: bool) -> None:
    """A hundred bytes told of 30 million links without a key, which took 230 MB."""
    pages = [[place, [0], None, links] for place, links in enumerate(keyless)]
    section = {"targets": [["key", "", "", False]], "pages": pages, "redirects": []}
    assert fits([section], shapes.SECTION) is fits_it


@pytest.mark.parametrize(
    ("targets", "fits_it"),
    [
        ([], True),
        ([["a", "", "", False], ["b", "u", "anchor", True]], True),
        ([["a", ""]], False),
        ([["a", True, "", False]], False),
        ([["a", "", "anchor", "text"]], False),
        (["ab"], False),
        ("ab", False),
        ({}, False),
    ],
)
def test_a_section_has_targets_of_four_fields(targets: Any, fits_it: bool) -> None:
    assert fits([{"targets": targets, "pages": [], "redirects": []}], shapes.SECTION) is fits_it


@pytest.mark.parametrize(
    ("value", "shape", "has_it"),
    [
        (1, {int}, True),
        (True, {int}, False),
        ("a", {"a", "b"}, True),
        ("c", {"a", "b"}, False),
        ([[1, "a"]], [({int}, {str})], True),
        ([[1, "a", 2]], [({int}, {str})], False),
        ({"a": 1, "b": 2}, {"a": {int}}, True),
        ({"b": 2}, {"a": {int}}, False),
        ({"b": 2}, {...: {int}}, True),
        ({"b": "2"}, {...: {int}}, False),
        ([None, 1], [Maybe({int})], True),
        ([2, 1], Where([{int}], lambda one: one == sorted(one)), False),
    ],
)
def test_shapes(value: Any, shape: Any, has_it: bool) -> None:
    assert fits([value], shape) is has_it
