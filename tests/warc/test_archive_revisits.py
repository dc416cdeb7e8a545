"""A payload that came before is not stored again: revisit records, also after a crawl was taken up again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from archive_helpers import INFO, capture, captured, index, warc_files
from power_cut_helpers import die, files_under

from crawl4llm.base.errors import CorruptRecord, MissingRecord
from crawl4llm.base.pages import PageRecord
from crawl4llm.warc import ArchiveFormat, ArchiveWriter
from crawl4llm.warc.exchanges import StoredPayloads
from crawl4llm.warc.reader import html_of_record, parse_stored, read_record, read_stored
from crawl4llm.warc.records import field_name

BODIES = [b"<p>one", b"<p>two", b"<p>one", b"", b"", b"<p>three", b"<p>two", b"<p>one", b"<p>four", b"<p>one"]
PAGES = [captured(f"key {n}", capture(f"/{n}", body)) for n, body in enumerate(BODIES)]


def write(directory: Path, pages: list[PageRecord], revisits: int, max_bytes: int = 10**9) -> None:
    archive = ArchiveWriter(directory, INFO, max_bytes, form=ArchiveFormat(revisits=revisits))
    for one in pages:
        archive.write(one, {"id": one.key})
    archive.close()


@pytest.mark.parametrize(
    ("window", "revisits"),
    [(10, {2: 0, 6: 1, 7: 0, 9: 0}), (2, {2: 0, 9: 7}), (1, {}), (0, {})],
)
def test_the_last_payloads_are_known(tmp_path: Path, window: int, revisits: dict[int, int]) -> None:
    """First in, first out: with room for two, the third takes the place of the first."""
    write(tmp_path, PAGES, window, max_bytes=3000)
    assert len(warc_files(tmp_path)) > 1
    entries = index(tmp_path)
    assert [read_record(tmp_path, entry) for entry in entries] == BODIES
    found = {}
    for number, entry in enumerate(entries):
        stored = read_stored(tmp_path, entry.filename, entry.offset, entry.length)
        assert (stored.record.kind == "revisit") == (entry.mime == "warc/revisit")
        if entry.mime == "warc/revisit":
            get = stored.record.fields.text
            assert stored.payload == b""
            assert get(field_name("WARC-Payload-Digest")) == entry.digest
            assert get(field_name("WARC-Truncated")) == "length"
            assert get(field_name("WARC-Profile")).endswith("/warc/1.1/revisit/identical-payload-digest")
            url, date = get(field_name("WARC-Refers-To-Target-URI")), get(field_name("WARC-Refers-To-Date"))
            assert date == "2026-11-20T12:00:00.123456Z"
            found[number] = int(url.rpartition("/")[2])
            original = entries[found[number]]
            record = read_stored(tmp_path, original.filename, original.offset, original.length).record
            assert get(field_name("WARC-Refers-To")) == record.fields.text(field_name("WARC-Record-ID"))
    assert found == revisits


@pytest.mark.parametrize("window", [10, 2])
def test_a_crawl_that_is_taken_up_again_knows_them(tmp_path: Path, window: int) -> None:
    write(tmp_path / "whole", PAGES, window)
    form = ArchiveFormat(revisits=window)
    for stop in range(len(PAGES)):
        directory = tmp_path / str(stop)
        archive = ArchiveWriter(directory, INFO, 10**9, form=form)
        for one in PAGES[:stop]:
            archive.write(one, {"id": one.key})
        archive.flush()
        at = archive.position()
        archive.write(PAGES[-2], {})
        die(directory)
        archive = ArchiveWriter(directory, INFO, 10**9, at, form)
        for one in PAGES[stop:]:
            archive.write(one, {"id": one.key})
        archive.close()
        assert files_under(directory) == files_under(tmp_path / "whole")


def test_a_revisit_is_decoded_by_its_own_head(tmp_path: Path) -> None:
    """The same bytes are other text in another charset."""
    body = "<title>日本</title>".encode("gbk")
    pages = [
        captured(f"key {n}", capture(f"/{n}", body, headers=[(b"Content-Type", b"text/html; charset=" + charset)]))
        for n, charset in enumerate([b"gbk", b"windows-1252", b"gbk"])
    ]
    write(tmp_path, pages, 10)
    entries = index(tmp_path)
    assert [entry.mime for entry in entries] == ["text/html", "warc/revisit", "warc/revisit"]
    expected = ["<title>日本</title>", f"<title>{'日本'.encode('gbk').decode('cp1252')}</title>", "<title>日本</title>"]
    assert [read_record(tmp_path, entry).decode() for entry in entries] == expected
    stored = [read_stored(tmp_path, entry.filename, entry.offset, entry.length) for entry in entries]
    assert [html_of_record(stored[0], None, one).data.decode() for one in stored] == expected
    head = b"HTTP/1.1 304 Not Modified\r\n\r\n"
    unchanged = b"WARC/1.1\r\nWARC-Type: revisit\r\nContent-Length: %d\r\n\r\n%b" % (len(head), head)
    assert html_of_record(stored[0], None, parse_stored(unchanged, "")).data.decode() == expected[0]
    with pytest.raises(CorruptRecord, match="not the content that the index describes"):
        read_record(tmp_path, replace(entries[1], digest="sha1:" + "A" * 32))


def test_what_is_cut_short_or_leads_elsewhere_is_stored(tmp_path: Path) -> None:
    moved = capture("/old", b"<p>one", status=301, headers=[(b"Location", b"/new")])
    pages = [
        PAGES[0],
        captured("cut", replace(capture("/cut", b"<p>one"), truncated="length")),
        captured("hop", moved, capture("/new")),
    ]
    write(tmp_path, pages, 10)
    assert {entry.mime for entry in index(tmp_path)} == {"text/html"}


def test_a_damaged_length_takes_no_memory(tmp_path: Path) -> None:
    write(tmp_path, PAGES, 0)
    (entry, *_) = index(tmp_path)
    assert read_record(tmp_path, replace(entry, length=10**16)) == BODIES[0]
    with pytest.raises(CorruptRecord):
        read_record(tmp_path, replace(entry, offset=10**16))


def test_a_damaged_place_is_not_taken_for_another(tmp_path: Path) -> None:
    write(tmp_path, PAGES[:2], 10)
    entries = [replace(entry, offset=entry.offset + (1 << 40)) for entry in index(tmp_path)]
    assert StoredPayloads(tmp_path, 10, entries).find(entries[0].digest) is None


def test_an_original_that_is_gone(tmp_path: Path) -> None:
    """It is stored anew; what names it is read there."""
    archive = ArchiveWriter(tmp_path, INFO, 1, form=ArchiveFormat(revisits=10))
    archive.write(PAGES[0], {})
    archive.write(PAGES[2], {})
    archive.flush()
    warc_files(tmp_path)[0].unlink()
    archive.write(PAGES[7], {})
    archive.close()
    assert [entry.mime for entry in index(tmp_path)] == ["text/html", "warc/revisit", "text/html"]
    assert read_record(tmp_path, index(tmp_path)[1]) == b"<p>one"
    (tmp_path / "index.cdxj").write_bytes(index(tmp_path)[1].line())
    with pytest.raises(MissingRecord, match=r"index.cdxj leads to no record of the payload sha1:\w+"):
        read_record(tmp_path, index(tmp_path)[0])
