"""KNOWN_LINKS: the file, what is refused, and crawls that follow the links of known pages without a request."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cluster_helpers import HostsCorpus, random_web
from driven_crawl import Driven
from known_links_helpers import half_known, write_known

from crawl4llm.base.crawl_log import read_log
from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.base.sorted_file import MAGIC
from crawl4llm.crawl.fetched_web import LiveCorpus
from crawl4llm.frontier import Entry
from crawl4llm.options import Options
from crawl4llm.parts.known_links.file import MOST_LINKS, NAME, KnownLinks
from crawl4llm.parts.known_links.work import KnownLinksPart
from crawl4llm.policies import Candidate, CrawledPage


def url(number: int) -> str:
    return f"https://site{number % 7}.example/{number}"


def linked(number: int, links: int = 3) -> PageRecord:
    found = [
        Link(url(number + 1 + one), url(number + 1 + one), f"anchor {one}", one % 2 == 0, "ugc" if one == 2 else "")
        for one in range(links)
    ]
    return PageRecord(url(number), url(number), outlinks=found, follows=number % 5 != 4)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    scores = {url(number): number / 1000 for number in range(0, 1000, 2)}
    path = tmp_path_factory.mktemp("known") / "links.known"
    return write_known(path, map(linked, range(1000)), scores, by_url=True).read_bytes()


@pytest.fixture
def file(written: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "links.known"
    path.write_bytes(written)
    return path


# -- the file -----------------------------------------------------------------------------------------------------


def test_pages_come_out_as_they_went_in(file: Path, tmp_path: Path) -> None:
    known = KnownLinks(file)
    assert (len(known), known.unscored, known.corpus) == (1000, 500, None)
    for number in range(1000):
        place = known.find(url(number))
        assert place is not None
        found, expected = known.page(place, url(number)), linked(number)
        assert found.follows == expected.follows
        assert found.outlinks == (
            [link._replace(key=None) for link in expected.outlinks or ()] if expected.follows else []
        )
        assert known.score(place) == (None if number % 2 else number / 1000)
    assert known.find(url(1000)) is None
    draw = random.Random(0)
    pages = [linked(number) for number in range(1000)]
    draw.shuffle(pages)
    scores = {url(number): number / 1000 for number in range(998, -1, -2)}
    again = write_known(tmp_path / "again", pages, scores, by_url=True)
    assert again.read_bytes() == file.read_bytes(), "in any order"
    assert known.identity == KnownLinks(again).identity


def test_links_and_texts_are_bounded_when_they_are_written(tmp_path: Path) -> None:
    many = [Link(url(number), url(number), "a" * 5000, False) for number in range(MOST_LINKS + 5)]
    odd = [
        Link("https://x.example/" + "y" * 9000, None, "", False),
        Link("https://x.example/\udc80", None, "\ud800", False),
    ]
    pages = [PageRecord(url(1), url(1), outlinks=many), PageRecord(url(2), url(2), outlinks=odd)]
    known = KnownLinks(write_known(tmp_path / "known", pages, by_url=True))
    first, second = (known.page(known.find(url(number)) or 0, url(number)) for number in (1, 2))
    assert 5000 < len(first.outlinks or ()) <= MOST_LINKS
    assert {len(link.anchor) for link in first.outlinks or ()} == {1000}
    assert [link.anchor for link in second.outlinks or ()] == ["\ud800"]


def rewritten(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """A file with another head, which is sound."""
    said, _, _ = data[len(MAGIC) :].partition(b"\n")
    head = json.loads(said)
    change(head)
    said = json.dumps(head, sort_keys=True).encode()
    return (MAGIC + said + b"\n" + hashlib.sha256(said).hexdigest().encode() + b"\n").ljust(4096) + data[4096:]


def place_of(path: Path, column: str) -> int:
    return KnownLinks(path)._set.column(column)[0]


def swapped(data: bytearray, at: int, apart: int = 8) -> None:
    """Swap a number with one that comes so many bytes later."""
    data[at : at + 8], data[at + apart : at + apart + 8] = data[at + apart : at + apart + 8], data[at : at + 8]


DAMAGES: dict[str, tuple[Callable[[bytearray, Callable[[str], int]], object], str]] = {
    "cut": (lambda data, _: data.__delitem__(slice(-9, None)), "is damaged: it has "),
    "unsorted": (lambda data, at: swapped(data, at("pages") + 2400, 24), "is damaged: its pages are not sorted"),
    "starts": (lambda data, at: swapped(data, at("pages starts") + 8), "is damaged: its pages are not sorted"),
    "nan": (
        lambda data, at: data.__setitem__(slice(at("pages") + 16, at("pages") + 24), struct.pack("<d", math.nan)),
        "is damaged: a score is not a finite number",
    ),
    "places": (
        lambda data, at: swapped(data, at("pages") + 2408, 24),
        "is damaged: the places of its records do not ascend",
    ),
    "end": (
        lambda data, at: data.__setitem__(slice(at("pages") + 23_984, at("pages") + 23_992), b"\xff" * 7 + b"\0"),
        "is damaged: the places of its records do not ascend",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_damaged_is_refused_before_the_crawl(file: Path, damage: str) -> None:
    change, told = DAMAGES[damage]
    data = bytearray(file.read_bytes())
    change(data, lambda column: place_of(file, column))
    file.write_bytes(data)
    with pytest.raises(InputError) as raised:
        KnownLinks(file)
    assert str(raised.value).startswith(f"{NAME} {file} {told}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 99}, "has format 99; this version reads format 2; make it again: "),
        ({"kind": "urls"}, "is a file of urls, not of links"),
        ({"scheme": "md5"}, "was made by 'md5'"),
        ({"columns": {}}, "is damaged: its head cannot be read"),
        ({"entries": 999}, "is damaged: its head cannot be read"),
        ({"entries": -1}, "is damaged: its head cannot be read"),
        ({"entries": 10**30}, "is damaged: its head cannot be read"),
    ],
)
def test_a_head_that_says_something_else_is_refused(file: Path, change: dict[str, Any], told: str) -> None:
    file.write_bytes(rewritten(file.read_bytes(), lambda head: head.update(change)))
    with pytest.raises(InputError) as raised:
        KnownLinks(file)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file or directory"),
        ("folder", "cannot be read: "),
        (b"", "is no file of known links; make one: "),
        (b"http://one.example/\n", "is no file of known links; make one: "),
        (b"crawl4llm known set\n{}\n", "is damaged: its head is not whole"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, content: bytes | str | None, told: str) -> None:
    path = tmp_path / "known"
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        KnownLinks(path)
    assert str(raised.value).startswith(f"{NAME} {path} {told}")


RECORDS = {
    "no gzip": b"x" * 40,
    "no JSON": gzip.compress(b"nothing"),
    "a bomb": gzip.compress(b" " * (9 << 20)),
    "not UTF-8": gzip.compress(b'["\xff", "", 1, []]'),
    "another shape": gzip.compress(b'{"key": 1}'),
    "a link of nothing": gzip.compress(b'["KEY", "", 1, [[]]]'),
    "a link of numbers": gzip.compress(b'["KEY", "", 1, [[1, 2]]]'),
    "a long URL": gzip.compress(b'["KEY", "", 1, [["' + b"u" * 9000 + b'"]]]'),
    "a long anchor": gzip.compress(b'["KEY", "", 1, [["u", "' + b"a" * 2000 + b'"]]]'),
    "NaN": gzip.compress(b'["KEY", "", NaN, []]'),
    "deep": gzip.compress(b"[" * 100_000),
}


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_that_is_no_page_is_told_where_it_is_met(
    tmp_path: Path, record: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = url(1)
    data = RECORDS[record]
    if b"KEY" in (plain := gzip.decompress(data) if data[:1] == b"\x1f" else b""):
        data = gzip.compress(plain.replace(b"KEY", key.encode()))
    monkeypatch.setattr("known_links_helpers.links_record", lambda *_, **__: data)
    known = KnownLinks(write_known(tmp_path / "known", [linked(1)], by_url=True))
    place = known.find(key)
    assert place is not None
    with pytest.raises(InputError, match=rf"^{NAME} {tmp_path}/known is damaged: ") as raised:
        known.page(place, key)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_cut_while_it_is_read_is_told(file: Path) -> None:
    known = KnownLinks(file)
    place = known.find(url(7))
    with file.open("r+b") as opened:
        opened.truncate(4096)
    with pytest.raises(InputError, match=r"is damaged: it has become shorter"):
        known.page(place or 0, url(7))


def test_a_record_of_another_key_gives_no_links(file: Path) -> None:
    known = KnownLinks(file)
    assert known.page(known.find(url(7)) or 0, "https://other.example/").outlinks == []


def test_a_file_of_another_corpus_is_refused(file: Path, tmp_path: Path) -> None:
    by_id = write_known(tmp_path / "ids", [PageRecord("clueweb22-en0000-00-00000", "", outlinks=[])])
    KnownLinksPart(Options(known_links=str(file))).meet(LiveCorpus())
    with pytest.raises(InputError) as raised:
        KnownLinksPart(Options(known_links=str(by_id))).meet(LiveCorpus())
    assert str(raised.value).startswith(
        f"{NAME} {by_id} is of another corpus: it names documents by keys of clueweb22, and this crawl by URLs; make "
    )
    with pytest.raises(InputError, match="is of another corpus: it names documents by URLs, and this crawl by keys of"):
        KnownLinksPart(Options(known_links=str(file))).meet(random_web(0))


@pytest.mark.slow
def test_a_page_that_waits_takes_little_memory(tmp_path: Path) -> None:
    """Without a score, so that its parent's is kept; nothing is kept of a page that has one, or has been answered."""
    pages = [PageRecord(url(number), url(number), outlinks=[]) for number in range(20_000)]
    part = KnownLinksPart(Options(known_links=str(write_known(tmp_path / "known", pages, by_url=True))))
    part.begin()
    parents = [CrawledPage(Entry("p", "p", 0.5, 1, None), number / 1000, []) for number in range(500)]
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number, parent in enumerate(parents):
        part.found(parent, [Candidate(page.key, page.key, 2, "p") for page in pages[40 * number : 40 * number + 40]])
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0 < (after - before) / len(pages) < 200
    assert part.answer(url(45)).influence == 1 / 1000
    for page in pages:
        part.answer(page.key)
    assert not part._of_parents


# -- crawls -------------------------------------------------------------------------------------------------------


def ended(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The keys of crawled pages in order, and those of others with their reasons."""
    crawled = [str(line["id"]) for line in read_log(folder / "crawl.jsonl")]
    return crawled, {str(line["id"]): str(line["reason"]) for line in read_log(folder / "failures.jsonl")}


def run(web: HostsCorpus, folder: Path, seeds: list[str], **options: Any) -> Driven:
    folder.mkdir()
    driven = Driven(web, folder, **options).run(*seeds)
    driven.close()
    return driven


@pytest.mark.parametrize(
    ("policy", "batch"),
    [
        ("influence", 1),
        *((policy, 0) for policy in ("parent_first", "breadth_first", "parent_mean", "link", "influence")),
        *((policy, 20) for policy in ("breadth_first", "link", "influence")),
    ],
)
def test_what_lies_behind_known_pages_is_in_reach(policy: str, batch: int, tmp_path: Path) -> None:
    """All that is not known is crawled as without the file; known pages are dropped, and take no place of N."""
    web = random_web(3, 200)
    seeds = web.sample(8, 3)
    known = half_known(tmp_path / "known", web, 1)
    options = {"url_policy": policy, "crawl_batch_size": batch, "crawl_max_pages": 1000}
    run(web, tmp_path / "all", seeds, **options)
    with_file = run(web, tmp_path / "known-run", seeds, **options, known_links=str(tmp_path / "known"))
    crawled, others = ended(tmp_path / "all")
    new, dropped = ended(tmp_path / "known-run")
    reached = {key for key, reason in dropped.items() if reason == "known_page"}
    assert set(new) == set(crawled) - known
    assert reached >= set(crawled) & known
    assert set(dropped) - reached == set(others) - known
    figures = with_file.crawl.statistics()
    assert figures["dropped/known_page"] == len(reached) > 20
    assert figures["pages/crawled"] == len(new)
    assert with_file.crawl.balance.problem is None
    limited = run(
        web, tmp_path / "few", seeds, **{**options, "crawl_max_pages": 30}, known_links=str(tmp_path / "known")
    )
    assert limited.crawl.statistics()["pages/crawled"] == 30
    assert batch == 20 or ended(tmp_path / "few")[0] == new[:30]


def test_nothing_is_fetched_for_a_known_page(tmp_path: Path) -> None:
    web = random_web(3, 200)
    half_known(tmp_path / "known", web, 1)
    options = {"url_policy": "parent_first", "crawl_batch_size": 10, "crawl_max_pages": 1000}
    driven = run(web, tmp_path / "run", web.sample(8, 3), **options, known_links=str(tmp_path / "known"))
    known = KnownLinks(tmp_path / "known")
    assert driven.dequeued
    assert all(known.find(key) is None for key in driven.dequeued)
    assert driven.crawl.statistics()["pages/fetched"] == len(driven.dequeued)


def test_without_a_score_it_has_its_parents(tmp_path: Path) -> None:
    """Whatever lies between; a score of its own comes first."""
    web = HostsCorpus(
        {"seeda": ["noa", "owna"], "noa": ["alsoa"], "alsoa": ["new1a"], "owna": ["new2a"], "new1a": [], "new2a": []},
        {"seeda": "0.75", "new1a": "0.5", "new2a": "0.5"},
    )
    pages = [PageRecord(key, web.url(key), outlinks=web.outlinks(key)) for key in ("noa", "alsoa", "owna")]
    write_known(tmp_path / "known", pages, {"owna": 0.125})
    options = {"url_policy": "parent_first", "crawl_batch_size": 1, "crawl_max_pages": 9}
    run(web, tmp_path / "run", ["seeda"], **options, known_links=str(tmp_path / "known"))
    priorities = {line["id"]: line["priority"] for line in read_log(tmp_path / "run/crawl.jsonl")}
    assert priorities["new1a"] == 0.75
    assert priorities["new2a"] == 0.125


def test_it_costs_no_budget_and_known_urls_do_not_hide_it(tmp_path: Path) -> None:
    """Pages that KNOWN_URLS has too are followed; an owner without a budget gives the links of its known pages."""
    keys = [f"k{number:02}a" for number in range(30)]
    links: dict[str, list[str | None]] = {"seeda": list(keys), **{key: [f"n{key}"] for key in keys}}
    web = HostsCorpus(
        {**links, **{f"n{key}": [] for key in keys}}, dict.fromkeys(["seeda", *(f"n{key}" for key in keys)], "0.5")
    )
    write_known(tmp_path / "known", [PageRecord(key, web.url(key), outlinks=web.outlinks(key)) for key in keys])
    (tmp_path / "urls.txt").write_text("".join(f"{web.url(key)}\n" for key in keys))
    options = {"url_policy": "breadth_first", "crawl_batch_size": 5, "crawl_max_pages": 99, "url_budget": 4}
    given = {"known_links": str(tmp_path / "known"), "known_urls": (str(tmp_path / "urls.txt"),)}
    run(web, tmp_path / "run", ["seeda"], **options, **given)
    _, others = ended(tmp_path / "run")
    assert set(others) == set(keys)
    assert set(others.values()) == {"known_page"}


def test_links_are_followed_by_the_ordinary_rules(tmp_path: Path) -> None:
    """Types of links, a page that forbids to follow its links, and the scope."""
    links = [
        Link("http://a.example/1a", "1a", "", False, "nofollow"),
        Link("http://a.example/2a", "2a", "", False),
        Link("http://b.example/3b", "3b", "", False),
    ]
    web = HostsCorpus(
        {"seeda": ["ka", "la"], **{key: [] for key in ("1a", "2a", "3b", "4a")}},
        dict.fromkeys(("seeda", "1a", "2a", "3b", "4a"), "0.5"),
    )
    pages = [
        PageRecord("ka", "http://a.example/ka", outlinks=links),
        PageRecord("la", "http://a.example/la", outlinks=[links[0]._replace(key="4a")], follows=False),
    ]
    write_known(tmp_path / "known", pages)
    options = {"url_policy": "breadth_first", "crawl_batch_size": 5, "crawl_max_pages": 99}
    given = {"skipped_link_types": ("nofollow",), "scope_deny": (r"3b",), "known_links": str(tmp_path / "known")}
    driven = run(web, tmp_path / "run", ["seeda"], **options, **given)
    crawled, others = ended(tmp_path / "run")
    assert set(crawled) == {"seeda", "2a"}
    assert others == {"ka": "known_page", "la": "known_page", "3b": "denied"}
    assert driven.crawl.statistics()["links/nofollow_own"] == 1
