"""Sets of fingerprints on disk: what was put in is found, nothing else is, and what is no such file is refused."""

from __future__ import annotations

import hashlib
import json
import os
import random
from pathlib import Path

import numpy as np
import pytest

from crawl4llm.base.errors import InputError
from crawl4llm.base.sorted_file import MAGIC, HashTable, Records, SortedFile, known
from crawl4llm.base.sorted_writer import SortedWriter

COUNT = 70_000


KIND = known("urls")


def written(path: Path, count: int = COUNT, kind: str = "urls", scheme: str = "one") -> list[int]:
    """Write a set of random fingerprints, a table of few hashes that come often, and records; return the
    fingerprints."""
    draw = random.Random(count)
    some = sorted({draw.getrandbits(64) for _ in range(count)} | {0, (1 << 64) - 1})
    numbers = np.array(sorted(range(count), key=lambda number: (number % 97, number)), dtype=np.uint32)
    hashes = (numbers % 97).astype(np.uint64) * np.uint64(44_000_000) << np.uint64(32)
    with path.open("xb") as file:
        writer = SortedWriter(file)
        pieces = np.array_split(np.array(some, dtype=np.uint64), 7)
        writer.table("some", "I", len(some), ([piece] for piece in pieces))
        parts = (slice(3), slice(3, 3), slice(3, None))
        writer.table("table", "II", count, [(hashes[part], numbers[part]) for part in parts])
        rows = ((one, b"%d" % one, (place,)) for place, one in enumerate(some) if place % 10)
        writer.records("records", rows, path.with_suffix(".scratch"), "QQQ")
        writer.finish(KIND._replace(name=kind), scheme, len(some))
    return some


def opened(path: Path, **more: bool) -> SortedFile:
    return SortedFile(path, KIND, "one", "SETTING", **more)


@pytest.mark.parametrize("count", [0, 1, 255, 256, COUNT])
def test_all_that_is_in_a_set_is_found_and_nothing_else(tmp_path: Path, count: int) -> None:
    some = written(tmp_path / "set", count)
    file = opened(tmp_path / "set")
    found = HashTable(file, "some")
    assert len(file) == len(found) == len(some)
    assert all(map(found.__contains__, some))
    draw = random.Random("others")
    assert not any(draw.getrandbits(64) in found for _ in range(20_000))
    assert found.error_rate <= 256 / 2**32 * 1.01
    _, entries, _ = file.column("some")
    _, starts, _ = file.column("some starts")
    assert 4 * entries + 8 * starts < 4.2 * count + 100
    table = HashTable(file, "table")
    for residue in (0, 40, 96):
        wanted = [number for number in range(count) if number % 97 == residue]
        assert [number for _, number in table.under(residue * 44_000_000 << 32)] == wanted
    assert list(table.under(5 << 32)) == list(table.under((1 << 64) - 1)) == []


def test_records_are_found_with_what_stands_beside_them(tmp_path: Path) -> None:
    some = written(tmp_path / "set")
    records = Records(opened(tmp_path / "set"), "records")
    assert not (tmp_path / "set.scratch").exists()
    for place in (1, 2, 255, 256, 30_001, 69_999):
        number = records.find(some[place])
        assert number is not None
        assert records.read(*records.span(number)) == b"%d" % some[place]
        assert records.values(number)[1] == place
    assert records.find(some[10]) is None
    with pytest.raises(InputError, match="is damaged: records 70,000 is not there"):
        records.span(COUNT)


def test_many_entries_of_one_hash_are_searched_on_disk(tmp_path: Path) -> None:
    """A passage may be in all texts."""
    hashes = np.sort(np.concatenate([np.full(20_000, 3 << 40), np.arange(20_000) << 32]).astype(np.uint64))
    with (tmp_path / "set").open("xb") as file:
        writer = SortedWriter(file)
        writer.table("some", "QQ", len(hashes), [(hashes, np.arange(len(hashes), dtype=np.uint64))])
        writer.finish(KIND, "one", len(hashes))
    table = HashTable(opened(tmp_path / "set"), "some")
    assert [number for number, _ in table.under(3 << 40)] == np.flatnonzero(hashes == 3 << 40).tolist()
    assert table.find(19_999 << 32) == 39_999
    assert list(table.under(20_000 << 32)) == []


def test_fingerprints_that_differ_in_what_is_kept_are_told_apart_and_others_are_not(tmp_path: Path) -> None:
    """As the error rate says: 8 bits tell the place of 70,000, and 32 are kept; a difference after them is not seen."""
    some = written(tmp_path / "set")
    found = HashTable(opened(tmp_path / "set"), "some")
    bits = 32 + 9
    assert found.error_rate == len(some) / 2.0**bits
    assert all(one ^ (1 << (64 - bits)) not in found for one in some[1:-1])
    assert all(one ^ 1 in found for one in some)


def test_files_of_the_same_are_the_same_and_others_have_another_identity(tmp_path: Path) -> None:
    for name, count in (("one", 100), ("two", 100), ("other", 101)):
        written(tmp_path / name, count)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    one, other = (opened(tmp_path / name).identity for name in ("one", "other"))
    assert one == opened(tmp_path / "two", whole=False).identity != other


def test_what_is_no_such_file_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "set"
    written(path, 1000)
    good = path.read_bytes()
    head = good[:4096]
    cut = "is damaged: it has 9,000 bytes of"
    cases = {
        b"": "is no set of known URLs or texts; make one: ",
        b"http://one.example/\n" * 400: "is no set of known URLs or texts; make one: ",
        good[:100]: "is damaged: its head is not whole",
        good[:9000]: cut,
        good + b"x": "is damaged: it has",
        head.replace(b'"entries": 1002', b'"entries": 1003') + good[4096:]: "is damaged: its head is not whole",
        good[:-100] + b"\0\1" + good[-98:]: "is damaged: its content is not what its head says",
    }
    for data, said in cases.items():
        path.write_bytes(data)
        with pytest.raises(InputError) as raised:
            opened(path)
        assert str(raised.value).startswith(f"SETTING {path} {said}"), raised.value
    path.write_bytes(next(data for data, said in cases.items() if said.endswith("head says")))
    assert len(opened(path, whole=False)) == 1002
    os.mkfifo(tmp_path / "fifo")
    for name, said in ((".", "Is a directory"), ("fifo", "it is a FIFO, not a regular file"), ("no", "No such file")):
        with pytest.raises(InputError, match=f"cannot be read: {said}"):
            opened(tmp_path / name)


def test_sets_of_another_version_kind_or_scheme_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "texts", 10, kind="texts")
    written(tmp_path / "scheme", 10, scheme="two")
    with monkeypatch.context() as later:
        later.setattr("crawl4llm.base.sorted_writer.FORMAT", 3)
        written(tmp_path / "later", 10)
    said = {
        "texts": "is a file of texts, not of urls",
        "scheme": "was made by 'two', not by 'one'",
        "later": "has format 3; this version reads format 2; make it again: ",
    }
    for name, fault in said.items():
        with pytest.raises(InputError) as raised:
            opened(tmp_path / name)
        assert str(raised.value).startswith(f"SETTING {tmp_path / name} {fault}")


def test_a_head_that_somebody_made_up_is_refused(tmp_path: Path) -> None:
    """With a checksum that is right: columns that are not there, or reach further than the file, or do not fit."""
    written(tmp_path / "set", 1000)
    data = (tmp_path / "set").read_bytes()
    head = json.loads(data[len(MAGIC) :].partition(b"\n")[0])
    columns = head["columns"]
    made_up: list[object] = [
        [],
        {},
        {**head, "more": 1},
        {**head, "columns": {}},
        {**head, "columns": {**columns, "some": [4096, 1 << 40, "I"]}},
        {**head, "columns": {**columns, "some": [4096, 2, "I"]}},
        {**head, "columns": {**columns, "some starts": [8, "x", "Q"]}},
        {**head, "columns": {**columns, "some": [-8, 2, "I"]}},
        {**head, "columns": {**columns, "some": "III"}},
        {**head, "columns": []},
        {**head, "entries": "many"},
        {**head, "entries": -1},
        {**head, "size": "large"},
        {**head, "sha256": None},
    ]
    for one in made_up:
        said = json.dumps(one).encode()
        whole = b"%b%b\n%b\n" % (MAGIC, said, hashlib.sha256(said).hexdigest().encode())
        (tmp_path / "set").write_bytes(whole.ljust(4096) + data[4096:])
        with pytest.raises(InputError, match="is damaged: its head cannot be read"):
            HashTable(opened(tmp_path / "set"), "some")


def test_places_that_somebody_made_up_lead_nowhere(tmp_path: Path) -> None:
    """Not beyond the entries."""
    with (tmp_path / "set").open("xb") as file:
        writer = SortedWriter(file)
        writer.column("some", "Q", [np.arange(3, dtype="<u8").tobytes()])
        writer.column("some starts", "Q", [np.array([0, 1 << 40, 3], dtype="<u8").tobytes()])
        writer.finish(KIND, "one", 3)
    table = HashTable(opened(tmp_path / "set"), "some")
    for wanted in (1, 1 << 63):
        with pytest.raises(InputError, match=r"is damaged: some \S+ is not there"):
            assert wanted in table


def test_a_file_that_is_cut_while_it_is_read_is_told(tmp_path: Path) -> None:
    some = written(tmp_path / "set")
    table = HashTable(opened(tmp_path / "set"), "some")
    os.truncate(tmp_path / "set", 5000)
    with pytest.raises(InputError, match="is damaged: it has become shorter"):
        all(one in table for one in some)
