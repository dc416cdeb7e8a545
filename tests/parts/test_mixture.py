"""MIXTURE in real crawls: classes are noted, shares are reached, and a crawl that was stopped goes the same way."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, begin, crawl, crawl_args, crawl_log, error_of, scrapy, stats

from crawl4llm.base.errors import InputError
from crawl4llm.crawl.reorder_buffer import RaisedN
from crawl4llm.frontier import Entry
from crawl4llm.options import Options
from crawl4llm.parts.mixture.work import ClassGuesses, Mixture
from crawl4llm.policies import CrawledPage
from crawl4llm.scoring.classifiers import read_classifiers
from simulate.clueweb22.corpus import ClueWeb22Corpus

PAGES = 520
SMALL: dict[str, Any] = {"URL_POLICY": "link", "CRAWL_SEEDS": 20, "CRAWL_MAX_PAGES": PAGES, "CRAWL_BATCH_SIZE": 20}
SMALL |= {"COMMIT_INTERVAL_PAGES": 25}
IN_TURN = {"CRAWL_BATCH_SIZE": 0, "SIMULATION_OWNER_DELAY": 2}
WANTED = 0.25
HQ, CC = "__label__hq", "__label__cc"


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.fixture(scope="module")
def mixture(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quarter of good pages, by the demo web's own model, which a link beside the file leads to; and the same said
    otherwise."""
    folder = tmp_path_factory.mktemp("mixture")
    shutil.copy(demo_web.model, folder / "kind.bin")
    shares = {"kind": {HQ: WANTED, "*": 1 - WANTED}, "again": {CC: 1 - WANTED, HQ: WANTED}}
    given = {name: {"model": "kind.bin", "shares": its} for name, its in shares.items()}
    return write(folder / "mixture.json", given)


@pytest.fixture(scope="module", params=[{}, IN_TURN], ids=["batches", "in turn"])
def whole(
    request: pytest.FixtureRequest, demo_web: Web, mixture: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path, str]:
    """Settings, a crawl that was never disturbed, and what it printed."""
    output, settings = tmp_path_factory.mktemp("whole") / "run", {**SMALL, **request.param}
    result = crawl(demo_web, output, **settings, MIXTURE=mixture)
    assert result.returncode == 0, result.stderr
    return settings, output, result.stdout


def share_of(lines: list[dict[str, Any]]) -> float:
    classes = [line["classes"] for line in lines if line["classes"] is not None]
    return classes.count({"kind": HQ, "again": HQ}) / len(classes)


def test_classes_are_noted_and_shares_reached(
    demo_web: Web, mixture: Path, whole: tuple[dict[str, Any], Path, str]
) -> None:
    _, output, told = whole
    lines, figures = crawl_log(output), stats(output)
    (kind, again), corpus = read_classifiers(mixture), ClueWeb22Corpus(demo_web.corpus)
    for line in lines[::7]:
        text = corpus.text(line["id"])
        numbers = kind.classify(text), again.classify(text)
        pairs = zip((kind, again), numbers, strict=True)
        expected = {one.name: one.classes[number] for one, number in pairs if number is not None}
        assert line["classes"] == (expected or None)
        if expected:
            assert (line["influence"] > 0.5) == (expected["again"] == HQ)
    corpus.close()
    assert abs(share_of(lines) - WANTED) < 0.08, "where links say little of classes, and a page in 13 is a seed"
    assert figures[f"mixture/share/kind/{HQ}"] == figures[f"mixture/share/again/{HQ}"] == share_of(lines)
    assert figures["mixture/share/kind/*"] == figures[f"mixture/share/again/{CC}"] == pytest.approx(1 - share_of(lines))
    assert (figures[f"mixture/wanted/kind/{HQ}"], figures["mixture/wanted/kind/*"]) == (WANTED, 1 - WANTED)
    assert f"mixture          kind {HQ} {share_of(lines):.1%} of the pages, 25.0% wanted\n" in told


def test_without_it_nothing_is_noted(demo_web: Web, tmp_path: Path) -> None:
    result = crawl(demo_web, tmp_path / "run", **SMALL)
    lines = crawl_log(tmp_path / "run")
    assert not any("classes" in line for line in lines)
    assert "mixture" not in result.stdout + json.dumps(stats(tmp_path / "run"))
    assert sum(line["influence"] > 0.5 for line in lines) > 1.5 * WANTED * PAGES, "else shares are reached by chance"


def test_stopped_killed_raised_and_resumed(
    demo_web: Web, mixture: Path, whole: tuple[dict[str, Any], Path, str], tmp_path: Path
) -> None:
    settings, before, _ = whole
    output, job = tmp_path / "run", tmp_path / "job"
    given = {**settings, "JOBDIR": job}
    log = output / "crawl.jsonl"
    first = crawl(demo_web, output, **{**given, "CRAWL_MAX_PAGES": 60}, MIXTURE=mixture)
    assert first.returncode == 0, first.stderr
    for least, number in ((95, signal.SIGKILL), (150, signal.SIGTERM)):
        process = begin(crawl_args(demo_web, output, **given, MIXTURE=mixture), silent=["out", "err"])
        until = time.monotonic() + 600
        while process.poll() is None and log.read_bytes().count(b"\n") < least:
            assert time.monotonic() < until
            time.sleep(0.005)
        process.send_signal(number)
        assert process.wait(60) == (130 if number == signal.SIGTERM else -number), "it came to its end before"
    shown = scrapy("frontier", str(job), "--verify")
    assert shown.returncode == 0, shown.stderr
    other = write(mixture.with_name("other.json"), mixture.read_text().replace("0.25", "0.5").replace("0.75", "0.5"))
    assert "what MIXTURE asks for was '" in error_of(crawl(demo_web, output, **given, MIXTURE=other))
    moved = write(mixture.with_name("moved.json"), mixture.read_text())
    result = crawl(demo_web, output, **given, MIXTURE=moved)
    assert result.returncode == 0, result.stderr
    # The links of the pages that were the last ones at first were not followed then, so fewer were visited.
    lines, others = ([{**line, "visited": None} for line in crawl_log(run)] for run in (output, before))
    assert lines == others
    names = ["failures.jsonl", *(f"warc/{path.name}" for path in (output / "warc").iterdir())]
    assert {name: (output / name).read_bytes() for name in names} == {
        name: (before / name).read_bytes() for name in names
    }
    figures, expected = stats(output), stats(before)
    assert {key: figures[key] for key in expected if key.startswith("mixture/")} == {
        key: value for key, value in expected.items() if key.startswith("mixture/")
    }


SHARES = {HQ: 0.5, "*": 0.5}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is no JSON file in UTF-8"),
        ([], "it is no object with a classifier or more"),
        ({}, "it is no object with a classifier or more"),
        ({"a/b": {}}, "'a/b' is no name of letters, digits, dots, hyphens and underscores"),
        ({"kind": {"model": "kind.bin"}}, "kind is no object with just model, shares"),
        ({"kind": {"model": 1, "shares": SHARES}}, "kind: model is no path"),
        ({"kind": {"model": "~no-such-user", "shares": SHARES}}, "~no-such-user cannot be read: No such file"),
        ({"kind": {"model": "none.bin", "shares": SHARES}}, "none.bin cannot be read: No such file"),
        ({"kind": {"model": "mixture.json", "shares": SHARES}}, "mixture.json is not a fastText model"),
        ({"kind": {"model": "kind.bin", "shares": [1]}}, "shares is no object of labels with numbers from 0 to 1"),
        ({"kind": {"model": "kind.bin", "shares": {HQ: True}}}, "shares is no object of labels with numbers"),
        ({"kind": {"model": "kind.bin", "shares": {HQ: 0.5, "*": 0.4}}}, "kind: shares sum to 0.9, not to 1"),
        ({"kind": {"model": "kind.bin", "shares": {}}}, "kind: shares sum to 0, not to 1"),
        ({"kind": {"model": "kind.bin", "shares": {"hq": 1}}}, "'hq' is not a label of"),
        ({"kind": {"model": "kind.bin", "shares": {HQ: 0.5, CC: 0.4, "*": 0.1}}}, "labels that are not named, and all"),
        ({str(name): {"model": "kind.bin", "shares": SHARES} for name in range(10)}, "1,024 combinations of classes"),
    ],
)
def test_a_file_that_asks_for_nothing_that_can_be(mixture: Path, content: object, told: str) -> None:
    path = write(mixture.with_name("wrong.json"), content)
    with pytest.raises(InputError) as error:
        Mixture(Options(mixture=str(path)))
    assert str(error.value).startswith("MIXTURE ")
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_crawl_by_such_a_file_does_not_begin(demo_web: Web, mixture: Path, tmp_path: Path) -> None:
    wrong = write(mixture.with_name("unknown.json"), {"kind": {"model": "kind.bin", "shares": {"hq": 1}}})
    for path, told in ((wrong, f"its labels are: {HQ}, {CC}"), (tmp_path / "none.json", "No such file")):
        assert told in error_of(crawl(demo_web, tmp_path / "run", **SMALL, MIXTURE=path))
    assert not (tmp_path / "run").exists()


def test_guesses_go_by_folder_host_and_parent() -> None:
    guesses = ClassGuesses([2, 3])
    assert guesses.guess("http://a.example/", None) == (0, 0)
    assert guesses.guess("http://a.example/", (1, 2)) == (1, 2)
    for number in range(3):
        guesses.learn(f"http://a.example/x/{number}", (1, 0))
    guesses.learn("http://a.example/y/", (0, 2))
    assert guesses.guess("http://a.example/x/new", (0, 1)) == (1, 0), "the folder"
    assert guesses.guess("http://a.example/z/new", (0, 1)) == (1, 0), "the host"
    assert guesses.guess("http://b.example/", (0, 1)) == (0, 1), "the parent"
    assert guesses.guess("http://b.example/", None) == (1, 0), "all pages"


def test_pages_whose_links_wait_keep_their_classes() -> None:
    entry = Entry("key", "http://a.example/", 0.5, 1, "parent", 1)
    pages = [CrawledPage(entry, 0.5, [], *given) for given in ((), (True,), (None, (0, 1)), (False, (1, 2)))]
    held, again = RaisedN(), RaisedN()
    for page in pages:
        held.hold_back(page)
    again.load(json.loads(json.dumps(held.save())))
    assert again.release() == pages
