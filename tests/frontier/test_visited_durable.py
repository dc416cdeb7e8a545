"""The visited set on disk loses nothing: not to its filter, a kill, a merge or a full cache; damage is named."""

from __future__ import annotations

import logging
import random
import re
import shutil
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from visited_helpers import ROOMY, TIGHT, Opened, small_parts

from crawl4llm.frontier import bloom, fingerprints
from crawl4llm.frontier.bloom import FingerprintFilter
from crawl4llm.frontier.fingerprints import FingerprintRuns, fingerprint
from crawl4llm.frontier.store import Store, StoreError
from crawl4llm.frontier.visited import DurableVisited


@pytest.fixture(scope="module", autouse=True)
def _parts() -> Iterator[None]:
    with small_parts():
        yield


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def keys(start: int, end: int) -> list[str]:
    return [f"http://example.org/{number}" for number in range(start, end)]


def filled(folder: Path, count: int, *, cache: int = 4, filter_bytes: int = ROOMY, batch: int = 5) -> Opened:
    """A visited set with so many keys, committed in batches."""
    opened = Opened(folder, cache=cache, filter_bytes=filter_bytes)
    for start in range(0, count, batch):
        assert opened.visited.add(keys(start, start + batch)) == keys(start, start + batch)
        opened.commit()
    return opened


def assert_holds(visited: DurableVisited, count: int) -> None:
    """It holds the first so many keys and no others, by all ways to ask, and is sound."""
    assert len(visited) == count
    assert [key for key in keys(0, count) if key not in visited] == []
    assert [key for key in keys(count, count + 200) if key in visited] == []
    assert visited.add(keys(0, count)) == []
    visited.verify()


# -- against a set ----------------------------------------------------------------------------------------------------

BATCH = st.lists(st.integers(0, 80).map(str), max_size=12)
STEP = st.one_of(
    st.tuples(st.just("add"), BATCH),
    st.tuples(
        st.sampled_from(["save", "commit", "kill", "reopen", "keep filter", "old filter", "no filter"]), st.none()
    ),
)


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(STEP, max_size=60),
    cache=st.sampled_from([0, 1, 6, 30, 1000]),
    filter_bytes=st.sampled_from([TIGHT, 50, ROOMY]),
)
def test_it_agrees_with_a_set_through_kills_and_old_filters(
    steps: list[tuple[str, list[str] | None]], cache: int, filter_bytes: int
) -> None:
    folder = Path(tempfile.mkdtemp())
    old_filter = folder / "old"
    old_filter.mkdir()
    opened = Opened(folder, cache=cache, filter_bytes=filter_bytes)
    now, committed = set[str](), set[str]()
    for step, batch in steps:
        if batch is not None:
            assert opened.visited.add(batch) == [key for key in dict.fromkeys(batch) if key not in now]
            now |= set(batch)
        elif step == "save":
            opened.visited.save()
        elif step in {"commit", "reopen"}:
            opened.commit() if step == "commit" else opened.reopen()
            committed = set(now)
        elif step == "kill":
            opened.kill()
            now = set(committed)
        elif step == "keep filter":
            for file in folder.glob("visited.filter*"):
                shutil.copy(file, old_filter)
        else:
            FingerprintFilter.remove(folder / "visited.filter")
            if step == "old filter":
                for file in old_filter.iterdir():
                    shutil.copy(file, folder)
            opened.kill()
            now = set(committed)
        assert len(opened.visited) == len(now)
    assert {str(number) for number in range(81) if str(number) in opened.visited} == now
    opened.visited.verify()
    opened.store.close()
    shutil.rmtree(folder)


def test_a_key_is_new_again_if_it_was_not_committed(tmp_path: Path) -> None:
    opened = filled(tmp_path, 50)
    opened.visited.add(keys(50, 60))
    opened.visited.save()
    opened.visited.add(keys(60, 70))
    opened.kill()
    assert_holds(opened.visited, 50)
    assert opened.visited.add(keys(45, 65)) == keys(50, 65)


def test_a_fingerprint_is_not_found_across_two_others(tmp_path: Path) -> None:
    runs = FingerprintRuns(Store(tmp_path / "store.mdb", fsync=False))
    one, across, other = b"\1" * 8 + b"\2" * 8, b"\2" * 16, b"\2" * 8 + b"\3" * 8
    runs.add([one, other])
    assert runs.find(one, 2)
    assert runs.find(other, 2)
    assert not runs.find(across, 2)
    runs.add([across])
    assert runs.find(across, 3)


def test_a_copy_can_be_read_only(tmp_path: Path) -> None:
    opened = filled(tmp_path, 100)
    opened.visited.add(keys(100, 110))
    opened.store.copy_to(tmp_path / "copy.mdb")
    reader = Store(tmp_path / "copy.mdb", readonly=True)
    visited = DurableVisited(reader, tmp_path / "visited.filter", cache=10, filter_bytes=ROOMY)
    assert len(visited) == 100
    assert "http://example.org/7" in visited
    assert "http://example.org/105" not in visited
    visited.verify()


# -- the filter -------------------------------------------------------------------------------------------------------


def test_false_positives_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FingerprintFilter, "add", lambda self, fingerprint: True)
    monkeypatch.setattr(FingerprintFilter, "__contains__", lambda self, fingerprint: True)
    monkeypatch.setattr(FingerprintFilter, "save", lambda self, mark: None)
    assert_holds(filled(tmp_path, 200).visited, 200)


def test_the_filter_spares_look_ups_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = filled(tmp_path, 200)
    opened.reopen()
    looked_up: list[bytes] = []
    find = FingerprintRuns.find

    def counted(self: FingerprintRuns, wanted: bytes, before: int) -> bool:
        looked_up.append(wanted)
        return find(self, wanted, before)

    monkeypatch.setattr(FingerprintRuns, "find", counted)
    assert opened.visited.add(keys(200, 400)) == keys(200, 400)
    assert len(looked_up) < 20
    assert [key for key in keys(400, 600) if key in opened.visited] == []
    assert len(looked_up) < 40


def test_a_small_crawl_has_no_filter(tmp_path: Path) -> None:
    opened = filled(tmp_path, 200, cache=300)
    opened.reopen()
    assert_holds(opened.visited, 200)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store.mdb", "store.mdb-lock"]


def test_a_filter_that_is_behind_is_caught_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened = filled(tmp_path, 100)
    with monkeypatch.context() as patch:
        patch.setattr("crawl4llm.frontier.visited._LEAST_BEHIND", 1 << 40)
        for start in range(100, 160, 5):
            opened.visited.add(keys(start, start + 5))
            opened.commit()
    caplog.clear()
    opened.kill()
    assert caplog.messages == []
    assert_holds(opened.visited, 160)


def test_a_filter_saved_before_a_commit_that_failed_is_good(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    opened = filled(tmp_path, 100)
    opened.visited.add(keys(100, 110))
    opened.visited.save()
    caplog.clear()
    opened.kill()
    assert caplog.messages == []
    assert_holds(opened.visited, 100)


@pytest.mark.parametrize(
    "kept", [range(0), range(1, 9), range(1)], ids=["all", "the one with the header", "the full ones"]
)
def test_a_filter_whose_files_are_missing_is_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kept: range
) -> None:
    opened = filled(tmp_path, 200)
    opened.reopen()
    files = [tmp_path / "visited.filter", *sorted(tmp_path.glob("visited.filter.*"))]
    assert len(files) > 2
    for number, file in enumerate(files):
        if number not in kept:
            file.unlink()
    caplog.clear()
    opened.kill()
    assert len(caplog.messages) == 1
    assert_holds(opened.visited, 200)


def test_a_damaged_filter_is_made_anew(tmp_path: Path) -> None:
    opened = filled(tmp_path, 60)
    opened.reopen()
    opened.store.close()
    rng = random.Random(0)
    for name in ("visited.filter", "visited.filter.0"):
        whole = (tmp_path / name).read_bytes()
        damaged = [whole[: rng.randrange(len(whole))] for _ in range(6)]
        for _ in range(25):
            at = rng.randrange(len(whole))
            damaged.append(whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :])
        for content in damaged:
            (tmp_path / name).write_bytes(content)
            opened.open()
            assert [key for key in keys(0, 60) if key not in opened.visited] == []
            opened.visited.close()
            opened.store.close()
            assert len(FingerprintFilter.load(tmp_path / "visited.filter", most_bytes=ROOMY, fsync=False)) > 50


def test_the_filter_of_another_crawl_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one = filled(tmp_path / "one", 100)
    other = Opened(tmp_path / "other")
    other.visited.add(f"https://example.com/{number}" for number in range(100))
    other.commit()
    for opened in (one, other, other):
        opened.reopen()
    for file in (tmp_path / "other").glob("visited.filter*"):
        shutil.copy(file, tmp_path / "one")
    caplog.clear()
    one.kill()
    assert "belongs to another store" in caplog.text
    assert_holds(one.visited, 100)


def test_a_filter_full_of_what_was_lost_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    opened = filled(tmp_path, 100)
    opened.visited.add(keys(1000, 1100))
    opened.visited.save()
    caplog.clear()
    opened.kill()
    assert "much of its content is not in the store" in caplog.text
    assert_holds(opened.visited, 100)


def test_a_filter_too_large_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    opened = filled(tmp_path, 20, filter_bytes=80)
    assert (tmp_path / "visited.filter").exists()
    for start in range(20, 200, 5):
        opened.visited.add(keys(start, start + 5))
        opened.commit()
    assert [message for message in caplog.messages if "outgrow" in message] == [caplog.messages[-1]]
    assert list(tmp_path.glob("visited.filter*")) == []
    assert_holds(opened.visited, 200)
    opened.reopen()
    assert_holds(opened.visited, 200)
    opened.filter_bytes = ROOMY
    opened.reopen()
    opened.reopen()
    assert (tmp_path / "visited.filter").exists()
    assert_holds(opened.visited, 200)


def test_without_loading_the_filter_it_is_exact_too(tmp_path: Path) -> None:
    opened = filled(tmp_path, 100)
    opened.reopen()
    filter_path = tmp_path / "visited.filter"
    before = filter_path.read_bytes()
    visited = DurableVisited(opened.store, filter_path, cache=4, filter_bytes=ROOMY)
    assert_holds(visited, 100)
    assert visited.add(keys(100, 120)) == keys(100, 120)
    visited.save()
    visited.close()
    opened.store.commit()
    assert filter_path.read_bytes() == before
    opened.kill()
    assert_holds(opened.visited, 120)


def test_making_the_filter_shows_a_bar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = filled(tmp_path, 100)
    FingerprintFilter.remove(tmp_path / "visited.filter")
    visited = DurableVisited(opened.store, tmp_path / "visited.filter", cache=4, filter_bytes=ROOMY)
    visited.load_filter(progress=True)
    shown = capsys.readouterr().err
    assert "visited set" in shown
    assert "100/100" in shown


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "_BLOCK", 254)
    monkeypatch.setattr(fingerprints, "_MOVES", 1024)
    monkeypatch.setattr(bloom, "_FIRST_CAPACITY", 40_000)
    opened = filled(tmp_path, 4_000, cache=2_000, batch=500)
    tracemalloc.start()
    try:
        for start in range(4_000, 12_000, 500):
            opened.visited.add(keys(start, start + 500))
            opened.commit()
            if start == 4_000:
                early = tracemalloc.get_traced_memory()[0]
        grown = tracemalloc.get_traced_memory()[0] - early
    finally:
        tracemalloc.stop()
    assert grown < 200_000  # where 7,500 fingerprints take 750,000
    assert_holds(opened.visited, 12_000)


def test_no_save_has_much_to_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "_FAN_IN", 4)
    written = 0
    put = Store.put

    def counted(self: Store, table: str, key: bytes, value: bytes) -> None:
        nonlocal written
        written += table == "visited"
        put(self, table, key, value)

    monkeypatch.setattr(Store, "put", counted)
    opened = Opened(tmp_path)
    most = total = 0
    for start in range(0, 12_000, 30):
        opened.visited.add(keys(start, start + 30))
        written = 0
        opened.commit()
        most, total = max(most, written), total + written
    blocks = 12_000 // 3
    assert total < 7 * blocks, "each key is written once, and once in each merge"
    assert most < 150, "ten blocks are new, and each of five merges moves twice as many"
    assert opened.store.count("visited") < 1.2 * blocks
    assert_holds(opened.visited, 12_000)


# -- damage -----------------------------------------------------------------------------------------------------------


def test_flipped_bytes_are_named(tmp_path: Path) -> None:
    opened = filled(tmp_path, 300)
    opened.store.close()
    path = tmp_path / "store.mdb"
    content = path.read_bytes()
    wanted = fingerprint("http://example.org/7")
    places = [match.start() for match in re.finditer(re.escape(wanted), content)]
    assert places
    for at in places:
        content = content[: at + 9] + bytes([content[at + 9] ^ 1]) + content[at + 10 :]
    path.write_bytes(content)
    opened.open()
    with pytest.raises(StoreError, match=r"store\.mdb is damaged: visited [0-9a-f]+ fails its checksum; restore"):
        opened.visited.verify()
    with pytest.raises(StoreError, match="fails its checksum"):
        _ = [key in opened.visited for key in keys(0, 300)]


def test_a_block_that_is_missing_is_noticed_at_once(tmp_path: Path) -> None:
    opened = filled(tmp_path, 100)
    (key, _), *_ = opened.store.items("visited")
    opened.store.delete("visited", key)
    opened.store.commit()
    with pytest.raises(StoreError, match=r"the visited set has \d+ blocks, not \d+"):
        opened.kill()


def test_blocks_without_a_state_are_not_an_empty_set(tmp_path: Path) -> None:
    opened = filled(tmp_path, 100)
    opened.store.delete("state", b"visited")
    opened.store.commit()
    with pytest.raises(StoreError, match=r"has \d+ blocks, not 0"):
        opened.kill()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda block: block[16:] + block[:16], "is out of order"),
        (lambda block: block[:-16], "fingerprints with checksum"),
        (lambda block: block[:-1] + bytes([block[-1] ^ 1]), "fingerprints with checksum"),
        (lambda block: block[:-1], "has 47 bytes"),
        (lambda block: b"", "has 0 bytes"),
    ],
)
def test_verify_finds_what_checksums_of_blocks_do_not(tmp_path: Path, change: object, message: str) -> None:
    assert callable(change)
    opened = filled(tmp_path, 100)
    key, block = next(item for item in opened.store.items("visited") if len(item[1]) == 48)
    opened.store.put("visited", key, change(block))
    with pytest.raises(StoreError, match=message):
        opened.visited.verify()
