"""Log, index and archive of a run agree, and other people's tools accept the archive."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, crawl_log
from fastwarc.warc import ArchiveIterator

from crawl4llm.warc import cdxj
from crawl4llm.warc.reader import read_record
from simulate.clueweb22.corpus import ClueWeb22Corpus


@pytest.fixture(scope="module", params=["html", "text"])
def run(
    request: pytest.FixtureRequest,
    demo_web: Web,
    shared: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Web, Path]:
    """A run of 200 pages whose archive has several files; from a tree with html, and from one without."""
    web = demo_web if request.param == "html" else Web(shared("clueweb22-real"), shared("scorers/prose.bin"))
    output = tmp_path_factory.mktemp("archived") / "run"
    result = crawl(web, output, CRAWL_MAX_PAGES=200, CRAWL_BATCH_SIZE=30, WARC_MAX_BYTES=200_000)
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
    checked = subprocess.run(
        [sys.executable, "-m", "warcio.cli", "check", *map(str, files)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


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
