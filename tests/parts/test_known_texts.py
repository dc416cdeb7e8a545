"""KNOWN_TEXTS in real crawls: known pages are noted, counted and met less, and a killed crawl goes the same way."""

from __future__ import annotations

import gzip
import json
import signal
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from crawl_helpers import Web, begin, crawl, crawl_args, crawl_log, error_of, scrapy, stats

from crawl4llm.base.urls import host_of
from simulate.clueweb22.corpus import ClueWeb22Corpus

SMALL: dict[str, Any] = {"URL_POLICY": "link", "CRAWL_SEEDS": 20, "CRAWL_MAX_PAGES": 400, "CRAWL_BATCH_SIZE": 20}
SMALL |= {"QUALITY_THRESHOLD": 0.5, "COMMIT_INTERVAL_PAGES": 25, "WARC_TEXT": 1}


def is_known(url: str) -> bool:
    return crc32(host_of(url).encode()) % 2 == 0


@pytest.fixture(scope="module")
def texts(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The texts of about half of the demo web's hosts, some of them with a sentence more."""
    folder = tmp_path_factory.mktemp("known")
    corpus = ClueWeb22Corpus(demo_web.corpus)
    with (folder / "texts.jsonl").open("w") as file:
        for number, key in enumerate(corpus.keys()):
            if is_known(corpus.page(key).url):
                more = " One sentence more." if number % 3 == 0 else ""
                file.write(json.dumps({"text": corpus.text(key) + more}) + "\n")
    corpus.close()
    made = scrapy("corpus", "known", str(folder / "made"), str(folder / "texts.jsonl"))
    assert made.returncode == 0, made.stderr
    return folder / "made/texts.known"


@pytest.fixture(scope="module")
def whole(demo_web: Web, texts: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A crawl that was never disturbed, and what it printed."""
    output = tmp_path_factory.mktemp("whole") / "run"
    result = crawl(demo_web, output, **SMALL, KNOWN_TEXTS=texts)
    assert result.returncode == 0, result.stderr
    return output, result.stdout


def new_quality(lines: list[dict[str, Any]]) -> int:
    return sum(line["influence"] >= 0.5 and not is_known(line["url"]) for line in lines)


def test_known_texts_are_noted_and_counted(demo_web: Web, whole: tuple[Path, str], tmp_path: Path) -> None:
    output, told = whole
    lines, figures = crawl_log(output), stats(output)
    known = sum(is_known(line["url"]) for line in lines)
    noted = sum(line["known_text"] for line in lines)
    assert sum(line["known_text"] == is_known(line["url"]) for line in lines) > 0.95 * len(lines), "but for copies"
    assert known > 20
    assert figures["pages/known_text"] == noted
    assert f"known texts      {noted} of 400 pages" in told
    found = sum(line["influence"] >= 0.5 and not line["known_text"] for line in lines)
    assert figures["pages/new_quality"] == found
    assert figures["new_quality/per_1000_fetches"] == 1000 * found / figures["pages/fetched"]
    assert f"new quality      {found} documents, {1000 * found / 400:,.1f} per 1,000 fetches\n" in told
    assert crawl(demo_web, tmp_path / "plain", **SMALL).returncode == 0
    told_nothing = crawl_log(tmp_path / "plain")
    assert all("known_text" not in line for line in told_nothing)
    assert known < 0.65 * sum(is_known(line["url"]) for line in told_nothing)
    assert new_quality(lines) > new_quality(told_nothing)
    archived = b"".join(gzip.decompress(path.read_bytes()) for path in (output / "warc").glob("*.warc.gz"))
    assert archived.count(b"known-text: true\r\n") == noted


def test_killed_and_resumed(demo_web: Web, texts: Path, whole: tuple[Path, str], tmp_path: Path) -> None:
    output, job = tmp_path / "run", tmp_path / "job"
    args = crawl_args(demo_web, output, **SMALL, KNOWN_TEXTS=texts, JOBDIR=job)
    log = output / "crawl.jsonl"
    for least in (110, 230):
        process = begin(args, silent=["out", "err"])
        until = time.monotonic() + 600
        while process.poll() is None and (not log.exists() or log.read_bytes().count(b"\n") < least):
            assert time.monotonic() < until
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL, "it came to its end before"
    another = tmp_path / "another.jsonl"
    another.write_text('{"text": "something else"}\n')
    assert scrapy("corpus", "known", str(tmp_path / "other"), str(another)).returncode == 0
    given: dict[str, Any] = {**SMALL, "JOBDIR": job}
    refused = crawl(demo_web, output, **given, KNOWN_TEXTS=tmp_path / "other/texts.known")
    assert "what KNOWN_TEXTS has was '" in error_of(refused)
    moved = tmp_path / "moved.known"
    moved.write_bytes(texts.read_bytes())
    result = crawl(demo_web, output, **given, KNOWN_TEXTS=moved)
    assert result.returncode == 0, result.stderr
    names = ["crawl.jsonl", "failures.jsonl", *(f"warc/{path.name}" for path in (output / "warc").iterdir())]
    assert {name: (output / name).read_bytes() for name in names} == {
        name: (whole[0] / name).read_bytes() for name in names
    }


def test_a_crawl_of_known_texts_alone_ends_and_says_so(demo_web: Web, tmp_path: Path) -> None:
    """Seeds do not count: their links are where a crawl begins. What is left is not fetched; nor when it is resumed."""
    corpus = ClueWeb22Corpus(demo_web.corpus)
    texts = "".join(f"{json.dumps({'text': corpus.text(key)})}\n" for key in corpus.keys())
    corpus.close()
    (tmp_path / "all.jsonl").write_text(texts)
    assert scrapy("corpus", "known", str(tmp_path / "all"), str(tmp_path / "all.jsonl"), "--exact").returncode == 0
    given = {"URL_POLICY": "parent_first", "CRAWL_SEEDS": 50, "CRAWL_BATCH_SIZE": 100, "CRAWL_MAX_PAGES": 5000}
    given |= {"KNOWN_TEXTS": tmp_path / "all/texts.known", "WARC_ENABLED": 0, "JOBDIR": tmp_path / "job"}
    for _ in range(2):
        result = crawl(demo_web, tmp_path / "run", **given)
        assert result.returncode == 0, result.stderr
        assert "(the first 1,000 pages beyond the seeds have no new text: KNOWN_TEXTS has them all)" in result.stdout
        lines = crawl_log(tmp_path / "run")
        assert all(line["known_text"] or not line["influence"] for line in lines)
        assert 1050 <= len(lines) <= 1200


def test_a_file_that_is_none_is_refused(demo_web: Web, tmp_path: Path) -> None:
    (tmp_path / "none").write_text("no texts")
    for path in (tmp_path / "none", tmp_path / "missing"):
        told = error_of(crawl(demo_web, tmp_path / "run", **SMALL, KNOWN_TEXTS=path))
        assert told.startswith("KNOWN_TEXTS")
        assert str(path) in told
    assert not (tmp_path / "run").exists()
