"""Ids of a built tree that stay from build to build."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from build_helpers import build, ids, json_records, records_of, warc_corpus
from clueweb22_helpers import key_of
from fastwarc.warc import ArchiveIterator
from warc_helpers import url_of

from crawl4llm.base.errors import InputError
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.clueweb22.files import NewIds
from simulate.clueweb22.records import language_of, number_of

KEYS = [key_of("en0000-00", record) for record in range(6)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("en0000-00-00000", "en0000-00-00001"),
        ("en0000-00-19999", "en0000-01-00000"),
        ("en0000-99-19999", "en0001-00-00000"),
        ("zh_chs0080-99-19999", "zh_chs0100-00-00000"),
    ],
)
def test_the_id_behind_an_id(before: str, after: str) -> None:
    key = f"clueweb22-{before}"
    assert number_of(key) is not None
    assert NewIds([key]).next(language_of(key)) == f"clueweb22-{after}"


def test_ids_stay_across_rebuilds(tmp_path: Path) -> None:
    build(warc_corpus(tmp_path, [1, 2, 3, 4], "one"), tmp_path / "1")
    build(warc_corpus(tmp_path, [9, 4, 2], "two"), tmp_path / "2", manifest=tmp_path / "1/manifest.tsv")
    expected = {url_of(1): KEYS[0], url_of(2): KEYS[1], url_of(3): KEYS[2], url_of(4): KEYS[3], url_of(9): KEYS[4]}
    assert ids(tmp_path / "2") == expected, "those of vanished pages stay taken"
    records = json_records(tmp_path / "2", "txt")
    assert [record and record["URL"].strip() for record in records] == [None, url_of(2), None, url_of(4), url_of(9)]
    assert [record and record["ClueWeb22-ID"] for record in json_records(tmp_path / "2", "outlink")] == [
        None,
        KEYS[1],
        None,
        *KEYS[3:5],
    ]
    with (tmp_path / "2/html/en/en00/en0000/en0000-00.warc.gz").open("rb") as file:
        urls = [record.headers["WARC-Target-URI"] for record in ArchiveIterator(file, parse_http=False)]
    assert urls == [url_of(2), url_of(4), url_of(9)], "holes do not end the file"
    build(warc_corpus(tmp_path, [7, 3], "three"), tmp_path / "3", manifest=tmp_path / "2/manifest.tsv")
    assert ids(tmp_path / "3") == expected | {url_of(7): KEYS[5]}, "a page that comes back has its id"
    assert len(records_of(tmp_path / "3", "txt")) == 6


def test_a_manifest_of_json_and_of_urls_that_the_source_spells_otherwise(tmp_path: Path) -> None:
    lines = [
        json.dumps({"url": "site.example/page-2.html", "id": "clueweb22-en0000-01-00007"}),
        json.dumps({"key": url_of(1), "id": "clueweb22-de0000-00-00001"}),
        "",
    ]
    (tmp_path / "given.jsonl").write_text("\n".join(lines))
    build(warc_corpus(tmp_path, [1, 2, 3]), tmp_path / "tree", manifest=tmp_path / "given.jsonl")
    assert ids(tmp_path / "tree") == {
        url_of(1): "clueweb22-de0000-00-00001",
        url_of(2): "clueweb22-en0000-01-00007",
        url_of(3): "clueweb22-en0000-01-00008",
    }
    tree = ClueWeb22Corpus(tmp_path / "tree")
    tree.check()
    assert tree.page("clueweb22-en0000-01-00007").url == url_of(2)
    assert tree.page("clueweb22-de0000-00-00001").language == "de"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a page and an id", "line 1: expected a key or URL, a tab and a ClueWeb22-ID"),
        ('{"url": 7, "id": "x"}', "line 1: expected"),
        ("{broken", "line 1: expected"),
        (f"{url_of(1)}\t{KEYS[0]}\n\n{url_of(2)}\t{KEYS[0]}\n", f"line 3: {KEYS[0]} has been given before"),
        (f"{url_of(1)}\tclueweb22-en0000-00-20000", "line 1: 'clueweb22-en0000-00-20000' is not a ClueWeb22-ID"),
        (f"{url_of(1)}\tclueweb22-en0081-00-00000", "is not a ClueWeb22-ID"),
        (f"{url_of(5)}\tclueweb22-en9980-99-19999", "the layout has no more ids for language en"),
        (b"\xff\xfe", "is no text in UTF-8"),
        (None, "cannot be read"),
    ],
)
def test_a_manifest_of_another_format(tmp_path: Path, content: str | bytes | None, words: str) -> None:
    given = tmp_path / "given"
    if content is not None:
        given.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=re.escape(words)):
        build(warc_corpus(tmp_path, [1, 2]), tmp_path / "tree", manifest=given)
