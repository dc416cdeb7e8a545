"""``scrapy archive repair``: what is whole stays, what is not is said and kept aside, and the rest fits together."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from dataset_helpers import PAGES, archive, done, log_line, page, problems, refused, tree, write_finished, write_run
from warc_helpers import html_of, http, response, url_of, write

from crawl4llm.warc.cdxj import read
from crawl4llm.warc.reader import WarcReader

LAST, FIRST = "c-00005.warc.gz", "c-00000.warc.gz"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_finished(tmp_path_factory.mktemp("repair") / "run")


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def last_of(run: Path) -> Path:
    return max((run / "warc").glob("c-0*"))


def lost(run: Path) -> list[str]:
    return [json.loads(line)["id"] for line in (run / "lost.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("cut", "compression"), [(1, "gzip"), (900, "gzip"), (1600, "gzip"), (200, "zstd")])
def test_a_file_cut_short(run: Path, tmp_path: Path, cut: int, compression: str) -> None:
    if compression == "zstd":
        run = tmp_path / "zstd"
        write_run(run, compression=compression)
    path = last_of(run)
    before = path.read_bytes()
    os.truncate(path, len(before) - cut)
    assert any("cut short" in line or "belongs to no" in line for line in problems(run))
    told = done("repair", run)
    assert f"{path.name}: " in told
    assert "2 of its pages are gone" in told or "1 of its pages are gone" in told
    assert f"{len(lost(run))} pages are known to be lost" in done("check", run)
    after = path.read_bytes()
    aside = path.with_name(f"{path.name}.cut").read_bytes()
    assert before.startswith(after + aside)
    assert len(after) + len(aside) == len(before) - cut
    assert {entry.id for entry in read(run / "warc/index.cdxj")}.isdisjoint(lost(run))
    assert done("repair", run) == "nothing to repair\n"
    done("finish", run)
    assert done("check", run).startswith("sound")


def test_damage_in_the_middle_costs_a_page_and_who_repeats_it(run: Path) -> None:
    path = min((run / "warc").glob("c-0*"))
    entry = next(entry for entry in read(run / "warc/index.cdxj") if entry.id == "doc-006")
    data = bytearray(path.read_bytes())
    data[entry.offset + entry.length // 2] ^= 0x55
    path.write_bytes(data)
    told = done("repair", run)
    assert lost(run) == ["doc-006", "doc-011"]  # the latter is a revisit of the former
    assert f"{path.name}: " in told
    assert "2 pages are known to be lost" in done("check", run)
    assert len(list(read(run / "warc/index.cdxj"))) == PAGES - 2


@pytest.mark.parametrize("name", ["c-00001.warc.gz", "c-text-00000.warc.gz"])
@pytest.mark.parametrize("copied", [False, True])
def test_of_records_that_are_there_twice_the_first_stay(run: Path, name: str, copied: bool) -> None:
    """A file that was copied, or written to twice."""
    before = tree(run)
    path = run / "warc" / name
    copy = path.with_name(re.sub(r"\d+", "00009", name)) if copied else path
    data = path.read_bytes()
    with copy.open("ab") as file:
        file.write(data)
    assert any("WARC-Record-ID of another record" in line for line in problems(run))
    assert f"they are kept in {copy.name}.cut" in done("repair", run)
    after = tree(run)
    assert after.pop(f"warc/{copy.name}.cut") == data
    assert after == before


def test_discard(run: Path) -> None:
    path = last_of(run)
    os.truncate(path, path.stat().st_size - 10)
    assert "kept in" not in done("repair", run, "--discard")
    assert not list(run.rglob("*.cut"))
    assert "known to be lost" in done("check", run)


def cut_short(path: Path) -> None:
    os.truncate(path, 777)


def another_digest(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"sha1:", b"sha1:A", 5))


def another_key(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"example,two)", b"example,tow)", 1))


def no_document(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"id": "doc-006"', b'"id": ""', 1))


@pytest.mark.parametrize("name", ["index.cdxj", "text.cdxj"])
@pytest.mark.parametrize("damage", [cut_short, another_digest, another_key, no_document, Path.unlink])
def test_an_index_is_made_again_from_the_records(run: Path, name: str, damage: Callable[[Path], None]) -> None:
    before = tree(run)
    damage(run / "warc" / name)
    assert any(name in line for line in problems(run))
    done("repair", run)
    assert tree(run) == before
    assert done("check", run).startswith("sound")


def unlogged(run: Path) -> list[str]:
    log = run / "crawl.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-3]))
    return ["doc-037", "doc-038", "doc-039"]


def half_a_line(run: Path) -> list[str]:
    os.truncate(run / "crawl.jsonl", (run / "crawl.jsonl").stat().st_size - 30)
    return ["doc-039"]


@pytest.mark.parametrize("damage", [unlogged, half_a_line])
def test_pages_that_were_not_logged_are_not_crawled(run: Path, damage: Callable[[Path], list[str]]) -> None:
    """A crawl that is killed has archived them, and would crawl them again where it is resumed."""
    gone = damage(run)
    last_of(run).rename(f"{last_of(run)}.open")
    assert any("doc-039 is not in crawl.jsonl" in line for line in problems(run))
    done("repair", run)
    done("finish", run)
    assert done("check", run).startswith("sound")
    assert not (run / "lost.jsonl").exists()
    assert {entry.id for entry in read(run / "warc/index.cdxj")} == {
        f"doc-{number:03d}" for number in range(PAGES)
    }.difference(gone)


def test_a_log_that_is_damaged_before_its_end_is_not_touched(run: Path) -> None:
    lines = (run / "crawl.jsonl").read_bytes().splitlines(keepends=True)
    (run / "crawl.jsonl").write_bytes(b"".join([*lines[:4], b"\0\0\n", *lines[4:]]))
    before = tree(run)
    assert "crawl.jsonl line 5 is no whole entry; restore the file" in refused("repair", run)
    assert tree(run) == before


def test_what_cannot_be_read_at_all_is_not_touched(run: Path) -> None:
    path = last_of(run)
    path.write_bytes(b"what is this" * 100)
    before = tree(run)
    assert f"{path}: is neither a WARC nor an ARC file" in refused("repair", run)
    assert tree(run) == before


def test_what_is_compressed_as_a_whole_behind_other_records_is_not_cut(run: Path) -> None:
    path = last_of(run)
    path.write_bytes(path.read_bytes() + gzip.compress(gzip.decompress(path.read_bytes())))
    before = tree(run)
    assert f"{path}: is compressed as a whole" in refused("repair", run, "--discard")
    assert tree(run) == before


def test_an_empty_file_is_taken_away(run: Path) -> None:
    path = last_of(run)
    path.write_bytes(b"")
    done("repair", run)
    assert not path.exists()
    assert "known to be lost" in done("check", run)


def test_a_killed_crawl(tmp_path: Path) -> None:
    """Files still open, the last record half written, its page not logged."""
    run = tmp_path / "run"
    write_run(run, pages=20)
    last = last_of(run)
    assert page(0).key == log_line(0)["id"]
    with last.open("ab") as file:
        file.write(last.read_bytes()[:300])
    last = last.rename(f"{last}.open")
    assert archive("finish", run)[0] == 1
    done("repair", run)
    done("finish", run)
    assert f"20 documents, {20 - 4} texts" in done("check", run)
    assert len(list(WarcReader(last.with_suffix("")).stretches())) > 2


def test_files_of_others_lose_their_damage_only(tmp_path: Path) -> None:
    """Without index, crawl log and metadata each record is by itself."""
    records = [response(url_of(number), http(html_of(number))) for number in range(4)]
    path = write(tmp_path / "a.warc.gz", *records)
    os.truncate(path, path.stat().st_size - 5)
    done("repair", tmp_path)
    assert path.read_bytes() == write(tmp_path / "b" / "b.warc.gz", *records[:3]).read_bytes()
    assert {name.name for name in tmp_path.iterdir()} == {"a.warc.gz", "a.warc.gz.cut", "b"}
    done("purge", "site.example", tmp_path)
    assert "holds no WARC files" in refused("check", tmp_path)  # there was nothing else in them


def test_counts_of_files_of_others_stay_true(tmp_path: Path) -> None:
    path = write(tmp_path / "a.warc.gz", *(response(url_of(number), http(html_of(number))) for number in range(4)))
    counts = tmp_path / "archive_counts.txt"
    counts.write_text(f"./a.warc.gz{4:>16}\n")
    os.truncate(path, path.stat().st_size - 5)
    done("repair", tmp_path)
    assert counts.read_text() == f"./a.warc.gz{3:>16}\n"
