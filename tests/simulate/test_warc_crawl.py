"""Crawls on WARC files: those of the project itself, and real pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, crawl_log, error_of, scrapy, stats
from warc_helpers import html_of, http, page, redirect, response, url_of, write

from crawl4llm.base.urls import normalise_url
from simulate.clueweb22.corpus import ClueWeb22Corpus


@pytest.fixture(scope="module")
def archive(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a crawl of the demo web."""
    output = tmp_path_factory.mktemp("archived") / "run"
    assert crawl(demo_web, output, CRAWL_MAX_PAGES=300, WARC_MAX_BYTES=200_000).returncode == 0
    return output / "warc"


def test_an_archive_of_ours_is_a_corpus(archive: Path, demo_web: Web, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    urls = [line["url"] for line in crawl_log(archive.parent)]
    seeds.write_text("\n".join(urls[:20]))
    web = demo_web._replace(corpus=archive)
    result = crawl(web, tmp_path / "run", seeds, CRAWL_MAX_PAGES=150, SIMULATION_TEXT="extracted", CRAWL_BATCH_SIZE=20)
    assert result.returncode == 0, result.stderr
    log = crawl_log(tmp_path / "run")
    assert len({line["id"] for line in log}) == 150
    assert {line["url"] for line in log} <= set(urls)
    assert all(0 <= line["influence"] <= 1 for line in log)


def test_links_are_those_of_the_tree_it_came_from(archive: Path, demo_web: Web, tmp_path: Path) -> None:
    """Of the pages that both crawls took, as many links are seen in the HTML as the tree records."""
    web = demo_web._replace(corpus=archive)
    settings = {"CRAWL_MAX_PAGES": 100, "CRAWL_SEEDS": 50, "CRAWL_BATCH_SIZE": 25, "SIMULATION_TEXT": "extracted"}
    assert crawl(web, tmp_path / "run", **settings).returncode == 0
    expanded = [line for line in crawl_log(tmp_path / "run") if line["iteration"] < 2]
    assert len(expanded) == 75
    tree = ClueWeb22Corpus(demo_web.corpus)
    ids = {line["url"]: line["id"] for line in crawl_log(archive.parent)}
    recorded = sum(len(tree.outlinks(ids[line["url"]])) for line in expanded)
    assert stats(tmp_path / "run")["links/seen"] == pytest.approx(recorded, rel=0.05)


def test_text_of_the_corpus_is_asked_of_a_collection_without(archive: Path, demo_web: Web, tmp_path: Path) -> None:
    assert "SIMULATION_TEXT=extracted" in error_of(crawl(demo_web._replace(corpus=archive), tmp_path / "run"))


@pytest.mark.slow
def test_real_pages(shared: Callable[[str], Path], tmp_path: Path) -> None:
    web = Web(shared("corpora/real-web"), shared("scorers/prose.bin"))
    result = crawl(web, tmp_path / "run", SIMULATION_TEXT="extracted", CRAWL_SEEDS=20, CRAWL_MAX_PAGES=40)
    assert result.returncode == 0, result.stderr
    log = crawl_log(tmp_path / "run")
    assert len(log) == 40
    seeds, found = log[:20], log[20:]
    assert sum(line["influence"] for line in found) > sum(line["influence"] for line in seeds)


def test_pages_at_urls_that_scrapy_does_not_take(demo_web: Web, tmp_path: Path) -> None:
    """Archives hold what their writers put there: a page at such a URL is crawled as any other."""
    urls = ["urn:pageinfo:x", "http://[::1/", "http://site.example:99999999/", "not a url", "https://site.example/"]
    corpus = write(tmp_path / "odd.warc.gz", *(response(url, http(html_of(0, urls))) for url in urls))
    result = crawl(Web(corpus, demo_web.model), tmp_path / "run", SIMULATION_TEXT="extracted", CRAWL_SEEDS=5)
    assert result.returncode == 0, result.stderr
    assert sorted(line["id"] for line in crawl_log(tmp_path / "run")) == sorted(map(normalise_url, urls))


def test_paths_may_be_long_and_not_utf8(archive: Path, demo_web: Web, tmp_path: Path) -> None:
    place = tmp_path / os.fsdecode(b"\xff" + b"n" * 240)
    shutil.copytree(archive, place / "warc")
    shutil.copy(demo_web.model, place / "model.bin")
    web = Web(place / "warc", place / "model.bin")
    result = crawl(web, place / "run", CRAWL_MAX_PAGES=20, SIMULATION_TEXT="extracted", JOBDIR=place / "job")
    assert result.returncode == 0, result.stderr
    assert len(crawl_log(place / "run")) == 20


@pytest.mark.parametrize("out", ["crawls/1", "crawls", "archived/run/warc/x"])
def test_nothing_is_written_into_the_corpus(archive: Path, demo_web: Web, tmp_path: Path, out: str) -> None:
    """It would change: the crawl or build could not be resumed, and the next one would have each page twice."""
    (tmp_path / "crawls").mkdir()
    (tmp_path / "crawls/0").symlink_to(archive)
    (tmp_path / "archived").symlink_to(archive.parent.parent)
    corpus = archive if out.startswith("archived") else tmp_path / "crawls"
    result = crawl(Web(corpus, demo_web.model), tmp_path / out, SIMULATION_TEXT="extracted", CRAWL_MAX_PAGES=5)
    assert f"OUTPUT_DIR {tmp_path / out} is inside CORPUS {corpus}: the corpus would change" in error_of(result)
    build = scrapy("corpus", "build", "--from", str(corpus), "--to", str(tmp_path / out))
    assert f"--to {tmp_path / out} is inside CORPUS {corpus}: " in error_of(build)
    assert set(tmp_path.glob("crawls/*")) == {tmp_path / "crawls/0"}


def test_indexes_with_and_without_canonical_links_are_two(archive: Path, tmp_path: Path) -> None:
    """A tree is built with them: a crawl that has none need not read the files again, nor find another index."""
    for read in ("read, 0 unchanged", "0 read"):
        for canonical in (0, 1):
            settings = ["-s", f"CORPUS={archive}", "-s", f"CORPUS_CANONICAL_LINKS={canonical}"]
            assert read in scrapy("corpus", "index", *settings, cwd=tmp_path).stdout


def test_a_page_is_shown_by_what_seeds_may_be(demo_web: Web, tmp_path: Path) -> None:
    """By another scheme, with a slash or a fragment, or by a URL that redirects to it."""
    old = "https://site.example/old"
    corpus = write(tmp_path / "pages.warc.gz", page(1), redirect(old, url_of(1)))
    key = url_of(1)
    settings = ["-s", f"CORPUS={corpus}", "-s", "SIMULATION_TEXT=extracted", "-s", f"SCORER_MODEL={demo_web.model}"]
    for url in (key, key.replace("https", "http"), f"{key}/", f"{key}#part", old):
        assert f"id         {key}\n" in scrapy("corpus", "show", url, *settings).stdout
        assert f"id         {key}\n" in scrapy("explain", url, *settings).stdout
    other = "https://else.example/"
    assert f"does not hold {other}" in error_of(scrapy("corpus", "show", other, *settings))
