"""The filter before the visited set on disk: what it holds, what its files are, how large it gets."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from visited_helpers import ROOMY, small_parts

from crawl4llm.base.errors import InputError
from crawl4llm.frontier import bloom
from crawl4llm.frontier.bloom import FingerprintFilter, capacity_within
from crawl4llm.frontier.fingerprints import Mark, fingerprint


@pytest.fixture(scope="module", autouse=True)
def _parts() -> Iterator[None]:
    with small_parts():
        yield


def some(start: int, end: int) -> list[bytes]:
    return [fingerprint(str(number)) for number in range(start, end)]


def filled(path: Path, count: int) -> FingerprintFilter:
    made = FingerprintFilter(path, most_bytes=ROOMY, fsync=False)
    for one in some(0, count):
        made.add(one)
    return made


def test_it_is_sure_only_of_what_is_new(tmp_path: Path) -> None:
    made = FingerprintFilter(tmp_path / "filter", most_bytes=ROOMY, fsync=False)
    maybe = [one for one in some(0, 5000) if made.add(one)]
    assert len(maybe) < 700, "its first filters are so small here that their bits depend on each other"
    assert len(made) == 5000 - len(maybe)
    assert all(one in made for one in some(0, 5000))
    assert all(made.add(one) for one in some(0, 5000))
    assert len([one for one in some(5000, 10_000) if one in made]) < 700


def test_at_full_size_few_are_taken_for_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloom, "_FIRST_CAPACITY", 400)
    monkeypatch.setattr(bloom, "_GROWTH", 8)
    made = filled(tmp_path / "filter", 400 + 3200 + 1000)
    assert 0 < len([one for one in some(5000, 25_000) if one in made]) < 20_000 * 0.022


@pytest.mark.parametrize("count", [1, 8, 9, 40, 41, 300])
@pytest.mark.parametrize("fsync", [True, False])
def test_it_comes_back_as_it_was_saved(tmp_path: Path, count: int, fsync: bool) -> None:
    path = tmp_path / "filter"
    FingerprintFilter(path, most_bytes=ROOMY, fsync=fsync)
    made = filled(path, count)
    made.save(Mark(count, 1 << 127))
    loaded = FingerprintFilter.load(path, most_bytes=ROOMY, fsync=fsync)
    assert loaded.marks == [Mark(count, 1 << 127)]
    assert len(loaded) == len(made)
    assert all(one in loaded for one in some(0, count))
    for one in some(count, 2 * count + 50):
        assert loaded.add(one) == made.add(one)
    for saved in (loaded, made):
        saved.save(Mark(2 * count + 50, 5))
        files = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        assert not [name for name in files if name.endswith(".new")]
        assert all(
            one in FingerprintFilter.load(path, most_bytes=ROOMY, fsync=fsync) for one in some(0, 2 * count + 50)
        )


def test_it_tells_the_last_sets_it_was_saved_for(tmp_path: Path) -> None:
    made = filled(tmp_path / "filter", 10)
    for number in range(9):
        made.save(Mark(number, number))
    assert FingerprintFilter.load(tmp_path / "filter", most_bytes=ROOMY, fsync=False).marks == [
        Mark(n, n) for n in range(5, 9)
    ]


def test_full_filters_are_written_once(tmp_path: Path) -> None:
    path = tmp_path / "filter"
    made = filled(path, 100)
    made.save(Mark(100, 0))
    full = {file: file.stat().st_ino for file in tmp_path.glob("filter.*")}
    assert len(full) == 2
    for one in some(100, 300):
        made.add(one)
    made.save(Mark(300, 0))
    loaded = FingerprintFilter.load(path, most_bytes=ROOMY, fsync=False)
    loaded.save(Mark(300, 1))
    assert {file: file.stat().st_ino for file in full} == full
    assert len(list(tmp_path.glob("filter.*"))) > 2


def test_another_filters_full_file_is_noticed(tmp_path: Path) -> None:
    filled(tmp_path / "filter", 100).save(Mark(100, 0))
    other = FingerprintFilter(tmp_path / "other", most_bytes=ROOMY, fsync=False)
    for one in some(1000, 1100):
        other.add(one)
    other.save(Mark(100, 1))
    (tmp_path / "other.1").replace(tmp_path / "filter.1")
    with pytest.raises(ValueError, match="full filter 1 is another one's"):
        FingerprintFilter.load(tmp_path / "filter", most_bytes=ROOMY, fsync=False)


@pytest.mark.parametrize("content", [b"", b"abc", b"\0\0\0\0", b"{}\n" + bytes(60)])
def test_what_is_no_filter_is_not_loaded(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "filter").write_bytes(content)
    with pytest.raises(ValueError, match=r"."):
        FingerprintFilter.load(tmp_path / "filter", most_bytes=ROOMY, fsync=False)


def rewritten(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a filter's file, its checksum with it."""
    content = change(path.read_bytes()[:-4])
    path.write_bytes(content + crc32(content).to_bytes(4, "little"))


@pytest.mark.parametrize(
    "header",
    [
        {"format": 3, "full": []},
        {"format": 3, "marks": [[1, 2]], "full": []},
        {"format": 3, "marks": [["1", "2"]], "full": []},
        {"format": 3, "marks": [], "full": 5},
        {"format": 3, "marks": [], "full": ["a"]},
        {"format": [], "marks": [], "full": []},
        *([], 7, None),
    ],
)
def test_a_header_of_something_else_is_not_loaded(tmp_path: Path, header: Any) -> None:
    """Its checksum may hold nevertheless: who made the JOBDIR made it. A KeyError ended the crawl."""
    filled(tmp_path / "filter", 10).save(Mark(10, 0))
    rewritten(tmp_path / "filter", lambda data: json.dumps(header).encode() + data[data.index(b"\n") :])
    with pytest.raises(ValueError, match="its header is none"):
        FingerprintFilter.load(tmp_path / "filter", most_bytes=ROOMY, fsync=False)


@pytest.mark.parametrize(("place", "number"), [(8, 10**9), (8, 2**64 - 1), (8, 3), (16, 0)])
def test_a_filter_of_other_slices_is_not_loaded(tmp_path: Path, place: int, number: int) -> None:
    """As many hashes were made as it says that it has slices."""
    filled(tmp_path / "filter", 10).save(Mark(10, 0))

    def change(data: bytes) -> bytes:
        at = data.index(b"\n") + 1 + place
        return data[:at] + number.to_bytes(8, "little") + data[at + 8 :]

    rewritten(tmp_path / "filter", change)
    began = time.process_time()
    with pytest.raises(ValueError, match="no filter of this project"):
        FingerprintFilter.load(tmp_path / "filter", most_bytes=ROOMY, fsync=False)
    assert time.process_time() - began < 5


def test_another_format_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloom, "_FORMAT", 1)
    filled(tmp_path / "filter", 10).save(Mark(10, 0))
    monkeypatch.undo()
    with pytest.raises(ValueError, match="format 1, not 3"):
        FingerprintFilter.load(tmp_path / "filter", most_bytes=ROOMY, fsync=False)


def test_it_says_where_it_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write .*nowhere/filter: No such file or directory"):
        filled(tmp_path / "nowhere" / "filter", 5).save(Mark(5, 0))


def test_a_write_that_fails_leaves_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = filled(tmp_path / "filter", 5)
    made.save(Mark(5, 0))

    def full_disk(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(InputError, match="No space left on device"):
        made.save(Mark(6, 0))
    assert [file.name for file in tmp_path.iterdir()] == ["filter"]
    assert FingerprintFilter.load(tmp_path / "filter", most_bytes=ROOMY, fsync=False).marks == [Mark(5, 0)]


def test_its_size_is_known_beforehand(tmp_path: Path) -> None:
    for most_bytes in (2, 10, 100, 1000, 5000):
        made = FingerprintFilter(tmp_path / "filter", most_bytes=most_bytes, fsync=False)
        number = 0
        while len(made) < capacity_within(most_bytes):
            made.add(fingerprint(str(number)))
            number += 1
        size = sum(len(part.bitarray) for part in made._filters) // 8
        assert 0 < size <= most_bytes + len(made._filters)
        while len(made) == capacity_within(most_bytes):
            made.add(fingerprint(str(number)))
            number += 1
        assert sum(len(part.bitarray) for part in made._filters) // 8 > most_bytes
    assert capacity_within(0) == 0


def test_in_little_memory_it_is_one_small_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloom, "_FIRST_CAPACITY", 1_500_000)
    assert 180_000 < capacity_within(1 << 18) < 200_000
    made = FingerprintFilter(tmp_path / "filter", most_bytes=1 << 18, fsync=False)
    made.add(fingerprint("1"))
    assert (1 << 18) - 8 < made.growing_bytes <= (1 << 18)
    made.save(Mark(1, 1))
    with pytest.raises(ValueError, match="for another memory"):
        FingerprintFilter.load(tmp_path / "filter", most_bytes=1 << 19, fsync=False)


def test_a_hundred_million_take_about_150_mb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloom, "_FIRST_CAPACITY", 1_500_000)
    monkeypatch.setattr(bloom, "_GROWTH", 8)
    assert capacity_within(160 * 1000 * 1000) == 109_500_000
    assert capacity_within(150 * 1000 * 1000) == 13_500_000
