"""Other people's tools on the archive of a live crawl: pywb replays it in a browser, cdxj-indexer indexes it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_helpers import LATIN, Crawled, crawled_once
from selectolax.lexbor import LexborHTMLParser

from crawl4llm.warc.cdxj import ABOUT
from simulate.warcs.corpus import WarcCorpus


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    return crawled_once(tmp_path_factory)


def test_cdxj_indexer_writes_the_same_index(crawled: Crawled, tmp_path: Path) -> None:
    """All fields that both have, of pages, redirects, revisits and robots.txt."""
    pytest.importorskip("cdxj_indexer", reason="needs the extra test")
    files = sorted(path for path in (crawled.output / "warc").glob("*.warc.gz") if "-text-" not in path.name)
    command = [sys.executable, "-m", "cdxj_indexer.main", *map(str, files)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs = result.stdout.splitlines()
    ours = [_of_theirs(line) for line in (crawled.output / "warc/index.cdxj").read_text().splitlines()]
    assert len(ours) > 50
    assert ours == theirs
    assert sum('"warc/revisit"' in line for line in ours) == 1


def _of_theirs(line: str) -> str:
    key, timestamp, fields = line.split(" ", 2)
    kept = {name: value for name, value in json.loads(fields).items() if name not in {"id", *ABOUT}}
    return f"{key} {timestamp} {json.dumps(kept)}"


# -- pywb -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pywb(crawled: Crawled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL below which pywb has the crawled pages, by our index and our files as they are.

    pywb wants other versions of what Scrapy needs, so it lies in an environment of its own: the one that ``make test``
    makes, on the PATH (``pipx install pywb``), or where the environment variable WAYBACK says.
    """
    of_make = Path(sys.prefix) / "pywb/bin/wayback"
    wayback = os.environ.get("WAYBACK") or (str(of_make) if of_make.exists() else shutil.which("wayback"))
    if wayback is None:
        pytest.skip("needs pywb: pipx install pywb, or WAYBACK=path/of/wayback")
    folder = tmp_path_factory.mktemp("pywb")
    collection = folder / "collections" / "ours"
    (collection / "indexes").mkdir(parents=True)
    shutil.copytree(crawled.output / "warc", collection / "archive")
    index = (collection / "archive" / "index.cdxj").read_bytes().splitlines(keepends=True)
    (collection / "indexes" / "index.cdxj").write_bytes(b"".join(sorted(index)))
    (folder / "config.yaml").write_text("framed_replay: false\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [wayback, "-b", "127.0.0.1", "-p", str(port), "-d", str(folder)], stdout=log, stderr=log, cwd=folder
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/", server, folder / "log")
        yield f"http://127.0.0.1:{port}/ours"
    finally:
        server.terminate()
        server.wait(10)


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(6000):
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"pywb does not answer: {log.read_text()}")


def test_pywb_shows_ten_pages_in_a_browser(
    crawled: Crawled, pywb: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The site is not there any more: plain, compressed, chunked, redirected, repeated, in another charset."""
    pytest.importorskip("selenium", reason="needs the extra test")
    from browser import chromium, text_of

    corpus = WarcCorpus(crawled.output, tmp_path / "index")
    paths = [
        "/page-0",
        "/page-1",
        "/page-2",
        "/page-4",
        "/page-11",
        "/dir/",
        "/moved-0",
        "/same-a",
        "/same-b",
        "/latin",
    ]
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        for path in paths:
            browser.get(f"{pywb}/{crawled.url}{path}")
            expected = _paragraphs(corpus.html(crawled.url + path))
            assert expected
            assert [text for text in expected if text not in text_of(browser)] == [], path
        assert "Größe" in LATIN
        assert "Größe" in text_of(browser)


def _paragraphs(html: bytes) -> list[str]:
    return [" ".join(node.text().split()) for node in LexborHTMLParser(html).css("article p")]
