"""The score cache: exact, by what decides a score, and no more than a help, whatever is done to its files."""

from __future__ import annotations

import asyncio
import math
import os
import random
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import psutil
import pytest
from crawl_helpers import Web, begin, begin_python, crawl, crawl_args, crawl_log, stats
from graph_corpus import GraphCorpus, NumberScorer

from crawl4llm.options import Options
from crawl4llm.scoring import score_cache as module
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.scoring.rating import PageRater, Rating, influence
from crawl4llm.scoring.score_cache import ScoreCache, open_score_cache
from crawl4llm.scoring.text import EXTRACTORS
from crawl4llm.scoring.workers import PageWorkers
from crawl4llm.tools.evaluate.survey import Survey
from simulate.clueweb22.corpus import ClueWeb22Corpus

KEYS = [f"page{number}" for number in range(500)]
RATINGS = [Rating(math.sin(number)) for number in range(500)]


def opened(folder: Path, pages: int = len(KEYS), **depends_on: object) -> ScoreCache:
    return ScoreCache(folder, depends_on, pages)


def filled(folder: Path) -> ScoreCache:
    """A cache that was given all ratings, and is opened anew."""
    cache = opened(folder)
    cache.add(KEYS, RATINGS)
    cache.close()
    return opened(folder)


def bits(ratings: Sequence[Rating | None]) -> list[Any]:
    """Ratings by the bits of their scores."""
    return [
        rating and (rating.score if rating.score is None else struct.pack(">d", rating.score), rating.reason)
        for rating in ratings
    ]


# -- what it keeps ----------------------------------------------------------------------------------------------------


def test_scores_are_kept_to_the_bit(tmp_path: Path) -> None:
    scores = [1 / 3, 0.0, -0.0, 5e-324, -1.7976931348623157e308, math.nextafter(1, 2)]
    ratings = [*map(Rating, scores), Rating(0.0, "no_text"), Rating(None, "http_404"), Rating(None, "no_html")]
    keys = [f"http://example.org/\udc80{number}" for number in range(len(ratings))]
    opened(tmp_path).add(keys, ratings)
    cache = opened(tmp_path)
    assert bits(cache.find([*keys, "another"])) == [*bits(ratings), None]
    assert (cache.found, cache.added) == (len(keys), 0)


@pytest.mark.parametrize("reason", ["timeout", "killed", "error", "corrupt_record", "too_large", "of_my_own"])
def test_what_may_be_otherwise_next_time_is_not_kept(reason: str, tmp_path: Path) -> None:
    opened(tmp_path).add(["page"], [Rating(None, reason)])
    assert opened(tmp_path).find(["page"]) == [None]


def test_what_decides_a_score_has_a_file_of_its_own(tmp_path: Path) -> None:
    corpus = GraphCorpus({"a": []}, {"a": "0.5"})
    rater, other, labelled = PageRater(corpus, NumberScorer(), None), NumberScorer(), NumberScorer()
    other.digest = "1" * 64  # type: ignore[misc]
    labelled.label = "good"  # type: ignore[attr-defined]
    raters = [
        rater,
        PageRater(corpus, other, None),
        PageRater(corpus, labelled, None),
        *(PageRater(corpus, NumberScorer(), extractor) for extractor in EXTRACTORS),
        PageRater(GraphCorpus({"a": [], "b": []}, {"a": "0.5"}), NumberScorer(), None),
    ]
    assert len({open_score_cache(tmp_path, rater).path for rater in raters}) == len(raters)
    assert open_score_cache(tmp_path, rater).path == open_score_cache(tmp_path, replace(rater)).path


# -- what is done to it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["flipped", "short", "long", "garbage", "zeros"])
def test_damaged_entries_are_computed_again(damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = filled(tmp_path).path
    data, chance = bytearray(path.read_bytes()), random.Random(0)
    if damage == "flipped":
        for at in chance.choices(range(len(data)), k=2000):
            data[at] ^= 1 << chance.randrange(8)
    elif damage == "garbage":
        data = bytearray(chance.randbytes(len(data)))
    path.write_bytes(
        {"short": data[: len(data) // 2 + 7], "long": data + b"more", "zeros": bytes(len(data))}.get(damage, data)
    )
    cache = opened(tmp_path)
    found = cache.find(KEYS)
    assert all(rating in {None, right} for rating, right in zip(found, RATINGS, strict=True))
    assert (found.count(None) > 0) == (damage != "long")
    cache.add(KEYS, RATINGS)
    assert bits(opened(tmp_path).find(KEYS)) == bits(RATINGS)
    lines = [record.message for record in caplog.records]
    assert lines == [f"SCORE_CACHE {path} is damaged; lost scores are computed again"] * (damage != "zeros")


@pytest.mark.parametrize(("score", "reason"), [(math.nan, 0), (math.inf, 1), (0.5, 4), (0.5, 2**32 - 1)])
def test_an_entry_that_says_what_cannot_be(
    score: float, reason: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its checksum is right: somebody made it so."""
    opened(tmp_path).add(["page"], [Rating(0.25)])
    path = opened(tmp_path).path
    data = path.read_bytes()
    begin = data.find(struct.pack("<d", 0.25)) - 16
    entry = data[begin : begin + 16] + struct.pack("<dI", score, reason)
    entry += struct.pack("<I", crc32(entry))
    path.write_bytes(data[:begin] + entry + data[begin + len(entry) :])
    assert opened(tmp_path).find(["page"]) == [None]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("obstacle", ["folder", "file above", "fifo", "link"])
def test_where_no_file_can_be_there_is_no_cache(
    obstacle: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = opened(tmp_path / "scores").path
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    if obstacle == "file above":
        path.parent.write_bytes(b"")
    else:
        path.parent.mkdir()
        make = {"folder": path.mkdir, "fifo": lambda: os.mkfifo(path), "link": lambda: path.symlink_to(victim)}
        make[obstacle]()
    cache = opened(tmp_path / "scores")
    cache.add(KEYS, RATINGS)
    assert cache.find(KEYS) == [None] * len(KEYS)
    (line,) = [record.message for record in caplog.records]
    assert line.startswith(f"SCORE_CACHE {path} is not used: ")
    assert victim.read_bytes() == b""


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a file system here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk(tiny_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = opened(tiny_disk)
    cache.add(KEYS, RATINGS)
    assert [record.message for record in caplog.records] == [
        f"SCORE_CACHE {cache.path} is not used: No space left on device"
    ]
    found = opened(tiny_disk).find(KEYS)
    assert all(rating in {None, right} for rating, right in zip(found, RATINGS, strict=True))


def test_the_folder_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was used longest ago goes, of what the cache has written; not what is in use."""
    caches = [opened(tmp_path, number=number) for number in range(4)]
    for age, cache in enumerate(caches):
        cache.add(["page"], [Rating(0.5)])
        os.utime(cache.path, (1e9 - age, 1e9 - age))
    (tmp_path / "mine.scores").write_bytes(b"x" * 1_000_000)
    monkeypatch.setattr(module, "_LARGEST_FOLDER", 3 * caches[0].path.stat().st_size)
    assert opened(tmp_path, number=3).find(["page"]) == [Rating(0.5)]
    assert [cache.path.exists() for cache in caches] == [True, True, False, True]
    assert (tmp_path / "mine.scores").exists()


def test_a_table_too_small_for_its_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST_FILE", 8192)
    cache = filled(tmp_path)
    found = cache.find(KEYS)
    assert all(rating in {None, right} for rating, right in zip(found, RATINGS, strict=True))
    assert 100 < len(KEYS) - found.count(None) < 8192 // 32
    assert cache.path.stat().st_size <= 8192


FILL = """
import sys
from pathlib import Path
sys.path.insert(0, "tests/helpers"), sys.path.insert(0, "tests/scoring")
from test_score_cache import KEYS, RATINGS, opened
print("ready", flush=True)
while True:
    opened(Path(sys.argv[1])).add(KEYS, RATINGS)
"""


def test_processes_fill_it_at_once_and_are_killed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Two write the same entries without end; whoever reads meanwhile finds what is right, or nothing."""
    fillers = [begin_python("-c", FILL, tmp_path) for _ in range(2)]
    assert all(filler.stdout and filler.stdout.readline() == "ready\n" for filler in fillers)
    cache = opened(tmp_path)
    while cache.find(KEYS).count(None):
        cache.close()
        cache = opened(tmp_path)
    for filler in fillers:
        found = cache.find(KEYS)
        assert all(rating in {None, right} for rating, right in zip(found, RATINGS, strict=True))
        filler.send_signal(signal.SIGKILL)
        filler.communicate()
    assert bits(opened(tmp_path).find(KEYS)) == bits(RATINGS)
    assert not caplog.records


def test_processes_are_started_by_the_first_page_that_is_missing(tmp_path: Path) -> None:
    texts = {key: f"0.{number + 1}" for number, key in enumerate("abcdef")}
    rater = PageRater(GraphCorpus(dict.fromkeys(texts, ()), texts), NumberScorer(), None)
    known = open_score_cache(tmp_path, rater)
    known.add(list("abc"), [Rating(9.0)] * 3)
    known.close()
    with PageWorkers(rater, 2, 30.0, open_score_cache(tmp_path, rater)) as workers:
        workers.start()
        before = set(psutil.Process().children())
        assert asyncio.run(workers.run(influence, list("cab"))) == [Rating(9.0)] * 3
        assert set(psutil.Process().children()) == before
        rated = [Rating(0.4), Rating(9.0), Rating(0.6), Rating(0.4), Rating(None, "http_404")]
        assert asyncio.run(workers.run(influence, ["d", "a", "f", "d", "gone"])) == rated
        assert len(set(psutil.Process().children()) - before) == 2
    assert open_score_cache(tmp_path, rater).find(["d", "e", "gone"]) == [rated[0], None, rated[-1]]


# -- crawls and evaluations -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(small_demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The logs of crawls without a cache, by policy."""
    folder = tmp_path_factory.mktemp("plain")
    for policy in ("influence", "parent_first"):
        assert crawl(small_demo_web, folder / policy, **settings(policy)).returncode == 0
    return {policy: (folder / policy / "crawl.jsonl").read_bytes() for policy in ("influence", "parent_first")}


def settings(policy: str) -> dict[str, object]:
    return {
        "URL_POLICY": policy,
        "CRAWL_MAX_PAGES": 300 if policy == "influence" else 100,
        "CRAWL_SEEDS": 20,
        "CRAWL_BATCH_SIZE": 20,
        "WARC_ENABLED": False,
    }


def crawled(web: Web, output: Path, policy: str, scores: Path) -> tuple[bytes, int, int, str]:
    """The log of a crawl with a cache; how many scores were in it, how many were not; and what was logged besides."""
    result = crawl(web, output, **settings(policy), SCORE_CACHE=scores)
    assert result.returncode == 0, result.stderr
    counts = stats(output)
    return (output / "crawl.jsonl").read_bytes(), counts["scores/cached"], counts["scores/computed"], result.stderr


def test_crawls_and_evaluations_score_no_page_twice(
    plain: dict[str, bytes], small_demo_web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = tmp_path / "scores"
    log, cached, computed, _ = crawled(small_demo_web, tmp_path / "cold", "influence", scores)
    assert (log == plain["influence"], cached) == (True, 0)
    log, cached, again, _ = crawled(small_demo_web, tmp_path / "warm", "parent_first", scores)
    assert (log == plain["parent_first"], cached, again) == (True, 100, 0)

    looked_at = []
    score = FastTextScorer.score
    monkeypatch.setattr(FastTextScorer, "score", lambda self, texts: looked_at.append(texts) or score(self, texts))
    rater = PageRater(ClueWeb22Corpus(small_demo_web.corpus), FastTextScorer(small_demo_web.model, "__label__hq"), None)
    options = Options(scoring_workers=0, progress_bar="off", score_cache=str(scores))
    shared = Survey(rater.corpus, options, cache=tmp_path / "one").scores(rater, "fasttext")
    missing = len(looked_at)
    assert missing <= len(rater.corpus) - computed
    alone = Survey(rater.corpus, replace(options, score_cache=""), cache=tmp_path / "two").scores(rater, "fasttext")
    assert shared.influence.tobytes() == alone.influence.tobytes()
    assert shared.tokens.tobytes() == alone.tokens.tobytes()
    looked_at.clear()
    Survey(rater.corpus, options, cache=tmp_path / "three").scores(rater, "fasttext")
    assert not looked_at


def test_a_damaged_cache_or_none_changes_no_crawl(plain: dict[str, bytes], small_demo_web: Web, tmp_path: Path) -> None:
    scores = tmp_path / "scores"
    crawled(small_demo_web, tmp_path / "first", "parent_first", scores)
    (path,) = scores.iterdir()
    data, chance = bytearray(path.read_bytes()), random.Random(1)
    for at in chance.choices(range(len(data)), k=len(data) // 100):
        data[at] ^= 0x55
    path.write_bytes(data)
    log, cached, computed, said = crawled(small_demo_web, tmp_path / "second", "parent_first", scores)
    assert log == plain["parent_first"]
    assert (cached + computed, cached > 0, computed > 0) == (100, True, True)
    assert said.count("SCORE_CACHE") == 1
    shutil.rmtree(scores)
    scores.write_bytes(b"")
    log, cached, computed, said = crawled(small_demo_web, tmp_path / "third", "parent_first", scores)
    assert (log == plain["parent_first"], cached, computed) == (True, 0, 100)
    assert said.count("SCORE_CACHE") == 1


def test_a_crawl_that_is_killed_while_it_fills_it(plain: dict[str, bytes], small_demo_web: Web, tmp_path: Path) -> None:
    """After the first scores were kept; the next crawl goes on from there."""
    scores = tmp_path / "scores"
    args = crawl_args(small_demo_web, tmp_path / "killed", **settings("influence"), SCORE_CACHE=scores)
    killed = begin(args)
    while killed.poll() is None and not any(path.stat().st_blocks for path in scores.glob("*.scores")):
        time.sleep(0.001)
    killed.kill()
    killed.communicate()
    log, cached, computed, said = crawled(small_demo_web, tmp_path / "next", "influence", scores)
    assert log == plain["influence"]
    assert cached > 0
    assert cached + computed == crawl_log(tmp_path / "next")[-1]["fetched"]
    assert "SCORE_CACHE" not in said
