"""What indexing finds in archive files of every kind and state, and which files make a collection."""

from __future__ import annotations

import gzip
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from scrapy.settings import Settings
from warc_helpers import (
    CRLF,
    arc,
    arc_head,
    build,
    clueweb09,
    html_of,
    http,
    keys,
    page,
    record,
    redirect,
    response,
    url_of,
    warcinfo,
    write,
)

from crawl4llm.base.errors import InputError
from crawl4llm.warc.reader import parse_stored
from crawl4llm.warc.records import PAYLOAD_DIGEST, RECORD_START, parse_record
from simulate import open_corpus
from simulate.warcs import files as warc_files
from simulate.warcs.files import list_files

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SUFFIXES = (".warc", ".warc.gz", ".warc.zst")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"


# -- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_records_that_are_no_pages_are_counted_by_their_kind(tmp_path: Path, index: Path, suffix: str) -> None:
    http_message = ["Content-Type: application/http; msgtype=response"]
    file = write(
        tmp_path / f"a{suffix}",
        warcinfo(),
        record("request", url_of(1), b"GET / HTTP/1.1\r\n\r\n"),
        page(1),
        record("metadata", url_of(1), b"a: b"),
        response(url_of(2), http(b"gone", "404 Not Found")),
        response(url_of(3), http(b"%PDF", fields=["Content-Type: application/pdf"])),
        redirect(url_of(4), url_of(1)),
        response(url_of(5), http(b"", "304 Not Modified", [])),
        response("dns:site.example", b"20200101000000\nsite.example. 1 IN A 127.0.0.1"),
        record("response", None, http(html_of(6)), http_message),
        record("response", url_of(7), http(html_of(7)), http_message, length="seven"),
        record("continuation", url_of(8), b"rest"),
        page(9),
    )
    summary = build(file, index)
    assert keys(index) == [url_of(1), url_of(9)]
    assert summary.documents == 2
    assert summary.counts == {
        "html": 2,
        "warcinfo": 1,
        "request": 1,
        "metadata": 1,
        "http_404": 1,
        "http_304": 1,
        "not_html": 2,
        "redirect": 1,
        "no_url": 1,
        "no_length": 1,
        "continuation": 1,
    }


def test_what_counts_as_a_page(tmp_path: Path, index: Path) -> None:
    bodies = {
        "html": http(html_of(1), fields=["content-TYPE:text/HTML ;charset=x"]),
        "xhtml": http(html_of(1), fields=["Content-Type: application/xhtml+xml"]),
        "no-type": http(b" \n<!DOCTYPE html><p>", fields=[]),
        "plain-text": http(b"text", fields=[]),
        "wrong-type": http(html_of(1), fields=["Content-Type: text/plain"]),
        "bare-line-feeds": http(b"\r\n\r\n<p>", end=b"\n"),
        "long-head": http(html_of(1), fields=[f"X-{n}: {'x' * 999}" for n in range(90)] + ["Content-Type: text/html"]),
        "http-2": http(html_of(1)).replace(b"HTTP/1.1 200 OK", b"HTTP/2 200"),
        "no-http-head": html_of(1),
    }
    records = [response(f"http://h.example/{name}", block) for name, block in bodies.items()]
    records += [
        record("response", "http://h.example/clueweb22", html_of(1), ["Content-Type: text/html"]),
        record("resource", "http://h.example/resource", html_of(1), ["Content-Type: text/html"]),
        record("resource", "http://h.example/image", b"GIF", ["Content-Type: image/gif"]),
        record("conversion", "http://h.example/text", b"text", ["Content-Type: text/plain"]),
        record("conversion", "http://h.example/pdf", b"text", ["Content-Type: application/pdf"]),
    ]
    build(write(tmp_path / "a.warc.gz", *records), index)
    names = [key.removeprefix("http://h.example/") for key in keys(index)]
    assert names == [
        "html",
        "xhtml",
        "no-type",
        "bare-line-feeds",
        "long-head",
        "http-2",
        "no-http-head",
        "clueweb22",
        "resource",
        "text",
    ]


def test_a_head_without_end_costs_only_its_record(tmp_path: Path, index: Path) -> None:
    bomb = response(url_of(2), b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 400_000)
    assert build(write(tmp_path / "a.warc.gz", page(1), bomb, page(3)), index).counts == {"html": 2, "not_html": 1}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_target_uris_as_writers_have_put_them(tmp_path: Path, index: Path, suffix: str) -> None:
    uris = [
        b"<http://h.example/angle>",
        b"http://H.example:80/Port",
        b"http://h.example/caf\xe9",
        b"http://h.example/a b",
    ]
    build(write(tmp_path / f"a{suffix}", *(response(uri, http(html_of(1))) for uri in uris)), index)
    assert keys(index) == [
        "http://h.example/angle",
        "http://h.example/Port",
        "http://h.example/caf%E9",
        "http://h.example/a%20b",
    ]


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_cut_short_loses_its_last_record(tmp_path: Path, index: Path, suffix: str) -> None:
    whole = write(tmp_path / f"a{suffix}", warcinfo(), page(1), page(2))
    whole.write_bytes(whole.read_bytes()[:-20])
    assert build(whole, index).counts == {"warcinfo": 1, "html": 1, "damaged": 1}
    assert keys(index) == [url_of(1)]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_that_were_joined(tmp_path: Path, index: Path, suffix: str) -> None:
    one = write(tmp_path / "parts" / f"one{suffix}", warcinfo(), page(1), page(2)).read_bytes()
    other = write(tmp_path / "parts" / f"other{suffix}", warcinfo(), page(3), page(4)).read_bytes()
    joined = tmp_path / f"joined{suffix}"
    joined.write_bytes(one + other)
    assert build(joined, index).counts == {"warcinfo": 2, "html": 4}
    joined.write_bytes(one[:-20] + other)
    assert build(joined, index).counts == {"warcinfo": 2, "html": 3, "damaged": 1}
    assert keys(index) == [url_of(1), url_of(3), url_of(4)]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("length", [0, 10, 100_000, None])
def test_a_wrong_content_length_costs_no_other_record(
    tmp_path: Path, index: Path, suffix: str, length: int | None
) -> None:
    wrong = record("response", url_of(2), http(html_of(2)), ["Content-Type: application/http"], length=length)
    build(write(tmp_path / f"a{suffix}", page(1), wrong, page(3)), index)
    assert [key for key in keys(index) if key != url_of(2)] == [url_of(1), url_of(3)]


@pytest.mark.parametrize("suffix", [".warc.gz", ".warc.zst"])
def test_damage_in_the_middle_costs_only_its_record(tmp_path: Path, index: Path, suffix: str) -> None:
    members = [write(tmp_path / f"{number}{suffix}", page(number)).read_bytes() for number in range(3)]
    damaged = tmp_path / f"a{suffix}"
    for garbage in (
        b"",
        b"\0" * 500,
        members[1][: len(members[1]) // 2],
        members[1][20:],
        random.Random(1).randbytes(9999),
    ):
        damaged.write_bytes(members[0] + garbage + members[2])
        build(damaged, index)
        assert keys(index) == [url_of(0), url_of(2)]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_archives_in_an_archive_are_not_looked_into(tmp_path: Path, index: Path, suffix: str) -> None:
    inner = b"".join(gzip.compress(page(number), 0) for number in (7, 8)) + page(9)
    outer = [response(url_of(1), http(inner, fields=["Content-Type: application/warc"])), page(2)]
    assert build(write(tmp_path / f"a{suffix}", *outer), index).counts == {"html": 1, "not_html": 1}
    wrong = record("response", url_of(1), http(inner), ["Content-Type: application/http"], length=5)
    build(write(tmp_path / f"a{suffix}", wrong, page(2)), index)
    assert url_of(2) in keys(index)
    if suffix != ".warc":
        assert keys(index) == [url_of(1), url_of(2)]


def test_gzip_members_with_optional_fields_and_padding(tmp_path: Path, index: Path) -> None:
    named = tmp_path / "a.warc.gz"
    with named.open("wb") as file:
        for number in range(3):
            with gzip.GzipFile(f"member-{number}.warc", "wb", fileobj=file) as member:
                member.write(page(number))
        file.write(b"\0" * 1000)
    assert build(named, index).documents == 3


def test_records_with_other_ends_than_two_line_ends(tmp_path: Path, index: Path) -> None:
    records = [page(1).rstrip(), page(2).rstrip() + b"\n", page(3), page(4) + CRLF * 3]
    assert build(write(tmp_path / "a.warc.gz", *records), index).counts == {"html": 4}
    assert (
        build(write(tmp_path / "b.warc", page(1).rstrip() + b"\n", page(2) + CRLF * 3, page(3)), index).documents == 3
    )


@pytest.mark.parametrize("suffix", [".arc", ".arc.gz"])
def test_arc_files(tmp_path: Path, index: Path, suffix: str) -> None:
    records = [
        arc_head(),
        arc(url_of(1), http(html_of(1))),
        arc(url_of(2), http(b"", "404 No")),
        arc(url_of(3), html_of(3)),
    ]
    assert build(write(tmp_path / f"a{suffix}", *records), index).counts == {"filedesc": 1, "html": 2, "http_404": 1}
    assert keys(index) == [url_of(1), url_of(3)]


@pytest.mark.parametrize("suffix", [".arc", ".arc.gz"])
@pytest.mark.parametrize(
    ("line", "key"),
    [
        (
            "http://a.example/b c?d=The Live Web&e=1 10.0.0.1 20200203040506 text/html %d",
            "http://a.example/b%20c?d=The%20Live%20Web&e=1",
        ),
        ("http://a.example/v2 10.0.0.1 20200203040506 text/html 200 fac0 - 209 a.arc %d", "http://a.example/v2"),
        ("http://a.example/minutes 10.0.0.1 202002030405 text/html %d", "http://a.example/minutes"),
        ("http://a.example/long-date 10.0.0.1 202002030405069999 text/html %d", "http://a.example/long-date"),
        ("http://a.example/no-type 10.0.0.1 20200203040506  %d", "http://a.example/no-type"),
        ("http://a.example/odd-type 10.0.0.1 20200203040506 @[=*] a/b; c=d %d", "http://a.example/odd-type"),
        ("http://a.example/ipv6 2001:db8::1 20200203040506 text/html %d", "http://a.example/ipv6"),
        ("http://a.example/windows 10.0.0.1 20200203040506 text/html %d\r", "http://a.example/windows"),
    ],
    ids=["blanks", "version 2", "short date", "long date", "no type", "odd type", "ipv6", "windows"],
)
def test_odd_first_lines_of_arc_records(tmp_path: Path, index: Path, suffix: str, line: str, key: str) -> None:
    """Neither they nor what comes behind them is lost."""
    block = http(html_of(1), end=b"\n")
    odd = f"{line % len(block)}\n".encode() + block + b"\n"
    file = write(tmp_path / f"a{suffix}", arc_head(), odd, arc(url_of(2), http(html_of(2), end=b"\n")))
    counts = build(file, index).counts
    assert counts == {"filedesc": 1, "html": 2}
    assert sorted(keys(index)) == sorted([key, url_of(2)])


@pytest.mark.parametrize(
    "first",
    [
        "filedesc://a.arc 0 19960923142103 text/plain %d",
        "filedesc://my files/a.arc 0.0.0.0 20200203040506 text/plain %d",
        "filedesc://a.arc 0.0.0.0 20200203 text/plain 200 - - 0 a.arc %d",
        "filedesc://a.arc 127.0.0.1 20200203040506 text/plain -1",
        "\n\nfiledesc://a.arc 0.0.0.0 20200203040506 text/plain %d",
    ],
    ids=["address 0", "blanks", "version 2", "no length", "empty lines"],
)
def test_odd_first_lines_of_arc_files(tmp_path: Path, index: Path, first: str) -> None:
    block = b"1 0 Tests\nURL IP-address Archive-date Content-type Archive-length\n"
    line = first % len(block) if "%" in first else first
    file = tmp_path / "a.arc"
    file.write_bytes(f"{line}\n".encode() + block + b"\n" + arc(url_of(1), http(html_of(1), end=b"\n")))
    assert build(file, index).counts == {"filedesc": 1, "html": 1}
    assert keys(index) == [url_of(1)]


def test_lines_of_text_that_begin_no_arc_record_and_that_take_no_time() -> None:
    for line in (b"see: the 12 20200203 text 5", b"a: 10.0.0.1 20200203040506 text", b"http://a.example/ 5"):
        assert RECORD_START.match(line + b"\n") is None, line
    began = time.process_time()
    for line in (b" 10.0.0.1 20200203040506" * 700 + b" x", b" 1" * 8000 + b" 5", b" " * 16_000 + b"5", b"1" * 16_000):
        RECORD_START.match(b"a:" + line + b"\n")
        with suppress(ValueError):
            parse_record(b"a:" + line + b"\n")
    assert time.process_time() - began < 0.3


def test_fields_are_folded_and_padded_as_writers_have_put_them(tmp_path: Path, index: Path) -> None:
    fields = [
        "WARC-Record-ID:\r\n <urn:uuid:1>",
        "warc-payload-digest:\r\n\tsha1: \t\r\n A",
        "Content-Type: application/http",
    ]
    body = html_of(1)
    block = b"http 200 Document\r\n follows\r\nServer: a\r\nno field\r\nContent-Type :\r\n\ttext/html\r\n\r\n" + body
    head = b"WARC/1.0 \r\nwarc-type: response\r\nWARC-Target-URI:\r\n %b\r\n" % url_of(1).encode()
    for suffix in (".warc", ".warc.gz"):
        data = head + "".join(f"{field}\r\n" for field in fields).encode()
        data += b"Content-Length: %d\r\n\r\n%b\r\n\r\n" % (len(block), block)
        file = write(tmp_path / f"a{suffix}", warcinfo(), data, page(2))
        assert build(file, index).counts == {"warcinfo": 1, "html": 2}
        assert keys(index) == [url_of(1), url_of(2)]
    stored = parse_stored(data, "")
    assert stored.payload == body
    assert stored.http is not None
    assert stored.http.fields.pairs() == [(b"Server", b"a"), (b"Content-Type", b"text/html")]
    assert stored.record.fields.text(PAYLOAD_DIGEST) == "sha1: A"


def test_clueweb09_with_bare_line_feeds_and_lengths_from_before(tmp_path: Path, index: Path) -> None:
    records = [clueweb09(None, b"software: Nutch\n"), *(clueweb09(number, html_of(number)) for number in range(3))]
    for suffix in (".warc", ".warc.gz"):
        assert build(write(tmp_path / f"a{suffix}", *records), index).counts == {"warcinfo": 1, "html": 3}
        assert keys(index) == [url_of(number) for number in range(3)]


def test_zstd_with_a_dictionary(tmp_path: Path, index: Path) -> None:
    records = [page(number, [url_of(n) for n in range(20)]) for number in range(60)]
    dictionary = zstd.train_dict(records, 4096)
    for content in (dictionary.dict_content, zstd.compress(dictionary.dict_content)):
        head = b"\x5d\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content
        frames = [zstd.compress(data, zstd_dict=dictionary) for data in records]
        skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
        (tmp_path / "a.warc.zst").write_bytes(head + frames[0] + skippable + b"".join(frames[1:]))
        assert build(tmp_path / "a.warc.zst", index).counts == {"html": 60}


def test_files_of_which_nothing_can_be_read_are_named(tmp_path: Path, index: Path) -> None:
    folder = tmp_path / "collection"
    write(folder / "good.warc.gz", page(1))
    write(folder / "empty.warc.gz")
    (folder / "html.warc").write_bytes(html_of(1))
    (folder / "whole.warc.zst").write_bytes(zstd.compress(warcinfo() + page(2) + page(3)))
    (folder / "dictionary.warc.zst").write_bytes(b"\x5d\x2a\x4d\x18\x05\0\0\0wrong")
    summary = build(folder, index)
    assert summary.documents == 1
    assert [line.split(": ")[:2] for line in summary.unreadable] == [
        [str(folder / "dictionary.warc.zst"), "its dictionary is damaged"],
        [str(folder / "empty.warc.gz"), "is empty; fetch it again or take it away"],
        [str(folder / "html.warc"), "is neither a WARC nor an ARC file; fetch it again or take it away"],
        [str(folder / "whole.warc.zst"), "is compressed as a whole, not record by record; unpack it"],
    ]
    write(folder / "empty.warc.gz", page(4))
    assert build(folder, index).documents == 2


# -- collections ------------------------------------------------------------------------------------------------------


def names(given: Path | str) -> list[str]:
    return [file.name for file in list_files(given).files]


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    folder = tmp_path / "collection"
    for number, name in enumerate(["b.warc.gz", "a.warc", "deep/er/c.warc.zst", "deep/d.arc.gz"]):
        write(
            folder / name, arc_head() + arc(url_of(number), html_of(number)) if "arc.gz" in name[-6:] else page(number)
        )
    for name in ["notes.txt", "deep/a.cdxj", "cdx-00000.gz", "e.warc.gz.part", ".hidden.warc.gz"]:
        (folder / name).write_bytes(b"x")
    write(folder / "f.warc.gz", page(9)).rename(folder / "f.warc.gz.open")  # as crawlers name what they still write
    return folder


def test_a_folder_is_searched_to_its_bottom(collection: Path) -> None:
    assert names(collection) == ["a.warc", "b.warc.gz", "deep/d.arc.gz", "deep/er/c.warc.zst", "f.warc.gz.open"]


def test_a_glob(collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(collection / "*.warc*") == ["a.warc", "b.warc.gz", "e.warc.gz.part", "f.warc.gz.open"]
    assert names(f"{collection}/**/c.*") == ["deep/er/c.warc.zst"]
    assert names(collection / "d*") == ["deep/d.arc.gz", "deep/er/c.warc.zst"]
    monkeypatch.chdir(collection)
    assert names("[ab].*") == ["a.warc", "b.warc.gz"]
    assert names("./b.warc.gz") == ["b.warc.gz"]


@pytest.mark.parametrize("name", ["list.txt", "warc.paths.gz"])
def test_a_list_of_paths(collection: Path, name: str) -> None:
    lines = f"# a comment\n\nb.warc.gz\n  {collection}/a.warc  # the same\ndeep\n../collection/b.warc.gz\n".encode()
    (collection / name).write_bytes(gzip.compress(lines) if name.endswith(".gz") else lines)
    assert names(collection / name) == ["a.warc", "b.warc.gz", "deep/d.arc.gz", "deep/er/c.warc.zst"]


def test_a_list_of_paths_as_windows_writes_it(collection: Path) -> None:
    (collection / "list.txt").write_bytes(b"\xef\xbb\xbfb.warc.gz\r\na.warc\r\n")
    assert names(collection / "list.txt") == ["a.warc", "b.warc.gz"]


def test_a_file_is_known_by_its_name_or_beginning(tmp_path: Path) -> None:
    for name, data in {
        "pages": page(1),
        "pages.gz": gzip.compress(page(1)),
        "pages.zst": zstd.compress(page(1)),
        "pages.arc-old": arc_head(),
        "empty.warc.gz": b"",
    }.items():
        (tmp_path / name).write_bytes(data)
        assert names(tmp_path / name) == [name]


def test_wet_and_wat_files_belong_to_their_archive_file(tmp_path: Path) -> None:
    for name in ["warc/x.warc.gz", "wet/x.warc.wet.gz", "wat/x.warc.wat.gz", "y.warc.gz", "y.warc.wet.gz"]:
        write(tmp_path / name, page(1))
    write(tmp_path / "wet/z.warc.wet.gz", page(1))
    write(tmp_path / "wat/z.warc.wat.gz", page(1))
    write(tmp_path / "wat/w.warc.wat.gz", page(1))
    everything = [(file.name, file.wet, file.wat) for file in list_files(tmp_path).files]
    assert everything == [
        ("warc/x.warc.gz", "wet/x.warc.wet.gz", "wat/x.warc.wat.gz"),
        ("wet/z.warc.wet.gz", None, "wat/z.warc.wat.gz"),
        ("y.warc.gz", "y.warc.wet.gz", None),
    ]
    (one,) = list_files(tmp_path / "warc" / "x.warc.gz").files
    assert one[0] == "x.warc.gz"
    assert one[3:] == (str(tmp_path / "wet/x.warc.wet.gz"), str(tmp_path / "wat/x.warc.wat.gz"))


def no_such_file(folder: Path) -> str:
    return f"{folder / 'none'}: no such file or folder"


def empty_folder(folder: Path) -> str:
    (folder / "none").mkdir()
    return f"{folder / 'none'}: holds neither a ClueWeb22 tree (txt/, html/, outlink/, inlink/) nor WARC or ARC files"


def glob_without_match(folder: Path) -> str:
    return f"{folder / '*.warc.gz'}: matches no file"


def list_with_missing_file(folder: Path) -> str:
    (folder / "list").write_text("# files\ngone.warc.gz\n")
    return f"{folder / 'list'}, line 2: no such file: {folder / 'gone.warc.gz'}"


def list_of_nothing(folder: Path) -> str:
    (folder / "list").write_text("\n")
    return f"{folder / 'list'}: holds neither a ClueWeb22 tree (txt/, html/, outlink/, inlink/) nor WARC or ARC files"


def neither_archive_nor_list(folder: Path) -> str:
    (folder / "list").write_bytes(b"\x89PNG\xff")
    return f"{folder / 'list'}: is neither a WARC or ARC file nor a list"


def damaged_list(folder: Path) -> str:
    (folder / "list").write_bytes(gzip.compress(b"a.warc\n")[:-9])
    return f"{folder / 'list'}: is neither a WARC or ARC file nor a list of such files (Compressed file ended"


def enormous_file(folder: Path) -> str:
    (folder / "list").touch()
    os.truncate(folder / "list", 200_000_000_000)
    return f"{folder / 'list'}: is neither a WARC or ARC file nor a list"


def fifo_without_a_writer(folder: Path) -> str:
    os.mkfifo(folder / "fifo")
    return f"{folder / 'fifo'}: {folder / 'fifo'} cannot be read (it is a FIFO, not a regular file)"


def links_in_a_circle(folder: Path) -> str:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")
    return f"{folder / 'one'}: {folder / 'one'} cannot be read (Too many levels of symbolic links)"


@pytest.mark.parametrize(
    "prepare",
    [
        enormous_file,
        fifo_without_a_writer,
        links_in_a_circle,
        no_such_file,
        empty_folder,
        glob_without_match,
        list_with_missing_file,
        list_of_nothing,
        neither_archive_nor_list,
        damaged_list,
    ],
)
def test_a_collection_that_is_none(tmp_path: Path, prepare: Callable[[Path], str]) -> None:
    message = prepare(tmp_path)
    given = message.partition(": ")[0].partition(", ")[0]
    with pytest.raises(InputError) as raised:
        open_corpus(Settings({"CORPUS": given}))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_collection_without_pages(tmp_path: Path, index: Path) -> None:
    write(tmp_path / "a.warc.gz", warcinfo(), response(url_of(1), http(b"", "404 Not Found")))
    with pytest.raises(InputError, match=r"no HTML pages and no texts in 1 files \(records: 1 http_404, 1 warcinfo\)"):
        build(tmp_path, index)
    write(tmp_path / "a.warc.gz")
    with pytest.raises(InputError, match=r"a\.warc\.gz: is empty"):
        build(tmp_path, index)


def test_symbolic_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "deep" / "a.warc", page(1))
    write(tmp_path / "elsewhere" / "b#1.warc", page(2))
    collection = tmp_path / "collection"
    collection.mkdir()
    (collection / "link").symlink_to(tmp_path / "elsewhere")
    (collection / "same").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "deep" / "up").symlink_to(tmp_path)
    (collection / "broken.warc").symlink_to(tmp_path / "gone")
    assert names(collection) == ["link/b#1.warc", "link/deep/a.warc"]
    (tmp_path / "list").write_text("elsewhere/b#1.warc #2\n")
    assert names(tmp_path / "list") == ["elsewhere/b#1.warc"]


def test_a_file_of_nothing_but_a_magic_number(tmp_path: Path, index: Path) -> None:
    write(tmp_path / "good.warc", page(1))
    for name, data in {
        "a.warc.gz": b"\x1f\x8b\x08",
        "b.warc.zst": b"\x28\xb5\x2f\xfd",
        "c.warc": b"WARC/1.0\r\n",
    }.items():
        (tmp_path / name).write_bytes(data)
    assert build(tmp_path, index).counts == {"html": 1, "damaged": 3}


def test_a_list_that_names_a_fifo_or_more_files_than_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    listed = tmp_path / "list"
    listed.write_text("fifo\n")
    with pytest.raises(InputError, match=r"/fifo: cannot be read \(it is a FIFO, not a regular file\)"):
        build(listed, tmp_path / "index")
    monkeypatch.setattr(warc_files, "_MOST_LISTED", 3)
    listed.write_text("a\na\nb\nc\nd\n")
    with pytest.raises(InputError, match=r"/list: lists more than 3 files"):
        list_files(listed)
