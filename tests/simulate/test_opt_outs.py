"""Opt-outs in corpora: what an index keeps of archive files, and the side file of a ClueWeb22 tree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from build_helpers import build
from crawl_helpers import error_of, scrapy
from warc_helpers import html_of, http, record, redirect, response, url_of, warcinfo, write

from crawl4llm.base.errors import InputError
from crawl4llm.optouts.said import from_text
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.clueweb22.opt_outs import NAME, OptOuts, opt_outs_line, write_opt_outs
from simulate.clueweb22.records import format_id
from simulate.warcs.corpus import WarcCorpus

TYPE = "Content-Type: text/html"


def page(number: int, *fields: str, date: str = "2020-02-03T04:05:06Z", tag: str = "") -> bytes:
    body = html_of(number).replace(b"<title>", f"{tag}<title>".encode())
    block = http(body, fields=(TYPE, *fields))
    return record("response", url_of(number), block, ["Content-Type: application/http; msgtype=response"], date=date)


def corpus_of(folder: Path, *records: bytes) -> WarcCorpus:
    path = write(folder / "pages.warc.gz", *records)
    return WarcCorpus(path, folder / "index")


def values(corpus: WarcCorpus | ClueWeb22Corpus, key: str) -> list[str]:
    return [said.value for said in from_text(corpus.page(key).opt_outs)]


def test_heads_and_html_of_any_archive(tmp_path: Path) -> None:
    noai = "X-Robots-Tag: noai"
    corpus = corpus_of(tmp_path, warcinfo(), page(1, noai), page(2), page(3, tag="<meta name=robots content=noindex>"))
    assert [values(corpus, url_of(number)) for number in (1, 2, 3)] == [["noai"], [], ["noindex"]]
    assert corpus.knows_opt_outs


def test_what_a_later_copy_says_counts_for_an_earlier_one(tmp_path: Path) -> None:
    """Of two copies the first is held."""
    records = [page(1, "X-Robots-Tag: noindex", date="2019-01-01T00:00:00Z"), page(1, date="2021-01-01T00:00:00Z")]
    records += [page(2, date="2019-01-01T00:00:00Z"), page(2, "TDM-Reservation: 1", date="2021-01-01T00:00:00Z")]
    first = corpus_of(tmp_path / "first", *records)
    assert [values(first, url_of(number)) for number in (1, 2)] == [["noindex"], ["1"]]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/robots.txt", b"User-agent: *\nContent-Signal: ai-train=no\n"),
        ("/robots.txt", b"User-agent: GPTBot\nDisallow: /page-1"),
        ("/.well-known/tdmrep.json", b'[{"location": "/page-1.html", "tdm-reservation": 1}]'),
    ],
)
def test_files_of_sites_in_archives_of_others(tmp_path: Path, path: str, body: bytes) -> None:
    """They count for all pages of the site, as nothing says what was made of them when these were fetched."""
    file = response(f"https://site.example{path}", http(body, fields=("Content-Type: text/plain",)))
    elsewhere = response("https://else.example/page-1.html", http(html_of(1), fields=(TYPE,)))
    corpus = corpus_of(tmp_path, file, page(1), elsewhere)
    assert len(values(corpus, url_of(1))) == 1
    assert values(corpus, "https://else.example/page-1.html") == []


def test_a_file_of_a_site_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    robots = "https://site.example/robots.txt"
    bomb = http(b"\x1f\x8b damaged", fields=("Content-Encoding: gzip",))
    endless = redirect(robots, robots)
    corpus = corpus_of(tmp_path, response(robots, bomb), endless, response(robots, http(b"\xff" * 5000)), page(1))
    assert values(corpus, url_of(1)) == []


def test_texts_alone_tell_no_opt_outs(tmp_path: Path) -> None:
    text = record("conversion", url_of(1), b"Some text.", ["Content-Type: text/plain"])
    assert not corpus_of(tmp_path, text, page(2)).knows_opt_outs


# -- the side file of a tree ------------------------------------------------------------------------------------------


def test_a_side_file_is_searched_on_disk(tmp_path: Path) -> None:
    told = {number: "noai" if number % 2 else "none" for number in range(0, 900, 3)}
    said = {format_id("en0000-00", number): f"header * page robots {value}" for number, value in told.items()}
    part = tmp_path / "part"
    part.write_bytes(b"".join(opt_outs_line(*one) for one in said.items()))
    write_opt_outs(tmp_path, [part], known=True)
    opt_outs = OptOuts(tmp_path / NAME)
    opt_outs.check()
    for number in range(901):
        key = format_id("en0000-00", number)
        assert opt_outs.of(key) == said.get(key, "")
    assert opt_outs.of("zz") == opt_outs.of("") == ""


KEY = format_id("en0000-00", 0)
LINE = f"{KEY}\theader * page robots noai\n".encode()
HEAD = {"format": "crawl4llm opt-outs", "version": 1, "known": True}


def side_file(lines: bytes, **head: object) -> bytes:
    return json.dumps({**HEAD, "bytes": len(lines), **head}).encode() + b"\n" + lines


DAMAGED = {
    "empty": b"",
    "no-json": b"clueweb22-en0000-00-00000\tnoai\n",
    "array": b"[]\n",
    "endless-head": b'{"a": "' + b"x" * 10_000,
    "deep": b"[" * 100_000,
    "known-is-text": side_file(LINE, known="yes"),
    "bytes-is-text": side_file(LINE, bytes="40"),
    "cut-short": side_file(LINE)[:-1],
    "too-long": side_file(LINE) + b"x",
    "twice": side_file(LINE + LINE),
    "out-of-order": side_file(LINE.replace(b"00000\t", b"00001\t") + LINE),
    "no-id": side_file(LINE.replace(KEY.encode(), b"../../etc")),
    "no-signals": side_file(f"{KEY}\tnothing\n".encode()),
    "no-tab": side_file(b"x" * 50_000),
    "binary": side_file(bytes(range(256)) * 4),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    build(corpus_of(folder, page(0, "X-Robots-Tag: noai"), page(1)), folder / "tree")
    return folder / "tree"


def test_a_build_writes_it(tree: Path) -> None:
    assert (tree / NAME).read_bytes() == side_file(LINE)
    corpus = ClueWeb22Corpus(tree)
    assert [values(corpus, format_id("en0000-00", number)) for number in (0, 1)] == [["noai"], []]
    assert corpus.knows_opt_outs
    corpus.close()
    assert values(corpus, KEY) == ["noai"]  # opened again


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_side_file_is_told_when_a_crawl_begins(tree: Path, data: bytes) -> None:
    path, whole = tree / NAME, (tree / NAME).read_bytes()
    path.write_bytes(data)
    try:
        with pytest.raises(InputError, match=f"{path}: .*; get it from the source of the tree"):
            ClueWeb22Corpus(tree).check()
    finally:
        path.write_bytes(whole)


def test_a_crawl_says_so_in_one_line(tree: Path, tmp_path: Path) -> None:
    path, whole = tree / NAME, (tree / NAME).read_bytes()
    path.write_bytes(whole[:-5])
    try:
        given = ("-s", f"CORPUS={tree}", "-s", f"OUTPUT_DIR={tmp_path / 'out'}", "-s", "SCORER=length")
        assert f"{path}: cut short" in error_of(scrapy("crawl", "influence", *given))
    finally:
        path.write_bytes(whole)
