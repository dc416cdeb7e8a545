"""The ClueWeb22 reader on damaged records and damaged trees."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from clueweb22_helpers import (
    html_record,
    key_of,
    link,
    link_record,
    member,
    paths,
    text_record,
    write_file,
    write_tree,
)

from crawl4llm.base.errors import CorruptRecord, InputError
from simulate.clueweb22.corpus import ClueWeb22Corpus

FILE = "en0000-00"
KEY = key_of(FILE, 0)
TEXT, LINKS, HTML = text_record(KEY), link_record(KEY, [link(None)]), html_record(KEY)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "tree")


# -- damage -----------------------------------------------------------------------------------------------------------


def flipped(data: bytes) -> bytes:
    """With one bit of the compressed data turned over."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        ("txt", flipped(member(TEXT))),
        ("txt", member(TEXT)[:-3]),
        ("txt", TEXT),
        ("txt", member(TEXT[:-9])),
        ("txt", member(TEXT.replace(b"Some", b"\xff"))),
        ("txt", member(b"[]")),
        ("txt", member(b"[" * 100_000)),
        ("txt", member(TEXT.replace(b'"Some text."', b"7"))),
        ("txt", member(TEXT.replace(b'"Some text."', b"null"))),
        ("txt", member(text_record(key_of(FILE, 1)))),
        ("txt", member(b'{"Clean-Text": "\\ud800", "x": %b%b}' % (b"[" * 100_000, b"]" * 100_000))),
        ("outlink", flipped(member(LINKS))),
        ("outlink", member(LINKS[:-1])),
        ("outlink", member(LINKS.replace(b'"outlinks"', b'"anchors"'))),
        ("outlink", member(link_record(KEY, [link(None)[:5]]))),
        ("outlink", member(link_record(KEY, [[*link(None)[:5], 7]]))),
        ("outlink", member(link_record(KEY, [[None, *link(None)[1:]]]))),
        ("outlink", member(link_record(KEY, [None]))),
        ("outlink", member(link_record(KEY, ["abcdefg"]))),
        ("outlink", member(link_record(key_of(FILE, 1), []))),
        ("html", flipped(member(HTML))),
        ("html", member(b"<p>No head</p>")),
        ("html", member(b"WARC/1.0\r\nWARC-Type: response\r\n")),
        ("html", member(HTML[:-8])),
        ("html", member(html_record(KEY, Content_Length="-1"))),
        ("html", member(html_record(KEY, Content_Length=""))),
        ("html", member(html_record(KEY, Content_Length="9" * 5000))),
        ("html", member(html_record(key_of(FILE, 1)))),
        ("html", member(HTML.replace(b"ClueWeb22-ID", b"X"))),
    ],
)
def test_damaged_record(tree: Path, kind: str, stored: bytes) -> None:
    whole = ClueWeb22Corpus(tree).page(key_of(FILE, 1))
    data, _ = paths(tree, kind, FILE)
    following = [member(gzip_member) for gzip_member in gzip.decompress(data.read_bytes()).split(b"\n")[1:]]
    following = following if kind == "txt" else []
    write_file(tree, kind, FILE, [stored, *following])
    corpus = ClueWeb22Corpus(tree)
    look_up = {"txt": corpus.text, "outlink": corpus.outlinks, "html": corpus.html}[kind]
    with pytest.raises(CorruptRecord, match=f"{re.escape(str(data))}: record {KEY}: .+") as raised:
        look_up(KEY)
    assert "\n" not in str(raised.value)
    if kind != "txt":
        with pytest.raises(CorruptRecord):
            corpus.page(KEY)
    else:
        assert corpus.page(key_of(FILE, 1)) == whole, "the record after it is read as before"


@pytest.mark.parametrize("lines", ["0000000000\n0000009999\n", "00000000x0\n0000000009\n", "0000000020\n0000000010\n"])
def test_offsets_that_make_no_sense(tree: Path, lines: str) -> None:
    _, offsets = paths(tree, "txt", FILE)
    offsets.write_text(lines + offsets.read_text()[22:])
    with pytest.raises(CorruptRecord, match=f"{re.escape(str(offsets))}.*{KEY}"):
        ClueWeb22Corpus(tree).text(KEY)


# -- the check at the start of a crawl --------------------------------------------------------------------------------


def no_such_folder(root: Path) -> str:
    shutil.rmtree(root)
    return "not a ClueWeb22 tree"


def a_file(root: Path) -> str:
    shutil.rmtree(root)
    root.write_text("text")
    return "not a ClueWeb22 tree"


def empty(root: Path) -> str:
    shutil.rmtree(root)
    root.mkdir()
    return "not a ClueWeb22 tree: expected a folder with one of txt/, html/, inlink/, outlink/"


def something_else(root: Path) -> str:
    shutil.rmtree(root)
    (root / "music").mkdir(parents=True)
    (root / "txt").write_text("a file, not a folder")
    return "not a ClueWeb22 tree"


def no_data_files(root: Path) -> str:
    for kind in ("html", "txt", "inlink", "outlink"):
        shutil.rmtree(root / kind / "en")
        shutil.rmtree(root / kind / "de")
    (root / "txt/en/en00/en0000").mkdir(parents=True)
    (root / "txt/en/en00/en0000/notes.txt").write_text("not a data file")
    return "holds no data files"


def offsets_cut_inside_a_line(root: Path) -> str:
    _, offsets = paths(root, "txt", FILE)
    offsets.write_bytes(offsets.read_bytes()[:-5])
    return f"{offsets}: is cut short"


def offsets_cut_after_a_line(root: Path) -> str:
    data, offsets = paths(root, "txt", FILE)
    offsets.write_bytes(offsets.read_bytes()[:-11])
    return f"{data}: .*cut short"


def empty_offsets(root: Path) -> str:
    _, offsets = paths(root, "html", FILE)
    offsets.write_bytes(b"")
    return f"{offsets}: is cut short"


def data_cut(root: Path) -> str:
    data, _ = paths(root, "outlink", FILE)
    data.write_bytes(data.read_bytes()[:-1])
    return f"{data}: .*cut short"


def offsets_missing(root: Path) -> str:
    _, offsets = paths(root, "inlink", FILE)
    offsets.unlink()
    return f"{offsets}: is missing"


def data_missing(root: Path) -> str:
    data, _ = paths(root, "txt", FILE)
    data.unlink()
    return f"{data}: is missing"


def offsets_of_something_else(root: Path) -> str:
    _, offsets = paths(root, "txt", FILE)
    offsets.write_bytes(b"ten bytes!\n" * 3)
    return f"{offsets}: its last line is not a number"


@pytest.mark.parametrize(
    "damage",
    [
        no_such_folder,
        a_file,
        empty,
        something_else,
        no_data_files,
        offsets_cut_inside_a_line,
        offsets_cut_after_a_line,
        empty_offsets,
        data_cut,
        offsets_missing,
        data_missing,
        offsets_of_something_else,
    ],
)
def test_check_names_what_is_wrong(tree: Path, damage: Callable[[Path], str]) -> None:
    ClueWeb22Corpus(tree).check()
    expected = damage(tree)
    with pytest.raises(InputError, match=f"^CORPUS .*{expected}") as raised:
        ClueWeb22Corpus(tree).check()
    assert str(tree) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["en0000-09.json.gz", "en0000-09.offset"])
def test_links_to_nothing_are_named(tree: Path, name: str) -> None:
    """As git-annex leaves them for files it has not fetched, or a disk that is not mounted."""
    link = tree / "txt/en/en00/en0000" / name
    link.symlink_to(tree / "absent")
    with pytest.raises(InputError, match=f"{re.escape(str(link))} cannot be read"):
        ClueWeb22Corpus(tree).check()


def test_other_files_in_the_tree_are_passed_over(tree: Path) -> None:
    before = ClueWeb22Corpus(tree).identity()
    folder = paths(tree, "txt", FILE)[0].parent
    for name in ("en0000-07.json.gz.part", ".en0000-08.json.gz", "en0001-00.json.gz", "README"):
        (folder / name).write_text("x")
    (tree / "txt" / "notes").write_text("x")
    corpus = ClueWeb22Corpus(tree)
    corpus.check()
    assert (len(corpus), corpus.identity()) == (6, before)
