"""How far long work is: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from build_helpers import build, warc_corpus
from dataset_helpers import archive, write_finished
from graph_corpus import GraphCorpus, NumberScorer
from training_helpers import GOOD, OTHER, run_training, texts, write_jsonl

from crawl4llm.base import bars
from crawl4llm.base.bars import Lines, Progress
from crawl4llm.options import Options
from crawl4llm.scoring import passes
from crawl4llm.scoring.rating import PageRater
from crawl4llm.tools.archive import facts
from crawl4llm.tools.evaluate.survey import Survey
from simulate.centrality import page_ranks

_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line whenever something is done."""
    monkeypatch.setattr(bars, "_SECONDS", 0.0)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was printed on standard error, without the time of day."""
    printed = capsys.readouterr().err.splitlines()
    assert all(_STAMP.match(line) for line in printed), printed
    return [_STAMP.sub("", line) for line in printed]


def whats(capsys: pytest.CaptureFixture[str]) -> set[str]:
    """The pieces of work of which lines told."""
    return {line.partition(":")[0] for line in lines(capsys)}


@pytest.mark.usefixtures("often")
class TestLines:
    def test_how_much_of_how_much(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert list(Progress(["a", "b", "c", "d"], "reading", unit=" files")) == ["a", "b", "c", "d"]
        found = lines(capsys)
        assert [line.rpartition(",")[0] for line in found] == [
            "reading: 1 of 4 files, 25%",
            "reading: 2 of 4 files, 50%",
            "reading: 3 of 4 files, 75%",
            "reading: 4 of 4 files, 100%",
        ]
        assert all(re.fullmatch(r" \d\d:\d\d left", line.rpartition(",")[2]) for line in found)

    def test_of_which_some_was_done_before(self, capsys: pytest.CaptureFixture[str]) -> None:
        with Progress[str](None, "scores", 10_000, initial=9_000, unit=" pages") as bar:
            bar.update(500)
        assert lines(capsys)[0].startswith("scores: 9,500 of 10,000 pages, 95%, 00:00 left")

    def test_without_a_total(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert list(Progress(iter("ab"), "positive", unit=" texts")) == ["a", "b"]
        assert lines(capsys) == ["positive: 1 texts", "positive: 2 texts"]

    def test_large_numbers_in_short(self, capsys: pytest.CaptureFixture[str]) -> None:
        with Progress[str](None, "checking", 4_000_000_000, unit="B", unit_scale=True) as bar:
            bar.update(1_500_000_000)
        assert lines(capsys)[0].startswith("checking: 1.50G of 4.00GB, 38%, ")

    def test_where_only_the_time_is_known(self, capsys: pytest.CaptureFixture[str]) -> None:
        Lines("comparing").say_time()
        assert lines(capsys) == ["comparing: 00:00 so far"]


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(Progress("abc", "reading", unit=" files")) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


def test_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(Progress("abc", "reading", unit=" files", bar=True)) == ["a", "b", "c"]
    assert re.search(r"reading: 100%.* 3/3 ", capsys.readouterr().err)


def test_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_finished(tmp_path / "run")
    monkeypatch.setattr(facts, "_STEPS", 10)
    monkeypatch.setattr(bars, "_SECONDS", 0.0)
    told = {}
    for action in (["check", run], ["purge", "two.example", run], ["repair", run], ["finish", run]):
        status, _, err = archive(*action)
        assert status == 0, err
        told[action[0]] = {_STAMP.sub("", line).partition(":")[0] for line in err.splitlines()}
    assert told["check"] == {"reading", "comparing records"}
    assert told["purge"] >= {"comparing records", "Rewriting"}
    assert told["repair"] >= {"comparing records"}
    assert told["finish"] == {"reading", "comparing records"}


@pytest.mark.usefixtures("often")
class TestCommands:
    def test_trainscorer(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        good = write_jsonl(tmp_path / "good.jsonl", texts(GOOD, 400))
        other = write_jsonl(tmp_path / "other.jsonl", texts(OTHER, 400))
        run_training([good], [other], tmp_path / "model", epochs=30)
        found = lines(capsys)
        assert {line.partition(":")[0] for line in found} == {"positive", "negative", "training", "testing"}
        assert any(re.fullmatch(r"training: \d+\.\d%", line) for line in found)

    def test_evaluate(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(passes, "BLOCK", 2)
        corpus = GraphCorpus({key: [] for key in "abc"}, dict.fromkeys("abc", "0.5"))
        survey = Survey(corpus, Options(scoring_workers=0, progress_bar="auto"), cache=tmp_path)
        survey.scores(PageRater(corpus, NumberScorer(), None), "number")
        assert [line.partition(",")[0] for line in lines(capsys)] == ["scores: 2 of 3 pages", "scores: 3 of 3 pages"]

    def test_corpus(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        source = warc_corpus(tmp_path, [1, 2, 3])
        assert whats(capsys) == {"indexing", "sorting the index"}
        build(source, tmp_path / "tree")
        assert whats(capsys) == {"planning", "reading pages", "writing files"}
        page_ranks(source, progress=False)
        assert whats(capsys) == {"links", "centrality"}
