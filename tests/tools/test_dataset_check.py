"""``scrapy archive check``: a sound dataset is called so, and every kind of damage is named with its place."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from archive_helpers import INFO
from dataset_helpers import PAGES, archive, capture, done, problems, refused, tree, write_finished, write_run

from crawl4llm.base.compression import compress
from crawl4llm.tools.archive import check, survey
from crawl4llm.tools.archive.facts import TEXT, Facts, Row
from crawl4llm.tools.archive.survey import FileJob
from crawl4llm.warc import ArchiveWriter
from crawl4llm.warc.reader import WarcReader

INDEX, LOG = "warc/index.cdxj", "crawl.jsonl"
MD5S, COUNTS = "warc/archive.md5", "warc/archive_counts.txt"
FIRST, LAST, TEXTS = "c-00000.warc.gz", "c-00005.warc.gz", "c-text-00000.warc.gz"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_finished(tmp_path_factory.mktemp("dataset") / "run")


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def places(path: Path) -> list[tuple[int, int]]:
    return [(stretch.offset, stretch.length) for stretch in WarcReader(path).stretches()]


def change(path: Path, number: int, edit: Callable[[bytes], bytes]) -> int:
    """Change a record of a file, compressed anew; returns its offset."""
    offset, length = places(path)[number]
    data = path.read_bytes()
    record = edit(gzip.decompress(data[offset : offset + length]))
    path.write_bytes(data[:offset] + compress(record) + data[offset + length :])
    return offset


def swap(path: Path, old: str, new: str, count: int = 1) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


def drop_line(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[number]
    path.write_bytes(b"".join(lines))


def test_sound(finished: Path) -> None:
    assert re.fullmatch(rf"sound: 7 files, \d+ records, {PAGES} documents, 32 texts\n", done("check", finished))
    assert done("check", finished / "warc") == done("check", finished)
    assert done("repair", finished) == "nothing to repair\n"


def test_sound_with_zstd_and_without_compression(tmp_path: Path) -> None:
    write_run(tmp_path / "zstd", compression="zstd", pages=12)
    assert done("check", tmp_path / "zstd").startswith("sound: ")
    write_run(tmp_path / "plain", pages=12)
    (tmp_path / "plain/warc/text.cdxj").unlink()
    for path in (tmp_path / "plain/warc").glob("*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    out = problems(tmp_path / "plain")
    assert {re.sub(r"\d+", "N", line) for line in out} == {
        "index.cdxj: line N: names c-N.warc.gz, which is not there",
        "c-N.warc: record at N: response is not in index.cdxj",
        "c-N.warc: record at N: revisit is not in index.cdxj",
        "text.cdxj: is missing",
    }


def no_length(record: bytes) -> bytes:
    return re.sub(rb"Content-Length: [^\r]*\r\n", b"", record, count=1)


def vast_length(record: bytes) -> bytes:
    return re.sub(rb"Content-Length: [^\r]*", b"Content-Length: " + b"9" * 20, record, count=1)


def garbled(record: bytes) -> bytes:
    return record.replace(b"WARC-Target-URI: https://", b"WARC-Target-URI: https://\xff\xfe", 1).replace(
        b"WARC-IP-Address", b"WARC-\xe9\x80", 1
    )


def bomb(record: bytes) -> bytes:
    return record.replace(b"\r\n", b"\r\nX: " + b"x" * (3 << 20), 1)


RECORDS: list[tuple[Callable[[bytes], bytes], str]] = [
    (no_length, r"response has no Content-Length, or one that is no number"),
    (vast_length, r"response has no Content-Length, or one that is no number"),
    (garbled, r"index.cdxj: line 1: has another URL than the record at \d+ of c-00000.warc.gz"),
    (bomb, r"damaged: [\d,]+ bytes hold no whole record"),
    (lambda record: record.replace(b"<title>", b"<tITle>"), "has another block than its block digest says"),
    (lambda record: record.replace(b"<title>", b"<tITle>"), "has another payload than its payload digest says"),
    (lambda record: record.replace(b"WARC-Block-Digest: sha1", b"WARC-Block-Digest: crc"), "of an unknown kind"),
    (lambda record: record.replace(b"Block-Digest: sha1", b"Block-Digest: shake_128"), "of an unknown kind"),
    (lambda record: record.replace(b"Block-Digest: sha1", b"Block-Digest: sh\0a1"), "of an unknown kind"),
    (lambda record: re.sub(rb"WARC-Block-Digest[^\n]*\n", b"", record), "response has no block digest"),
    (lambda record: record[:-4] + b"more\r\n\r\n", "is not followed by two line ends only"),
    (lambda record: record[:-30], "Content-Length is"),
    (lambda record: record.replace(b"WARC-Type: response", b"WARC-Type: answer"), "has no known WARC-Type"),
    (lambda record: b"no record at all", "damaged: 36 bytes hold no whole record"),
]


@pytest.mark.parametrize(("edit", "said"), RECORDS, ids=range(len(RECORDS)))
def test_a_record(run: Path, edit: Callable[[bytes], bytes], said: str) -> None:
    offset = change(run / "warc" / FIRST, 1, edit)
    out = "\n".join(problems(run))
    assert re.search(said, out)
    assert f"{FIRST}: record at {offset}" in out or "index.cdxj: line 1" in out


def cut(run: Path) -> None:
    os.truncate(run / "warc" / LAST, (run / "warc" / LAST).stat().st_size - 50)


def flip(run: Path) -> None:
    data = bytearray((run / "warc" / FIRST).read_bytes())
    data[places(run / "warc" / FIRST)[4][0] + 40] ^= 0x10
    (run / "warc" / FIRST).write_bytes(data)


def zeros_behind(run: Path) -> None:
    with (run / "warc" / LAST).open("ab") as file:
        file.write(bytes(4096))


def empty(run: Path) -> None:
    (run / "warc" / LAST).write_bytes(b"")


def one_member(run: Path) -> None:
    path = run / "warc" / LAST
    path.write_bytes(compress(gzip.decompress(path.read_bytes())))


def open_again(run: Path) -> None:
    (run / "warc" / LAST).rename(run / "warc" / f"{LAST}.open")


def same_id(run: Path) -> None:
    path = run / "warc" / FIRST
    offset, length = places(path)[2]
    ids = re.search(rb"WARC-Record-ID: [^\r]*", gzip.decompress(path.read_bytes()[offset : offset + length]))
    assert ids
    change(path, 1, lambda record: re.sub(rb"WARC-Record-ID: [^\r]*", ids[0], record, count=1))


def page_in_two_files(run: Path) -> None:
    """As ClueWeb12 1.0 had 100 million of them."""
    first, second = run / "warc" / FIRST, run / "warc/c-00001.warc.gz"
    (start, _), *_, (last, length) = places(first)[1:4]
    second.write_bytes(second.read_bytes() + first.read_bytes()[start : last + length])


def of_nothing(record: bytes) -> bytes:
    return record.replace(b"WARC-Refers-To: <urn:uuid:", b"WARC-Refers-To: <x:")


def text_of_nothing(run: Path) -> None:
    change(run / "warc" / TEXTS, 1, of_nothing)


def revisit_of_nothing(run: Path) -> None:
    for path in (run / "warc").glob("c-0*"):
        for number, (offset, length) in enumerate(places(path)):
            record = gzip.decompress(path.read_bytes()[offset : offset + length])
            if b"WARC-Type: revisit" in record:
                change(path, number, of_nothing)
                return


FILES: list[tuple[Callable[[Path], object], str]] = [
    (cut, r"c-00005.warc.gz: record at \d+: cut short: the last \d+ bytes hold no whole record"),
    (cut, r"crawl.jsonl: line 40: page doc-039 has no record with content"),
    (flip, r"c-00000.warc.gz: record at \d+: damaged: \d+ bytes|response the gzip member is damaged"),
    (zeros_behind, r"c-00005.warc.gz: record at \d+: cut short: the last 4,096 bytes hold no whole record"),
    (empty, r"c-00005.warc.gz: record at 0: is empty"),
    (one_member, r"c-00005.warc.gz: record at 0: is compressed as a whole"),
    (open_again, r"c-00005.warc.gz: is still c-00005.warc.gz.open: the crawl did not end well; finish it"),
    (same_id, r"c-00000.warc.gz: record at \d+: request has the WARC-Record-ID of another record: <urn:uuid:"),
    (page_in_two_files, r"c-00001.warc.gz: record at \d+: document doc-000 is also in c-00000.warc.gz, record at \d+"),
    (text_of_nothing, r"c-text-00000.warc.gz: record at \d+: text of a record that is not there"),
    (revisit_of_nothing, r"c-0000\d.warc.gz: record at \d+: revisit of a record that is not there"),
    (lambda run: (run / "warc" / FIRST).unlink(), r"index.cdxj: line 1: names c-00000.warc.gz, which is not there"),
    (lambda run: (run / INDEX).unlink(), r"index.cdxj: is missing"),
    (lambda run: drop_line(run / INDEX, 3), r"c-00000.warc.gz: record at \d+: response is not in index.cdxj"),
    (lambda run: drop_line(run / "warc/text.cdxj", 3), r"c-text-00000.warc.gz: record at \d+: text is not in text"),
    (lambda run: swap(run / INDEX, '"offset": "', '"offset": "1'), r"index.cdxj: line 1: leads to no record"),
    (lambda run: swap(run / INDEX, '"length": "', '"length": "1'), r"line 1: has another length than the record"),
    (lambda run: swap(run / INDEX, "sha1:", "sha1:X"), r"line 1: has another digest than the record"),
    (lambda run: swap(run / INDEX, "doc-000", "doc-001"), r"line 1: has another id than the record"),
    (lambda run: swap(run / INDEX, "text/html", "text/htm"), r"line 1: has another media type than the record"),
    (lambda run: swap(run / INDEX, "noai", "noa"), r"line 1: has another opt-out-signals than the record"),
    (lambda run: swap(run / INDEX, '", "opt-out-signals": "head X-Robots-Tag noai"', '"'), r"another opt-out-signals"),
    (lambda run: swap(run / "warc/text.cdxj", '"en"', '"de"'), r"text.cdxj: line 2: has another language than the re"),
    (lambda run: swap(run / INDEX, "}\n", "\n"), r"index.cdxj: line 1: is no whole entry"),
    (
        lambda run: swap(run / "warc/sorted.cdxj", "example,", "zz,"),
        r"sorted.cdxj: is not index.cdxj in byte order; finish",
    ),
    (lambda run: drop_line(run / "warc/sorted.cdxj", 2), r"sorted.cdxj: is not index.cdxj in byte order; finish"),
    (lambda run: drop_line(run / LOG, 5), r"c-00000.warc.gz: record at \d+: document doc-005 is not in crawl.jsonl"),
    (lambda run: swap(run / LOG, "doc-003", "doc-99"), r"crawl.jsonl: line 4: page doc-99 has no record with content"),
    (
        lambda run: swap(run / LOG, '"influence": 0.05', '"influence": 0.85'),
        r"crawl.jsonl: line 3: has another influence than the metadata of doc-002",
    ),
    (lambda run: swap(run / LOG, '"order": 4,', '"order": 2,'), r"crawl.jsonl: line 5: has the order 2 after 3"),
    (lambda run: swap(run / LOG, '"order": 4,', '"order": "\\n\\ud800",'), r".*: has the order %0A%ED%A0%80 after 3"),
    (lambda run: os.truncate(run / LOG, 300), r"crawl.jsonl: line 2: is no whole entry"),
    (lambda run: swap(run / MD5S, "./c-00001", "./c-00002"), r"archive.md5: does not name c-00001.warc.gz"),
    (lambda run: swap(run / MD5S, "./c-00001", "./d-1"), r"archive.md5: line 2: names ./d-1.warc.gz, which is not"),
    (lambda run: swap(run / COUNTS, " 8\n", " 9\n"), r"line 1: says 9, but c-00000.warc.gz has 8 documents"),
]


@pytest.mark.parametrize(("damage", "said"), FILES, ids=range(len(FILES)))
def test_a_file(run: Path, damage: Callable[[Path], object], said: str) -> None:
    damage(run)
    assert re.search(said, "\n".join(problems(run)))


@pytest.mark.parametrize("file", [1, 5001, 2**31])
def test_records_that_are_there_twice_in_files_of_any_number(file: int) -> None:
    """File and offset are a pair; as one float they were rounded to 128 bytes from file 1,000 on."""
    with Facts() as facts:
        for number in (file, file + 1):
            facts.add("files", [(number, f"c-{number}", 0, "", 0, "", "")])
            for offset in (0, 1, 2):
                row = Row(number, offset, 1, TEXT, "n", b"r", "u", "", "", "", None, None, 0, 0, b"n")
                facts.add("records", [row])
        facts.index()
        for query in check.CONTRADICTIONS:
            facts.note(query)
        found = set(facts.rows("SELECT file, offset, what FROM problems WHERE what NOT LIKE '%not there'"))
    places = [(f"c-{number}", offset) for number in (file, file + 1) for offset in (0, 1, 2)][1:]
    assert found == {
        (*place, what)
        for place in places
        for what in ("a second text of u", "text has the WARC-Record-ID of another record: n")
    }


DAMAGED_NUMBERS = [
    ("index.cdxj", "offset", "9" * 20, "is no whole entry"),
    ("index.cdxj", "length", float("inf"), "is no whole entry"),
    ("index.cdxj", "offset", "99999999999", "leads to no record"),
    ("text.cdxj", "length", "-7", "is no whole entry"),
]


@pytest.mark.parametrize(("index", "name", "value", "said"), DAMAGED_NUMBERS)
def test_damaged_numbers_in_an_index(run: Path, index: str, name: str, value: object, said: str) -> None:
    path = run / "warc" / index
    key, stamp, fields = path.read_text().partition("\n")[0].split(" ", 2)
    damaged = f"{key} {stamp} {json.dumps({**json.loads(fields), name: value})}\n"
    path.write_text(damaged + path.read_text().partition("\n")[2])
    assert any(line.startswith(f"{index}: line 1: {said}") for line in problems(run))
    before = tree(run)
    assert f"{path}: line 1: {said}" in (told := refused("finish", run))
    assert told.endswith("; repair the dataset, then finish it\n")
    assert tree(run) == before
    told = done("purge", "three.example", Path(shutil.copytree(run, run.with_name("purged"))))
    assert index == "text.cdxj" or "index.cdxj: 1 entries are made from their records" in told
    assert f"{index}: 1 entries are made from their records" in done("repair", run)
    assert done("check", run).startswith("sound")


def test_pages_in_another_order(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "crawl.jsonl").read_text().splitlines()]
    for name in ("id", "influence"):
        lines[3][name], lines[7][name] = lines[7][name], lines[3][name]
    (run / "crawl.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    said = "doc-004 (line 5 of crawl.jsonl) comes after a page that was crawled later"
    assert problems(run) == [f"index.cdxj: line 5: {said}"]


def test_problems_that_are_printed_are_bounded(run: Path) -> None:
    (run / "warc/index.cdxj").write_text("")
    status, out, err = archive("check", run, "--problems", 3)
    assert (status, len(out.splitlines())) == (1, 4)
    total = int(re.search(r"(\d+) problems$", err)[1])  # type: ignore[index]
    assert out.splitlines()[-1] == f"and {total - 3} more; --problems N prints more of them"
    assert total > PAGES


def test_rows_of_which_an_interruption_leaves_some() -> None:
    with Facts() as facts:
        rows = facts.rows("SELECT 1 UNION SELECT 2")
        assert next(rows) == (1,)
    rows.close()


def test_a_crawl_that_got_no_page_has_no_documents(tmp_path: Path) -> None:
    """A robots.txt is none."""
    writer = ArchiveWriter(tmp_path / "run/warc", INFO, 1 << 20)
    robots = capture("https://one.example/robots.txt", b"User-agent: *")
    writer.write_exchange(robots, "robots.txt", {"site": "https://one.example"})
    writer.close()
    assert ", 0 documents, 0 texts" in done("check", tmp_path / "run")


def test_a_file_that_changes_while_it_is_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = survey._survey

    def read_and_change(job: FileJob, facts: Facts) -> tuple[int, str, str]:
        found = read(job, facts)
        if job.name == LAST:
            with job.path.open("ab") as file:
                file.write(b"more")
        return found

    monkeypatch.setattr(survey, "_survey", read_and_change)
    before = tree(run)
    assert f"{LAST}: changed while it was read" in problems(run)
    for action in (("repair",), ("purge", "two.example"), ("finish",)):
        path = run / "warc" / LAST
        path.write_bytes(before[f"warc/{LAST}"])
        assert f"{path} changed while it was read; try again later" in refused(*action, run)
        assert path.read_bytes() == before[f"warc/{LAST}"] + b"more"
        path.write_bytes(before[f"warc/{LAST}"])
        assert tree(run) == before


def leads_nowhere(path: Path) -> None:
    path.symlink_to("on-a-disk-that-is-not-there")


@pytest.mark.parametrize("make", [leads_nowhere, os.mkfifo])
def test_what_is_no_file_is_not_taken_for_one(run: Path, make: Callable[[Path], None]) -> None:
    """A repair would take its pages for lost."""
    path = run / "warc" / LAST
    path.unlink()
    make(path)
    before = tree(run)
    for action in (("check",), ("repair",), ("finish",), ("purge", "two.example")):
        assert f"{path} is no file, or a dangling link" in refused(*action, run)
    assert tree(run) == before


def test_there_is_nothing_to_check(tmp_path: Path) -> None:
    assert "is no folder" in refused("check", tmp_path / "none")
    assert "holds no WARC files" in refused("check", tmp_path)
