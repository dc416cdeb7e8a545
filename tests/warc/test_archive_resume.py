"""An archive opened again where it was committed: the same bytes as if it had never stopped."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from archive_helpers import INFO, page
from hypothesis import given, settings, strategies as st
from power_cut_helpers import SURVIVALS, Disk, PowerCutError, die, files_under, put_files

from crawl4llm.base.files import ArchiveError
from crawl4llm.base.pages import PageRecord
from crawl4llm.warc import ArchivePosition, ArchiveWriter

BEGINNING = ArchivePosition(0, 0, 0)
LIMIT = 5000
PAGES = [page(number, 9000 if number == 4 else 2000) for number in range(9)]


class Committed(NamedTuple):
    """What a crawl knows after it died."""

    pages: int = 0
    at: ArchivePosition = BEGINNING


def archived(directory: Path, pages: Sequence[PageRecord], limit: int) -> dict[str, bytes]:
    """The files of an archive that never stopped."""
    archive = ArchiveWriter(directory, INFO, limit)
    write(archive, pages, 0, len(pages))
    archive.close()
    return files_under(directory)


def write(archive: ArchiveWriter, pages: Sequence[PageRecord], begin: int, end: int) -> Committed:
    for order in range(begin, end):
        archive.write(pages[order], {"order": order})
    return Committed(end, archive.position())


def go_on(
    directory: Path, pages: Sequence[PageRecord], limit: int, since: Committed, until: int | None = None
) -> dict[str, bytes]:
    """Open an archive again, write the other pages, or those before ``until``, and close it; returns its files."""
    archive = ArchiveWriter(directory, INFO, limit, at=since.at)
    assert archive.position() == since.at
    write(archive, pages, since.pages, len(pages) if until is None else until)
    archive.close()
    return files_under(directory)


def crawl(directory: Path, since: Committed) -> Iterator[Committed]:
    """Archive all pages since a commit and flush after each, every fourth time with ``fsync``; gives these commits."""
    archive = ArchiveWriter(directory, INFO, LIMIT, at=since.at)
    for order in range(since.pages, len(PAGES)):
        archive.write(PAGES[order], {"order": order})
        commit = order % 4 == 3
        archive.flush(fsync=commit)
        if commit:
            yield Committed(order + 1, archive.position())
    archive.close(fsync=True)
    yield Committed(len(PAGES), archive.position())


def crawl_until_power_cut(root: Path, since: Committed, calls: int) -> tuple[Disk, Committed]:
    """Crawl on until the power fails, or to the end; returns the disk and the last commit."""
    disk = Disk(root, calls)
    try:
        with disk.powered():
            for commit in crawl(root / "warc", since):
                since = commit
    except PowerCutError:
        pass
    return disk, since


# -- killed ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["killed", "flushed", "closed", "tails", "nothing more"])
@pytest.mark.parametrize("commit", range(len(PAGES) + 1))
def test_every_position_after_every_end(tmp_path: Path, commit: int, end: str) -> None:
    whole = archived(tmp_path / "whole", PAGES, LIMIT)
    assert len(whole) > 4
    directory = tmp_path / "stopped"
    archive = ArchiveWriter(directory, INFO, LIMIT)
    committed = write(archive, PAGES, 0, commit)
    archive.flush()
    if end != "nothing more":
        write(archive, PAGES, commit, len(PAGES))
    if end == "flushed":
        archive.flush()
    if end == "closed":
        archive.close()
    if end == "tails":
        for file in (*directory.glob("*.open"), directory / "index.cdxj"):
            with file.open("ab") as stream:
                stream.write(b"torn")
    die(directory)
    assert go_on(directory, PAGES, LIMIT, committed) == whole


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 4000), min_size=1, max_size=8),
    st.sampled_from([1, 1500, 4000, 10**9]),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.sampled_from(["flushed", "closed", ""])), max_size=3),
)
def test_stopped_anywhere_and_often(sizes: list[int], limit: int, stops: list[tuple[int, int, str]]) -> None:
    """Each stop: so many pages committed, so many more written, then flushed, closed or neither."""
    pages = [page(number, size) for number, size in enumerate(sizes)]
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        whole = archived(root / "whole", pages, limit)
        directory = root / "stopped"
        committed = Committed()
        for more, lost, end in stops:
            archive = ArchiveWriter(directory, INFO, limit, at=committed.at)
            committed = write(archive, pages, committed.pages, min(committed.pages + more, len(pages)))
            archive.flush()
            write(archive, pages, committed.pages, min(committed.pages + lost, len(pages)))
            if end == "flushed":
                archive.flush()
            if end == "closed":
                archive.close()
            die(directory)
        assert go_on(directory, pages, limit, committed) == whole


def test_a_closed_archive_may_grow(tmp_path: Path) -> None:
    """Its last file is closed although there was room: it is filled before another begins."""
    whole = archived(tmp_path / "whole", PAGES, LIMIT)
    for pages in range(len(PAGES) + 1):
        directory = tmp_path / str(pages)
        archive = ArchiveWriter(directory, INFO, LIMIT)
        before = write(archive, PAGES, 0, pages)
        archive.close()
        assert archive.position() == before.at
        assert go_on(directory, PAGES, LIMIT, before, until=pages) == archived(
            tmp_path / f"{pages} whole", PAGES[:pages], LIMIT
        )
        assert go_on(directory, PAGES, LIMIT, before) == whole


def test_a_file_of_a_warcinfo_record_only_takes_a_page_of_any_size(tmp_path: Path) -> None:
    """As one is left where the first page's line of the index could not be written."""
    whole = archived(tmp_path / "whole", PAGES, 1)
    archive = ArchiveWriter(tmp_path / "warc", INFO, 1)
    write(archive, PAGES, 0, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive._pages._index, "append", _disk_full)
        with pytest.raises(ArchiveError):
            archive.write(PAGES[2], {"order": 2})
    at = archive.position()
    assert at.serial == 2
    assert 0 < at.offset < 1000
    die(tmp_path / "warc")
    assert go_on(tmp_path / "warc", PAGES, 1, Committed(2, at)) == whole


def _disk_full(_: bytes) -> int:
    raise ArchiveError("disk full")


def test_files_that_are_not_of_the_series_stay(tmp_path: Path) -> None:
    whole = archived(tmp_path / "whole", PAGES, LIMIT)
    archived(tmp_path / "warc", PAGES, LIMIT)
    foreign = dict.fromkeys(
        (
            "crawl-1.warc.gz",
            "crawl-000001.warc.gz",
            "crawl-00009.warc",
            "crawl-00009.warc.gz.bak",
            "crawl-00009.warc.gz.open.open",
            "crawl-0000\N{ARABIC-INDIC DIGIT ONE}.warc.gz",
            "crawl-.warc.gz",
            "crawl-00-00009.warc.gz",
            "crawl2-00009.warc.gz",
            "my-crawl-00009.warc.gz",
            "Crawl-00009.warc.gz",
            "notes.open",
            "index.cdxj.old",
        ),
        b"mine",
    )
    for name, content in foreign.items():
        (tmp_path / "warc" / name).write_bytes(content)
    for name in ("crawl-00077.warc.gz", "crawl-00078.warc.gz.open", "crawl-100000.warc.gz"):
        (tmp_path / "warc" / name).touch()
    assert go_on(tmp_path / "warc", PAGES, LIMIT, Committed()) == whole | foreign


# -- what was committed is gone ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("crawl-00000.warc.gz", None, "crawl-00000.warc.gz is missing, but pages in it were committed"),
        ("crawl-00002.warc.gz", None, "crawl-00002.warc.gz is missing, but pages in it were committed"),
        ("crawl-00003.warc.gz", None, "crawl-00003.warc.gz is missing, but pages in it were committed"),
        ("crawl-00003.warc.gz", 900, r"crawl-00003.warc.gz.open holds 900 bytes, but 2,\d{3} were committed"),
        ("index.cdxj", None, r"index.cdxj is missing, but 1,\d{3} bytes of it were committed"),
        ("index.cdxj", 0, r"index.cdxj holds 0 bytes, but 1,\d{3} were committed"),
    ],
)
def test_less_is_left_than_was_committed(tmp_path: Path, name: str, size: int | None, message: str) -> None:
    archive = ArchiveWriter(tmp_path, INFO, LIMIT)
    committed = write(archive, PAGES, 0, 6)
    assert committed.at.serial == 3
    write(archive, PAGES, 6, 9)
    archive.close()
    whole = files_under(tmp_path)
    if size is None:
        (tmp_path / name).unlink()
    else:
        os.truncate(tmp_path / name, size)
    before = set(files_under(tmp_path))
    for _ in range(2):
        with pytest.raises(ArchiveError, match=rf"^\S+{message}; restore it from a backup or begin a new crawl$"):
            ArchiveWriter(tmp_path, INFO, LIMIT, at=committed.at)
    assert {name.removesuffix(".open") for name in files_under(tmp_path)} == before
    (tmp_path / name).write_bytes(whole[name])
    (tmp_path / f"{name}.open").unlink(missing_ok=True)
    assert go_on(tmp_path, PAGES, LIMIT, committed) == whole


@pytest.mark.parametrize("serial", [1, 3])
def test_a_file_that_is_there_twice(tmp_path: Path, serial: int) -> None:
    archive = ArchiveWriter(tmp_path, INFO, LIMIT)
    committed = write(archive, PAGES, 0, 6)
    archive.close()
    (tmp_path / f"crawl-0000{serial}.warc.gz.open").touch()
    with pytest.raises(
        ArchiveError, match=rf"^\S+-0000{serial}.warc.gz and crawl-0000{serial}.warc.gz.open both exist"
    ):
        ArchiveWriter(tmp_path, INFO, LIMIT, at=committed.at)


def test_what_cannot_be_removed_or_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "crawl-00007.warc.gz").mkdir()
    with pytest.raises(ArchiveError, match=r"^cannot remove \S+/crawl-00007.warc.gz: "):
        ArchiveWriter(tmp_path, INFO, LIMIT, at=BEGINNING)
    (tmp_path / "index.cdxj").unlink()
    (tmp_path / "index.cdxj").mkdir()
    with pytest.raises(ArchiveError, match=r"^cannot open \S+/index.cdxj: Is a directory$"):
        ArchiveWriter(tmp_path, INFO, LIMIT, at=BEGINNING)


# -- the power is cut --------------------------------------------------------------------------------------------------


def test_power_cut_at_every_step(tmp_path: Path) -> None:
    whole = archived(tmp_path / "whole", PAGES, LIMIT)
    root = tmp_path / "cut"
    calls = 0
    committed = Committed()
    while committed.pages < len(PAGES):
        put_files(root, {})
        disk, committed = crawl_until_power_cut(root, Committed(), calls)
        for names, data in SURVIVALS:
            put_files(tmp_path / "left", disk.survivors(names, data))
            assert go_on(tmp_path / "left/warc", PAGES, LIMIT, committed) == whole, (calls, names, data)
        calls += 1
    assert calls > 20


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from(SURVIVALS)), max_size=6))
@pytest.mark.slow
def test_power_cut_again_and_again(cuts: list[tuple[int, tuple[str, str]]]) -> None:
    """Also while the archive is opened again: so many calls, then the power fails, and so much survives."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve() / "cut"
        put_files(root, {})
        committed = Committed()
        for calls, (names, data) in cuts:
            disk, committed = crawl_until_power_cut(root, committed, calls)
            put_files(root, disk.survivors(names, data))
        assert go_on(root / "warc", PAGES, LIMIT, committed) == archived(root / "whole", PAGES, LIMIT)


def test_a_sync_covers_what_was_written_without_one(tmp_path: Path) -> None:
    """Also by a process that was killed, and in files that are finished already."""
    root = tmp_path / "root"
    put_files(root, {})
    disk = Disk(root, 10**9)
    with disk.powered():
        archive = ArchiveWriter(root / "new/warc", INFO, LIMIT)
        for order in range(6):
            committed = write(archive, PAGES, order, order + 1)
            archive.flush()
        os.fsync(os.open(root, os.O_RDONLY))  # whoever made the output directory synced its name
        archive = ArchiveWriter(root / "new/warc", INFO, LIMIT, at=committed.at)
        assert disk.survivors("synced", "synced") == {}
        archive.flush(fsync=True)
    put_files(tmp_path / "left", disk.survivors("synced", "synced"))
    assert files_under(tmp_path / "left") == files_under(root)
    assert go_on(tmp_path / "left/new/warc", PAGES, LIMIT, committed) == archived(tmp_path / "whole", PAGES, LIMIT)


def test_after_a_failed_sync_none_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may report an error once, then forget the bytes: https://lwn.net/Articles/752063/."""
    archive = ArchiveWriter(tmp_path, INFO, LIMIT)
    write(archive, PAGES, 0, 6)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _input_output_error)
        with pytest.raises(ArchiveError, match=r"^cannot sync \S+-00003.warc.gz.open: Input/output error$"):
            archive.flush(fsync=True)
    with pytest.raises(ArchiveError, match=r"^cannot sync \S+-00003.warc.gz.open: Input/output error$"):
        archive.flush(fsync=True)


def test_a_file_that_could_not_be_renamed_is_not_forgotten(tmp_path: Path) -> None:
    whole = archived(tmp_path / "whole", PAGES, LIMIT)
    archive = ArchiveWriter(tmp_path / "warc", INFO, LIMIT)
    committed = write(archive, PAGES, 0, 6)
    in_the_way = tmp_path / "warc/crawl-00001.warc.gz"
    in_the_way.mkdir()
    for _ in range(2):
        with pytest.raises(ArchiveError, match=r"^cannot rename \S+-00001.warc.gz.open: "):
            archive.flush(fsync=True)
    in_the_way.rmdir()
    archive.flush(fsync=True)
    write(archive, PAGES, committed.pages, len(PAGES))
    archive.close()
    assert files_under(tmp_path / "warc") == whole


def _input_output_error(_: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))
