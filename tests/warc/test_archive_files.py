"""The files of an archive: their names and age in a live crawl, Zstandard, the pages' text in files of its own."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path

import fastwarc.stream_io
import pytest
from archive_helpers import INFO, capture, captured, fastwarc_records, index, page, warc_files
from power_cut_helpers import die, files_under

from crawl4llm.base.files import ArchiveError
from crawl4llm.base.pages import PageRecord
from crawl4llm.crawl.page_writer import open_archive
from crawl4llm.options import Options
from crawl4llm.warc import ArchiveFormat, ArchivePosition, ArchiveWriter, cdxj, writer as names
from crawl4llm.warc.archive import host_name
from crawl4llm.warc.reader import open_records, read_record
from crawl4llm.warc.writer import FileNames

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIVE = replace(INFO, host="crawler-1.example.org")
PAGES = [page(number) for number in range(6)]


class Clock(datetime):
    """A clock that stands until it is put forward."""

    time: datetime = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return cls.time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Clock]]:
    monkeypatch.setattr(names, "datetime", Clock)
    before = Clock.time
    yield Clock
    Clock.time = before


def test_names_of_a_live_crawl_tell_time_and_host(tmp_path: Path, clock: type[Clock]) -> None:
    archive = ArchiveWriter(tmp_path, LIVE, 1)
    for one in PAGES[:3]:
        archive.write(one, {})
        clock.time += timedelta(seconds=30)
    archive.close()
    assert [file.name for file in warc_files(tmp_path)] == [
        f"crawl-202611201200{second}-0000{serial}-crawler-1.example.org.warc.gz"
        for serial, second in enumerate(("00", "30"))
    ] + ["crawl-20261120120100-00002-crawler-1.example.org.warc.gz"]
    for file in warc_files(tmp_path):
        assert fastwarc_records(file)[0].head["WARC-Filename"] == file.name
    assert [read_record(tmp_path, entry) for entry in index(tmp_path)] == [one.html for one in PAGES[:3]]


def test_a_live_crawl_goes_on_in_its_files(tmp_path: Path, clock: type[Clock]) -> None:
    """Those that were begun after the commit go, whatever time is in their names; and the machine may be another."""
    archive = ArchiveWriter(tmp_path, LIVE, 4000)
    for one in PAGES[:3]:
        archive.write(one, {})
    archive.flush()
    at = archive.position()
    committed = {file.name.removesuffix(".open") for file in warc_files(tmp_path)}
    clock.time += timedelta(days=1)
    for one in PAGES[3:]:
        archive.write(one, {})
    die(tmp_path)
    clock.time += timedelta(days=1)
    archive = ArchiveWriter(tmp_path, replace(LIVE, host="other"), 4000, at)
    for one in PAGES[3:]:
        archive.write(one, {})
    archive.close()
    files = {file.name for file in warc_files(tmp_path)}
    assert committed < files
    assert {re.sub(r"-\d{5}-", " ", name) for name in files - committed} == {"crawl-20261122120000 other.warc.gz"}
    assert [read_record(tmp_path, entry) for entry in index(tmp_path)] == [one.html for one in PAGES]


def test_a_file_of_a_live_crawl_that_is_missing_is_named(tmp_path: Path) -> None:
    archive = ArchiveWriter(tmp_path, LIVE, 1)
    for one in PAGES[:3]:
        archive.write(one, {})
    archive.close()
    warc_files(tmp_path)[1].unlink()
    with pytest.raises(ArchiveError, match=r"/crawl-\*-00001-\*\.warc\.gz is missing"):
        ArchiveWriter(tmp_path, LIVE, 1, archive.position())


def test_files_end_by_age_at_a_flush(tmp_path: Path, clock: type[Clock]) -> None:
    archive = ArchiveWriter(tmp_path, LIVE, 10**9, form=ArchiveFormat(max_age=60))
    for one in PAGES[:2]:
        archive.write(one, {})
        clock.time += timedelta(seconds=59)
        archive.flush()
    assert len(warc_files(tmp_path)) == 1
    assert archive.position()[:2] == (1, 0)
    clock.time += timedelta(days=1)
    archive.flush()
    archive.write(PAGES[2], {})
    archive.close()
    assert [file.name[6:20] for file in warc_files(tmp_path)] == ["20261120120000", "20261121120158"]
    assert [read_record(tmp_path, entry) for entry in index(tmp_path)] == [one.html for one in PAGES[:3]]


def test_serials_and_foreign_names() -> None:
    plain, live = FileNames("a-b", ".warc.gz"), FileNames("a-b", ".warc.gz", "h")
    for serial in (0, 7, 123456):
        assert plain.serial(plain.new(serial)) == live.serial(live.new(serial)) == serial
    assert plain.serial("a-b-text-00000.warc.gz") is plain.serial(live.new(0)) is live.serial(plain.new(0)) is None
    assert plain.age(plain.new(0)) == 0
    assert re.fullmatch(r"[A-Za-z0-9.-]+", host_name())


def test_zstandard(tmp_path: Path) -> None:
    form = ArchiveFormat(compression="zstd", text=True)
    archive = ArchiveWriter(tmp_path / "zstd", INFO, 5000, form=form)
    for one in PAGES:
        archive.write(one, {"id": one.key}, "the text")
    archive.close()
    directory = tmp_path / "zstd"
    files = sorted(directory.glob("*.warc.zst"))
    assert len(files) > 2
    entries = index(directory)
    assert [read_record(directory, entry) for entry in entries] == [one.html for one in PAGES]
    if hasattr(fastwarc.stream_io, "ZstdReader"):  # newer versions have it
        assert sum(len(fastwarc_records(file)) - 1 for file in files) == 3 * len(PAGES)
    for entry in entries:
        frame = (directory / entry.filename).read_bytes()[entry.offset : entry.offset + entry.length]
        assert zstd.get_frame_info(frame).decompressed_size == len(zstd.decompress(frame))
        assert frame[4] & 4, "with a checksum"
    frames = [frame for file in files for frame in open_records(file, tmp_path / "points").frames()]
    assert all(frame.record is not None for frame in frames), "what simulations read"
    assert len(frames) == 3 * len(PAGES) + len(files)


def test_text_is_kept_in_files_of_its_own(tmp_path: Path) -> None:
    archive = ArchiveWriter(tmp_path, INFO, 3000, form=ArchiveFormat(text=True))
    assert archive.keeps_text
    texts = {"key-00000": "first \N{SNOWMAN} \ud800", "key-00002": "third\n", "key-00003": None, "text": "only text"}
    for one in [*PAGES[:4], PageRecord("text", "http://example.org/text", text="only text")]:
        archive.write(one, {}, texts.get(one.key, " \n"))
    archive.close()
    entries = list(cdxj.read(tmp_path / "text.cdxj"))
    assert [entry.id for entry in entries] == ["key-00000", "key-00002", "text"]
    assert {entry.filename for entry in entries} == {"crawl-text-00000.warc.gz"}
    read = [read_record(tmp_path, entry).decode() for entry in entries]
    assert read == ["first \N{SNOWMAN} \ufffd", "third\n", "only text"]
    warcinfo, *records = fastwarc_records(tmp_path / "crawl-text-00000.warc.gz")
    contents = {entry.id: entry for entry in index(tmp_path)}
    for record, entry in zip(records, entries, strict=True):
        assert record.kind == "conversion"
        assert record.head["Content-Type"] == entry.mime == "text/plain"
        assert record.head["WARC-Warcinfo-ID"] == warcinfo.head["WARC-Record-ID"]
        assert record.head["WARC-Target-URI"] == contents[entry.id].url
        source = [seen for file in warc_files(tmp_path) for seen in fastwarc_records(file)]
        (original,) = [seen for seen in source if seen.head["WARC-Record-ID"] == record.head["WARC-Refers-To"]]
        assert original.kind in {"response", "conversion"}


@pytest.mark.parametrize("full", ["_pages", "_texts"])
def test_page_and_text_are_both_kept_or_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str) -> None:
    def write(directory: Path, *, fail: bool) -> dict[str, bytes]:
        archive = ArchiveWriter(directory, INFO, 6000, form=ArchiveFormat(text=True))
        for number, one in enumerate(PAGES):
            if fail and number in {2, 3}:
                with monkeypatch.context() as patch:
                    patch.setattr(getattr(archive, full)._index, "append", _disk_full)
                    before = archive.position()
                    with pytest.raises(ArchiveError, match="disk full"):
                        archive.write(one, {}, "text " * 99)
                    assert archive.position().pages.index_offset == before.index_offset
                    assert archive.position().texts.index_offset == before.text_index_offset
            archive.write(one, {}, "text " * 99)
        archive.close()
        return files_under(directory)

    assert write(tmp_path / "failed", fail=True) == write(tmp_path / "whole", fail=False)


def _disk_full(_: bytes) -> int:
    raise ArchiveError("disk full")


def test_text_files_are_cut_back_with_the_others(tmp_path: Path) -> None:
    form = ArchiveFormat(text=True)
    whole = ArchiveWriter(tmp_path / "whole", INFO, 3000, form=form)
    for one in PAGES:
        whole.write(one, {}, f"text of {one.key} " * 200)
    whole.close()
    for stop in range(len(PAGES)):
        directory = tmp_path / str(stop)
        archive = ArchiveWriter(directory, INFO, 3000, form=form)
        for one in PAGES[:stop]:
            archive.write(one, {}, f"text of {one.key} " * 200)
        archive.flush(fsync=stop % 2 == 0)
        at = archive.position()
        for one in PAGES[stop:]:
            archive.write(one, {}, "another text")
        die(directory)
        archive = ArchiveWriter(directory, INFO, 3000, ArchivePosition(*at), form)
        assert archive.position() == at
        for one in PAGES[stop:]:
            archive.write(one, {}, f"text of {one.key} " * 200)
        archive.close()
        assert files_under(directory) == files_under(tmp_path / "whole")


def test_settings_that_only_a_live_crawl_heeds(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options = Options(warc_max_age=1e-9, warc_revisits=10)
    pages = [captured(str(number), capture(f"/{number}")) for number in range(2)]
    for info, kinds in ((INFO, ["text/html", "text/html"]), (LIVE, ["text/html", "warc/revisit"])):
        directory = tmp_path / str(info.host)
        archive = open_archive(directory, options, info)
        for one in pages:
            archive.write(one, {})
            archive.flush()
        archive.close()
        assert [entry.mime for entry in index(directory)] == kinds
        assert len(warc_files(directory)) == (1 if info is INFO else 2)
    assert [record.message for record in caplog.records] == ["WARC_MAX_AGE is ignored: a simulation has no clock"]
    assert not open_archive(tmp_path / "off", Options(warc_enabled=False, warc_text=True), INFO).keeps_text
    assert not (tmp_path / "off").exists()


def test_finished_files_are_synced_if_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), fsync(fd)))
    archive = ArchiveWriter(tmp_path, INFO, 3000)
    archive.write(PAGES[0], {})
    archive.flush()
    assert not synced
    for one in PAGES[1:]:
        archive.write(one, {})
    archive.flush(fsync=True)
    assert len(synced) >= 4
