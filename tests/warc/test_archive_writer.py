"""The archive as a whole: every page is found again, whoever reads it."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from archive_helpers import INFO, fastwarc_records, index, page, warc_files, warcio_check, write_archive
from hypothesis import given, settings, strategies as st
from warcio.archiveiterator import ArchiveIterator

from crawl4llm.base.compression import NAME
from crawl4llm.base.errors import CorruptRecord, MissingRecord
from crawl4llm.base.files import ArchiveError
from crawl4llm.base.pages import PageRecord
from crawl4llm.warc import Archive, ArchivePosition, ArchiveWriter, NullArchive
from crawl4llm.warc.reader import read_record

ROOT = Path(__file__).resolve().parents[2]


def content_of(page: PageRecord) -> bytes:
    """What the archive keeps of a page."""
    if page.html is not None:
        return page.html
    return (page.text or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def test_pages_of_every_kind_are_read_by_all(tmp_path: Path) -> None:
    pages = [
        PageRecord("html", "http://example.org/html", "2021-02-03T04:05:06.789Z", html=b"<p>hello"),
        PageRecord("text", "http://example.org/text", text="hello \N{SNOWMAN}"),
        PageRecord("nothing", "http://example.org/nothing"),
        PageRecord("empty html", "http://example.org/empty", html=b""),
        PageRecord("http in html", "http://example.org/http", html=b"HTTP/1.1 404 Not Found\r\n\r\nWARC/1.1\r\n\r\n"),
        PageRecord("ftp", "ftp://example.org/", html=b"<p>file"),
        PageRecord("no url", "", html=b"<p>nowhere"),
        PageRecord("long url", "http://example.org/" + "a" * 100_000, html=b"<p>far away"),
        PageRecord("large", "http://example.org/large", html=os.urandom(3_000_000)),
    ]
    write_archive(tmp_path, pages)
    entries = index(tmp_path)
    assert [entry.id for entry in entries] == [page.key for page in pages]
    assert [read_record(tmp_path, entry) for entry in entries] == [content_of(page) for page in pages]
    (file,) = warc_files(tmp_path)
    warcio_check([file])
    kinds = [record.kind for record in fastwarc_records(file)]
    contents = ["response", "conversion", "conversion", *["response"] * 2, *["resource"] * 3, "response"]
    assert kinds == ["warcinfo", *(kind for content in contents for kind in (content, "metadata"))]


def test_files_are_rotated_by_size(tmp_path: Path) -> None:
    limit = 6000
    pages = [page(number, size=20_000 if number == 12 else 2000) for number in range(16)]
    write_archive(tmp_path, pages, limit)
    files = warc_files(tmp_path)
    assert [file.name for file in files] == [f"crawl-{serial:05d}.warc.gz" for serial in range(len(files))]
    assert len(files) > 5
    warcio_check(files)
    entries = index(tmp_path)
    assert [read_record(tmp_path, entry) for entry in entries] == [page.html for page in pages]
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)
    room = 0
    for file in files:
        seen = fastwarc_records(file)
        held = [entry for entry in entries if entry.filename == file.name]
        assert [record.kind for record in seen] == ["warcinfo", *["response", "metadata"] * len(held)]
        assert seen[0].head["WARC-Filename"] == file.name
        assert {record.head["WARC-Warcinfo-ID"] for record in seen[1:]} == {seen[0].head["WARC-Record-ID"]}
        size = file.stat().st_size
        assert size <= limit or [entry.id for entry in held] == ["key-00012"]
        ends = [*(entry.offset for entry in held[1:]), size]
        assert ends[0] - held[0].offset > room - 20  # did not fit the file before; its ids compress differently there
        room = limit - size


def test_a_file_is_filled_to_the_last_byte(tmp_path: Path) -> None:
    pages = [page(number) for number in range(3)]
    write_archive(tmp_path / "one", pages)
    (file,) = warc_files(tmp_path / "one")
    size = file.stat().st_size
    write_archive(tmp_path / "fits", pages, size)
    assert len(warc_files(tmp_path / "fits")) == 1
    write_archive(tmp_path / "does not", pages, size - 1)
    assert len(warc_files(tmp_path / "does not")) == 2


def test_a_file_is_open_until_it_is_full_and_flushed(tmp_path: Path) -> None:
    archive = ArchiveWriter(tmp_path, INFO, max_bytes=1)

    def names() -> list[str]:
        return [file.name for file in warc_files(tmp_path)]

    assert names() == []
    archive.write(page(0), {})
    archive.write(page(1), {})
    assert names() == ["crawl-00000.warc.gz.open", "crawl-00001.warc.gz.open"]
    assert [read_record(tmp_path, entry) for entry in index(tmp_path)] == [page(0).html, page(1).html]
    archive.flush(fsync=True)
    assert names() == ["crawl-00000.warc.gz", "crawl-00001.warc.gz.open"]
    archive.close(fsync=True)
    assert names() == ["crawl-00000.warc.gz", "crawl-00001.warc.gz"]
    assert [read_record(tmp_path, entry) for entry in index(tmp_path)] == [page(0).html, page(1).html]


def test_flushes_leave_no_mark_in_the_files(tmp_path: Path) -> None:
    write_archive(tmp_path / "once", (page(number) for number in range(8)), 6000)
    archive = ArchiveWriter(tmp_path / "often", INFO, 6000)
    for order in range(8):
        archive.write(page(order), {"order": order})
        archive.flush()
    archive.close()
    assert _bytes_of(tmp_path / "once") == _bytes_of(tmp_path / "often")


def test_files_cut_back_to_a_position_are_the_archive_of_that_moment(tmp_path: Path) -> None:
    archive = ArchiveWriter(tmp_path, INFO, 6000)
    moments: list[tuple[int, ArchivePosition]] = []
    for order in range(8):
        moments.append((order, archive.position()))
        archive.write(page(order), {"order": order})
    archive.close()
    for order, position in reversed(moments):
        for serial, file in enumerate(warc_files(tmp_path)):
            if serial > position.serial or (serial, 0) == position[:2]:
                file.unlink()
            elif serial == position.serial:
                os.truncate(file, position.offset)
        os.truncate(tmp_path / "index.cdxj", position.index_offset)
        assert [read_record(tmp_path, entry) for entry in index(tmp_path)] == [page(n).html for n in range(order)]
        assert sum(len(fastwarc_records(file)) - 1 for file in warc_files(tmp_path)) == 2 * order


def test_a_directory_with_an_archive_is_refused(tmp_path: Path) -> None:
    write_archive(tmp_path, [page(0)])
    before = _bytes_of(tmp_path)
    with pytest.raises(ArchiveError, match=r"index.cdxj exists already"):
        write_archive(tmp_path, [page(1)])
    (tmp_path / "index.cdxj").unlink()
    with pytest.raises(ArchiveError, match=r"crawl-00000.warc.gz exists already"):
        write_archive(tmp_path, [page(1)])
    (tmp_path / "index.cdxj").unlink()
    assert _bytes_of(tmp_path) == {name: data for name, data in before.items() if name != "index.cdxj"}


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArchiveError, match=r"cannot create .*file/warc: Not a directory"):
        ArchiveWriter(tmp_path / "file" / "warc", INFO, 1000)


def test_damage_is_found_on_reading(tmp_path: Path) -> None:
    write_archive(tmp_path, [page(0), page(1)])
    first, second = index(tmp_path)
    (file,) = warc_files(tmp_path)
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[first.offset + first.length // 2] ^= 1
    for data, entry in [
        (bytes(flipped), first),
        (whole[: second.offset + 10], second),
        (whole[: second.offset], second),
        (gzip.compress(b"hello"), replace(first, offset=0)),
        (gzip.compress(b""), replace(first, offset=0)),
    ]:
        file.write_bytes(data)
        with pytest.raises(CorruptRecord, match=rf"crawl-00000.warc.gz: record at {entry.offset}: "):
            read_record(tmp_path, entry)
    file.write_bytes(whole)
    with pytest.raises(CorruptRecord, match="not the content that the index describes"):
        read_record(tmp_path, replace(first, offset=second.offset, length=second.length))
    file.unlink()
    with pytest.raises(MissingRecord, match=r"crawl-00000.warc.gz does not exist"):
        read_record(tmp_path, first)
    file.mkdir()
    with pytest.raises(ArchiveError, match=r"cannot read .*crawl-00000.warc.gz: Is a directory"):
        read_record(tmp_path, first)


# Halves of surrogate pairs, but never two that make a pair: Python's JSON reader joins those.
HOSTILE = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("\r\n\0 \t:%<>\x7f\x85\u2028\ud800"), max_size=30
)
URLS = st.builds("{}{}".format, st.sampled_from(["http://example.org/", "https://", "HTTP://", "ftp://", ""]), HOSTILE)
PAGES = st.builds(
    PageRecord,
    key=HOSTILE.filter(bool),
    url=URLS,
    date=st.none() | HOSTILE | st.just("2021-02-03T04:05:06.789Z"),
    html=st.none() | st.binary(max_size=200),
    text=st.none() | HOSTILE,
    language=st.none() | HOSTILE,
)
HEAD = {"WARC-Type", "WARC-Record-ID", "WARC-Date", "WARC-Block-Digest", "Content-Type", "Content-Length"}
CONTENT_HEAD = HEAD | {"WARC-Target-URI", "WARC-Warcinfo-ID", "WARC-Payload-Digest"}
METADATA_HEAD = HEAD | {"WARC-Target-URI", "WARC-Warcinfo-ID"}
HEADS = {
    "warcinfo": [HEAD | {"WARC-Filename"}],
    "response": [CONTENT_HEAD | {"Crawl4LLM-HTTP-Headers"}],
    "resource": [CONTENT_HEAD],
    "conversion": [CONTENT_HEAD],
    "metadata": [METADATA_HEAD | {"WARC-Concurrent-To"}, METADATA_HEAD | {"WARC-Refers-To"}],
}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(PAGES, HOSTILE, st.floats()), max_size=6), st.sampled_from([1, 2000, 10**9]))
def test_any_page_is_found_and_none_forges_a_header(pages: list[tuple[PageRecord, str, float]], limit: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        archive = ArchiveWriter(directory, INFO, limit)
        for record, value, influence in pages:
            archive.write(record, {"influence": influence, "value": value, "nothing": None})
        archive.close()
        entries = index(directory)
        assert [entry.id for entry in entries] == [record.key for record, _, _ in pages]
        assert [read_record(directory, entry) for entry in entries] == [content_of(record) for record, _, _ in pages]
        seen = [record for file in warc_files(directory) for record in fastwarc_records(file)]
        assert all(set(record.head) in HEADS[record.kind] for record in seen)
        metadata = [record.content.split(b"\r\n") for record in seen if record.kind == "metadata"]
        assert [lines[0] for lines in metadata] == [f"influence: {influence!r}".encode() for _, _, influence in pages]
        assert all(len(lines) == 3 and lines[1].startswith(b"value: ") and not lines[2] for lines in metadata)
        for file in warc_files(directory):
            with file.open("rb") as stream:
                for record in ArchiveIterator(stream, check_digests=True):
                    record.content_stream().read()
                    assert record.digest_checker.passed, record.digest_checker.problems


WRITE = """
import sys
if sys.argv[2] == "zlib":
    sys.modules["isal"] = None
from pathlib import Path
from archive_helpers import page, write_archive
from crawl4llm.base.compression import NAME
from crawl4llm.base.pages import PageRecord
pages = [*map(page, range(6)), PageRecord("text", "http://example.org/text", text="text"), PageRecord("nothing", "")]
write_archive(Path(sys.argv[1]), pages, 6000)
print(NAME)
"""


def test_equal_crawls_make_equal_bytes_and_without_isal_the_same_records(tmp_path: Path) -> None:
    assert _write(tmp_path / "any", "any", PYTHONHASHSEED="0") == NAME
    assert _write(tmp_path / "again", "any", PYTHONHASHSEED="1") == NAME
    assert _bytes_of(tmp_path / "any") == _bytes_of(tmp_path / "again")
    assert len(_bytes_of(tmp_path / "any")) > 3
    assert _write(tmp_path / "zlib", "zlib") == "zlib level 1"
    warcio_check(warc_files(tmp_path / "zlib"))

    def contents(directory: Path) -> list[tuple[str, str, bytes]]:
        return [(entry.id, entry.url, read_record(directory, entry)) for entry in index(directory)]

    assert contents(tmp_path / "any") == contents(tmp_path / "zlib")


def test_archiving_off_keeps_nothing() -> None:
    archive: Archive = NullArchive()
    archive.write(page(0), {"order": 0})
    archive.flush(fsync=True)
    assert archive.position() == ArchivePosition(0, 0, 0)
    archive.close()


def _write(directory: Path, library: str, **environment: str) -> str:
    """Write the same small archive in a process of its own; returns the name of its compression."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests/helpers")])
    command = [sys.executable, "-c", WRITE, str(directory), library]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _bytes_of(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}
