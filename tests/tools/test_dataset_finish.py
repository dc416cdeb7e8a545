"""``scrapy archive finish``: ClueWeb12's lists, a sorted index, copies with its ids and samples, a WACZ."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest
from archive_helpers import INFO, fastwarc_records, warcio_check
from dataset_helpers import PAGES, TWIN_OF, archive, body, done, refused, tree, write_run
from scrapy.settings import Settings

from crawl4llm.base.files import AppendFile
from crawl4llm.base.pages import PageRecord
from crawl4llm.tools.archive import copies
from crawl4llm.tools.archive.check import FINISH
from crawl4llm.tools.archive.facts import Facts
from crawl4llm.tools.export.folder import exclusive
from crawl4llm.warc import ArchiveWriter
from crawl4llm.warc.cdxj import read
from crawl4llm.warc.reader import read_record


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("finish") / "run"
    write_run(run)
    done("finish", run)
    return run


def pages_per_file(warc: Path) -> Counter[str]:
    return Counter(entry.filename for entry in read(warc / "index.cdxj"))


def test_lists_are_in_the_formats_of_clueweb12(finished: Path) -> None:
    warc = finished / "warc"
    files = sorted(path.name for path in warc.glob("*.warc.gz"))
    digests = [hashlib.md5((warc / name).read_bytes()).hexdigest() for name in files]
    assert (warc / "archive.md5").read_text() == "".join(
        f"{digest} ./{name}\n" for digest, name in zip(digests, files, strict=True)
    )
    subprocess.run(["md5sum", "--check", "--strict", "--quiet", "archive.md5"], cwd=warc, check=True)
    counts = pages_per_file(warc) + Counter(entry.filename for entry in read(warc / "text.cdxj"))
    listed = [line.split() for line in (warc / "archive_counts.txt").read_text().splitlines()]
    assert listed == [[f"./{name}", str(counts[name])] for name in files]
    columns = {line.index(" ") - len(line) for line in (warc / "archive_counts.txt").read_text().splitlines()}
    example = "./0200wb/0200wb-24.warc.gz           33311"  # of ClueWeb12
    assert columns == {example.index(" ") - len(example)}


def test_sorted_index(finished: Path) -> None:
    ordered = finished / "warc/sorted.cdxj"
    subprocess.run(["sort", "--check", ordered], env={**os.environ, "LC_ALL": "C"}, check=True)
    in_crawl_order = (finished / "warc/index.cdxj").read_bytes()
    assert Counter(ordered.read_bytes().splitlines()) == Counter(in_crawl_order.splitlines())


def test_lines_are_sorted_by_bytes_each_once() -> None:
    given = [b"%d,x)/ {\xc3}\n" % (number * 7919 % 1009) for number in range(3000)]
    with Facts() as facts:
        for _ in range(2):
            assert list(facts.in_order(given)) == sorted(set(given))


def test_files_that_a_killed_crawl_left_open(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(run, pages=20)
    whole = {name for name in tree(run) if name.endswith(".gz")}
    for path in list((run / "warc").glob("*.gz"))[1:]:
        path.rename(f"{path}.open")
    assert f"renamed    {len(whole) - 1} files" in done("finish", run)
    assert {name for name in tree(run) if name.endswith((".gz", ".open"))} == whole
    assert done("check", run).startswith("sound")


def test_a_crawl_that_runs_is_left_alone(finished: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    before = tree(run)
    with exclusive(run):
        for command in (["finish"], ["repair"], ["purge", "one.example"]):
            assert f"{run} is being changed by another process" in refused(*command, run)
    for held in ("warc/index.cdxj", "crawl.jsonl", "warc/c-00005.warc.gz.open"):
        if held.endswith(".open"):
            (run / held.removesuffix(".open")).rename(run / held)
        file = AppendFile(run / held, at=(run / held).stat().st_size)
        for command in (["finish"], ["check"], ["repair"], ["purge", "one.example"]):
            assert f"{run / held} is being written by a crawl" in refused(*command, run)
        file.close()
    (run / "warc/c-00005.warc.gz.open").rename(run / "warc/c-00005.warc.gz")
    assert tree(run) == before


@pytest.mark.parametrize("what", ["cut", "index", "text.cdxj is missing", "index.cdxj is missing"])
def test_what_is_damaged_is_not_finished(finished: Path, tmp_path: Path, what: str) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    path = run / "warc/c-00005.warc.gz" if what == "cut" else run / "warc/index.cdxj"
    if what == "cut":
        os.truncate(path, path.stat().st_size - 9)
        path = path.rename(f"{path}.open")
    elif what.endswith("is missing"):
        (run / "warc" / what.split(maxsplit=1)[0]).unlink()
    else:
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    before = tree(run)
    assert "repair the dataset, then finish it" in refused("finish", run)
    assert tree(run) == before


def test_copy_with_trec_ids(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    assert f"copy       {out}: 72 documents" in done("finish", finished, "--trec-ids", "My_26", "--out", out)
    assert f"{PAGES} documents, 32 texts" in done("check", out)
    files = sorted(out.glob("My_26_00/0000wb/0000wb-??.warc.gz"))
    assert len(files) == len(list((finished / "warc").glob("c-0*.gz")))
    warcio_check(files)
    ids = []
    for number, file in enumerate(files):
        records = fastwarc_records(file)
        info = records[0].head
        own = [record.head["WARC-TREC-ID"] for record in records if "WARC-TREC-ID" in record.head]
        assert own == [f"my_26-0000wb-{number:02d}-{place:05d}" for place in range(len(own))]
        assert info["WARC-Number-of-Documents"] == str(len(own))
        assert info["WARC-File-Length"] == str(len(gzip.decompress(file.read_bytes())))
        assert (info["WARC-Data-Type"], info["WARC-Filename"]) == ("web crawl", file.name)
        ids += own
    assert len(ids) == PAGES
    subprocess.run(["md5sum", "--check", "--strict", "--quiet", "My_26_00.md5"], cwd=out, check=True)
    counts = (out / "recordcounts/My_26_00_counts.txt").read_text().splitlines()
    assert counts[0].split() == ["./0000wb/0000wb-00.warc.gz", "8"]
    for entry in read(out / "index.cdxj"):
        assert read_record(out, entry) is not None


@pytest.mark.parametrize("names", [[], ["--trec-ids", "C"]], ids=["as they are", "trec"])
def test_sample_holds_every_kth_document_of_each_file(finished: Path, tmp_path: Path, names: list[str]) -> None:
    """Of a revisit whose original is not in the sample, the sample has the payload."""
    out = tmp_path / "sample"
    done("finish", finished, "--sample", 2, "--out", out, *names)
    assert done("check", out).startswith("sound")
    by_file: dict[str, list[str]] = {}
    for entry in read(finished / "warc/index.cdxj"):
        by_file.setdefault(entry.filename, []).append(entry.id)
    expected = [key for keys in by_file.values() for key in keys[1::2]]
    entries = list(read(out / "index.cdxj"))
    assert [entry.id for entry in entries] == expected
    assert not {f"doc-{number:03d}" for number in TWIN_OF}.isdisjoint(expected)
    for entry in entries:
        if entry.mime != "warc/revisit":
            assert read_record(out, entry) == body(int(entry.id[-3:]))
    if names:
        records = fastwarc_records(out / "C_00/0000wb/0000wb-00.warc.gz")
        kept = [record.head.get("WARC-TREC-ID", "")[-5:] for record in records]
        assert [number for number in kept if number] == ["00001", "00003", "00005", "00007"]


def test_wacz(finished: Path, tmp_path: Path) -> None:
    path = tmp_path / "crawl.wacz"
    done("finish", finished, "--wacz", path)
    with zipfile.ZipFile(path) as archive:
        package = json.loads(archive.read("datapackage.json"))
        assert {entry["path"] for entry in package["resources"]} == set(archive.namelist()) - {
            "datapackage.json",
            "datapackage-digest.json",
        }
        stored = [info for info in archive.infolist() if info.filename.endswith(".gz")]
        assert {info.compress_type for info in stored} == {zipfile.ZIP_STORED}
        index = gzip.decompress(archive.read("indexes/index.cdx.gz"))
        assert index == (finished / "warc/sorted.cdxj").read_bytes()
        pages = [json.loads(line) for line in archive.read("pages/pages.jsonl").splitlines()]
        assert [page["id"] for page in pages[1:]] == [f"doc-{number:03d}" for number in range(PAGES)]
        assert pages[1]["ts"] == "2026-11-20T12:00:00Z"
        titles = {page["id"]: page["title"] for page in pages[1:]}
        assert titles == {f"doc-{number:03d}": str(TWIN_OF.get(number, number)) for number in range(PAGES)}
        for entry in read(finished / "warc/index.cdxj"):
            assert archive.read(f"archive/{entry.filename}")[entry.offset :][:2] == b"\x1f\x8b"
    assert "exists already" in refused("finish", finished, "--wacz", path)
    assert "ends with .wacz" in refused("finish", finished, "--wacz", tmp_path / "x.zip")
    validate(path)


def test_a_wacz_of_files_with_any_names_is_valid(tmp_path: Path) -> None:
    write_run(tmp_path / "run", pages=2)
    (old,) = (tmp_path / "run/warc").glob("c-0*")
    old.rename(old.with_name(f"Für +{old.name}"))
    index = tmp_path / "run/warc/index.cdxj"
    index.write_text(index.read_text().replace(old.name, f"F\\u00fcr +{old.name}"))
    done("finish", tmp_path / "run", "--wacz", tmp_path / "crawl.wacz")
    validate(tmp_path / "crawl.wacz")


def validate(path: Path) -> None:
    """Let another program check a WACZ."""
    if find_spec("wacz") is None:
        pytest.skip("the validator of py-wacz is not installed: pip install wacz")
    command = [sys.executable, "-W", "ignore", "-m", "wacz", "validate", "-f", path]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Validation succeeded" in told.stdout, told.stdout + told.stderr


@pytest.mark.parametrize(("old", "new"), [(" 20261120", " 20269920"), ('"url"', '"u"')])
def test_an_index_with_other_dates_or_urls_is_not_packed(finished: Path, tmp_path: Path, old: str, new: str) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    path = run / "warc/index.cdxj"
    path.write_text(path.read_text().replace(old, new, 1))
    said = refused("finish", run, "--wacz", tmp_path / "crawl.wacz")
    assert f"{path}: line 1: has another " in said
    assert [each.name for each in tmp_path.iterdir()] == ["run"]
    done("repair", run)
    done("finish", run, "--wacz", tmp_path / "crawl.wacz")


def test_texts_are_no_pages_to_replay(tmp_path: Path) -> None:
    """A conversion record is all that is archived of a page of which the corpus holds text alone."""
    for name, html in (("mixed", b"<p>1"), ("texts", None)):
        records = ArchiveWriter(tmp_path / name, INFO, 10**6)
        records.write(PageRecord("one", "http://a.example/1", html=html, text="One."), {"id": "one"})
        records.write(PageRecord("two", "http://a.example/2", text="Two."), {"id": "two"})
        records.close()
    done("finish", tmp_path / "mixed", "--wacz", tmp_path / "mixed.wacz")
    with zipfile.ZipFile(tmp_path / "mixed.wacz") as archive:
        assert [json.loads(line)["id"] for line in archive.read("pages/pages.jsonl").splitlines()] == ["pages", "one"]
    assert "index.cdxj leads to texts only" in refused("finish", tmp_path / "texts", "--wacz", tmp_path / "texts.wacz")
    assert not (tmp_path / "texts.wacz").exists()


class Member(NamedTuple):
    """A file of a ZIP, by its entry in the directory and by the header before it (APPNOTE 6.3.10, 4.3.7 and 4.3.12)."""

    name: str
    size: int
    central_extra: bytes
    local_extra: bytes
    start: int
    """Of its data."""


def members(data: bytes) -> Iterator[Member]:
    at = int(zipfile.ZipFile(BytesIO(data)).start_dir)
    while data[at : at + 4] == b"PK\1\2":
        compressed, _, name, extra, comment = struct.unpack_from("<IIHHH", data, at + 20)
        (header,) = struct.unpack_from("<I", data, at + 42)
        named = data[at + 46 : at + 46 + name]
        central = data[at + 46 + name : at + 46 + name + extra]
        values = list(struct.unpack(f"<{len(central[4:]) // 8}Q", central[4:]))
        if compressed == 0xFFFFFFFF:
            compressed = values.pop(1)
        if header == 0xFFFFFFFF:
            header = values.pop()
        local_name, local_extra = struct.unpack_from("<HH", data, header + 26)
        start = header + 30 + local_name
        yield Member(named.decode(), compressed, central, data[start : start + local_extra], start + local_extra)
        at += 46 + name + extra + comment


@pytest.mark.parametrize("limit", ["of ZIP64", "just not reached", "exceeded"])
def test_local_headers_of_a_wacz_agree_with_its_directory(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """wabac.js reads no local header where the directory has no extra field; ZIP64 sizes are in both or in neither."""
    largest = max(path.stat().st_size for path in (finished / "warc").glob("c-0*"))
    if limit != "of ZIP64":
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", largest - (limit == "exceeded"))
    path = tmp_path / "crawl.wacz"
    done("finish", finished, "--wacz", path)
    monkeypatch.undo()
    data = path.read_bytes()
    found = list(members(data))
    assert len(found) == 11
    for member in found:
        assert member.central_extra or not member.local_extra
        sizes = len(member.central_extra) >= 4 + 16
        assert member.local_extra[4:] == (member.central_extra[4:20] if sizes else b"")
        if member.name.startswith("archive/"):
            content = (finished / "warc" / member.name.removeprefix("archive/")).read_bytes()
            assert data[member.start : member.start + member.size] == content
    assert any(member.local_extra for member in found) == (limit == "exceeded")
    assert any(member.central_extra for member in found) == (limit != "of ZIP64")
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--trec-ids", "x", "--out", "taken"], "exists already"),
        (["--trec-ids", "x", "--out", "run/warc/copy"], "is inside the dataset"),
        (["--trec-ids", "x", "--out", "file/below"], "cannot be written"),
        (["--sample", "99", "--out", "new"], "has 99 documents; give a smaller --sample"),
        (["--trec-ids", "x", "--out", "new", "--wacz", "taken/file.wacz"], "exists already"),
        (["--wacz", "taken/file.zip"], "a WACZ has a name that ends with .wacz"),
        (["--wacz", "none/file.wacz"], "is no folder"),
        (["--wacz", "new.wacz"], "a WACZ takes only .warc.gz files of one folder"),
    ],
)
def test_what_is_refused_is_refused_before_anything_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "run", compression="zstd" if options[-1] == "new.wacz" else "gzip")
    last = max((tmp_path / "run/warc").glob("*.warc.*"))
    last.rename(f"{last}.open")  # as a killed crawl leaves it
    (tmp_path / "taken").mkdir()
    for name in ("file", "taken/file.wacz", "taken/notes.txt"):
        (tmp_path / name).touch()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert said in refused("finish", "run", *options)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_copies_need_a_new_folder(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "exists already" in refused("finish", finished, "--sample", 2, "--out", tmp_path)
    within = finished / "warc/copy"
    assert f"{within} is inside the dataset" in refused("finish", finished, "--sample", 2, "--out", within)
    assert not within.exists()
    assert "--out needs one of them" in refused("finish", finished, "--sample", 2)
    assert "has 99 documents; give a smaller --sample" in refused(
        "finish", finished, "--sample", 99, "--out", tmp_path / "out"
    )
    status, _, err = archive("finish", finished, "--trec-ids", "a-b", "--out", tmp_path / "o")
    assert (status, "'a-b' is no name of a dataset" in err) == (2, True)


def test_a_copy_that_is_stopped_is_not_there(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same command then makes the copy that it makes at once."""
    out = tmp_path / "copy"
    given = {"arguments": [str(finished)], "trec_ids": "C", "sample": None, "wacz": None, "jobs": 1}

    def stopped(*args: object) -> None:
        assert list(tmp_path.glob(".copy.*.tmp/C_00/0000wb/*.gz"))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(copies, "_write_lists", stopped)
        with pytest.raises(KeyboardInterrupt):
            list(FINISH.run(Settings(), Namespace(out=out, **given)))
    assert list(tree(tmp_path)) == []
    list(FINISH.run(Settings(), Namespace(out=out, **given)))
    list(FINISH.run(Settings(), Namespace(out=tmp_path / "at once", **given)))
    assert tree(out) == tree(tmp_path / "at once")
