"""Pages larger than DOWNLOAD_MAXSIZE: dropped by that reason, and never in memory as a whole."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from clueweb22_helpers import (
    html_record,
    key_of,
    link,
    link_record,
    member,
    text_record,
    url_of,
    write_file,
    write_tree,
)
from crawl_helpers import Web, crawl, crawl_log, error_of, stats
from export_helpers import Page, manifest, run_export, write_run
from memory_helpers import little_memory
from scrapy.settings import Settings
from warc_helpers import CRLF, head, html_of, http, page, record, response, url_of as page_url, write

from crawl4llm.base.errors import TooLarge
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.warcs.corpus import WarcCorpus

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LARGEST = 100_000
HUGE = 60_000_000
SUFFIXES = (".warc", ".warc.gz", ".warc.zst")
FILE = "en0000-00"
KEY = key_of(FILE, 0)


def padded(size: int, links: bytes = b"") -> bytes:
    """HTML of a size that cannot be compressed to nothing."""
    return (b"<!doctype html><p>Words.</p>" + links + os.urandom(size // 2).hex().encode()).ljust(size, b" ")[:size]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_page_may_be_as_large_as_it_may(tmp_path: Path, suffix: str) -> None:
    bodies = [padded(LARGEST), padded(LARGEST + 1), gzip.compress(padded(LARGEST)), gzip.compress(b"a" * (LARGEST + 1))]
    coded = ("Content-Type: text/html", "Content-Encoding: gzip")
    blocks = [http(body, fields=coded if body.startswith(b"\x1f") else coded[:1]) for body in bodies]
    text = record("conversion", page_url(9), b"a" * (LARGEST + 1), ["Content-Type: text/plain"])
    write(tmp_path / f"a{suffix}", *[response(page_url(n), block) for n, block in enumerate(blocks)], text, page(7))
    opened = WarcCorpus(tmp_path, tmp_path / "index", largest=LARGEST)
    for corpus in (opened, pickle.loads(pickle.dumps(opened))):
        assert len(corpus.html(page_url(0))) == len(corpus.html(page_url(2))) == LARGEST
        assert corpus.page(page_url(7)).html == html_of(7)
        for number in (1, 3, 9):
            with pytest.raises(TooLarge, match="larger than DOWNLOAD_MAXSIZE"):
                corpus.page(page_url(number))
    with pytest.raises(TooLarge):
        opened.text(page_url(9))
    assert len(WarcCorpus(tmp_path, tmp_path / "index").html(page_url(1))) == LARGEST + 1


def compress_huge(path: Path, first: bytes, last: bytes) -> None:
    """Write an archive file with a page of HUGE bytes between two others."""
    block = head(["HTTP/1.1 200 OK", "Content-Type: text/html"])
    begin = head(
        ["WARC/1.0", "WARC-Type: response", f"WARC-Target-URI: {page_url(2)}", f"Content-Length: {len(block) + HUGE}"]
    )
    piece = b"a" * 1_000_000
    with path.open("wb") as file:
        compress = gzip.compress if path.suffix == ".gz" else zstd.compress
        file.write(compress(first) if first else b"")
        one = zlib.compressobj(1, zlib.DEFLATED, 31) if path.suffix == ".gz" else zstd.ZstdCompressor()
        for part in (begin + block, *[piece] * (HUGE // len(piece)), CRLF + CRLF):
            file.write(one.compress(part))
        file.write(one.flush() + compress(last))


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_huge_page_is_never_in_memory(tmp_path: Path, suffix: str, is_first: bool) -> None:
    compress_huge(tmp_path / f"a{suffix}", b"" if is_first else page(1), page(3))
    with little_memory():
        corpus = WarcCorpus(tmp_path, tmp_path / "index", largest=10_000_000)
        assert page_url(2) in corpus
        with pytest.raises(TooLarge):
            corpus.page(page_url(2))
    assert corpus.html(page_url(3)) == html_of(3)


@pytest.mark.parametrize("content", [b"a" * HUGE, b"a" * 20_000_000 + os.urandom(20_000_000)], ids=["bomb", "no bomb"])
def test_a_huge_gzip_record_without_a_length_is_measured_piece_by_piece(tmp_path: Path, content: bytes) -> None:
    huge = record("response", page_url(2), http() + content, length=None)
    write(tmp_path / "a.warc.gz", page(1), huge, page(3))
    del huge
    with little_memory():
        corpus = WarcCorpus(tmp_path, tmp_path / "index", largest=10_000_000)
    assert list(corpus.keys()) == [page_url(1), page_url(3)]


def test_a_dictionary_of_a_zstandard_file_is_no_bomb(tmp_path: Path) -> None:
    bomb = zstd.compress(b"\0" * HUGE)
    data = b"\x5d\x2a\x4d\x18" + len(bomb).to_bytes(4, "little") + bomb + zstd.compress(page(1))
    (tmp_path / "a.warc.zst").write_bytes(data)
    write(tmp_path / "b.warc", page(2))
    with little_memory():
        assert list(WarcCorpus(tmp_path, tmp_path / "index").keys()) == [page_url(2)]


@pytest.mark.parametrize("kind", ["html", "txt", "outlink"])
def test_clueweb22(tmp_path: Path, kind: str) -> None:
    root = write_tree(tmp_path / "tree")
    make: Callable[[int], bytes] = {
        "html": lambda size: html_record(KEY, "a" * size),
        "txt": lambda size: text_record(KEY, text="").replace(
            b'""', b'"' + b"a" * (size - len(text_record(KEY, text=""))) + b'"'
        ),
        "outlink": lambda size: link_record(KEY, [link(None, "a" * (size - len(link_record(KEY, [link(None, "")]))))]),
    }[kind]
    look_up = {"html": "html", "txt": "text", "outlink": "outlinks"}[kind]
    for size in (LARGEST, LARGEST + 1, HUGE):
        write_file(root, kind, FILE, [zlib_member(make(size))])
        corpus = pickle.loads(pickle.dumps(ClueWeb22Corpus(root, largest=LARGEST)))
        if size == LARGEST:
            assert getattr(corpus, look_up)(KEY)
            continue
        with little_memory():
            for ask in (getattr(corpus, look_up), corpus.page):
                if kind != "txt" or ask != corpus.page:
                    with pytest.raises(TooLarge, match=f"record {KEY}: larger than DOWNLOAD_MAXSIZE"):
                        ask(KEY)


def zlib_member(data: bytes) -> bytes:
    """A gzip member, made quickly."""
    one = zlib.compressobj(1, zlib.DEFLATED, 31)
    return one.compress(data) + one.flush()


def test_inlinks_are_no_part_of_a_page(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "tree")
    write_file(root, "inlink", FILE, [member(link_record(KEY, [link(None, "a" * LARGEST)] * 2, "anchors"))])
    corpus = ClueWeb22Corpus(root, largest=LARGEST)
    assert len(corpus.inlinks(KEY)) == 2
    assert corpus.page(KEY).url == url_of(KEY)


@pytest.mark.parametrize("policy", ["parent_first", "influence"])
def test_a_crawl_drops_them_by_reason(demo_web: Web, tmp_path: Path, policy: str) -> None:
    """One is a seed, one is found; workers that look ahead drop what the crawl would drop."""
    large = [response(page_url(n), http(padded(LARGEST + 1))) for n in (2, 3)]
    write(tmp_path / "web/a.warc.gz", page(1, [page_url(2), page_url(4)]), *large, page(4))
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(f"{page_url(1)}\n{page_url(3)}\n")
    settings = {"SIMULATION_TEXT": "extracted", "URL_POLICY": policy, "DOWNLOAD_MAXSIZE": LARGEST}
    result = crawl(demo_web._replace(corpus=tmp_path / "web"), tmp_path / "run", seeds, **settings)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    counts = stats(tmp_path / "run")
    assert (counts["pages/crawled"], counts["dropped/too_large"]) == (2, 2)
    assert not any(name.startswith("failed/") for name in counts)
    failures = [json.loads(line) for line in (tmp_path / "run/failures.jsonl").read_text().splitlines()]
    assert {(failure["id"], failure["outcome"]) for failure in failures} == {(page_url(n), "dropped") for n in (2, 3)}
    assert [line["id"] for line in crawl_log(tmp_path / "run")] == [page_url(1), page_url(4)]


def test_an_export_leaves_them_out_by_reason(tmp_path: Path) -> None:
    html = [padded(1000), padded(LARGEST + 1)]
    run = write_run(tmp_path / "run", [Page(f"k{n}", None, html=one) for n, one in enumerate(html)], texts=False)
    run_export(tmp_path / "out", run, settings={"DOWNLOAD_MAXSIZE": LARGEST})
    assert (manifest(tmp_path / "out")["documents"], manifest(tmp_path / "out")["left_out"]) == (1, {"too_large": 1})
    run = write_run(tmp_path / "texts", [Page("k0", "a text"), Page("k1", "a" * 4_000_000)])
    run_export(tmp_path / "two", run, settings={"DOWNLOAD_MAXSIZE": LARGEST})
    assert (manifest(tmp_path / "two")["documents"], manifest(tmp_path / "two")["left_out"]) == (1, {"too_large": 1})


def test_the_limit_is_that_of_the_profile(tmp_path: Path, demo_web: Web) -> None:
    for profile in ("simulation", "live"):
        settings = Settings()
        settings.setmodule(f"settings.{profile}")
        assert settings.getint("DOWNLOAD_MAXSIZE") == 10_000_000
    message = error_of(crawl(demo_web, tmp_path / "run", DOWNLOAD_MAXSIZE="much"))
    assert message == "DOWNLOAD_MAXSIZE = 'much' must be 0 or a positive integer"


def test_no_real_page_is_affected(shared: Callable[[str], Path]) -> None:
    """Those whose records are largest in the file."""
    root = shared("clueweb22-real")
    corpus = ClueWeb22Corpus(root, largest=10_000_000)
    for offsets in root.glob("*/en/en00/en0000/*.offset"):
        ends = list(map(int, offsets.read_text().split()))
        largest = sorted(range(len(ends) - 1), key=lambda at: ends[at] - ends[at + 1])[:5]
        for at in largest:
            corpus.page(key_of(offsets.name[:9], at))
