"""Log, index and archive of a run agree, and other people's tools accept the archive."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, crawl_log, python, stats
from fastwarc.warc import ArchiveIterator
from finished_runs import COMMON, FinishedRuns

from crawl4llm.warc import cdxj
from crawl4llm.warc.reader import read_record
from simulate.clueweb22.corpus import ClueWeb22Corpus


@pytest.fixture(scope="module", params=["html", "text"])
def run(
    request: pytest.FixtureRequest,
    demo_web: Web,
    shared: Callable[[str], Path],
    finished_runs: FinishedRuns,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Web, Path]:
    """A run of 200 pages whose archive has several files; from a tree with html, and from one without."""
    if request.param == "html":
        return demo_web, finished_runs.output("influence")
    web = Web(shared("clueweb22-real"), shared("scorers/prose.bin"))
    output = tmp_path_factory.mktemp("archived") / "run"
    result = crawl(web, output, **COMMON)
    assert result.returncode == 0, result.stderr
    return web, output


def test_each_line_of_the_log_leads_to_its_page_in_the_same_order(run: tuple[Web, Path]) -> None:
    web, output = run
    corpus = ClueWeb22Corpus(web.corpus)
    entries = list(cdxj.read(output / "warc/index.cdxj"))

    assert [entry.id for entry in entries] == [line["id"] for line in crawl_log(output)]
    assert len({entry.filename for entry in entries}) > 1, "the archive was to have several files"
    places = [(entry.filename, entry.offset) for entry in entries]
    assert places == sorted(places)
    for entry in entries:
        page = corpus.page(entry.id)
        expected = page.html if page.html is not None else (page.text or "").encode()
        assert read_record(output / "warc", entry) == expected


def test_every_file_begins_with_warcinfo_and_all_records_verify(run: tuple[Web, Path]) -> None:
    _, output = run
    files = sorted((output / "warc").glob("*.warc.gz"))
    log = crawl_log(output)
    content, metadata = [], []
    for file in files:
        with file.open("rb") as stream:
            records = [
                (record.headers["WARC-Type"], record.headers.get("WARC-Target-URI"), record.verify_block_digest())
                for record in ArchiveIterator(stream, parse_http=False)
            ]
        assert [kind for kind, _, _ in records].count("warcinfo") == 1
        assert records[0][0] == "warcinfo"
        assert all(verified for _, _, verified in records)
        content += [url for kind, url, _ in records if kind in {"response", "conversion"}]
        metadata += [url for kind, url, _ in records if kind == "metadata"]
    assert len(content) == len(metadata) == len(log)
    assert not list((output / "warc").glob("*.open"))


def test_warcio_finds_no_fault(run: tuple[Web, Path]) -> None:
    files = sorted((run[1] / "warc").glob("*.warc.gz"))
    python("-m", "warcio.cli", "check", *files, check=True)


def test_without_archive_only_the_logs_are_written(demo_web: Web, tmp_path: Path) -> None:
    assert crawl(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=50, WARC_ENABLED="False").returncode == 0
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "crawl.jsonl",
        "failures.jsonl",
        "seeds.txt",
        "series.jsonl",
        "settings.json",
        "stats.json",
    ]


def test_without_archive_the_same_is_crawled(run: tuple[Web, Path], tmp_path: Path) -> None:
    web, output = run
    result = crawl(web, tmp_path / "run", **COMMON, WARC_ENABLED="False")
    assert result.returncode == 0, result.stderr
    for log in "crawl.jsonl", "failures.jsonl":
        assert (tmp_path / "run" / log).read_bytes() == (output / log).read_bytes()


def test_content_that_was_scored_is_not_read_again_without_archive(demo_web: Web, tmp_path: Path) -> None:
    """Damaged after that, behind its beginning, it is missed by nothing but the archive."""
    tree = shutil.copytree(demo_web.corpus, tmp_path / "tree", ignore=shutil.ignore_patterns("html"))
    for name in "sound", "damaged", "archived":
        archived = name == "archived"
        settings = {"CRAWL_MAX_PAGES": 300, "SCORE_CACHE": tmp_path / "scores", "WARC_ENABLED": archived}
        crawl(Web(tree, demo_web.model), tmp_path / name, None, None, **settings)
        if name == "sound":
            for offsets in (tree / "txt").rglob("*.offset"):
                _spoil_checksums(offsets.with_name(offsets.name.replace(".offset", ".json.gz")), offsets)
    assert crawl_log(tmp_path / "damaged") == crawl_log(tmp_path / "sound")
    assert stats(tmp_path / "damaged")["pages/crawled"] == 300
    assert stats(tmp_path / "archived")["failed/corrupt_record"] > 50


def _spoil_checksums(data: Path, offsets: Path) -> None:
    """Damage the end of each record that is longer than what tells its URL."""
    content = bytearray(data.read_bytes())
    places = [int(line) for line in offsets.read_text().split()]
    for start, end in pairwise(places):
        if len(gzip.decompress(content[start:end])) > 600:
            content[end - 8 : end] = bytes(8)
    data.write_bytes(content)
