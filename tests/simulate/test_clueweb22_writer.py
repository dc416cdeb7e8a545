"""The writer of the ClueWeb22 layout: bytes, places, and what the reader and others make of it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from demo_helpers import digests
from fastwarc.warc import ArchiveIterator
from hypothesis import given, settings, strategies as st

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Link
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.clueweb22.files import (
    DocumentHead,
    NewIds,
    html_record,
    link_record,
    txt_record,
    url_hash,
    write_data_file,
    write_root_files,
)

KEYS = ["clueweb22-en0000-00-00000", "clueweb22-en0000-00-00001", "clueweb22-de0000-00-00000"]
URLS = ["https://one.example/a,b?c=1&d=ü", "https://one.example/", "http://zwei.example/straße"]
HEADS = [DocumentHead(key, url) for key, url in zip(KEYS, URLS, strict=True)]
TEXTS = ["First line\nsecond “line”.", "", "Grüße, 世界 \U0001f600"]
DATE = "2022-08-02T03:04:05.678900Z"
LINKS = [
    Link(URLS[1], KEYS[1], "home\n& more", True),
    Link("https://gone.example/", None, "", False),
    Link(URLS[2], KEYS[2], "Straße", False),
]


def write_tree(root: Path) -> Path:
    """Two pages in English, one in German; the second has no links."""
    counts = {}
    for file_id, heads in (("en0000-00", HEADS[:2]), ("de0000-00", HEADS[2:])):
        texts = [TEXTS[HEADS.index(head)] for head in heads]
        links = [LINKS if head == HEADS[0] else [] for head in heads]
        kinds = {
            "txt": [txt_record(*pair) for pair in zip(heads, texts, strict=True)],
            "html": [html_record(head, f"<p>{text}".encode(), DATE) for head, text in zip(heads, texts, strict=True)],
            "outlink": [link_record("outlink", *pair) for pair in zip(heads, links, strict=True)],
            "inlink": [link_record("inlink", *pair) for pair in zip(heads, links, strict=True)],
        }
        for kind, records in kinds.items():
            assert write_data_file(root, kind, file_id, records) == len(heads)
        counts[file_id] = len(heads)
    write_root_files(root, "About this tree.\n", dict.fromkeys(("txt", "html", "outlink", "inlink"), counts))
    return root


# -- read back --------------------------------------------------------------------------------------------------------


def test_the_reader_finds_what_was_written(tmp_path: Path) -> None:
    corpus = ClueWeb22Corpus(write_tree(tmp_path / "tree"))
    corpus.check()
    assert sorted(corpus.keys()) == sorted(KEYS)
    for head, text in zip(HEADS, TEXTS, strict=True):
        page = corpus.page(head.key)
        assert (page.url, page.language, page.date) == (head.url, head.key[10:12], "2022-08-02T03:04:05Z")
        assert page.html == f"<p>{text}".encode()
        assert corpus.text(head.key) == text
    assert corpus.outlinks(KEYS[0]) == corpus.inlinks(KEYS[0]) == LINKS
    assert corpus.outlinks(KEYS[1]) == []


def test_another_warc_reader_finds_the_html(tmp_path: Path) -> None:
    path = write_tree(tmp_path) / "html/en/en00/en0000/en0000-00.warc.gz"
    records = list(ArchiveIterator(io.BytesIO(path.read_bytes()), parse_http=False, func_filter=None))
    assert [record.headers["WARC-Target-URI"] for record in records] == URLS[:2]
    assert len({record.record_id for record in records}) == 2


@given(text=st.text(), anchor=st.text(), url=st.text(st.characters(codec="utf-8")))
@settings(max_examples=200, deadline=None)
def test_any_text_survives(text: str, anchor: str, url: str) -> None:
    head = DocumentHead(KEYS[0], url)
    record = txt_record(head, text)
    assert record.endswith(b"\n")
    assert record.count(b"\n") == 1, "one line of JSON"
    assert json.loads(record)["Clean-Text"] == text
    assert json.loads(record)["URL"] == url + "\n"
    (link,) = json.loads(link_record("outlink", head, [Link(url, None, anchor, False)]))["outlinks"]
    assert link == [url, url_hash(url), anchor, "0", "", None]


# -- bytes ------------------------------------------------------------------------------------------------------------


def test_html_record() -> None:
    lines = [
        "WARC/1.0",
        "WARC-Type: response",
        "WARC-Record-ID: <urn:uuid:151b8520-b968-5dea-a9c3-601fcfeba38c>",
        "WARC-Date: 2022-08-02T03:04:05.678900Z",
        "WARC-Target-URI: https://one.example/",
        "WARC-Payload-Digest: sha1:04e0ecfa7eb98886439a8f8bf432e29d548caf6e",
        "ClueWeb22-ID: clueweb22-en0000-00-00000",
        "URL-Hash: F70FD6C96C0256EF38E021271C6DAF6E",
        "Language: en",
        *(f"VDOM-{name}: " for name in ("Primary", "Heading", "Title", "Paragraph", "Table", "List")),
        "Content-Type: text/html",
        "Content-Length: 9",
        "",
        "<p>Hi</p>",
        "",
        "",
    ]
    record = html_record(DocumentHead(KEYS[0], "https://one.example/"), b"<p>Hi</p>", DATE).decode()
    assert record.split("\r\n") == lines


def test_json_records() -> None:
    one, two = (DocumentHead(key, f"https://{name}.example/") for key, name in zip(KEYS, ("one", "two"), strict=False))
    hash_one, hash_two = (hashlib.md5(head.url.encode()).hexdigest().upper() for head in (one, two))
    assert txt_record(one, "a\nb").decode() == (
        f'{{"URL":"{one.url}\\n","URL-hash":"{hash_one}","Language":"en","ClueWeb22-ID":"{one.key}",'
        '"Clean-Text":"a\\nb"}\n'
    )
    start = f'{{"url":"{one.url}","urlhash":"{hash_one}","language":"en","ClueWeb22-ID":"{one.key}",'
    link = f'["{two.url}","{hash_two}","two","1","en","{two.key}"]'
    ends = [Link(two.url, two.key, "two", True)]
    assert link_record("outlink", one, ends).decode() == f'{start}"outlinks":[{link}]}}\n'
    assert link_record("inlink", one, ends).decode() == f'{start}"anchors":[{link}]}}\n'
    assert link_record("outlink", one, []) == link_record("inlink", one, []) == b"\n"


@pytest.mark.parametrize("field", ["url", "date"])
def test_a_line_break_cannot_end_a_warc_header(field: str) -> None:
    url = "https://one.example/\r\nX: y" if field == "url" else URLS[1]
    with pytest.raises(ValueError, match="line break"):
        html_record(DocumentHead(KEYS[0], url), b"", "2022-08-02\n" if field == "date" else DATE)


def test_each_record_is_a_gzip_member_of_its_own(tmp_path: Path) -> None:
    records = [b"one\n", b"", b"three\n" * 1000]
    assert write_data_file(tmp_path, "txt", "zh_chs0012-07", records) == 3
    folder = tmp_path / "txt/zh_chs/zh_chs00/zh_chs0012"
    data = (folder / "zh_chs0012-07.json.gz").read_bytes()
    lines = (folder / "zh_chs0012-07.offset").read_bytes().splitlines(keepends=True)
    assert all(len(line) == 11 and line.endswith(b"\n") for line in lines)
    offsets = [int(line) for line in lines]
    assert (offsets[0], offsets[-1]) == (0, len(data))
    for record, start, end in zip(records, offsets[:-1], offsets[1:], strict=True):
        member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        assert member.decompress(data[start:end]) == record
        assert member.eof
        assert member.unused_data == b""
        assert data[start + 4 : start + 8] == bytes(4), "no time"
        assert data[start + 3] == 0, "no name"
    assert gzip.decompress(data) == b"".join(records)


def test_a_file_without_records(tmp_path: Path) -> None:
    assert write_data_file(tmp_path, "html", "en0000-00", []) == 0
    assert (tmp_path / "html/en/en00/en0000/en0000-00.warc.offset").read_bytes() == b"0000000000\n"


def test_root_files(tmp_path: Path) -> None:
    counts = {"en0000-01": 3, "en0000-00": 20_000, "en0100-00": 7, "zh_chs0000-00": 1}
    write_root_files(tmp_path, "What it is.\n", {"txt": counts, "html": {"en0000-00": 20_000}})
    assert (tmp_path / "README.txt").read_text() == "What it is.\n"
    assert (tmp_path / "version_A_1.0").read_bytes() == b""
    found = tmp_path / "record_counts/record_counts"
    assert {str(path.relative_to(found)): path.read_text() for path in found.rglob("*.csv")} == {
        "txt/en00_counts.csv": "en0000-00,20000\nen0000-01,3\n",
        "txt/en01_counts.csv": "en0100-00,7\n",
        "txt/zh_chs00_counts.csv": "zh_chs0000-00,1\n",
        "html/en00_counts.csv": "en0000-00,20000\n",
    }


# -- ids --------------------------------------------------------------------------------------------------------------


def assign_ids(languages: Sequence[str], records_per_file: int) -> list[str]:
    new = NewIds(records_per_file=records_per_file)
    return [new.next(language) for language in languages]


def test_ids_count_within_each_language() -> None:
    assert assign_ids(["en", "de", "en", "zh_chs", "en"], records_per_file=2) == [
        "clueweb22-en0000-00-00000",
        "clueweb22-de0000-00-00000",
        "clueweb22-en0000-00-00001",
        "clueweb22-zh_chs0000-00-00000",
        "clueweb22-en0000-01-00000",
    ]


def test_ids_go_on_in_the_next_subdirectory_and_stream() -> None:
    ids = assign_ids(["en"] * (81 * 100 + 1), records_per_file=1)
    assert ids[99:101] == ["clueweb22-en0000-99-00000", "clueweb22-en0001-00-00000"]
    assert ids[-2:] == ["clueweb22-en0080-99-00000", "clueweb22-en0100-00-00000"]
    assert len(set(ids)) == len(ids)


def test_ids_of_a_language_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulate.clueweb22.records.SUBDIRS_PER_STREAM", 1)
    assert assign_ids(["en"] * 10_000, records_per_file=1)[-1] == "clueweb22-en9900-99-00000"
    with pytest.raises(InputError, match="the layout has no more ids for language en"):
        assign_ids(["en"] * 10_001, records_per_file=1)


# -- atomic, deterministic --------------------------------------------------------------------------------------------


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    def records() -> Iterator[bytes]:
        yield b"one\n"
        assert not [path for path in tmp_path.rglob("en0000*") if path.is_file()]
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_data_file(tmp_path, "txt", "en0000-00", records())
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_failed_rewrite_leaves_the_old_file(tmp_path: Path) -> None:
    write_data_file(tmp_path, "txt", "en0000-00", [b"old\n"])
    before = digests(tmp_path)

    def records() -> Iterator[bytes]:
        yield b"new\n"
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_data_file(tmp_path, "txt", "en0000-00", records())
    assert digests(tmp_path) == before
    write_data_file(tmp_path, "txt", "en0000-00", [b"new\n"])
    assert digests(tmp_path) != before


def test_equal_bytes_from_several_processes(tmp_path: Path) -> None:
    file_ids = [f"en0000-{number:02d}" for number in range(6)]
    for file_id in file_ids:
        _write_numbered(tmp_path / "one", file_id)
    with ProcessPoolExecutor(3) as pool:
        list(pool.map(_write_numbered, [tmp_path / "three"] * len(file_ids), reversed(file_ids)))
    assert digests(tmp_path / "one") == digests(tmp_path / "three")
    assert len(digests(tmp_path / "one")) == 12


def _write_numbered(root: Path, file_id: str) -> int:
    return write_data_file(root, "txt", file_id, (f"{file_id} {number}\n".encode() for number in range(50)))
