"""Sites that send bodies which unpack to a thousand times as much cost little, and end as bombs."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from crawl_helpers import crawl_log, scrapy, stats
from live_helpers import SCORER, start_live, text_page
from warcio.archiveiterator import ArchiveIterator

from tests.testweb import FewPages, LocalWeb, running
from tests.testweb.misbehaviour import unpacking

BOMBS = ("flat", "paragraphs", "nested", "twice")
SITES = 10
"""Of each kind."""
MOST_MAIN, MOST_READER = 300 << 20, 400 << 20
"""Bytes of the main process and of a reader. Without bounds, the files about opt-outs alone have 2.4 GB."""


class Crawled(NamedTuple):
    """A finished crawl, whose web is served no longer."""

    output: Path
    urls: dict[str, str]
    """Of the only page, by host."""
    main: int
    reader: int
    """The most bytes of memory of the main process, and of any other."""


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """Forty sites with bombs, whose robots.txt (of ten) and tdmrep.json (of all) are bombs too, and two with pages."""
    folder = tmp_path_factory.mktemp("bombs")
    bad = {f"{kind}-{number}.test": f"unpacks:{kind}" for kind in BOMBS for number in range(SITES)}
    rules = {**bad, "ratio.test/": "unpacks:ratio20", "moved.test/": "to:flat-0.test/"}
    rules |= {f"shut-{number}.test/robots.txt": "unpacks:flat" for number in range(SITES)}
    pages = FewPages({"good.test": {"/": text_page(1, []).body}})
    main = reader = 0
    with running(LocalWeb(folder / "web", pages, misbehaving=rules)) as web:
        settings = {"DNS_HOSTS": web.hosts_file, "DOWNLOAD_MAXSIZE": None, "TEXT_EXTRACTOR": "trafilatura"}
        process = start_live(web.seeds, output := folder / "run", CRAWL_MAX_PAGES=200, CRAWL_WAIT=1, **settings)
        with process:
            while process.poll() is None:
                with suppress(psutil.NoSuchProcess):
                    one = psutil.Process(process.pid)
                    main = max(main, one.memory_info().rss)
                    reader = max([reader, *(child.memory_info().rss for child in one.children(recursive=True))])
                time.sleep(0.05)
            said = process.communicate()
        urls = {host: web.url(host, "/") for host in web.hosts}
    assert process.returncode == 0, said
    assert "Traceback" not in said[0] + said[1]
    return Crawled(output, urls, main, reader)


def failures(output: Path) -> dict[str, str]:
    lines = map(json.loads, (output / "failures.jsonl").read_text().splitlines())
    return {line["id"]: line["reason"] for line in lines}


def archived(output: Path) -> dict[str, bytes]:
    """Bodies as they are in the archive."""
    found = {}
    for file in sorted((output / "warc").glob("*-0*.warc.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "response":
                    assert not record.rec_headers["WARC-Truncated"]
                    found[record.rec_headers["WARC-Target-URI"]] = record.raw_stream.read()
    return found


def test_bombs_end_as_such_and_harm_no_other(crawled: Crawled) -> None:
    ends = failures(crawled.output)
    bombs = {url for host, url in crawled.urls.items() if host.startswith(BOMBS)}
    assert {url for url, reason in ends.items() if reason == "bomb"} - {crawled.urls["moved.test"]} == bombs
    assert {line["url"] for line in crawl_log(crawled.output)} == {
        crawled.urls["good.test"],
        crawled.urls["ratio.test"],
    }
    assert stats(crawled.output)["failed/bomb"] in {len(bombs), len(bombs) + 1}


def test_bombs_take_little_memory(crawled: Crawled) -> None:
    assert crawled.main < MOST_MAIN
    assert crawled.reader < MOST_READER


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_archived_as_it_was_sent(crawled: Crawled, kind: str) -> None:
    kept = archived(crawled.output)
    for number in range(SITES):
        assert kept[crawled.urls[f"{kind}-{number}.test"]] == unpacking(kind)[0]
        assert kept[f"{crawled.urls[f'{kind}-{number}.test']}.well-known/tdmrep.json"] == unpacking(kind)[0]


def test_explain_names_the_bomb(crawled: Crawled) -> None:
    told = scrapy("explain", crawled.urls["flat-0.test"], "--run", str(crawled.output)).stdout
    assert "\nfailed     bomb\n" in told
    assert f"{len(unpacking('flat')[0]):,} bytes that unpack to far more" in told


@pytest.mark.parametrize("only_archive", [False, True])
def test_a_bomb_is_one_in_a_replay(crawled: Crawled, tmp_path: Path, only_archive: bool) -> None:
    """By the run, and by its archive files alone, where the record itself is read."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for file in (crawled.output / "warc").iterdir():
        (corpus / file.name).symlink_to(file)
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("".join(f"{crawled.urls[host]}\n" for host in ("good.test", *(f"{one}-1.test" for one in BOMBS))))
    given = {
        "CORPUS": corpus if only_archive else crawled.output,
        "OUTPUT_DIR": tmp_path / "run",
        "SCORER": SCORER,
        "CRAWL_MAX_PAGES": 100,
    }
    settings = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    result = scrapy("crawl", "influence", "-a", f"seeds={seeds}", *settings)
    assert result.returncode == 0, result.stderr
    lines = map(json.loads, (tmp_path / "run/failures.jsonl").read_text().splitlines())
    assert Counter((line["outcome"], line["reason"]) for line in lines) == {("failed", "bomb"): len(BOMBS)}
    assert [line["url"] for line in crawl_log(tmp_path / "run")] == [crawled.urls["good.test"]]
