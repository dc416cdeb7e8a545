"""The durable store: what was committed is there, what was not is gone, damage is named."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from crawl4llm.crawl.commits import read_state
from crawl4llm.crawl.store_check import ID, check_store
from crawl4llm.frontier import Entry
from crawl4llm.frontier.opening import open_frontier
from crawl4llm.frontier.store import Store, StoreError

CRAWL = "a crawl"


def filled(path: Path, documents: int = 3000) -> None:
    """A store with a frontier."""
    store = Store(path)
    store.put("state", ID, CRAWL.encode())
    frontier = open_frontier(store)
    draw = random.Random(0)
    for start in range(0, documents, 500):
        frontier.push(
            Entry(str(number), f"http://example.org/{number}", draw.random(), 1, "p")
            for number in range(start, start + 500)
        )
        frontier.lease(20)
        frontier.save()
        store.commit()
    store.close()


def test_what_was_not_committed_is_forgotten(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.mdb")
    store.put("state", b"a", b"1")
    store.commit()
    store.put("state", b"a", b"2")
    store.put("state", b"b", b"3")
    assert [*store.items("state")] == [(b"a", b"2"), (b"b", b"3")]
    store.close()
    store = Store(tmp_path / "store.mdb")
    assert [*store.items("state")] == [(b"a", b"1")]
    store.close()


def test_another_process_reads_the_last_commit(tmp_path: Path) -> None:
    filled(tmp_path / "store.mdb")
    check_store(tmp_path / "store.mdb", CRAWL)


def test_a_whole_store_is_sound(tmp_path: Path) -> None:
    filled(tmp_path / "store.mdb")
    check_store(tmp_path / "store.mdb", CRAWL, thorough=True)


@pytest.mark.parametrize("state", [b"[]", b"{", b'{"log": [1]}', b'{"log": ["1", 2]}', b"[" * 10**5])
def test_an_odd_state_is_damage(state: bytes, tmp_path: Path) -> None:
    with closing(Store(tmp_path / "store.mdb")) as store:
        store.put("state", b"crawl", state)
        with pytest.raises(StoreError, match="is damaged: its state is not that of a crawl"):
            read_state(store)


def test_the_store_of_another_crawl_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "store.mdb")
    with pytest.raises(StoreError, match=r"does not belong to job\.json"):
        check_store(tmp_path / "store.mdb", "another crawl")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_store_cut_short_is_named(tmp_path: Path, share: float) -> None:
    path = tmp_path / "store.mdb"
    filled(path)
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * share))
    with pytest.raises(StoreError, match=r"store\.mdb is damaged"):
        check_store(path, CRAWL)


def test_a_missing_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"store\.mdb is damaged: it holds 0 bytes"):
        check_store(tmp_path / "store.mdb", CRAWL)


@pytest.mark.slow
def test_flipped_bytes_are_found_or_harm_nothing(tmp_path: Path) -> None:
    """Bytes in pages that are free, and what LMDB keeps for itself, may change unseen: then all documents are there."""
    sound = tmp_path / "sound.mdb"
    filled(sound)
    content, entries = sound.read_bytes(), entries_of(sound)
    path = tmp_path / "store.mdb"
    draw = random.Random(1)
    found = 0
    for _ in range(40):
        damaged = bytearray(content)
        place = draw.randrange(len(content))
        damaged[place : place + 8] = bytes(255 - byte for byte in damaged[place : place + 8])
        path.write_bytes(damaged)
        try:
            check_store(path, CRAWL)
        except StoreError:
            found += 1
        else:
            assert entries_of(path) == entries
    assert found > 12


def entries_of(path: Path) -> list[Entry]:
    """All documents queued."""
    store = Store(path, readonly=True)
    entries = list(open_frontier(store))
    store.close()
    return entries
