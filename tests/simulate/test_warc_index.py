"""The index of archive files: how it is made, kept up to date, and the same however it was made."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import begin_python, python
from warc_helpers import build, clueweb09, html_of, http, keys, page, record, redirect, response, url_of, write

from crawl4llm.base import spread
from crawl4llm.base.errors import InputError
from simulate import index_folder
from simulate.indexes import MANIFEST
from simulate.warcs.files import list_files
from simulate.warcs.index import HTML, TEXT, Document, WarcIndex
from simulate.warcs.index_build import build_warc_index, is_current


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"


def contents(folder: Path) -> dict[str, bytes]:
    """All that an index consists of."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# -- making it --------------------------------------------------------------------------------------------------------


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    folder = tmp_path / "collection"
    for number, name in enumerate(["a.warc", "b.warc.gz", "deep/c.warc.zst", "d.arc.gz"]):
        write(folder / name, page(number))
    return folder


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """20 files of 30 pages, with duplicates, redirects and names."""
    folder = tmp_path / "large"
    for file in range(20):
        records = [page(30 * file + number) for number in range(30)]
        records += [redirect(f"http://moved.example/{file}", url_of(30 * file)), page(0), clueweb09(file, b"<html>")]
        write(folder / f"{file:02}.warc.gz", *records)
    return folder


BUILD = """
import sys
from pathlib import Path
from warc_helpers import build
build(sys.argv[1], Path(sys.argv[2]), processes=int(sys.argv[3]))
"""
"""Makes an index in a process of its own."""


def test_the_index_is_the_same_however_it_is_made(large: Path, tmp_path: Path) -> None:
    summary = build(large, tmp_path / "one")
    assert (summary.documents, summary.duplicates, summary.files_read) == (600, 40, 20)
    python("-c", BUILD, large, tmp_path / "two", 2, env={"PYTHONHASHSEED": "7"}, check=True)
    assert contents(tmp_path / "two") == contents(tmp_path / "one")


def test_killed_at_any_moment_it_goes_on(large: Path, tmp_path: Path, index: Path) -> None:
    build(large, tmp_path / "expected")
    for parts_made in (1, 10):
        process = begin_python("-c", BUILD, large, index, 2)
        while len(list(index.glob("parts/*"))) < parts_made and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        process.wait()
    summary = build(large, index)
    assert summary.files_kept > 0
    assert contents(index) == contents(tmp_path / "expected")


def test_only_what_has_changed_is_read_again(large: Path, index: Path) -> None:
    assert build(large, index).files_read == 20
    assert is_current(list_files(large), index)
    assert (build(large, index).files_read, build(large, index).files_kept) == (0, 20)

    write(large / "00.warc.gz", page(1), page(5000))
    (large / "01.warc.gz").unlink()
    write(large / "99.warc.gz", page(6000))
    os.utime(large / "02.warc.gz", (1, 1))
    assert not is_current(list_files(large), index)
    summary = build(large, index)
    assert (summary.files_read, summary.files_kept) == (3, 17)
    assert {url_of(5000), url_of(6000)} < set(keys(index))
    assert url_of(45) not in keys(index)
    assert len(list((index / "parts").iterdir())) == 20
    assert len(list(index.glob("columns-*"))) == 1


def test_options_are_part_of_the_index(large: Path, index: Path) -> None:
    build(large, index)
    assert not is_current(list_files(large), index, canonical_links=True)
    build(large, index, canonical_links=True)
    assert is_current(list_files(large), index, canonical_links=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.update(format=0),
        lambda manifest: manifest.clear(),
        None,
    ],
)
def test_an_index_of_another_version_is_made_anew(
    collection: Path, index: Path, change: Callable[[dict[str, Any]], None] | None
) -> None:
    build(collection, index)
    expected = contents(index)
    manifest = json.loads((index / MANIFEST).read_text())
    if change is None:
        (index / MANIFEST).write_text("{cut sho")
    else:
        change(manifest)
        (index / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"index\.json has .*; make it again: "):
        WarcIndex(index)
    assert build(collection, index).files_read == 0
    assert contents(index) == expected


def test_damaged_parts_are_made_anew(collection: Path, index: Path) -> None:
    build(collection, index)
    expected = contents(index)
    (index / MANIFEST).unlink()
    with pytest.raises(InputError, match=r"there is no index of the corpus; make it: scrapy corpus index"):
        WarcIndex(index)
    cut, empty, other, good = sorted((index / "parts").iterdir())
    cut.write_bytes(cut.read_bytes()[:-1])
    empty.write_bytes(b"")
    other.write_bytes(good.read_bytes())
    (index / "parts" / "left.tmp").write_bytes(b"x")
    (index / "columns-left.scratch.tmp").mkdir()
    assert build(collection, index).files_read == 3
    assert contents(index) == expected


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's right to write anywhere."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_folder_that_may_not_be_written(collection: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    listed = list_files(collection)
    with as_nobody(), pytest.raises(InputError) as raised:
        build_warc_index(listed, tmp_path / "locked" / "index")
    assert re.search(r"locked(/index)?: the index cannot be written \(Permission denied\)", str(raised.value))


def test_a_place_where_no_folder_can_be(collection: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match=r"file/index: the index cannot be written \(Not a directory\)"):
        build(collection, tmp_path / "file" / "index")


def test_a_collection_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / os.fsdecode(b"no UTF-8 \xff")
    write(folder / "a.warc", page(1))
    build(folder, index_folder(folder))
    assert keys(index_folder(folder)) == [url_of(1)]


def test_two_builds_at_once_wait_for_each_other(large: Path, index: Path) -> None:
    processes = [begin_python("-c", BUILD, large, index, 1) for _ in range(2)]
    assert [process.wait(600) for process in processes] == [0, 0]
    assert build(large, index).files_read == 0
    assert len(keys(index)) == 600


# -- duplicates and tables --------------------------------------------------------------------------------------------


def test_of_duplicates_the_first_is_held(tmp_path: Path, index: Path) -> None:
    text = record("conversion", url_of(1), b"text", ["Content-Type: text/plain"])
    write(tmp_path / "a.warc", text, page(1), page(2))
    write(tmp_path / "b.warc", page(2), page(1), page(1, host="SITE.example"), page(3))
    write(tmp_path / "c.warc", record("conversion", url_of(3), b"text", ["Content-Type: text/plain"]))
    places = {1: 0, 2: 0, 3: 1}
    summary = build(tmp_path, index)
    assert (summary.documents, summary.duplicates) == (3, 3), "texts of pages are no duplicates of them"
    opened = WarcIndex(index)
    found = {number: _found(opened, number) for number in places}
    assert {number: document.file for number, document in found.items()} == places
    assert all(document.kind == HTML for document in found.values())
    assert sorted(keys(index)) == [url_of(number) for number in (1, 2, 3)]
    texts = {number: opened.text_of(document) for number, document in found.items()}
    assert {number: text if text is None else text.kind for number, text in texts.items()} == {
        1: TEXT,
        2: None,
        3: TEXT,
    }


def _found(opened: WarcIndex, number: int) -> Document:
    document = opened.find(url_of(number))
    assert document is not None
    return document


def test_urls_that_lookups_forgive_are_documents_of_their_own(tmp_path: Path, index: Path) -> None:
    urls = ["http://h.example/a", "https://h.example/a", "https://h.example/a/", "https://h.example/a/index.html"]
    build(write(tmp_path / "a.warc", *(response(url, http(html_of(1))) for url in urls)), index)
    assert keys(index) == urls
    opened = WarcIndex(index)
    found = [opened.look_up(url) for url in urls]
    assert [document.key for document in found if isinstance(document, Document)] == urls
    assert opened.look_up("http://h.example/a/") == found[0]
    assert opened.find("http://h.example/a/") is None


def test_the_index_does_not_depend_on_how_much_is_sorted_at_once(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at_once in (20, 100, 1 << 20):
        monkeypatch.setattr(spread, "SORTED_AT_ONCE", at_once)
        build(large, tmp_path / str(at_once))
    assert contents(tmp_path / "20") == contents(tmp_path / "100") == contents(tmp_path / str(1 << 20))
